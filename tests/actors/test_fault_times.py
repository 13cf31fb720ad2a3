"""A fault lasts as long as planned, however late it began."""

import pytest

from actors.live_fault_injector import FaultTimes
from murmur_pubsub.faults import Fault, FaultKind

BASE_US = 5_000_000


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (Fault(1_000, FaultKind.KILL, ("b1",)), Fault(3_000, FaultKind.RESTART, ("b1",))),
        (Fault(1_000, FaultKind.SLOW, ("b1",), work_us=5), Fault(3_000, FaultKind.SLOW, ("b1",))),
        (Fault(1_000, FaultKind.CUT, ("b1", "b2")), Fault(3_000, FaultKind.HEAL, ("b2", "b1"))),
        (Fault(1_000, FaultKind.PARTITION, groups=(("b1",), ("b2",))), Fault(3_000, FaultKind.UNITE)),
        (Fault(1_000, FaultKind.LOSE_HOST, host=1), Fault(3_000, FaultKind.RETURN_HOST, host=1)),
    ],
)
def test_what_ends_a_late_fault_is_as_late(first: Fault, then: Fault) -> None:
    times = FaultTimes(BASE_US)
    assert times.due_us(first) == BASE_US + 1_000
    times.in_effect(first, BASE_US + 900)
    assert times.due_us(then) == BASE_US + 3_000, "nothing is early"
    times.in_effect(first, BASE_US + 8_000)
    assert times.due_us(then) == BASE_US + 10_000


def test_other_steps_keep_their_times() -> None:
    times = FaultTimes(BASE_US)
    times.in_effect(Fault(1_000, FaultKind.KILL, ("b1",)), BASE_US + 8_000)
    for other in (
        Fault(3_000, FaultKind.RESTART, ("b2",)),
        Fault(3_000, FaultKind.STALL, ("b1",)),
        Fault(3_000, FaultKind.RETURN_HOST, host=1),
    ):
        assert times.due_us(other) == BASE_US + 3_000
