"""From availability to a fault plan: which nodes are down at first, which are killed and started when.

Each named node plays one node of the trace. Time is scaled: `speed` seconds of the trace pass in one emulated second.
A start of a process takes time of its own, so sessions and gaps that the scaling makes shorter than `shortest_us` are
left out (a short gap first: it joins two sessions).
"""

import dataclasses
from collections.abc import Sequence, Set
from dataclasses import dataclass

from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import Fault, FaultKind
from murmur_pubsub.machine import NodeName
from workloads.churn.sessions import Availability

PlannedSession = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ChurnPlan:
    """`start_down`: nodes that are not there when the run begins; `steps`: kills and starts, in order of time."""

    start_down: frozenset[NodeName]
    steps: tuple[Fault, ...]
    left_out: int

    def begun_at(self, begin_us: int, awaited: Set[NodeName] = frozenset()) -> "ChurnPlan":
        """The same, later by this time: all nodes are there until then, and those that were down at first are killed.
        So are the `awaited` where nothing is later: they are there until the run begins to publish."""
        killed = self.start_down if begin_us else self.start_down & awaited
        kills = [Fault(begin_us, FaultKind.KILL, (name,)) for name in sorted(killed)]
        later = [dataclasses.replace(step, time_us=step.time_us + begin_us) for step in self.steps]
        return ChurnPlan(self.start_down - killed, (*kills, *later), self.left_out)


def churn_plan(trace: Availability, names: Sequence[NodeName], speed: float, shortest_us: int) -> ChurnPlan:
    """The nodes, in order, play those of the trace; both must be as many. Time zero is the begin of the window."""
    if len(names) != len(trace.sessions):
        raise InputError("churn", f"{len(trace.sessions)} nodes of the trace for {len(names)} of the run", "as many")
    if speed <= 0 or shortest_us < 1:
        raise InputError("churn", f"speed {speed}, shortest {shortest_us} us", "numbers above zero")
    end_us = int((trace.end_s - trace.begin_s) * 1_000_000 / speed)
    start_down: dict[NodeName, None] = {}
    steps: list[Fault] = []
    left_out = 0
    for name, held in zip(names, trace.sessions.values(), strict=True):
        scaled = [
            (int((up - trace.begin_s) * 1_000_000 / speed), int((down - trace.begin_s) * 1_000_000 / speed))
            for up, down in held
        ]
        kept = _long_enough(scaled, shortest_us, end_us)
        left_out += len(scaled) - len(kept)
        if not kept or kept[0][0] > 0:
            start_down[name] = None
        for up_us, down_us in kept:
            if up_us > 0:
                steps.append(Fault(up_us, FaultKind.RESTART, (name,)))
            if down_us < end_us:
                steps.append(Fault(down_us, FaultKind.KILL, (name,)))
    steps.sort(key=lambda step: step.time_us)
    return ChurnPlan(frozenset(start_down), tuple(steps), left_out)


def _long_enough(sessions: Sequence[PlannedSession], shortest_us: int, end_us: int) -> list[PlannedSession]:
    joined: list[PlannedSession] = []
    for up_us, down_us in sessions:
        if joined and up_us - joined[-1][1] < shortest_us:
            joined[-1] = (joined[-1][0], down_us)
        else:
            joined.append((up_us, down_us))
    # What begins with the window is shorter than it was, so it is no reason to leave it out; the end must be whole.
    return [
        (0 if up_us < shortest_us else up_us, end_us if end_us - down_us < shortest_us else down_us)
        for up_us, down_us in joined
        if down_us - up_us >= shortest_us and up_us < end_us - shortest_us
    ]
