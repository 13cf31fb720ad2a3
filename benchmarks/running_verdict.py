"""How soon the running verdict shows a planted loss: `python -m benchmarks.running_verdict [SECONDS]`.

A journal is written in real time with 5,000 deliveries a second (1,000 events, five subscribers each, one publisher's
and one subscribers' file, four hops' rows a delivery). One delivery is left out in every fifth second. Printed is how
long after its deadline each is in the verdict, and what Spark's processes and the judge cost meanwhile.

Then the same journal is followed twice more, for a third of the time each, to tell where the state belongs: once each
micro-batch goes to one `RunningJudge`, once it is grouped by publisher and subscriber and only counted, in Spark's own
state. Printed is how long micro-batches take: counting is the least that a judge with its state in Spark would cost.
"""

import json
import multiprocessing
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pandas as pd
import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from murmur_pubsub.event import Event
from murmur_pubsub.journal import JournalWriter, Phase, RowKind, SideKind
from murmur_pubsub.run_manifest import NodeEntry, RunManifest, write_manifest
from spark_analysis.journal_stream import LiveJournal, batch_of
from spark_analysis.rules import Rules
from spark_analysis.running_judge import RunningJudge
from spark_analysis.session import spark_session

EVENTS_PER_S, SUBSCRIBERS = 1_000, 5
_TICK_S = 0.02
_HOP_ROWS = 4
_DEADLINE_S = 5.0


class Waited(Protocol):
    """An event of threads or of processes."""

    def wait(self, timeout: float) -> bool:
        """Return once it is set."""


class Told(threading.Thread):
    """Reads the verdicts of the program; `at`: when each number of missing deliveries was first told."""

    def __init__(self, program: subprocess.Popen[str]) -> None:
        super().__init__(daemon=True)
        self.at: dict[int, float] = {}
        self.begun = threading.Event()
        self.last: dict[str, object] = {}
        self._program = program

    def run(self) -> None:
        assert self._program.stdout is not None
        for line in self._program.stdout:
            self.last = json.loads(line)
            self.begun.set()
            for count in range(1, int(str(self.last.get("missing", 0))) + 1):
                self.at.setdefault(count, time.time())


def write(folder: Path, seconds: float, ready: Waited) -> list[float]:
    """Write the journal in real time, its events once somebody is ready; when those were published of which a delivery
    was left out."""
    writers = [JournalWriter(folder, name, node) for name, node in (("driver", 3), ("c0", 0), ("c1", 1))]
    driver, publisher, subscriber = writers
    for number in range(SUBSCRIBERS):
        subscriber.side(SideKind.SUBSCRIBE, (0, 1, number, "price >= 0", number))
    driver.row(1, RowKind.SETTLED, 3, value=1)
    driver.row(1, RowKind.PHASE, 3, value=Phase.PUBLISHING)
    ready.wait(120.0)
    began = time.time()
    planted: list[float] = []
    done = 0
    while (passed := time.time() - began) < seconds:
        for sequence in range(done, int(passed * EVENTS_PER_S)):
            now_us = int((time.time() - began) * 1e6) + 2
            publisher.side(SideKind.EVENT, Event(0, sequence, now_us, {"price": sequence}).to_wire())
            publisher.row(now_us, RowKind.PUBLISH, 0, source=0, sequence=sequence)
            lost = sequence % (5 * EVENTS_PER_S) == EVENTS_PER_S
            if lost:
                planted.append(time.time())
            for reader in range(SUBSCRIBERS - lost):
                for hop in range(_HOP_ROWS):
                    subscriber.row(now_us, RowKind.RECEIVE, 1, source=0, sequence=sequence, peer=0, hops=hop)
                subscriber.row(now_us, RowKind.DELIVER, 1, source=0, sequence=sequence, value=reader)
        done = int(passed * EVENTS_PER_S)
        time.sleep(_TICK_S)
    for writer in writers:
        writer.close()
    return planted


def main(seconds: float) -> None:
    """Print how late each planted loss was shown."""
    with tempfile.TemporaryDirectory() as place:
        run = Path(place)
        (run / "journal").mkdir()
        nodes = (NodeEntry("c0", "client", "b0"), NodeEntry("c1", "client", "b0"), NodeEntry("b0", "broker"))
        write_manifest(run, RunManifest("planted", "ray", 1, "0", (*nodes, NodeEntry("driver", "driver"))))
        command = [sys.executable, "-m", "spark_analysis.running", str(run)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
            told = Told(program)
            told.start()
            planted = write(run / "journal", seconds, told.begun)
            ended, spent = time.time(), _busy_s(program.pid)
            time.sleep(1.0)
            assert program.stdin is not None
            program.stdin.close()
            program.wait(60.0)
        due = [at + _DEADLINE_S for at in planted if at + _DEADLINE_S < ended - 4.0]
        shown = [told.at[number] - at for number, at in enumerate(due, 1) if number in told.at]
        print(f"{EVENTS_PER_S * SUBSCRIBERS:,} deliveries/s for {seconds:.0f} s; verdict: {told.last}")
        late = ", ".join(f"{each:.2f}" for each in shown)
        print(f"{len(shown)} of {len(due)} planted losses shown, so many s after their deadline: {late}", flush=True)
        print(f"Spark and the judge took {spent:.1f} s of a core, their start included", flush=True)


def _judged(stream: DataFrame) -> Any:
    judge = RunningJudge(Rules())
    return stream.writeStream.foreachBatch(lambda frame, _: judge.take(batch_of(frame.toArrow())))


def _counted(stream: DataFrame) -> Any:
    def count(key: Any, frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        before = state.get[0] if state.exists else 0
        total = before + sum(len(frame) for frame in frames)
        state.update((total,))
        yield pd.DataFrame({"source": [key[0]], "value": [key[1]], "total": [total]})

    pairs = stream.where(f"kind = {int(RowKind.DELIVER)}").groupBy("source", "value")
    counted = pairs.applyInPandasWithState(
        count, "source long, value long, total long", "total long", "update", GroupStateTimeout.NoTimeout
    )
    return counted.writeStream.outputMode("update").foreachBatch(lambda frame, _: frame.toArrow())


def follow(spark: SparkSession, begin: Callable[[DataFrame], Any], seconds: float) -> list[int]:
    """Follow a journal that is being written; how many milliseconds each micro-batch took."""
    with tempfile.TemporaryDirectory() as place:
        context = multiprocessing.get_context("spawn")
        ready = context.Event()
        writer = context.Process(target=write, args=(Path(place), seconds, ready))
        stream = spark.readStream.format("murmur-live").load(place)
        query = begin(stream).trigger(processingTime="250 milliseconds").start()
        writer.start()
        while not query.recentProgress:  # the first micro-batch waits for Python to start
            time.sleep(0.1)
        ready.set()
        writer.join()
        time.sleep(2.0)
        took = [each["durationMs"]["triggerExecution"] for each in query.recentProgress if each["numInputRows"]]
        query.stop()
    return sorted(took[2:])


def compare(seconds: float) -> None:
    """Print how long micro-batches take with the state in one judge, and in Spark."""
    ways = {"one judge takes each micro-batch": _judged, "Spark keeps the state, and counts": _counted}
    with spark_session(master="local[2]") as spark:
        spark.dataSource.register(LiveJournal)
        for name, begin in ways.items():
            took = follow(spark, begin, seconds)
            middle, late = took[len(took) // 2], took[int(len(took) * 0.9)]
            print(f"{name}: {len(took)} micro-batches of p50 {middle} ms, p90 {late} ms", flush=True)


def _busy_s(pid: int) -> float:
    process = psutil.Process(pid)
    times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
    return float(sum(each.user + each.system for each in times))


if __name__ == "__main__":
    asked_s = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    main(asked_s)
    compare(asked_s / 3)
