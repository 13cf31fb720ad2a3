"""The judge over runs of 10, 30 and 100 million rows: on a Spark cluster of two workers, and on this host's cores.

`python -m benchmarks.judge_scale`. Each run is generated (`benchmarks.big_run`), judged by both, and deleted.
The counts have to be those that were planted, in both. The ratio is to what any such tool must do at least, in the
same session: scan the run's rows as Parquet and count them by node and kind. Memory is the largest resident set of each
process while the judge works, looked at ten times a second.
"""

import argparse
import contextlib
import json
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks.big_run import BigRun
from benchmarks.table import print_table
from benchmarks.timing import seconds
from murmur_pubsub.journal_rows import read_segment
from murmur_pubsub.journal_store import store_at
from murmur_pubsub.run_manifest import read_manifest
from spark_analysis.journal_check import survey
from spark_analysis.main import judge
from spark_analysis.session import spark_session
from tests.spark.standalone import SparkCluster

ROWS = (10_000_000, 30_000_000, 100_000_000)
_EXECUTOR_MEMORY = "2g"
_WORKER_MEMORY = "3g"
_LOOK_EVERY_S = 0.1
_GB = 1e9


class ProcessWatch(threading.Thread):
    """The largest resident set of each kind of process below these, in bytes, and the processor time of all."""

    def __init__(self, roots: list[int]) -> None:
        super().__init__(daemon=True)
        self.peak: dict[str, int] = defaultdict(int)
        self._roots = roots
        self._cpu_s: dict[int, tuple[float, float]] = {}
        self._looks = 0
        self._over = threading.Event()

    def run(self) -> None:
        """See `threading.Thread`."""
        while not self._over.wait(_LOOK_EVERY_S):
            for root in self._roots:
                for process in [psutil.Process(root), *psutil.Process(root).children(recursive=True)]:
                    self._look(process)
            self._looks += 1

    def _look(self, process: psutil.Process) -> None:
        try:
            words, resident = " ".join(process.cmdline()), process.memory_info().rss
            spent_s = sum(process.cpu_times()[:2])
        except psutil.Error:
            return
        # One that was not there at the first look has spent all its time since.
        first_s = spent_s if not self._looks else 0.0
        self._cpu_s[process.pid] = (self._cpu_s.get(process.pid, (first_s, 0.0))[0], spent_s)
        kind = (
            "executor" if "ExecutorBackend" in words
            else "Spark driver" if "SparkSubmit" in words
            else "Python worker" if "pyspark.daemon" in words
            else ""
        )  # fmt: skip
        if kind:
            self.peak[kind] = max(self.peak[kind], resident)

    @property
    def cpu_s(self) -> float:
        """Processor seconds spent since the first look."""
        return sum(last_s - first_s for first_s, last_s in self._cpu_s.values())

    def stop(self) -> None:
        """Look no more."""
        self._over.set()
        self.join()


@contextmanager
def _watched(roots: list[int]) -> Iterator[ProcessWatch]:
    watch = ProcessWatch(roots)
    watch.start()
    yield watch
    watch.stop()


def generate(rows: int, folder: Path) -> None:
    """A run, and its rows as Parquet, if they are not there yet."""
    if not folder.exists():
        run = BigRun(folder)
        run.write(rows)
        (folder / "rows.parquet").mkdir()
        for number, path in enumerate(sorted((folder / "journal").glob("*.seg"))):
            columns = read_segment(path)[1]
            table = pa.table({name: np.ascontiguousarray(columns[name]) for name in columns.dtype.names or ()})
            parquet.write_table(table, folder / "rows.parquet" / f"{number:05d}.parquet")
        counts = {"rows": run.rows, "published": run.events, "required": run.required, **run.planted}
        (folder / "counts.json").write_text(json.dumps(counts))


def measure(folder: Path, cluster: SparkCluster, wanted: Sequence[str]) -> list[tuple[str, ...]]:
    """Rows of the table for one run."""
    counts = json.loads((folder / "counts.json").read_text())
    rows = counts.pop("rows")
    journal_bytes = survey(store_at(str(folder / "journal")), read_manifest(folder)).size
    lines: list[tuple[str, ...]] = []
    for where, master, memory in (("cluster", cluster.url, _EXECUTOR_MEMORY), ("local", None, None)):
        if where not in wanted:
            continue
        with spark_session(master, journal_bytes, memory) as spark:
            plain_s = min(seconds(lambda spark=spark: _scan(spark, folder)) for _ in range(2))  # type: ignore[misc]
            found: dict[str, Any] = {}
            with _watched([psutil.Process().pid, *(each.pid for each in cluster.processes.values())]) as watch:
                judge_s = seconds(lambda found=found: found.update(judge(folder)))  # type: ignore[misc]
        assert {name: found[name] for name in counts} == counts, found
        peaks = "  ".join(f"{kind} {peak / _GB:.1f}" for kind, peak in sorted(watch.peak.items()))
        size, pairs = f"{rows / 1e6:,.0f} M", f"{counts['required'] / 1e6:.1f} M"
        rate, ratio = f"{rows / judge_s / 1e6:.2f} M", f"{judge_s / plain_s:.1f}"
        lines.append((size, where, pairs, f"{judge_s:.0f}", f"{watch.cpu_s:.0f}", rate, ratio, peaks))
        print(*lines[-1], file=sys.stderr, flush=True)
    return lines


def _scan(spark: SparkSession, folder: Path) -> None:
    rows = spark.read.parquet(str(folder / "rows.parquet"))
    rows.groupBy("node", "kind").agg(F.count(F.lit(1)), F.max("time_us")).collect()


def main(arguments: Sequence[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.judge_scale")
    parser.add_argument("rows", type=int, nargs="*", default=ROWS)
    parser.add_argument("--folder", type=Path, help="where runs are generated, or were, and stay")
    parser.add_argument("--generate", action="store_true", help="do no more than that")
    parser.add_argument("--where", nargs="+", choices=("cluster", "local"), default=("cluster", "local"))
    given = parser.parse_args(arguments)
    lines: list[tuple[str, ...]] = []
    with contextlib.ExitStack() as stack:
        if not given.generate:
            cluster = SparkCluster(memory=_WORKER_MEMORY)
            stack.callback(cluster.stop)
        for rows in given.rows:
            with tempfile.TemporaryDirectory() as own:
                folder = (given.folder or Path(own)) / str(rows)
                generate(rows, folder)
                if not given.generate:
                    lines += measure(folder, cluster, given.where)
    headings = ("rows", "where", "pairs", "seconds", "CPU seconds", "rows/s", "times a Parquet scan", "peak GB")
    print_table("The judge over large runs", headings, lines)


if __name__ == "__main__":
    main(sys.argv[1:])
