"""Schedules in bursts: faults meet, and between bursts is time to recover while events are published."""

import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from murmuration.deployment.build_deployment import build
from murmuration.hunt.chunk import Chunk, Quarry, next_schedule, play_chunk
from murmuration.hunt.corpus import Corpus
from murmuration.hunt.fault_draws import LASTING_MS, SOON_MS, DrawnFault, draw_burst, in_bursts
from murmuration.hunt.mutation import drawn_in_bursts, mutated
from murmuration.hunt.schedule import Schedule, brokers_of, draw_parts
from murmuration.hunt.space import space_of
from murmuration.scenario.load import check_scenario

SPACE = space_of("forwarding", "best_effort")


def test_each_fault_of_a_burst_but_the_first_begins_soon_after_another_began_or_ended() -> None:
    for seed in range(200):
        burst = draw_burst(random.Random(seed), SPACE, 5)
        assert 2 <= len(burst) <= 3
        for number, fault in enumerate(burst[1:], 1):
            moments = [at_ms for each in burst[:number] for at_ms in each.moments_ms]
            assert any(fault.at_ms - at_ms in SOON_MS for at_ms in moments)


def test_four_faults_of_bursts_in_five_are_at_brokers() -> None:
    bursts = [fault for seed in range(400) for fault in draw_burst(random.Random(seed), SPACE, 5)]
    at_brokers = sum(fault.place % 10 < 5 for fault in bursts)  # five brokers, and after them as many clients
    assert 0.7 < at_brokers / len(bursts) < 0.85


def test_all_faults_of_bursts_are_undone_but_perhaps_the_last() -> None:
    one = [DrawnFault(700, "kill", 0, None), DrawnFault(720, "cut", 1, 50)]
    drawn = [in_bursts(random.Random(seed), SPACE, 4_000, lambda: one) for seed in range(100)]
    for faults in drawn:
        assert all(fault.lasting_ms is not None for fault in faults[:-1])
        begins = [fault.at_ms for fault in faults if fault.kind == "kill"]
        assert 3 <= len(begins) <= 4
        assert all(second - first > 400 for first, second in pairwise(begins))
        assert begins[-1] < 4_000
    assert 20 < sum(faults[-1].lasting_ms is None for faults in drawn) < 46  # a third


def test_where_faults_excuse_nothing_two_bursts_begin_at_once_and_the_next_come_sooner() -> None:
    one = [DrawnFault(700, "kill", 0, None), DrawnFault(720, "cut", 1, 50)]
    for pair in ("cells/gryphon", "multipath/end_to_end", "cells/durable"):
        crowded = Quarry.named(pair).space()
        for seed in range(20):
            faults = in_bursts(random.Random(seed), crowded, 2_400, lambda: one)
            begins = Counter(fault.at_ms for fault in faults if fault.kind == "kill")
            assert {*begins.values()} == {2}
            assert 3 <= len(begins) <= 4
    assert SPACE.tempo.at_once == 1, "what one fault breaks another one's excuse would hide"


def test_in_half_of_all_schedules_the_last_burst_comes_as_the_last_event_is_published() -> None:
    one = [DrawnFault(0, "kill", 0, 50)]
    drawn = [in_bursts(random.Random(seed), SPACE, 4_000, lambda: one) for seed in range(100)]
    late = sum(3_700 < faults[-1].at_ms < 4_000 for faults in drawn)
    assert 40 < late < 70


@pytest.mark.parametrize("pair", ["forwarding/best_effort", "cells/gryphon", "irbr/best_effort"])
def test_events_are_published_for_as_long_as_there_are_bursts(pair: str) -> None:
    space = Quarry.named(pair).space()
    for seed in range(20):
        schedule = drawn_in_bursts(random.Random(seed), space)
        publishing_ms = 1_000 * schedule.scenario["workload"]["publications"] // space.rate_per_s
        assert min(fault.at_ms for fault in schedule.faults) < publishing_ms
        assert schedule == drawn_in_bursts(random.Random(seed), space)


def test_a_node_or_link_is_away_for_most_of_some_schedules_and_half_of_their_bursts_come_near_it() -> None:
    absence = DrawnFault(100, "kill", 2, 2_000)
    first = [draw_burst(random.Random(seed), SPACE, 50, absence)[0].place for seed in range(200)]
    assert 80 < sum(place in (2, 3) for place in first) < 140
    schedules = [drawn_in_bursts(random.Random(seed), SPACE) for seed in range(100)]
    away = [[fault for fault in each.faults if (fault.lasting_ms or 0) not in (0, *LASTING_MS)] for each in schedules]
    assert 40 < sum(map(bool, away)) < 80
    meanwhile = 0
    for schedule, faults in zip(schedules, away, strict=True):
        publishing_ms = 1_000 * schedule.scenario["workload"]["publications"] // SPACE.rate_per_s
        for fault in faults:
            assert fault.kind in ("kill", "stall", "cut", "partition")
            assert 0.3 * publishing_ms - 1 <= fault.moments_ms[1] - fault.at_ms <= 0.7 * publishing_ms
            assert fault.moments_ms[1] < publishing_ms
            meanwhile += any(fault.at_ms < each.at_ms < fault.moments_ms[1] for each in schedule.faults)
    assert meanwhile > 0.8 * sum(map(bool, away))


@pytest.mark.parametrize(
    ("pair", "kind", "about"),
    [
        ("forwarding/best_effort", "rewire", "disconnect"),
        ("multipath/best_effort", "order", None),
        ("cells/durable", "move", "move_client"),
    ],
)
def test_what_is_about_several_nodes_is_about_the_broker_that_it_is_to_be_near(
    pair: str, kind: str, about: str | None
) -> None:
    space = replace(Quarry.named(pair).space(), brokers_min=4)
    played = 0
    for seed in range(60):
        scenario = draw_parts(random.Random(seed), space).scenario
        loaded = check_scenario(scenario, "schedule")
        deployment = build(loaded).deployment
        brokers = [each.name for each in deployment.nodes if each.role == "broker"]
        near = seed % len(brokers)
        homes = {each.name: each.broker for each in deployment.nodes}
        entries = Schedule(scenario, (DrawnFault(500, kind, seed, 200, near),)).keys(space)["faults"]
        if not entries:
            continue
        named = (
            entries[0][about] if about is not None else next(each for key, each in entries[0].items() if key != "at")
        )
        names = [*named] if isinstance(named, list) else [named, homes.get(named), entries[0].get("to")]
        takes = about != "move_client" or brokers[near] in {*homes.values()}
        assert brokers[near] in names or not takes, entries
        played += takes
    assert played > 20


def test_a_schedule_made_of_others_has_their_faults() -> None:
    parent = Schedule(draw_parts(random.Random(1), SPACE).scenario, (DrawnFault(100, "partition", 77, 200),))
    made = [mutated(random.Random(seed), SPACE, [parent]) for seed in range(60)]
    from_there = [(fault.kind, fault.number) == ("partition", 77) for each in made for fault in each.faults]
    assert sum(from_there) > len(made)
    assert {brokers_of(each.scenario["overlay"]) for each in made} > {brokers_of(parent.scenario["overlay"])}


def test_what_is_reached_often_makes_a_schedule_worth_less_and_so_does_its_being_chosen() -> None:
    often, seldom = (draw_parts(random.Random(seed), SPACE) for seed in (1, 2))
    corpus = Corpus()
    assert corpus.take(often, ["a", "b"]) == {"a", "b"}
    assert corpus.take(seldom, ["b", "c"]) == {"c"}
    corpus.count({"a": 500, "b": 500, "c": 1})
    assert corpus.parents(random.Random(3), 1) == [seldom]
    chosen = corpus.parents(random.Random(3), 1_000)
    assert 0 < sum(each == often for each in chosen) < 50
    assert corpus.take(often, ["a"]) == set()


def test_a_guided_hunt_draws_plainly_too_and_makes_nothing_of_no_parents() -> None:
    schedules = [next_schedule(random.Random(seed), SPACE, []) for seed in range(100)]
    events = [each.scenario["workload"]["publications"] for each in schedules]
    assert 1 <= sum(count < 100 for count in events) <= 20


@pytest.mark.parametrize("guided", [True, False])
def test_in_place_of_a_schedule_that_cannot_be_another_is_drawn(guided: bool) -> None:
    """Over structured overlays one schedule in seven can be, with an algorithm that does not pull."""
    end = play_chunk(Chunk("drawn again", Quarry("irbr", "epidemic"), "1", 3, guided))
    assert (end.schedules, end.verdicts.total()) == (3, 3)
    assert end.refused > 3
