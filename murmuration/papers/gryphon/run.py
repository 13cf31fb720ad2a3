"""The failure tests of the guaranteed-delivery paper: scenarios, one run of each, what is read from its journal.

The overlay is the paper's: a publishers' broker p1 with four pubends, two cells of two brokers, subscribers' brokers s1
and s2 behind the one and s3 to s5 behind the other. Each publisher sends 25 events a second (the text names no rate);
at each subscribers' broker there is one subscriber for each publisher. Times in results are milliseconds from the start
of publishing.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from murmur_pubsub.journal import NONE, FaultStage, RowKind
from murmur_pubsub.message import kind_of
from murmuration.papers.lab.judged_run import journal, node_names, play, publishing_from_us
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


@dataclasses.dataclass(frozen=True, slots=True)
class FailureTest:
    """One of them. `watched`: the broker and publisher whose subscriber's latency is drawn; `beside`: another broker's
    whose is drawn for comparison; `nackers`: whose nacks are counted. `timeout`: of the heartbeats, in ms."""

    name: str
    title: str
    seconds: float
    faults: tuple[dict[str, Any], ...]
    nackers: tuple[str, ...]
    beside: str | None = None
    pauses: tuple[tuple[float, float], ...] = ()
    timeout: int = 2_000
    watched: tuple[str, int] = ("s1", 0)


STALL_S = 2.75
"""How long b1 is stalled before it crashes: what the paper's nack ranges say."""
TESTS = (
    FailureTest(
        "link", "Figure 6: the link b1-s1 stalls and fails", 12, ({"at": "5.7 s", "cut": ["b1", "s1"]},),
        ("s1", "s2", "b2"), beside="s2",
    ),
    FailureTest(
        "crash", "Figure 7: b1 stalls, crashes, and is back after 30 s", 50,
        (
            {"at": "9.2 s", "stall": "b1"},
            {"at": f"{9.2 + STALL_S} s", "kill": "b1"},
            {"at": "41.95 s", "restart": "b1"},
        ),
        ("s1", "s2", "b2"), timeout=5_000,
    ),
    FailureTest(
        "publishers", "Figure 8: p1 crashes, and is back after 20 s", 45,
        ({"at": "10 s", "kill": "p1"}, {"at": "30 s", "restart": "p1"}),
        ("s1", "s2", "s3", "s4", "s5"), pauses=((10.0, 30.5),),
    ),
)  # fmt: skip


@dataclasses.dataclass(slots=True)
class Observed:
    """What one failure test showed. `latencies`: broker and publisher to a frame of `sent_ms`, `latency_ms`; `nacks`:
    broker to a frame of `at_ms`, `ticks`; `faults`: (ms, text); `noticed`: (ms, broker, peer) of each link that went
    down after the first fault; `ack_expected_ms`: when p1 sent the first AckExpected after its return."""

    test: FailureTest
    runtime: str
    verdict: Mapping[str, Any]
    latencies: dict[tuple[str, int], pd.DataFrame]
    nacks: dict[str, pd.DataFrame]
    faults: list[tuple[float, str]]
    noticed: list[tuple[float, str, str]]
    ack_expected_ms: float | None

    def nacked(self, broker: str, first_ms: float = 0.0, last_ms: float = np.inf) -> int:
        """How many ticks the broker has asked for in a stretch of time."""
        frame = self.nacks[broker]
        return int(frame[(frame.at_ms >= first_ms) & (frame.at_ms < last_ms)].ticks.sum())

    def worst_ms(self, broker: str) -> float:
        """The worst latency of the broker's subscribers."""
        return float(max(frame.latency_ms.max() for (at, _), frame in self.latencies.items() if at == broker))

    @property
    def detected_ms(self) -> float | None:
        """How long after the first fault one of the ends noticed that its link was gone."""
        return None if not self.noticed else self.noticed[0][0] - self.faults[0][0]


def scenario(test: FailureTest, runtime: str, reliability: str = "gryphon", rate_per_s: float = 25.0) -> dict[str, Any]:
    """The keys of the test's scenario."""
    parameters = {"gryphon": {"pubends": {"p1": PUBLISHERS}}} if reliability == "gryphon" else {}
    return {
        "name": f"gryphon-{test.name}",
        "runtime": runtime,
        "overlay": OVERLAY,
        "workload": {
            "kind": "paced", "publishers": {"p1": PUBLISHERS}, "rate_per_s": rate_per_s, "seconds": test.seconds,
            "subscribers": dict.fromkeys(SUBSCRIBERS_AT, PUBLISHERS), "pauses": [list(each) for each in test.pauses],
        },
        "broker": {"routing": "cells", "reliability": reliability, "parameters": parameters},
        "links": {"delay": "1 ms"} if runtime == "virtual" else {},
        "failure_detection": {"heartbeat": "500 ms", "timeout": f"{test.timeout} ms", "reconnect": "100 ms"},
        "drain": {"limit": "300 s"},
        "faults": [dict(each) for each in test.faults],
    }  # fmt: skip


def observe(test: FailureTest, runtime: str, folder: Path) -> Observed:
    """Run a failure test and read what it showed."""
    data = scenario(test, runtime)
    _, verdict = play(data, folder)
    names = node_names(folder)
    rows = journal(folder)
    begin_us = publishing_from_us(rows)
    faults = rows[(rows.kind == RowKind.FAULT) & (rows.hops == FaultStage.IN_EFFECT)]
    if len(faults):
        begin_us = _base_us(faults, data)
    published = rows[rows.kind == RowKind.PUBLISH].set_index(["source", "sequence"]).time_us
    delivered = rows[rows.kind == RowKind.DELIVER]
    sent_us = published.reindex(pd.MultiIndex.from_frame(delivered[["source", "sequence"]])).to_numpy()
    seen = pd.DataFrame({
        "client": delivered.node.to_numpy(), "publisher": delivered.source.to_numpy(),
        "sent_ms": (sent_us - begin_us) / 1e3, "latency_ms": (delivered.time_us.to_numpy() - sent_us) / 1e3,
    })  # fmt: skip
    latencies = {}
    for place, broker in enumerate(SUBSCRIBERS_AT):
        for publisher in range(PUBLISHERS):
            client = names.index(f"c{PUBLISHERS + place * PUBLISHERS + publisher}")
            latencies[broker, publisher] = seen[seen.client == client].sort_values("sent_ms")
    return Observed(
        test, runtime, verdict, latencies,
        {broker: _nacks(rows, names.index(broker), begin_us) for broker in test.nackers},
        [
            ((at_us - begin_us) / 1e3, _words(test.faults[step]))
            for at_us, step in zip(faults.time_us.tolist(), faults.sequence.tolist(), strict=True)
        ],
        _noticed(rows, names, begin_us, int(faults.time_us.min())),
        _first_ack_expected(rows, names.index("p1"), begin_us, int(faults.time_us.max())),
    )  # fmt: skip


def _base_us(faults: pd.DataFrame, data: Mapping[str, Any]) -> int:
    """When the plan's clock stood at zero: the plan says when the first fault was due."""
    first = faults[faults.sequence == 0].time_us.iloc[0]
    return int(first - float(str(data["faults"][0]["at"]).split()[0]) * 1e6)


def _words(fault: Mapping[str, Any]) -> str:
    (verb,) = [each for each in fault if each not in ("at", "for")]
    about = fault[verb]
    return f"{verb} {'-'.join(about) if isinstance(about, list) else about}"


def _nacks(rows: pd.DataFrame, node: int, begin_us: int) -> pd.DataFrame:
    mine = rows[(rows.kind == RowKind.PROTOCOL) & (rows.node == node) & (rows.bytes == NACK_SENT)]
    return pd.DataFrame({"at_ms": (mine.time_us - begin_us) / 1e3, "ticks": mine.value})


def _noticed(rows: pd.DataFrame, names: list[str], begin_us: int, first_us: int) -> list[tuple[float, str, str]]:
    down = rows[(rows.kind == RowKind.LINK_DOWN) & (rows.time_us >= first_us) & (rows.peer != NONE)]
    found = zip(down.time_us.tolist(), down.node.tolist(), down.peer.tolist(), strict=True)
    return [((at_us - begin_us) / 1e3, names[node], names[peer]) for at_us, node, peer in found]


def _first_ack_expected(rows: pd.DataFrame, node: int, begin_us: int, after_us: int) -> float | None:
    kind = kind_of(AckExpected)
    sent = rows[(rows.kind == RowKind.SEND) & (rows.node == node) & (rows.value == kind) & (rows.time_us > after_us)]
    return None if sent.empty else float((sent.time_us.iloc[0] - begin_us) / 1e3)
