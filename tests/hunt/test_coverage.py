"""What a schedule reaches is told in facts that say something, and is the same each time."""

import random
from collections import deque
from collections.abc import Sequence
from enum import Enum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from murmur_pubsub.faults import Fault, FaultKind
from murmur_pubsub.fingerprint import facts_of
from murmur_pubsub.links import LinkSpec
from murmuration.hunt.chunk import Quarry
from murmuration.hunt.coverage import FaultsInForce
from murmuration.hunt.mutation import mutated
from murmuration.hunt.schedule import draw_parts
from murmuration.hunt.summary import never_in_force, never_lost
from murmuration.hunt.symptoms import tried
from murmuration.hunt.trial import deployment_of


class State(Enum):
    """Of a part."""

    ASKING = 1
    DONE = 2


class Part:
    """Of a machine."""

    __slots__ = ("count", "state")

    def __init__(self, state: State, count: int) -> None:
        self.state, self.count = state, count


class Holder:
    """A machine, as far as facts go."""

    def __init__(self) -> None:
        self.parts = {1: Part(State.ASKING, 0), 2: Part(State.DONE, -3)}
        self.waiting: deque[int] = deque([1, 2, 3])
        self.leader: str | None = None
        self.ready = True
        self.rng = random.Random(1)


def test_facts_are_about_states_signs_and_sizes_of_all_parts() -> None:
    assert facts_of(Holder()) == {
        ("Holder", "parts", "a few"),
        ("Holder", "waiting", "a few"),
        ("Holder", "leader", "None"),
        ("Holder", "ready", "True"),
        ("Part", "state", "is ASKING"),
        ("Part", "state", "is DONE"),
        ("Part", "count", "0"),
        ("Part", "count", "below 0"),
    }


def test_a_fault_is_near_its_ends_and_is_remembered_until_all_has_settled() -> None:
    quarry = Quarry("forwarding", "best_effort", scenario=CHAIN)
    schedule = draw_parts(random.Random(0), quarry.space())
    cut = [{"at": "1 s", "cut": ["b0", "b1"], "for": "200 ms"}]
    faults = deployment_of({**schedule.scenario, "faults": cut}).faults
    in_force = FaultsInForce()
    in_force.step(faults[0])
    assert (in_force.near({"b1", "b2"}), in_force.near({"b2"})) == (["cut"], [])
    in_force.step(faults[1])
    assert in_force.near({"b1"}) == ["after cut"]
    in_force.settled()
    assert in_force.near({"b1"}) == []


Step = tuple[FaultKind, Sequence[str], Sequence[str], Sequence[str]]
"""Kind, nodes that the plan names, those who died, those who are back."""
DIED: Step = (FaultKind.KILL, ["b1"], ["b1"], [])
LOST: Step = (FaultKind.LOSE_HOST, [], ["b2"], [])


def in_force_after(*steps: Step, absent: Sequence[str] = ()) -> FaultsInForce:
    in_force = FaultsInForce(absent)
    for kind, nodes, gone, came in steps:
        in_force.step(Fault(0, kind, tuple(nodes)), gone, came)
    return in_force


def test_a_host_that_returns_brings_back_who_had_died_before_it() -> None:
    lost = in_force_after(DIED, LOST)
    assert (lost.near({"b1"}), lost.near({"b2"}), lost.near({"b3"})) == (["kill"], ["lose host"], [])
    returned = in_force_after(DIED, LOST, (FaultKind.RETURN_HOST, [], [], ["b1", "b2"]))
    assert not returned.any_left
    assert returned.names == ["after kill", "after lose host"]
    assert in_force_after(DIED, LOST, (FaultKind.RETURN_HOST, [], [], ["b2"])).any_left, "b1 was elsewhere"


def test_an_actor_comes_back_without_those_who_had_died_before_it() -> None:
    killed: Step = (FaultKind.KILL_ACTOR, ["b1", "b2"], ["b2"], [])
    again = in_force_after(DIED, killed, (FaultKind.RESTART_ACTOR, ["b1", "b2"], [], ["b2"]))
    assert again.names == ["after kill actor", "kill"]


def test_who_is_dead_is_not_held_up() -> None:
    stalled: Step = (FaultKind.STALL, ["b1"], [], [])
    assert in_force_after(stalled, DIED).names == ["after stall", "kill"]
    assert in_force_after(stalled, LOST).names == ["lose host", "stall"]


def test_a_link_that_is_gone_is_not_cut() -> None:
    gone: Step = (FaultKind.DISCONNECT, ["b1", "b2"], [], [])
    assert in_force_after((FaultKind.CUT, ["b2", "b1"], [], []), gone).names == ["after cut", "disconnect"]
    assert in_force_after((FaultKind.CUT, ["b2", "b3"], [], []), gone).names == ["cut", "disconnect"]


def test_a_link_to_a_node_that_is_not_there_joins_nothing() -> None:
    gone: Step = (FaultKind.DISCONNECT, ["b1", "b2"], [], [])
    moved: Step = (FaultKind.CONNECT, ["b2", "n0"], [], [])
    assert in_force_after(gone, moved).names == ["after disconnect"]
    assert in_force_after(gone, moved, absent=["n0"]).names == ["disconnect"]
    came: Step = (FaultKind.RESTART, ["n0"], [], ["n0"])
    assert in_force_after(gone, came, moved, absent=["n0"]).names == ["after disconnect"]


def test_an_order_or_what_a_client_does_lasts_until_all_has_settled() -> None:
    for kind in (FaultKind.ORDER, FaultKind.PUBLISH, FaultKind.SUBSCRIBE, FaultKind.UNSUBSCRIBE):
        told = in_force_after((kind, ["b1"], [], []))
        assert (len(told.near({"b1"})), told.near({"b2"}), told.any_left) == (1, [], False)
        told.settled()
        assert told.names == []


def test_a_slow_node_and_a_link_that_loses_some_messages_are_there() -> None:
    in_force = FaultsInForce()
    in_force.step(Fault(0, FaultKind.SLOW, ("b1",), work_us=500))
    in_force.step(Fault(0, FaultKind.CHANGE_LINK, ("b1", "b2"), link=LinkSpec(loss=0.5)))
    assert (in_force.any_left, in_force.any_away) == (True, False)
    in_force.step(Fault(0, FaultKind.STALL, ("b1",)))
    assert in_force.any_away


CHAIN: dict[str, Any] = {
    "name": "chain",
    "runtime": "virtual",
    "overlay": {"kind": "chain", "brokers": 4},
    "workload": {"kind": "zipf", "clients": 4, "publications": 30, "rate_per_s": 40},
    "broker": {"routing": "forwarding", "reliability": "best_effort"},
}


def test_a_kill_beside_a_cut_reaches_what_neither_reaches_alone() -> None:
    def places(*faults: dict[str, Any]) -> set[str]:
        return tried({**CHAIN, "faults": [*faults]}).reached.places()

    kill = {"at": "200 ms", "kill": "b1", "for": "200 ms"}
    cut = {"at": "210 ms", "cut": ["b2", "b3"], "for": "100 ms"}
    both = places(kill, cut)
    assert both == places(kill, cut), "the same each time"
    assert "cut during kill" in both
    met = {place for place in both if "| cut + kill |" in place}
    assert met
    assert not met & (places(kill) | places(cut))


@pytest.mark.parametrize(
    ("routing", "reliability"), [("cells", "gryphon"), ("multipath", "best_effort"), ("vinifera", "best_effort")]
)
def test_whatever_a_schedule_is_changed_to_can_be_played(routing: str, reliability: str) -> None:
    space = Quarry(routing, reliability).space()

    @settings(max_examples=20)
    @given(st.randoms(use_true_random=False))
    def holds(rng: random.Random) -> None:
        parent, other = draw_parts(rng, space), draw_parts(rng, space)
        for _ in range(5):
            parent = mutated(rng, space, [parent, other])
        times = [fault.at_ms for fault in parent.faults]
        assert times == sorted(times)
        assert min(times, default=0) >= 0
        assert len(deployment_of(parent.keys(space)).faults) >= len(parent.keys(space)["faults"])

    holds()


@pytest.mark.parametrize("routing", ["irbr", "irbr_members", "scribe", "rpf", "cells"])
def test_what_was_never_lost_is_told_of_pairs_of_which_most_schedules_cannot_be(routing: str) -> None:
    """A hunt of 100 minutes ended without its summary: the one schedule that it drew for that could not be."""
    assert "EventRecovered" in never_lost(Quarry(routing, "epidemic"), {"lost Heard | loss", "kill during cut"})
    assert "EventRecovered" not in never_lost(Quarry(routing, "epidemic"), {"lost EventRecovered | loss"})


def test_a_slow_link_is_no_slow_node_among_the_faults_that_were_in_force() -> None:
    quarry = Quarry("forwarding", "best_effort")
    assert {"slow", "slow link", "kill", "cut"} <= set(never_in_force(quarry, {"lost Forwarded | cut"}))
    places = {"Broker.held some | kill + slow link | publishing", "Broker.held none | after cut | mending"}
    absent = set(never_in_force(quarry, places))
    assert {"slow", "cut"} <= absent
    assert not {"kill", "slow link"} & absent
