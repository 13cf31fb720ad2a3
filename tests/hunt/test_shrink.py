"""What is left of a failing schedule still fails in the same way, and nothing of it can be left out."""

import random
from pathlib import Path
from typing import Any

import pytest

from murmuration.hunt.chunk import Found, Quarry
from murmuration.hunt.fault_draws import DrawnFault
from murmuration.hunt.findings import FindingStore
from murmuration.hunt.mutation import drawn_in_bursts
from murmuration.hunt.schedule import Schedule, brokers_of, draw_parts
from murmuration.hunt.shrink import Shrinking, Smaller, _fewer_parameters, _simpler, shrink, still_fails
from murmuration.hunt.shrink_tasks import FoundSchedules
from murmuration.hunt.symptoms import Symptom, tried
from tests.hunt.hunting import ENOUGH_S
from tests.hunt.test_coverage import CHAIN
from tests.hunt.test_properties import RESTLESS


def failing(quarry: Quarry, seed: int) -> Schedule:
    """The first failing schedule from that seed on."""
    for number in range(seed, seed + 50):
        schedule = draw_parts(random.Random(number), quarry.space())
        if tried(schedule.keys(quarry.space())).symptom is not None:
            return schedule
    raise AssertionError("none fails")


@pytest.mark.parametrize("seed", [0, pytest.param(100, marks=pytest.mark.slow)])
def test_one_fault_is_left_where_one_is_enough(seed: int) -> None:
    quarry = Quarry("forwarding", RESTLESS["reliability"], scenario={**CHAIN, "broker": RESTLESS})
    space, schedule = quarry.space(), failing(quarry, seed)
    symptom = tried(schedule.keys(space)).symptom
    assert symptom is not None
    small = shrink(schedule, space, symptom, ENOUGH_S)
    again = tried(small.keys).symptom
    assert again is not None
    assert again.kind == symptom.kind
    assert [set(entry) - {"at", "for"} for entry in small.keys["faults"]] == [{"kill"}], "the most common kind"
    assert small.keys["overlay"]["brokers"] == 2
    assert small.keys["workload"]["publications"] == 1


def test_parameters_that_do_not_matter_are_left_out() -> None:
    quarry = Quarry("multipath", "tests.hunt.properties_asked:Restless")
    space = quarry.space()
    schedules = (failing(quarry, seed) for seed in range(50))
    schedule = next(each for each in schedules if "parameters" in each.scenario["broker"])
    symptom = tried(schedule.keys(space)).symptom
    assert symptom is not None
    assert "parameters" not in shrink(schedule, space, symptom, ENOUGH_S).keys["broker"]


def test_of_parameters_those_that_were_drawn_are_left_out_all_at_once_or_each() -> None:
    given = {"end_to_end": {"pubends": ["b0"]}}
    broker = {
        "routing": "multipath",
        "parameters": {"multipath": {"delta": 2}, "end_to_end": {"pubends": ["b0"], "gap": "20 ms"}},
    }
    left = [fewer["parameters"] for fewer in _fewer_parameters(broker, given)]
    assert left == [
        given,
        {"end_to_end": {"pubends": ["b0"], "gap": "20 ms"}},
        {"multipath": {"delta": 2}, "end_to_end": {"pubends": ["b0"]}},
    ]
    assert not list(_fewer_parameters({"routing": "multipath"}, {}))


def test_it_comes_out_the_same_however_many_are_tried_at_once_and_in_whatever_order_they_end() -> None:
    quarry = Quarry("forwarding", RESTLESS["reliability"], scenario={**CHAIN, "broker": RESTLESS})
    space, schedule = quarry.space(), failing(quarry, 0)
    symptom = tried(schedule.keys(space)).symptom
    assert symptom is not None
    known: dict[str, Smaller | None] = {}

    def still(smaller: Schedule) -> Smaller | None:
        if repr(smaller) not in known:
            known[repr(smaller)] = still_fails(smaller, space, symptom.kind)
        return known[repr(smaller)]

    def shrunk(at_once: int) -> tuple[dict[str, Any], int]:
        rng, shrinking = random.Random(at_once), Shrinking(schedule, space, symptom, ENOUGH_S)
        under_way: list[tuple[int, Schedule]] = []
        while True:
            while len(under_way) < at_once and (following := shrinking.next_try()) is not None:
                under_way.append(following)
            if not under_way:
                break
            number, smaller = under_way.pop(rng.randrange(len(under_way)))
            shrinking.take(number, still(smaller))
        return shrinking.end().keys, shrinking.end().tries

    one = shrunk(1)
    assert one[1] > 10
    assert shrunk(8) == one


def test_a_try_of_before_it_became_smaller_is_for_nothing() -> None:
    quarry = Quarry("forwarding", "best_effort", scenario=CHAIN)
    space, symptom = quarry.space(), Symptom("missing", "")
    schedule = Schedule(CHAIN, tuple(DrawnFault(100 * number, "kill", number, 200) for number in range(4)))
    shrinking = Shrinking(schedule, space, symptom)
    tries = [shrinking.next_try() or pytest.fail("none is left") for _ in range(3)]
    (zeroth, _), (first, smaller), (stale, other) = tries
    shrinking.take(first, Smaller(smaller, smaller.keys(space), symptom))
    assert shrinking.under_way == 2
    assert shrinking.end().schedule.faults == schedule.faults, "the one before it is not known yet"
    shrinking.take(zeroth, None)
    shrinking.take(stale, Smaller(other, other.keys(space), symptom))
    assert (shrinking.end().schedule, shrinking.end().tries, shrinking.under_way) == (smaller, 2, 0)


def test_of_one_symptom_three_are_shrunk_and_the_others_count_for_what_comes_of_them(tmp_path: Path) -> None:
    quarry = Quarry("forwarding", "best_effort", scenario=CHAIN)
    store = FindingStore(tmp_path)
    to_shrink, schedule = FoundSchedules(store, 0.0), Schedule(CHAIN, (DrawnFault(200, "kill", 1, 200),))
    for number in range(5):
        found = Found(schedule, schedule.keys(quarry.space()), Symptom("rests never", "b1 waits"), number)
        to_shrink.add(quarry, found, f"7/0/{number}")
    assert len(to_shrink) == 3
    to_shrink.keep_all()
    assert [each.record["schedules"] for each in store.all] == [5]


def test_time_that_is_spent_ends_it_with_what_it_has() -> None:
    quarry = Quarry("forwarding", RESTLESS["reliability"], scenario={**CHAIN, "broker": RESTLESS})
    space, schedule = quarry.space(), failing(quarry, 0)
    symptom = tried(schedule.keys(space)).symptom
    assert symptom is not None
    unchanged = shrink(schedule, space, symptom, seconds=0.0)
    assert (unchanged.keys, unchanged.tries) == (schedule.keys(space), 0)


def test_a_drain_of_minutes_is_cut_down_before_anything_else() -> None:
    space = Quarry("cells", "gryphon").space()
    schedule = draw_parts(random.Random(0), space)
    assert schedule.scenario["drain"] == {"limit": "300 s"}
    first = Shrinking(schedule, space, Symptom("missing", "")).next_try()
    assert first is not None
    assert first[1].scenario == {**schedule.scenario, "drain": {"limit": "60 s"}}


@pytest.mark.parametrize(
    "pair",
    [
        "cells/gryphon", "multipath/best_effort", "irbr/best_effort", "cells/durable/replaced",
        "forwarding/end_to_end/crossed",
    ],
)  # fmt: skip
def test_faults_with_the_least_numbers_hit_what_they_hit_before(pair: str) -> None:
    space = Quarry.named(pair).space()
    for seed in range(8):
        for schedule in (draw_parts(random.Random(seed), space), drawn_in_bursts(random.Random(seed), space)):
            least = schedule.with_least_numbers(space)
            assert least.keys(space) == schedule.keys(space)
            assert all(fault.number < 40 for fault in least.faults if fault.kind in ("kill", "cut", "stall"))
            brokers = brokers_of(schedule.scenario["overlay"]) + len(space.more.get("newcomers", ()))
            assert all(fault.near < brokers for fault in least.faults if fault.near is not None)


def test_a_link_that_moves_at_the_last_of_many_brokers_comes_to_move_at_the_first() -> None:
    near = {each.near for each in _simpler(DrawnFault(500, "rewire", 17, 200, 6)) if each.kind == "rewire"}
    assert near == {0, 1, 2, 3, 6}
    others = [each for each in _simpler(DrawnFault(500, "rewire", 17, 200, 6)) if each.kind == "cut"]
    assert [(each.number, each.near) for each in others] == [(6, None), (0, None), (1, None)]


def test_a_fault_at_the_last_of_many_brokers_comes_to_be_at_the_first_of_few() -> None:
    quarry = Quarry("forwarding", RESTLESS["reliability"])
    space = quarry.space()
    scenario = {**CHAIN, "broker": RESTLESS, "overlay": {"kind": "chain", "brokers": 7}}
    schedule = Schedule(scenario, (DrawnFault(500, "kill", 11 * 8 + 6, 200),))
    symptom = tried(schedule.keys(space)).symptom
    assert symptom is not None
    small = shrink(schedule, space, symptom, ENOUGH_S)
    assert small.keys["overlay"]["brokers"] == 2
    assert [entry["kill"] for entry in small.keys["faults"]] == ["b0"]
