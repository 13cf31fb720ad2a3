"""Vinifera section V: the workloads, what is counted, churn, and runs that are kept, on networks of 30 nodes."""

from pathlib import Path

import pytest

from murmur_pubsub.errors import InputError
from murmuration.papers.lab.judged_run import touched_by_faults
from murmuration.papers.vinifera.live import ViniferaLiveSpec, read_vinifera_live
from murmuration.papers.vinifera.plan import ViniferaPlan
from murmuration.papers.vinifera.run import ChurnRun, ChurnSpec, Routing, StaticSpec, measure_churn, measure_static
from murmuration.papers.vinifera.workload import IntervalWorkload, SocialWorkload, breadth_first, friend_links
from murmuration.runs.driver import execute
from murmuration.scenario.load import load_scenario


@pytest.mark.parametrize("attributes", [1, 3, 5])
def test_vinifera_s5_a_fifth_of_the_nodes_wants_an_event_of_the_random_model(attributes: int) -> None:
    workload = IntervalWorkload("random", attributes, 1)
    filters, events = [workload.filter(node) for node in range(200)], [workload.event() for _ in range(200)]
    matched = sum(wanted.matches(event) for wanted in filters for event in events) / 40_000
    assert 0.06 < matched < 0.25, "intervals are cut at the ends of the domain"


def test_vinifera_s5_skewed_interests_and_events_meet_more_often() -> None:
    workload = IntervalWorkload("skewed", 1, 1)
    filters, events = [workload.filter(node) for node in range(200)], [workload.event() for _ in range(200)]
    assert sum(wanted.matches(event) for wanted in filters for event in events) / 40_000 > 0.4


def test_vinifera_s5a_friends_are_log_n_less_two() -> None:
    assert [friend_links(nodes) for nodes in (3, 64, 1_000, 8_192)] == [1, 4, 8, 8]


def test_users_of_a_friendship_graph_are_chosen_breadth_first(data_directory: Path) -> None:
    friends = {1: [2, 3], 2: [1, 4], 3: [1], 4: [2, 5], 5: [4]}
    assert list(breadth_first(1, friends, 4)) == [1, 2, 3, 4]
    workload = SocialWorkload(data_directory / "facebook_combined.txt", 50, 1)
    assert all(any(workload.filter(node).matches(workload.event()) for _ in range(3_000)) for node in range(3))


@pytest.mark.parametrize("routing", ["vinifera", "ferry"])
def test_vinifera_s5_every_message_with_an_event_is_counted(routing: Routing) -> None:
    run = measure_static(StaticSpec(routing, 30, "random", friends=3, small_world=3, cycles=10, events=30))
    assert (run.hit_ratio, run.duplicate) == (1, 0)
    assert run.copies == pytest.approx(1, abs=0.1), "one copy a delivery; what a publisher wants itself takes none"
    assert run.degree <= 10
    assert run.load == sorted(run.load)
    assert run.load[-1] == 1
    if routing == "ferry":
        assert run.overhead > 0.6, "every node is on the tree, and a fifth of them is interested"
        assert run.load[0] > 0.5, "most nodes are leaves of the tree, and pass nothing on"


def test_vinifera_s5d_nodes_that_take_less_than_is_published_lose_events() -> None:
    spec = StaticSpec("ferry", 30, "random", cycles=6, events=60, capacity=12, rates=(1, 5))
    run = measure_static(spec)
    assert run.hit_ratio == 1
    assert run.hit_ratios[1] < min(0.6, run.hit_ratios[0])


def test_vinifera_s5e_churn_is_followed_hour_by_hour() -> None:
    run = measure_churn(ChurnSpec("vinifera", "generated", "random", 40, 0.25, 600, True, events=5, friends=4))
    assert len(run.population) == len(run.interested) == 6
    assert min(run.population) > 5
    ratio = run.hit_ratio(set(range(6)))
    assert ratio is not None
    assert ratio > 0.8


def test_a_replay_of_churn_misses_no_pair_that_stays_up(tmp_path: Path) -> None:
    """The live run's scenario and what is read from it, in virtual time and at a tenth of the rate."""
    spec = ViniferaLiveSpec(
        "vinifera", "generated", 1, ("runtime=virtual", "workload.publications=360", "workload.rate_per_s=3")
    )
    loaded = spec.load()
    execute(loaded, tmp_path / "run", lambda *_: None)
    live = read_vinifera_live(spec, tmp_path / "run", touched_by_faults(loaded))
    assert 16 < min(live.population) < max(live.population) <= 48
    assert min(live.kills, live.starts) > 10
    assert sum(live.interested) > 500
    assert live.missed == 0
    assert 0 < sum(live.uninterested) < sum(live.received)
    assert sum(live.hops) > 2 * sum(live.delivered)


def test_an_hour_in_which_many_join_is_a_flash_crowd_and_the_one_after_it_too() -> None:
    spec = ChurnSpec("vinifera", "generated", "random", 40, 0.25, 600, True)
    run = ChurnRun(spec, population=[100, 105, 140, 141, 142], joined=[0, 5, 40, 3, 4])
    assert run.flash_crowd() == {2, 3}


def test_the_baseline_is_run_once_however_many_friends_vinifera_has() -> None:
    plan = ViniferaPlan.quick(1)
    specs = plan.specs()
    assert len(specs) == len(set(specs))
    assert plan.static("ferry", "random", friends=3) == plan.static("ferry", "random", friends=8)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("broker.parameters.vinifera.friend_links=20", "at most 8 together"),
        ("broker.parameters.vinifera.attributes.a0={min: 1, max: 0}", "a min below the max"),
        ("broker.parameters.vinifera.attributes.a0={min: 1, max: .inf}", "no domain: all numbers"),
        ("overlay.digits=17", r"overlay\.digits.*17,179,869,184 identifiers"),
    ],
)
def test_bad_parameters_in_a_scenario_are_refused_by_key(change: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        execute(load_scenario(Path("vinifera"), [change]), tmp_path / "run", lambda *_: None)
