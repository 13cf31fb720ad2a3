"""The faults of a run, from its journal and manifest: their windows, whether each took effect, what they excuse, and
how long the service took to be whole again."""

import functools
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, LongType, StructField, StructType

from murmur_pubsub.faults import COMMANDS
from murmur_pubsub.journal import RowKind
from murmur_pubsub.promise import PUBLISHERS_WAIT
from murmur_pubsub.run_manifest import FaultEntry, RunManifest
from spark_analysis.cause_parts import CAUSE_COLUMNS, cause_part, causes_in_parts
from spark_analysis.causes import Causes, links_up
from spark_analysis.changing_overlay import AnyExcuses, excuses_of, overlays_of
from spark_analysis.checked_rows import COLUMNS, CheckedRows
from spark_analysis.connections import Connections, LinkRow
from spark_analysis.course import Course
from spark_analysis.driver_table import frame_of
from spark_analysis.durable_connections import connections_of
from spark_analysis.fault_checks import ISSUED_ROWS, FaultCheck, check_commands, check_faults, check_orders
from spark_analysis.fault_plan import steps_of, windows_of
from spark_analysis.fault_windows import NEVER_US, FaultStep, Window
from spark_analysis.given_up import TOPICS, ToldRow, refused_events
from spark_analysis.journal_source import Journal
from spark_analysis.recovery import repairs_of, unsettled_after
from spark_analysis.recovery_parts import RECOVERY_COLUMNS, recovered_in_parts, recovery_part
from spark_analysis.stays import Stay, clients_that_move, stays_of

CHECK_COLUMNS = ("step", "fault", "from_us", "until_us", "outcome", "seen")


@dataclass(frozen=True, slots=True)
class Recovery:
    """`times_us`: repair (when it took effect) to how long the service then took to be whole. `late`: deliveries that
    came too long after the last repair. `unsettled`: the fault after whose repair nothing settled in time."""

    times_us: Mapping[int, int]
    late: int
    unsettled: str | None

    @property
    def longest_us(self) -> int | None:
        """The longest recovery time."""
        return max(self.times_us.values(), default=None)


class Faults:
    """The faults of one run. Nothing more is read if the plan is empty."""

    def __init__(self, journal: Journal, manifest: RunManifest, course: Course) -> None:
        self._journal = journal
        self._manifest = manifest
        self._course = course
        self.steps: Sequence[FaultStep] = ()
        self.windows: Sequence[Window] = ()
        if manifest.faults:
            self.steps = steps_of(manifest, course.fault_times, course.answers)
            self.windows = windows_of(manifest, self.steps, course.settled)

    def checks(self, last_us: int) -> list[FaultCheck]:
        """What became of each fault."""
        checks = check_orders(self.steps, self._course.answers)
        checks += check_commands(self.steps, self.windows, self._issued())
        if self.windows:
            numbers = self._manifest.numbers
            rows = self._involved(numbers, last_us)
            checks += check_faults(self.windows, rows, numbers, last_us, self._manifest.datagram_kinds)
        return sorted(checks, key=lambda check: check.step)

    def explainer(self, last_us: int) -> AnyExcuses | Connections | None:
        """What may excuse a finding under the run's promise; None if nothing can. `last_us`: the end of the journal."""
        homes = self._manifest.homes
        if self._manifest.promise.excuses_by_connection:
            rows, overlays = self._link_rows(homes), overlays_of(self._manifest.links, self.steps)
            settled = self._course.settled
            published_us = self._published_us() if self._told or self._manifest.promise.redundant else ()
            words = self._told, published_us, self._subscribed
            return connections_of(self._manifest, rows, settled, self.windows, overlays, last_us, *words)
        if not self.windows:
            return None
        return excuses_of(self._manifest, self.windows, self.steps)

    @property
    def refused(self) -> frozenset[tuple[int, int]]:
        """See `given_up.refused_events`."""
        return refused_events(self._told) if self._manifest.promise.durable else frozenset()

    def recovery(self, outcomes: DataFrame, last_us: int) -> Recovery:
        """What came after repairs; `outcomes` as in `judge.OUTCOMES_SCHEMA`, `last_us`: the end of the journal."""
        limit_us = self._manifest.recovery_limit_us
        repairs = repairs_of(self.windows, limit_us)
        if not repairs.repaired_us:
            return Recovery({}, 0, None)

        def parts(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            for frame in frames:
                times = (frame[name].to_numpy(np.int64) for name in ("published_us", "delivered_us"))
                yield recovery_part(repairs, *times)

        delivered = F.coalesce("delivered_us", F.lit(NEVER_US)).alias("delivered_us")
        required = outcomes.where("required = 1").select("published_us", delivered)
        schema = StructType([StructField(name, LongType()) for name in RECOVERY_COLUMNS])
        times, late = recovered_in_parts([frame_of(required, parts, schema, self._journal.small)], repairs)
        unsettled = unsettled_after(self.windows, last_us, limit_us) if self._manifest.has_links else None
        return Recovery(times, late, None if unsettled is None else unsettled.step.text)

    def causes(self, outcomes: DataFrame) -> Causes:
        """The figures of deliveries by cause; `outcomes` as in `judge.OUTCOMES_SCHEMA`."""
        ups_us = links_up(self._link_rows(self._manifest.homes), self._manifest.homes, self._manifest.numbers)

        def parts(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            for frame in frames:
                columns = (frame[name].to_numpy(np.int64) for name in ("node", "published_us", "delivered_us"))
                yield cause_part(ups_us, *columns)

        delivered = F.col("delivered_us").isNotNull() & F.col("published_us").isNotNull()
        wanted = outcomes.where(delivered).select("node", "published_us", "delivered_us")
        schema = StructType([StructField("is_caught_up", BooleanType())])
        schema = StructType([*schema, *(StructField(name, LongType()) for name in CAUSE_COLUMNS[1:])])
        return causes_in_parts(frame_of(wanted, parts, schema, self._journal.small))

    def stays(self) -> dict[str, list[Stay]]:
        """At which broker each client was when. Where none can have moved no row is read."""
        homes, moved = self._manifest.homes, clients_that_move(self._manifest)
        return stays_of(self._link_rows({client: homes[client] for client in moved}) if moved else (), homes)

    def _issued(self) -> list[tuple[int, int, int]]:
        """Kind, source and time_us of what the clients of the plan's commands published, subscribed to and withdrew."""
        issuers = {step.issuer for step in self.steps if step.kind in COMMANDS}
        if not issuers:
            return []
        rows = self._journal.of(*ISSUED_ROWS.values()).where(F.col("source").isin(*issuers))
        found = rows.select("kind", "source", "time_us").collect()
        return [(row["kind"], row["source"], row["time_us"]) for row in found]

    def _link_rows(self, homes: Mapping[str, str]) -> list[LinkRow]:
        names = self._manifest.names
        clients = [self._manifest.numbers[client] for client in homes]
        rows = self._journal.of(RowKind.LINK_UP, RowKind.LINK_DOWN)
        rows = rows.where(F.col("node").isin(clients) | F.col("peer").isin(clients))
        found = rows.select("time_us", "kind", "node", "peer").collect()
        return [(row["time_us"], row["kind"], names[row["node"]], names[row["peer"]]) for row in found]

    @functools.cached_property
    def _told(self) -> list[ToldRow]:
        promise = self._manifest.promise
        if not promise.durable and promise.limits.waits_above is None:
            return []
        told = self._journal.of(RowKind.PROTOCOL).where(F.col("bytes").isin(*TOPICS))
        columns = ("time_us", F.col("bytes").alias("topic"), "node", "source", "sequence", "value")
        return [ToldRow(*row) for row in told.select(*columns).collect()]

    def _published_us(self) -> Sequence[int]:
        """When each event was published, in order, if that decides anything."""
        limits = self._manifest.promise.limits
        bounds_what_is_kept = limits.drops_above is not None or limits.refuses_above is not None
        publishers_waited = any(row.topic == PUBLISHERS_WAIT for row in self._told)
        if not bounds_what_is_kept and not publishers_waited and not self._manifest.promise.redundant:
            return ()
        return array("q", (row["time_us"] for row in self._journal.events.select("time_us").sort("time_us").collect()))

    def _subscribed(self) -> list[int]:
        """The nodes that have ever subscribed."""
        return [row["node"] for row in self._journal.subscriptions.select("node").distinct().collect()]

    def _involved(self, numbers: dict[str, int], last_us: int) -> CheckedRows:
        """The rows of all nodes that a fault is about, while it is in force, and those about its links."""
        stretches: dict[int, list[tuple[int, int]]] = {}
        for window in self.windows:
            for name in window.nodes | frozenset(name for link in window.links for name in link):
                if name in numbers:
                    until_us = min(window.shown_until_us, last_us)
                    stretches.setdefault(numbers[name], []).append((window.from_us, until_us))
        merged = {node: np.array(_merged(each)) for node, each in stretches.items()}
        rows = self._journal.rows.select(*COLUMNS)
        return _checked(frame_of(rows, _within(merged), rows.schema, self._journal.small))


def _checked(rows: pd.DataFrame) -> CheckedRows:
    by_node: dict[Any, pd.DataFrame] = {
        node: each.sort_values("time_us", kind="stable") for node, each in rows.groupby("node")
    }
    return CheckedRows.of_columns(
        {
            int(node): [array(code, each[name].to_numpy(code).tobytes()) for name, code in COLUMNS.items()]
            for node, each in by_node.items()
        }
    )


def _merged(stretches: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same stretches of time without overlaps: there may be thousands under churn, and few of these."""
    merged: list[tuple[int, int]] = []
    for from_us, until_us in sorted(stretches):
        if merged and from_us <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(until_us, merged[-1][1]))
        else:
            merged.append((from_us, until_us))
    return merged


def _within(stretches: Mapping[Any, np.ndarray]) -> Callable[[Iterator[pd.DataFrame]], Iterator[pd.DataFrame]]:
    """Keeps each node's rows in its stretches of time (rows of begin and end, in order, apart), and those that say
    when it had which link."""

    def keep(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            time_us = frame["time_us"].to_numpy()
            about_links = frame["kind"].isin((RowKind.LINK_UP, RowKind.LINK_DOWN)).to_numpy()
            wanted = np.zeros(len(frame), dtype=bool)
            for node, places in frame.groupby("node").indices.items():
                if node in stretches:
                    begins, ends = stretches[node].T
                    last = np.searchsorted(begins, time_us[places], "right") - 1
                    wanted[places] = about_links[places] | ((last >= 0) & (time_us[places] <= ends[last]))
            yield frame[wanted]

    return keep


def checks_table(
    checks: Sequence[FaultCheck], entries: Sequence[FaultEntry], windows: Sequence[Window], recovery: Recovery
) -> pd.DataFrame:
    """The checks as a table with the columns `CHECK_COLUMNS`. `at_us` counts from the beginning of publishing, as in a
    scenario; other times from the start of the run. `recovery_us`: of each fault that was repaired."""
    table = pd.DataFrame([asdict(check) for check in checks], columns=list(CHECK_COLUMNS))
    table.insert(2, "at_us", pd.Series([entries[step].time_us for step in table["step"]], dtype="Int64"))
    after: dict[int, int] = {}  # nodes of one fault may have come back one after the other
    for window in windows:
        if window.repaired_us in recovery.times_us:
            step = window.step.number
            after[step] = max(after.get(step, 0), recovery.times_us[window.repaired_us])
    table["recovery_us"] = pd.array([after.get(step) for step in table["step"]], dtype="Int64")
    table["until_us"] = table["until_us"].astype("Int64")
    return table
