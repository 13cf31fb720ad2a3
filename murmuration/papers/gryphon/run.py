"""The failure tests of the guaranteed-delivery paper: scenarios, one run of each, what is read from its journal.

The overlay is the paper's: a publishers' broker p1 with four pubends, two cells of two brokers, subscribers' brokers s1
and s2 behind the one and s3 to s5 behind the other. Each publisher sends 25 events a second (the text names no rate);
at each subscribers' broker there is one subscriber for each publisher. Times in results are milliseconds from the start
of publishing.
"""

import dataclasses
import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pandas as pd

from murmur_pubsub.journal import NONE, FaultStage, RowKind
from murmur_pubsub.message import kind_of
from murmuration.papers.lab.judged_run import Runtime, journal, node_names, play_judged
from reliability.gryphon.messages import AckExpected
from reliability.gryphon.streams import NACK_SENT

PUBLISHERS = 4
SUBSCRIBERS_AT = ("s1", "s2", "s3", "s4", "s5")
OVERLAY = {
    "kind": "cells",
    "cells": {"p": ["p1"], "left": ["b1", "b2"], "right": ["b3", "b4"], **{name: [name] for name in SUBSCRIBERS_AT}},
    "links": [["p", "left"], ["p", "right"], ["left", "s1"], ["left", "s2"],
              ["right", "s3"], ["right", "s4"], ["right", "s5"]],
    "redundancy": {"left": 2, "right": 2},
}  # fmt: skip


class PlannedFault(NamedTuple):
    """When, what, and to which broker or link."""

    at_s: float
    kind: str
    about: str | tuple[str, str]

    def entry(self) -> dict[str, Any]:
        """Of a scenario."""
        about = list(self.about) if isinstance(self.about, tuple) else self.about
        return {"at": f"{self.at_s} s", self.kind: about}

    def __str__(self) -> str:
        return f"{self.kind} {self.about if isinstance(self.about, str) else '-'.join(self.about)}"


@dataclasses.dataclass(frozen=True, slots=True)
class FailureTest:
    """One of them. `watched`: the broker and publisher whose subscriber's latency is drawn; `beside`: another broker's
    whose is drawn for comparison; `nackers`: whose nacks are counted. `timeout`: of the heartbeats, in ms."""

    name: str
    title: str
    runtime: Runtime
    seconds: float
    faults: tuple[PlannedFault, ...]
    nackers: tuple[str, ...]
    beside: str | None = None
    pauses: tuple[tuple[float, float], ...] = ()
    timeout: int = 2_000
    watched: tuple[str, int] = ("s1", 0)


DELIVERY_COUNTS = ("missing", "duplicate", "out_of_order", "spurious")
STALL_S = 2.75
"""How long b1 is stalled before it crashes: what the paper's nack ranges say."""


def failure_tests(runtime: Runtime) -> list[FailureTest]:
    """Those of the paper's Figures 6, 7 and 8."""
    crash = (
        PlannedFault(9.2, "stall", "b1"), PlannedFault(9.2 + STALL_S, "kill", "b1"),
        PlannedFault(41.95, "restart", "b1"),
    )  # fmt: skip
    return [
        FailureTest(
            "link", "Figure 6: the link b1-s1 stalls and fails", runtime, 12, (PlannedFault(5.7, "cut", ("b1", "s1")),),
            ("s1", "s2", "b2"), beside="s2",
        ),
        FailureTest(
            "crash", "Figure 7: b1 stalls, crashes, and is back after 30 s", runtime, 50, crash, ("s1", "s2", "b2"),
            timeout=5_000,
        ),
        FailureTest(
            "publishers", "Figure 8: p1 crashes, and is back after 20 s", runtime, 45,
            (PlannedFault(10, "kill", "p1"), PlannedFault(30, "restart", "p1")), ("s1", "s2", "s3", "s4", "s5"),
            pauses=((10.0, 30.5),),
        ),
    ]  # fmt: skip


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
    """When a fault took effect, in words."""
    noticed: list[tuple[float, str, str]]
    """When a link went down after the first fault, at which broker, and its peer."""
    ack_expected_ms: float | None
    """When p1 sent the first AckExpected after its return."""

    def nacked(self, broker: str, first_ms: float = 0.0, last_ms: float = math.inf) -> int:
        """How many ticks the broker has asked for in a stretch of time."""
        return sum(ticks for at_ms, ticks in self.nacks[broker] if first_ms <= at_ms < last_ms)

    @property
    def detected_ms(self) -> float | None:
        """How long after the first fault one of the ends noticed that its link was gone."""
        return None if not self.noticed else self.noticed[0][0] - self.faults[0][0]


def failure_scenario(test: FailureTest, reliability: str = "gryphon", rate_per_s: float = 25.0) -> dict[str, Any]:
    """The keys of the test's scenario."""
    parameters = {"gryphon": {"pubends": {"p1": PUBLISHERS}}} if reliability == "gryphon" else {}
    return {
        "name": f"gryphon-{test.name}",
        "runtime": test.runtime,
        "overlay": OVERLAY,
        "workload": {
            "kind": "paced", "publishers": {"p1": PUBLISHERS}, "rate_per_s": rate_per_s, "seconds": test.seconds,
            "subscribers": dict.fromkeys(SUBSCRIBERS_AT, PUBLISHERS), "pauses": [list(each) for each in test.pauses],
        },
        "broker": {"routing": "cells", "reliability": reliability, "parameters": parameters},
        "links": {"delay": "1 ms"} if test.runtime == "virtual" else {},
        "failure_detection": {"heartbeat": "500 ms", "timeout": f"{test.timeout} ms", "reconnect": "100 ms"},
        "drain": {"limit": "300 s"},
        "faults": [each.entry() for each in test.faults],
    }  # fmt: skip


def measure_failure(test: FailureTest, address: str | None = None) -> FailureRun:
    """Play a failure test and read what it showed."""
    with TemporaryDirectory() as place:
        folder = Path(place) / "run"
        _, verdict = play_judged(failure_scenario(test), folder, address)
        names, rows = node_names(folder), journal(folder)
    faults = rows[(rows.kind == RowKind.FAULT) & (rows.hops == FaultStage.IN_EFFECT)]
    # The plan's clock stood at zero so long before the first fault took effect as the plan says that it was due.
    begin_us = int(faults[faults.sequence == 0].time_us.iloc[0] - test.faults[0].at_s * 1e6)
    latencies = {
        (broker, publisher): _latencies(rows, names.index(f"c{PUBLISHERS * (place + 1) + publisher}"), begin_us)
        for place, broker in enumerate(SUBSCRIBERS_AT)
        for publisher in range(PUBLISHERS)
    }
    watched, publisher = test.watched
    return FailureRun(
        test, {name: int(verdict[name]) for name in DELIVERY_COUNTS},
        {broker: latencies[broker, publisher] for broker in (watched, test.beside) if broker is not None},
        {
            broker: max(late for number in range(PUBLISHERS) for _, late in latencies[broker, number])
            for broker in SUBSCRIBERS_AT
        },
        {broker: _nacks(rows, names.index(broker), begin_us) for broker in test.nackers},
        [
            ((at_us - begin_us) / 1e3, str(test.faults[step]))
            for at_us, step in zip(faults.time_us.tolist(), faults.sequence.tolist(), strict=True)
        ],
        _noticed(rows, names, begin_us, int(faults.time_us.min())),
        _first_ack_expected(rows, names.index("p1"), begin_us, int(faults.time_us.max())),
    )  # fmt: skip


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


def _first_ack_expected(rows: pd.DataFrame, node: int, begin_us: int, after_us: int) -> float | None:
    kind = kind_of(AckExpected)
    sent = rows[(rows.kind == RowKind.SEND) & (rows.node == node) & (rows.value == kind) & (rows.time_us > after_us)]
    return None if sent.empty else float((sent.time_us.iloc[0] - begin_us) / 1e3)
