"""Which failures the guaranteed-delivery paper's figures show, as scenarios.

The overlay is the paper's: a publishers' broker p1 with four pubends, two cells of two brokers, subscribers' brokers s1
and s2 behind the one and s3 to s5 behind the other. Each publisher sends 25 events a second (the text names no rate);
at each subscribers' broker there is one subscriber for each publisher.
"""

import dataclasses
from typing import Any, NamedTuple

from murmuration.papers.lab.judged_run import Runtime

SUBSCRIBERS_AT = ("s1", "s2", "s3", "s4", "s5")
OVERLAY = {
    "kind": "cells",
    "cells": {"p": ["p1"], "left": ["b1", "b2"], "right": ["b3", "b4"], **{name: [name] for name in SUBSCRIBERS_AT}},
    "links": [["p", "left"], ["p", "right"], ["left", "s1"], ["left", "s2"],
              ["right", "s3"], ["right", "s4"], ["right", "s5"]],
    "redundancy": {"left": 2, "right": 2},
}  # fmt: skip
STALL_S = 2.75
"""How long b1 is stalled before it crashes: what the paper's nack ranges say."""
UNSENT_S = 1.0
"""How long p1 logs what it cannot send before it crashes. The text has such messages, and does not say how many."""

_ACCEPTED_S = 0.24
"""Publishers stop so long before p1 crashes: what it has not accepted then would be sent again 20 s later."""
_STARTING_S = 30.0
"""Publishers go on so long after p1's process was started anew: that takes up to 18 s where 33 processes share two
busy cores."""


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
    whose is drawn for comparison; `nackers`: whose nacks are counted. `timeout`: of the heartbeats, in ms. Each of
    the `publishers` has a pubend of its own, and a subscriber at each subscribers' broker."""

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
    rate_per_s: float = 25.0
    publishers: int = 4


class FailureTests(NamedTuple):
    """All of them."""

    link: FailureTest
    crash: FailureTest
    noticed_crash: FailureTest
    """The crash, with a failure detection that notices the stall before it."""
    unsent: FailureTest
    """p1 crashes with messages that it has logged and not sent."""
    sent: FailureTest
    """p1 crashes with none: the control of the test before."""
    throughput: FailureTest


def failure_tests(runtime: Runtime) -> FailureTests:
    """Those of the paper's Figures 6, 7 and 8, two controls, which take virtual time, and one of throughput."""
    around_b1 = ("s1", "s2", "b2")
    crash = FailureTest(
        "crash", "Figure 7: b1 stalls, crashes, and is back after 30 s", runtime, 50, _stall_and_crash(9.2, 30),
        around_b1, timeout=5_000,
    )  # fmt: skip
    down_s, back_s = 10.0, 30.0
    died, returned = PlannedFault(down_s, "kill", "p1"), PlannedFault(back_s, "restart", "p1")
    ways = [("p1", member) for member in ("b1", "b2", "b3", "b4")]
    stop_s = down_s - _ACCEPTED_S
    cut = tuple(PlannedFault(stop_s - UNSENT_S, "cut", each) for each in ways)
    healed = tuple(PlannedFault(back_s, "heal", each) for each in ways)
    unsent = FailureTest(
        "unsent", "Figure 8: p1 cannot send for 1 s, crashes, and is back after 20 s", runtime, 64,
        (*cut, died, *healed, returned), SUBSCRIBERS_AT, pauses=((stop_s, back_s + _STARTING_S),),
    )  # fmt: skip
    return FailureTests(
        FailureTest(
            "link", "Figure 6: the link b1-s1 stalls and fails", runtime, 12, (PlannedFault(5.7, "cut", ("b1", "s1")),),
            around_b1, beside="s2",
        ),
        crash,
        dataclasses.replace(
            crash, name="noticed_crash", title="Beside Figure 7: failures noticed after 2 s", timeout=2_000,
            runtime="virtual",
        ),
        unsent,
        dataclasses.replace(
            unsent, name="sent", title="Beside Figure 8: p1 crashes, and has sent all", faults=(died, returned),
            runtime="virtual",
        ),
        FailureTest(
            "throughput", "b1 stalls, crashes, and is back after 18 s, at four times the rate", runtime, 45,
            _stall_and_crash(9.25, 18), around_b1, timeout=5_000, rate_per_s=100.0,
        ),
    )  # fmt: skip


def _stall_and_crash(at_s: float, away_s: float) -> tuple[PlannedFault, ...]:
    crash_s = at_s + STALL_S
    return (
        PlannedFault(at_s, "stall", "b1"),
        PlannedFault(crash_s, "kill", "b1"),
        PlannedFault(crash_s + away_s, "restart", "b1"),
    )


def failure_scenario(test: FailureTest, reliability: str = "gryphon") -> dict[str, Any]:
    """The keys of the test's scenario."""
    publishers, pauses = test.publishers, [list(each) for each in test.pauses]
    parameters = {"gryphon": {"pubends": {"p1": publishers}}} if reliability == "gryphon" else {}
    return {
        "name": f"gryphon-{test.name}",
        "runtime": test.runtime,
        "overlay": OVERLAY,
        "workload": {
            "kind": "paced", "publishers": {"p1": publishers}, "rate_per_s": test.rate_per_s, "seconds": test.seconds,
            "subscribers": dict.fromkeys(SUBSCRIBERS_AT, publishers), "pauses": pauses,
        },
        "broker": {"routing": "cells", "reliability": reliability, "parameters": parameters},
        "links": {"delay": "1 ms"} if test.runtime == "virtual" else {},
        "failure_detection": {"heartbeat": "500 ms", "timeout": f"{test.timeout} ms", "reconnect": "100 ms"},
        "drain": {"limit": "300 s"},
        "faults": [each.entry() for each in test.faults],
    }  # fmt: skip


def without_failures(runtime: Runtime, seconds: float, rate_per_s: float, publishers: int = 4) -> FailureTest:
    """The same overlay, and nothing fails."""
    return FailureTest("calm", "no failures", runtime, seconds, (), (), rate_per_s=rate_per_s, publishers=publishers)
