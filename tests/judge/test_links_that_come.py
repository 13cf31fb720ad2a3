"""Which links an overlay has while brokers are connected, disconnected, killed and restarted."""

import pytest

from murmur_pubsub.faults import FaultKind
from spark_analysis.changing_overlay import overlays_of
from spark_analysis.fault_windows import FaultStep

CHAIN = (("b1", "b0"), ("b0", "b2"))
MOVED = (("b0", "b2"), ("b2", "b1"))
WITHOUT = (("b0", "b2"),)


def overlays(*steps: tuple[FaultKind, str]) -> list[tuple[tuple[str, str], ...]]:
    """The links after each change; a step a second."""
    timed = [
        FaultStep(number, kind, "", tuple(names.split()), ordered_us=number * 1_000_000)
        for number, (kind, names) in enumerate(steps, 1)
    ]
    return [tuple(each.links) for each in overlays_of(CHAIN, timed)]


DISCONNECT, CONNECT = (FaultKind.DISCONNECT, "b0 b1"), (FaultKind.CONNECT, "b2 b1")


def test_a_link_between_brokers_that_run_is_one_at_once() -> None:
    assert overlays(DISCONNECT, CONNECT) == [CHAIN, WITHOUT, MOVED]


@pytest.mark.parametrize("dies", [(FaultKind.KILL, "b2"), (FaultKind.KILL_ACTOR, "b2"), (FaultKind.LOSE_HOST, "b2 c7")])
def test_a_link_to_a_dead_broker_is_none_before_that_one_is_back(dies: tuple[FaultKind, str]) -> None:
    """A guided hunt found it: two brokers were taken for connected over a dead one that one of them was linked to when
    it was dead."""
    assert overlays(dies, DISCONNECT, CONNECT) == [CHAIN, WITHOUT, WITHOUT]
    back = (FaultKind.RESTART, "b2")
    assert overlays(dies, DISCONNECT, CONNECT, back) == [CHAIN, WITHOUT, WITHOUT, MOVED]
    assert overlays(dies, back, DISCONNECT, CONNECT) == [CHAIN, WITHOUT, MOVED]
    taken_back = (FaultKind.DISCONNECT, "b1 b2")
    assert overlays(dies, DISCONNECT, CONNECT, taken_back, back) == [CHAIN, WITHOUT, WITHOUT, WITHOUT]


def test_a_link_that_was_there_when_its_end_died_stays_one() -> None:
    assert overlays(DISCONNECT, CONNECT, (FaultKind.KILL, "b2"), (FaultKind.RESTART, "b2")) == [CHAIN, WITHOUT, MOVED]


def test_an_actor_that_comes_back_does_not_bring_a_broker_that_was_dead_before_it() -> None:
    dies, actor = (FaultKind.KILL, "b2"), [(FaultKind.KILL_ACTOR, "b2 c7"), (FaultKind.RESTART_ACTOR, "b2 c7")]
    assert overlays(dies, *actor, DISCONNECT, CONNECT) == [CHAIN, WITHOUT, WITHOUT]
    assert overlays(*actor, DISCONNECT, CONNECT) == [CHAIN, WITHOUT, MOVED]
