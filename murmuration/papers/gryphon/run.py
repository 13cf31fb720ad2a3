"""A failure test of the guaranteed-delivery paper: one run, and what is read from its journal.

Times in results are milliseconds from the start of publishing.
"""

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from murmur_pubsub.journal import NONE, FaultStage, RowKind
from murmur_pubsub.message import kind_of
from murmuration.papers.gryphon.plan import SUBSCRIBERS_AT, FailureTest, PlannedFault, failure_scenario
from murmuration.papers.lab.judged_run import journal, node_names, play_plainly
from reliability.gryphon.messages import AckExpected, Data, Nack, Silence
from reliability.gryphon.streams import NACK_SENT

DELIVERY_COUNTS = ("missing", "duplicate", "out_of_order", "spurious")


@dataclasses.dataclass(slots=True)
class FailureRun:
    """What one failure test showed; times are in milliseconds from the start of publishing."""

    test: FailureTest
    verdict: dict[str, int]
    """The judge's counts."""
    latencies: dict[str, list[tuple[float, float]]]
    """By broker, of those that are drawn: when a message was sent, and after how long it was delivered."""
    worst_ms: dict[str, float]
    """By broker, the worst latency of its subscribers."""
    nacks: dict[str, list[tuple[float, int]]]
    """By broker: when it sent a nack, and how many ticks it asked for."""
    faults: list[tuple[float, str]]
    """When a fault took effect (a restart: when the new process began), in words."""
    noticed: list[tuple[float, str, str]]
    """When a link went down after the first fault, at which broker, and its peer."""
    ack_expected_ms: float | None
    """When p1 sent the first AckExpected after the last fault, its return."""
    before_ack_expected: int
    """How many messages about streams (data, silence, nacks) p1 had sent since the last fault when it sent that."""
    deliveries: dict[str, list[int]]
    """By subscribers' broker, how many were made in each second of publishing."""

    def nacked(self, broker: str, first_ms: float = 0.0, last_ms: float = math.inf) -> int:
        """How many ticks the broker has asked for in a stretch of time."""
        return sum(ticks for at_ms, ticks in self.nacks[broker] if first_ms <= at_ms < last_ms)

    @property
    def detected_ms(self) -> float | None:
        """How long after the first fault one of the ends noticed that its link was gone."""
        return None if not self.noticed else self.noticed[0][0] - self.faults[0][0]


def measure_failure(test: FailureTest, address: str | None = None) -> FailureRun:
    """Play a failure test and read what it showed."""
    with TemporaryDirectory() as place:
        folder = Path(place) / "run"
        verdict = play_plainly(failure_scenario(test), folder, address)
        return read_failure(test, folder, verdict)


def read_failure(test: FailureTest, folder: Path, verdict: Mapping[str, Any]) -> FailureRun:
    """What the journal and the judge say of a run of it."""
    names, rows = node_names(folder), journal(folder)
    faults = rows[(rows.kind == RowKind.FAULT) & (rows.hops == FaultStage.IN_EFFECT)]
    # The plan's clock stood at zero so long before the first fault took effect as the plan says that it was due.
    begin_us = int(faults[faults.sequence == 0].time_us.iloc[0] - test.faults[0].at_s * 1e6)
    publishers = range(test.publishers)
    latencies = {
        (broker, publisher): _latencies(rows, names.index(f"c{len(publishers) * (place + 1) + publisher}"), begin_us)
        for place, broker in enumerate(SUBSCRIBERS_AT)
        for publisher in publishers
    }
    watched, publisher = test.watched
    times_us = [_in_effect(rows, names, test.faults[step], at_us) for step, at_us in _steps(faults)]
    reminded_ms, before = _first_ack_expected(rows, names.index("p1"), begin_us, max(times_us))
    return FailureRun(
        test, {name: int(verdict[name]) for name in DELIVERY_COUNTS},
        {broker: latencies[broker, publisher] for broker in (watched, test.beside) if broker is not None},
        {
            broker: max(late for number in publishers for _, late in latencies[broker, number])
            for broker in SUBSCRIBERS_AT
        },
        {broker: _nacks(rows, names.index(broker), begin_us) for broker in test.nackers},
        [
            ((at_us - begin_us) / 1e3, str(test.faults[step]))
            for at_us, (step, _) in zip(times_us, _steps(faults), strict=True)
        ],
        _noticed(rows, names, begin_us, int(faults.time_us.min())),
        reminded_ms, before,
        {
            broker: _by_second(
                [sent + late for number in publishers for sent, late in latencies[broker, number]], test.seconds
            )
            for broker in SUBSCRIBERS_AT
        },
    )  # fmt: skip


def _steps(faults: pd.DataFrame) -> list[tuple[int, int]]:
    return list(zip(faults.sequence.tolist(), faults.time_us.tolist(), strict=True))


def _in_effect(rows: pd.DataFrame, names: list[str], fault: PlannedFault, seen_us: int) -> int:
    """A process that was started anew begins its work before the driver has seen that it does."""
    if fault.kind != "restart":
        return seen_us
    again = rows[(rows.kind == RowKind.START) & (rows.node == names.index(str(fault.about))) & (rows.value > 0)]
    return int(again.time_us.iloc[0])


def _latencies(rows: pd.DataFrame, client: int, begin_us: int) -> list[tuple[float, float]]:
    """Of what the client got, which is of one publisher, by time of sending."""
    event = ["source", "sequence"]
    delivered = rows[(rows.kind == RowKind.DELIVER) & (rows.node == client)][[*event, "time_us"]]
    sent = rows[rows.kind == RowKind.PUBLISH][[*event, "time_us"]]
    both = delivered.merge(sent, on=event, suffixes=("", "_sent")).sort_values("time_us_sent")
    sent_ms, latency_ms = (both.time_us_sent - begin_us) / 1e3, (both.time_us - both.time_us_sent) / 1e3
    return list(zip(sent_ms.tolist(), latency_ms.tolist(), strict=True))


def _nacks(rows: pd.DataFrame, node: int, begin_us: int) -> list[tuple[float, int]]:
    mine = rows[(rows.kind == RowKind.PROTOCOL) & (rows.node == node) & (rows.bytes == NACK_SENT)]
    return list(zip(((mine.time_us - begin_us) / 1e3).tolist(), mine.value.tolist(), strict=True))


def _noticed(rows: pd.DataFrame, names: list[str], begin_us: int, first_us: int) -> list[tuple[float, str, str]]:
    down = rows[(rows.kind == RowKind.LINK_DOWN) & (rows.time_us >= first_us) & (rows.peer != NONE)]
    found = zip(down.time_us.tolist(), down.node.tolist(), down.peer.tolist(), strict=True)
    return [((at_us - begin_us) / 1e3, names[node], names[peer]) for at_us, node, peer in found]


def _first_ack_expected(rows: pd.DataFrame, node: int, begin_us: int, after_us: int) -> tuple[float | None, int]:
    sent = rows[(rows.kind == RowKind.SEND) & (rows.node == node) & (rows.time_us > after_us)]
    kinds = sent.value.tolist()
    expected = kind_of(AckExpected)
    if expected not in kinds:
        return None, 0
    place = kinds.index(expected)
    of_streams = {kind_of(each) for each in (Data, Silence, Nack)}
    return float((sent.time_us.iloc[place] - begin_us) / 1e3), sum(kind in of_streams for kind in kinds[:place])


def _by_second(delivered_ms: list[float], seconds: float) -> list[int]:
    counts = [0] * math.ceil(seconds)
    for at_ms in delivered_ms:
        if 0 <= at_ms < 1_000 * len(counts):
            counts[int(at_ms // 1_000)] += 1
    return counts
