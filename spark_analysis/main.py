"""From a run folder to verdict, tables and report: `python -m spark_analysis RUN`, or under spark-submit.

The journal is checked before Spark starts (the content of a large one by Spark itself, first of all); one that is
damaged is not judged (`spark_analysis.damaged_run`). The verdict reads the kinds of rows that it needs. For the tables
of metrics all rows are kept in Spark's memory or on disk; those of a large journal are read anew by each table. Every
table is a transform of them (`spark_analysis.judge`, `spark_analysis.metrics`), and this module decides what is run.
A run that was cut short is analysed as far as it went, and the verdict says so.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

if not __package__:  # spark-submit starts this file by its path: the packages lie one folder up
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from murmur_pubsub.client import CLIENT_MESSAGES
from murmur_pubsub.errors import DiskError, InputError
from murmur_pubsub.journal import RowKind
from murmur_pubsub.journal_store import store_at
from murmur_pubsub.message import kind_of
from murmur_pubsub.progress import Progress
from murmur_pubsub.run_manifest import RunManifest, read_manifest
from murmur_pubsub.verdict_file import Expectation
from spark_analysis import judge as judging
from spark_analysis import metrics
from spark_analysis.causes import Causes
from spark_analysis.census import census_of
from spark_analysis.connections import Connections
from spark_analysis.course import course_of
from spark_analysis.damaged_run import DamagedRun
from spark_analysis.expectations import check_expectations, measured
from spark_analysis.fault_checks import FaultCheck
from spark_analysis.fault_plan import kills_of
from spark_analysis.faults import Faults, Recovery, checks_table
from spark_analysis.findings import FINDINGS_SCHEMA, Readers, conjured, findings
from spark_analysis.first_look import FirstLook, look_first, look_first_in_spark
from spark_analysis.journal_check import survey
from spark_analysis.journal_source import SMALL_JOURNAL_BYTES, read_journal, read_journal_here
from spark_analysis.key_figures import KEY_FIGURES, Figures
from spark_analysis.recovery import tell_unsettled, unsettled_change
from spark_analysis.report import check_report, write_report
from spark_analysis.rules import rules_of
from spark_analysis.session import check_executors, is_cluster, spark_session
from spark_analysis.tables import SMALL_TABLES, AnalysisFolder
from spark_analysis.verdict import COUNTS, Facts, decide

_ROWS_KEPT_BYTES_MAX = 1 << 30
"""Rows of a larger journal are read anew for each table of metrics: keeping all would fill the disks. The verdict needs
few of their kinds."""
_TOLD_HERE_MAX = 100_000
"""The most findings of a small journal that the driver tells, and not processes of Python that Spark starts."""


def _silent(step: str, done: int, total: int) -> None:
    pass


def analyze(
    run: Path, master: str | None = None, progress: Progress = _silent, executor_memory: str | None = None
) -> dict[str, Any]:
    """Judge the run, write `RUN/analysis` and `RUN/report.html`; the verdict with its numbers.

    Uses the active Spark session if there is one; else `master` and `executor_memory` are those of
    `session.start_session`. Raises `InputError` for a folder that is no run's or has
    no place for a report, a journal of another schema version or a missing Java.
    """
    run = Path(run)
    manifest = read_manifest(run)
    check_report(run)
    with _opened(run, manifest, master, executor_memory, progress) as analysis:
        verdict = analysis.judge()
        analysis.measure()
    progress("drawing the report", 0, 0)
    write_report(run)
    return verdict


@contextmanager
def session_for(runs: Sequence[Path], master: str | None = None, executor_memory: str | None = None) -> Iterator[None]:
    """One Spark for the analyses of all these runs in the block, made for the largest; raises as `analyze` does."""
    sizes = []
    for run in runs:
        store = store_at(read_manifest(run).journal_at(run))
        sizes.append(sum((store.sizes("seg") | store.sizes("blob")).values()))
    with spark_session(master, max(sizes, default=0), executor_memory):
        yield


def judge(run: Path, master: str | None = None, executor_memory: str | None = None) -> dict[str, Any]:
    """The verdict alone, with its findings and the table of faults in `RUN/analysis`; raises as `analyze` does."""
    with _opened(Path(run), read_manifest(Path(run)), master, executor_memory, _silent, measures=False) as analysis:
        return analysis.judge()


def judge_and_measure(run: Path) -> tuple[dict[str, Any], Figures]:
    """The verdict, and the few figures by which runs are compared; raises as `analyze`."""
    with _opened(run, read_manifest(run), None, None, _silent) as analysis:
        return analysis.judge(), analysis.key_figures()


@contextmanager
def _opened(
    run: Path,
    manifest: RunManifest,
    master: str | None,
    executor_memory: str | None,
    progress: Progress,
    measures: bool = True,
) -> "Iterator[_Analysis | DamagedRun]":
    progress("checking the journal", 0, 0)
    place = manifest.journal_at(run)
    surveyed = survey(store_at(place), manifest)
    damages, is_small = surveyed.damages, surveyed.size <= SMALL_JOURNAL_BYTES
    seen = FirstLook()
    if is_small:
        seen = look_first(store_at(place), surveyed.contents)
        damages += seen.damages
    folder = AnalysisFolder(run)
    with folder.anew() as draft:
        if damages:
            yield DamagedRun(folder, damages)
            return
        progress("starting Spark", 0, 0)
        with spark_session(master, surveyed.size, executor_memory) as spark:
            if master is not None and is_cluster(master):
                check_executors(spark, place, draft)
            if not is_small:
                seen = look_first_in_spark(spark, place, surveyed.contents)
            if seen.damages:
                yield DamagedRun(folder, seen.damages)
                return
            analysis = _Analysis(spark, folder, run, manifest, surveyed.size, seen, measures, progress)
            try:
                yield analysis
            finally:
                analysis.forget()


def report(run: Path) -> Path:
    """Write `RUN/report.html` anew from the tables of an analysis, without Spark; its path."""
    return write_report(Path(run))


class _Analysis:
    """One run in one session; keeps what several tables need."""

    def __init__(
        self,
        spark: SparkSession,
        folder: AnalysisFolder,
        run: Path,
        manifest: RunManifest,
        journal_bytes: int,
        seen: FirstLook,
        measures: bool,
        progress: Progress,
    ) -> None:
        self._spark = spark
        self._manifest = manifest
        self._progress = progress
        self._kept: list[DataFrame] = []
        self._folder = folder
        progress("reading the journal", 0, 0)
        here = journal_bytes <= SMALL_JOURNAL_BYTES and not is_cluster(str(spark.sparkContext.master))
        read = read_journal_here if here else read_journal
        journal = read(spark, manifest.journal_at(run))
        self._journal = replace(
            journal,
            events=self._keep(judging.distinct_events(journal.events)),
            subscriptions=self._keep(journal.subscriptions),
        )
        self._measures = measures
        self._keeps_rows = not here and journal_bytes <= _ROWS_KEPT_BYTES_MAX
        self._deliveries = judging.deliveries_of(self._journal)
        self._course = course_of(seen.course)
        self._census = census_of(seen.kinds, *self._course.publishing_us())
        self._faults = Faults(self._journal, manifest, self._course)

    def judge(self) -> dict[str, Any]:
        """Write verdict and findings."""
        self._progress("judging deliveries", 0, 0)
        manifest, journal = self._manifest, self._journal
        wanted = judging.what_is_wanted(journal.subscriptions)
        filters = wanted.filters
        rules = rules_of(manifest)
        lives = self._keep(judging.lives_of(journal.subscriptions, self._course.settled))
        self._outcomes = judging.judge_pairs(journal, lives, filters, rules, self._faults.refused)
        if self._measures or manifest.faults or manifest.promise.durable or manifest.expect:
            self._keep(self._outcomes)  # which takes as long as judging them: not for a verdict alone
        totals, wrong = judging.totals_and_wrong(self._outcomes)
        self._kept.append(wrong)
        self._published = journal.events.count()
        secret = None
        if any(totals[name] for name in judging.COUNTED):
            names = manifest.names
            explainer = self._faults.explainer(self._census.last_us)
            hops = explainer is not None and RowKind.RECEIVE in self._census.kinds
            if hops and explainer is not None and not isinstance(explainer, Connections):
                secret = conjured(journal, names)
                explainer = explainer if secret is None else None
            readers = Readers(
                list(filters), names, explainer, hops, rules.clocks_us, secret is None, self._faults.refused
            )
            few = journal.small and sum(totals[name] for name in judging.COUNTED) <= _TOLD_HERE_MAX
            listed = findings(wrong, self._outcomes, journal, lives, readers, few)
        else:
            listed = to_arrow_schema(FINDINGS_SCHEMA).empty_table()
        found = self._folder.write_findings(listed)
        counts = {name: found.counts.get(name, 0) for name in COUNTS}
        counts |= {name: int(totals[name]) for name in ("required", "delivered")} | {"published": self._published}
        checks: Sequence[FaultCheck] = ()
        recovery = Recovery({}, 0, None)
        if manifest.faults:
            checks = self._faults.checks(self._census.last_us)
            recovery = self._faults.recovery(self._outcomes, self._census.last_us)
        self._folder.write_frame("faults", checks_table(checks, manifest.faults, self._faults.windows, recovery))
        facts = Facts(
            manifest.completeness,
            counts,
            manifest.promise,
            found.explained,
            found.by_tables,
            Counter(check.outcome for check in checks),
            self._expectations(counts, found.explained, recovery),
            recovery.late,
            recovery.unsettled or self._unsettled(wanted),
            manifest.recovery_limit_us,
            recovery.longest_us,
            secret,
            self._faults.causes(self._outcomes) if manifest.promise.durable else Causes(),
            manifest.by_themselves,
            kills_of(manifest, self._faults.steps),
            found.refused,
        )
        verdict = decide(facts)
        self._folder.write_json("verdict", verdict)
        return verdict

    def _unsettled(self, wanted: judging.Wanted) -> str | None:
        """After what subscription or withdrawal nothing had settled in time."""
        limit_us = self._manifest.recovery_limit_us
        settled = self._course.settled
        if any(covers >= wanted.last_us and at_us <= wanted.first_us + limit_us for at_us, covers in settled):
            return None  # that all had settled in time is seen without a look at each
        times = self._journal.subscriptions.select("time_us").distinct().collect()
        changes_us = (row["time_us"] for row in times)
        return tell_unsettled(
            unsettled_change(changes_us, settled, self._faults.windows, self._census.last_us, limit_us)
        )

    def _expectations(
        self, counts: Mapping[str, int], explained: Mapping[str, int], recovery: Recovery
    ) -> list[Expectation]:
        expect = self._manifest.expect
        if not expect:
            return []
        p99_us = None
        if "delay_p99_us" in expect:
            delays = metrics.quantiles(metrics.cumulative(metrics.delay_counts(self._outcomes), "delay_us")).first()
            p99_us = None if delays is None else delays["p99_us"]
        return check_expectations(expect, measured(counts, explained, p99_us, recovery.longest_us))

    def measure(self) -> None:
        """Write the tables of metrics."""
        if self._keeps_rows:
            self._journal = replace(self._journal, rows=self._keep(self._journal.rows), kept=True)
        rows = self._journal.rows
        first_us, last_us = self._census.first_us, self._census.last_us
        width_us = metrics.bucket_width_us(first_us, last_us)
        nodes = metrics.nodes_table(self._spark, self._manifest)
        counts = self._keep(metrics.activity(rows, width_us))
        self._folder.write_frame("phases", self._course.phases_table())
        self._folder.write_frame("rates", self._census.rates(self._journal))
        self._folder.write_frame("rows_by_kind", self._census.rows_by_kind())
        self._write("traffic", metrics.traffic_by_bucket(counts))
        of_clients = {kind_of(kind): kind.__name__ for kind in CLIENT_MESSAGES}
        names = of_clients | dict(self._manifest.message_kinds)
        self._write("messages_by_kind", metrics.messages_by_kind(counts, names))
        self._write("drops", metrics.drops(counts))
        self._write("lag", metrics.lag(rows, nodes, self._census.publishing[0]))
        self._write("protocol_records", metrics.protocol_records(rows))
        self._write("delivery_rate", metrics.delivery_rate(self._outcomes, width_us))
        self._write_delays("delivery_delay", metrics.delay_counts(self._outcomes))
        self._write_delays("hop_latency", metrics.hop_latency_counts(rows, nodes))
        self._write("hop_count_cdf", metrics.cumulative(metrics.hop_counts(self._deliveries), "hops"))
        brokers = self._keep(self._brokers(nodes, counts))
        self._write("brokers", brokers)
        self._write("load_cdf", metrics.load_shares(brokers))
        self._write("forwarding", metrics.forwarding(brokers))
        self._folder.write_json("summary", {"bucket_us": width_us, "first_us": first_us, "last_us": last_us})

    def key_figures(self) -> Figures:
        """Those that `spark_analysis.key_figures` names."""
        rows = self._journal.rows
        nodes = metrics.nodes_table(self._spark, self._manifest)
        shares = metrics.cumulative(metrics.delay_counts(self._outcomes), "delay_us")
        delay = metrics.quantiles(shares).first()
        hops = self._deliveries.agg(F.avg("hops").alias("hops")).first()
        counts = self._keep(metrics.activity(rows, 1 << 62))
        sent = counts.where(F.col("kind") == int(RowKind.SEND)).agg(
            F.sum("rows").alias("messages"), F.sum("bytes").alias("message_bytes")
        )
        messages = sent.first()
        passed = metrics.forwarding(self._brokers(nodes, counts)).first()
        assert delay is not None
        assert hops is not None
        assert messages is not None
        assert passed is not None
        figures = (delay["p50_us"], delay["p99_us"], hops["hops"], passed["yield"], *messages)
        named = zip(KEY_FIGURES, figures, strict=True)
        return {name: None if value is None else float(value) for name, value in named}

    def _brokers(self, nodes: DataFrame, counts: DataFrame) -> DataFrame:
        homes = metrics.homes_table(self._spark, self._manifest, self._faults.stays())
        return metrics.brokers(metrics.reached(self._journal.rows, nodes, homes), counts, nodes, self._published)

    def forget(self) -> None:
        """Give the memory of kept tables back: the session may go on."""
        for table in self._kept:
            table.unpersist()

    def _keep(self, table: DataFrame) -> DataFrame:
        kept = table.persist()
        self._kept.append(kept)
        return kept

    def _write(self, name: str, table: DataFrame) -> Any:
        self._progress("measuring", SMALL_TABLES.index(name), len(SMALL_TABLES))
        return self._folder.write(name, table)

    def _write_delays(self, name: str, counts: DataFrame) -> None:
        shares = self._keep(metrics.cumulative(counts, "delay_us"))
        self._write(f"{name}_cdf", shares)
        self._write(name, metrics.quantiles(shares))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line: one run folder; prints the verdict as one line of JSON. Exit code 2 for bad input
    or a place where nothing can be written, 1 for a full disk."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if len(given) != 1 or given[0].startswith("-"):
            raise InputError("command line", " ".join(given) or "no argument", "the folder of a run")
        verdict = analyze(Path(given[0]))
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    except DiskError as error:
        print(error, file=sys.stderr)
        return 2 if error.no_place else 1
    print(json.dumps(verdict))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
