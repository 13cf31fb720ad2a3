"""Fault plans: what could not take effect is refused, with the place; random plans are always possible."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import (
    RECONFIGURES,
    FailureDetection,
    Fault,
    FaultKind,
    FaultTargets,
    NewLinks,
    PlanRules,
    link_key,
)
from murmur_pubsub.links import LinkSpec
from murmur_pubsub.plan_checker import check_plan
from murmuration.deployment.build_deployment import build
from murmuration.scenario.load import load_scenario
from workloads.overlay import Tree, balanced
from workloads.random_faults import RANDOM_FAULT_KINDS, RandomFaults, draw_faults

TARGETS = FaultTargets(
    ["b0", "b1", "b2", "b3", "c0"],
    [("b0", "b1"), ("b1", "b2"), ("c0", "b0")],
    {"b0": 0, "b1": 1, "b2": 2, "b3": 2, "c0": 0},
    frozenset({"b3"}),
    frozenset({"b0", "b1", "b2", "b3"}),
    PlanRules(acyclic=True, orders={"swap": ("with", "by"), "rest": ()}),
)
WITH_DATAGRAMS = FaultTargets(
    ["b0", "b1", "c0"], [("b0", "c0")], {"b0": 0, "b1": 0, "c0": 0}, brokers=frozenset({"b0", "b1"}), has_datagrams=True
)
SHARED = replace(TARGETS, actors=(("b0", "b1"), ("b2", "b3")))
KILL_ACTOR, RESTART_ACTOR = FaultKind.KILL_ACTOR, FaultKind.RESTART_ACTOR
KILL, RESTART, STALL, RESUME = FaultKind.KILL, FaultKind.RESTART, FaultKind.STALL, FaultKind.RESUME
CUT, HEAL, SLOW = FaultKind.CUT, FaultKind.HEAL, FaultKind.SLOW


def steps(*named: tuple[FaultKind, str]) -> list[Fault]:
    return [Fault(number, kind, tuple(names.split("-"))) for number, (kind, names) in enumerate(named)]


@pytest.mark.parametrize(
    ("plan", "found"),
    [
        (steps((KILL, "b9")), "'b9'"),
        (steps((RESTART, "b1")), "a restart of b1, which is up"),
        (steps((KILL, "b1"), (KILL, "b1")), "kill b1, which is down then"),
        (steps((KILL, "b1"), (STALL, "b1")), "stall b1, which is down then"),
        (steps((RESUME, "b1")), "resume b1, which is not stalled"),
        (steps((STALL, "b1"), (SLOW, "b1")), "slow b1, which is stalled then"),
        (steps((CUT, "b0-b2")), "a link b0-b2"),
        (steps((CUT, "b0-b1"), (CUT, "b1-b0")), "cut b1-b0, which may be cut already"),
        (steps((HEAL, "b0-b1")), "heal b0-b1, which was not cut"),
        ([Fault(5, KILL, ("b1",)), Fault(4, RESTART, ("b1",))], "restart b1 at 4 us, after one at 5 us"),
        ([Fault(-1, KILL, ("b1",))], "a time of -1 us"),
        ([Fault(0, FaultKind.PARTITION, groups=(("b0", "b1", "b2", "b3", "c0"),))], "which cuts no link"),
        ([Fault(0, FaultKind.PARTITION, groups=(("b0", "c0"), ("b1",)))], "partition of b0,c0 | b1"),
        ([Fault(0, FaultKind.PARTITION, groups=(("b0", "c0"), ("b1", "b2", "b0")))], "partition of"),
        ([Fault(0, FaultKind.UNITE)], "an end of a partition"),
        ([Fault(0, FaultKind.LOSE_HOST, host=0)], "host 0"),
        ([Fault(0, FaultKind.LOSE_HOST, host=7)], "host 7"),
        ([Fault(0, FaultKind.RETURN_HOST, host=1)], "return host 1, which is not lost"),
    ],
)
def test_a_step_without_effect_is_refused(plan: list[Fault], found: str) -> None:
    with pytest.raises(InputError) as error:
        check_plan(plan, TARGETS)
    assert found in error.value.found
    assert error.value.place == f"faults, step {len(plan)}", "the last one"
    assert error.value.allowed


def test_a_possible_plan_passes() -> None:
    check_plan(
        [
            *steps((KILL, "b1"), (RESTART, "b1"), (STALL, "b1"), (KILL, "b1"), (RESTART, "b1"), (CUT, "b0-b1")),
            Fault(7, HEAL, ("b1", "b0")),
            Fault(8, FaultKind.PARTITION, groups=(("b0", "c0"), ("b1", "b2", "b3"))),
            Fault(9, FaultKind.UNITE),
            Fault(10, FaultKind.LOSE_HOST, host=2),
            Fault(11, FaultKind.RETURN_HOST, host=2),
        ],
        TARGETS,
    )


def test_a_partition_may_divide_brokers_that_have_datagrams_and_no_link() -> None:
    divided, same_side = (Fault(0, FaultKind.PARTITION, groups=groups) for groups in (
        (("b0", "c0"), ("b1",)), (("b0", "b1", "c0"),)
    ))  # fmt: skip
    check_plan([divided], WITH_DATAGRAMS)
    with pytest.raises(InputError, match="which cuts no link"):
        check_plan([divided], replace(WITH_DATAGRAMS, has_datagrams=False))
    with pytest.raises(InputError, match="which cuts no link"):
        check_plan([same_side], WITH_DATAGRAMS)


def test_failure_detection_needs_time_for_two_heartbeats() -> None:
    FailureDetection(heartbeat_us=1_000, timeout_us=2_000)
    with pytest.raises(InputError, match="at least two heartbeats"):
        FailureDetection(heartbeat_us=1_000, timeout_us=1_999)


@pytest.mark.parametrize("given", [{"heartbeat_us": 0}, {"reconnect_us": 0}])
def test_failure_detection_without_a_pause_is_refused(given: dict[str, int]) -> None:
    FailureDetection(**dict.fromkeys(given, 1))
    with pytest.raises(InputError, match="a time of zero"):
        FailureDetection(**given)


LINKS = {link_key(*ends): LinkSpec() for ends in TARGETS.links}


@settings(max_examples=100)
@given(
    st.integers(0, 10_000),
    st.lists(st.sampled_from((*RANDOM_FAULT_KINDS, "swap", "rest")), min_size=1, max_size=5),
    st.integers(1_000, 3_000_000),
    st.integers(1, 4),
)
def test_random_plans_are_possible_and_end_whole(seed: int, kinds: list[str], every_us: int, at_once: int) -> None:
    targets = SHARED if "kill_actor" in kinds else TARGETS
    if targets is SHARED:  # where a SIGKILL of one node is that of several
        kinds = ["kill" if kind == "sigkill" else kind for kind in kinds]
    wanted = RandomFaults(every_us, 20_000_000, kinds=tuple(kinds), at_once=at_once, limit=100)
    plan = draw_faults(wanted, targets, LINKS, seed)
    check_plan(plan, targets)
    assert plan == draw_faults(wanted, targets, LINKS, seed), "the same seed draws the same plan"
    changes = [fault for fault in plan if fault.kind in RECONFIGURES]
    if changes:
        taken = [fault for fault in changes if fault.kind is FaultKind.DISCONNECT]
        joined = any("b3" in fault.nodes for fault in changes)
        assert len(changes) == 2 * len(taken) + joined, "for each link that is taken away another one comes"
        return
    # Everything that was broken is mended: the same plan can follow itself.
    later = [replace(fault, time_us=fault.time_us + 30_000_000) for fault in plan]
    check_plan([*plan, *later], targets)


def test_random_kills_of_actors_hit_each_actor_as_a_whole_and_none_that_holds_a_node_in_trouble() -> None:
    wanted = RandomFaults(100_000, 60_000_000, kinds=("kill_actor", "kill_actor", "stall", "cut", "join"))
    plan = draw_faults(wanted, SHARED, LINKS, 3)
    check_plan(plan, SHARED)
    joined_us = next(each.time_us for each in plan if each.kind is RESTART)
    kills = [each for each in plan if each.kind is KILL_ACTOR]
    assert {each.nodes for each in kills} == set(SHARED.actors)
    assert all(each.time_us > joined_us for each in kills if "b3" in each.nodes), "a newcomer was not there before"
    ends = [each for each in plan if each.kind is RESTART_ACTOR]
    assert [each.nodes for each in kills].count(("b0", "b1")) == [each.nodes for each in ends].count(("b0", "b1"))
    stalled: set[str] = set()
    for each in plan:
        if each.kind in (STALL, RESUME):
            stalled ^= {*each.nodes}
        assert each.kind is not KILL_ACTOR or stalled.isdisjoint(each.nodes)


@pytest.mark.parametrize(
    ("settings", "targets", "found"),
    [
        (RandomFaults(1_000, 9_000_000, kinds=("kill_actor",)), TARGETS, "'kill_actor' where no nodes share an actor"),
        (RandomFaults(1_000, 9_000_000, kinds=("kill_actors",)), SHARED, "did you mean 'kill_actor'?"),
    ],
)
def test_kills_of_actors_that_cannot_be_drawn_are_refused(
    settings: RandomFaults, targets: FaultTargets, found: str
) -> None:
    with pytest.raises(InputError) as caught:
        draw_faults(settings, targets, LINKS, 1)
    assert found in str(caught.value)


def test_an_actor_with_a_node_that_is_spared_is_not_killed() -> None:
    wanted = RandomFaults(100_000, 9_000_000, kinds=("kill_actor",), spare=("b1",))
    assert draw_faults(wanted, SHARED, LINKS, 1) == [], "b3 is yet to come"


def test_random_reconfigurations_overlap_and_leave_a_tree_of_the_same_degree() -> None:
    names = [f"b{number}" for number in range(20)]
    links = {link_key(*edge): LinkSpec() for edge in balanced(Tree(20, 4), 1).edges}
    targets = FaultTargets(
        names, list(links), dict.fromkeys(names, 0), brokers=frozenset(names), rules=PlanRules(acyclic=True)
    )
    wanted = RandomFaults(30_000, 3_000_000, kinds=("reconfigure",), outage_us=(100_000, 100_000), at_once=10)
    plan = draw_faults(wanted, targets, links, 1)
    check_plan(plan, targets)
    there, most = set(links), 0
    for fault in plan:
        change = there.remove if fault.kind is FaultKind.DISCONNECT else there.add
        change(link_key(*fault.nodes))
        most = max(most, len(links) - len(there))
        assert all(sum(name in key for key in there) <= 4 for name in names)
    assert (len(there), there != set(links)) == (19, True)
    assert len(plan) > 100
    assert most >= 3, "they overlap"


def test_random_orders_are_about_brokers_along_a_walk_and_newcomers_join_once() -> None:
    wanted = RandomFaults(100_000, 9_000_000, kinds=("swap", "rest", "join"), spare=("b2",))
    plan = draw_faults(wanted, TARGETS, LINKS, 1)
    check_plan(plan, TARGETS)
    orders = {str(fault) for fault in plan if fault.kind is FaultKind.ORDER}
    joined = [fault for fault in plan if fault.kind is not FaultKind.ORDER]
    assert [fault.kind for fault in joined] == [FaultKind.CONNECT, RESTART]
    assert {fault.nodes[0] for fault in joined} == {"b3"}
    neighbour = joined[0].nodes[1]
    assert neighbour in ("b0", "b1"), "b2 is spared"
    assert {"rest b0", "rest b1", "rest b3", "swap b0 with b1 by b2"} <= orders
    assert "rest b2" not in orders
    for kinds, found in ((("dance",), "'dance'"), (("join",), "'join' without newcomers")):
        with pytest.raises(InputError, match=found):
            draw_faults(replace(wanted, kinds=kinds), replace(TARGETS, start_down=frozenset()), LINKS, 1)


def test_random_reconfigurations_need_a_routing_that_takes_new_links() -> None:
    targets = replace(TARGETS, rules=PlanRules(new_links=NewLinks.JOINS))
    with pytest.raises(InputError, match="'reconfigure' over this routing"):
        draw_faults(RandomFaults(1_000, 2_000, kinds=("reconfigure",)), targets, LINKS, 1)


def test_a_host_that_is_back_has_nodes_that_can_be_broken_again() -> None:
    lost = [Fault(1, FaultKind.LOSE_HOST, host=2), Fault(2, FaultKind.RETURN_HOST, host=2), Fault(3, KILL, ("b2",))]
    check_plan(lost, TARGETS)
    with pytest.raises(InputError, match="kill b2, which is down then"):
        check_plan([lost[0], lost[2]], TARGETS)


def test_a_node_that_was_stalled_when_its_host_was_lost_is_not_stalled_when_that_is_back() -> None:
    back = [Fault(1, FaultKind.LOSE_HOST, host=2), Fault(2, FaultKind.RETURN_HOST, host=2)]
    check_plan([Fault(0, STALL, ("b2",)), *back, Fault(3, STALL, ("b2",))], TARGETS)
    check_plan([Fault(0, STALL, ("b2",)), *back, Fault(3, FaultKind.DISCONNECT, ("b1", "b2"))], TARGETS)


@pytest.mark.parametrize(
    ("roaming", "allowed"),
    [(frozenset(), "two of b0, b1"), (frozenset({"c1"}), "two of b0, b1, or one of them and of c1")],
)
def test_who_may_be_linked_is_said_of_clients_too_where_some_may_go_elsewhere(
    roaming: frozenset[str], allowed: str
) -> None:
    targets = FaultTargets(
        ["b0", "b1", "c0", "c1"], [("c0", "b0"), ("c1", "b0")], {}, brokers=frozenset({"b0", "b1"}),
        rules=PlanRules(roaming=roaming),
    )  # fmt: skip
    with pytest.raises(InputError) as error:
        check_plan(steps((FaultKind.CONNECT, "b1-c0")), targets)
    assert error.value.found.endswith("which are not two brokers")
    assert error.value.allowed == allowed


def test_random_faults_obey_only_spare_and_limit() -> None:
    wanted = RandomFaults(100_000, 30_000_000, kinds=("kill",), only=("b1", "b2"), spare=("b2",), limit=3)
    plan = draw_faults(wanted, TARGETS, LINKS, 1)
    assert {fault.nodes for fault in plan} == {("b1",)}
    assert len(plan) == 6


SCENARIO = """name: bad
overlay: {kind: chain, brokers: 3}
workload: {kind: by_hand}
faults:
  - {at: 1 s, kill: b1, for: 1 s}
"""


@pytest.mark.parametrize(
    ("entry", "line", "key", "found"),
    [
        ("{at: 2 s, kill: b7}", 6, "faults.1", "'b7'"),
        ("{at: 500 ms, kill: b2}", 6, "faults.1.at", "'500 ms', which is before the entry above it"),
        ("{at: 1500 ms, restart: b2}", 6, "faults.1", "a restart of b2, which is up"),
        ("{at: soon, kill: b2}", 6, "faults.1.at", "'soon'"),
        ("{kill: b2}", 6, "faults.1", "no `at`"),
        ("{at: 2 s}", 6, "faults.1", "0 of them in ['at']"),
        ("{at: 2 s, kill: b2, cut: [b0, b1]}", 6, "faults.1", "2 of them"),
        ("{at: 2 s, kill: b2, for: 0 s}", 6, "faults.1.for", "'0 s'"),
        ("{at: 2 s, kill: b2, signal: SIGINT}", 6, "faults.1.signal", "'SIGINT'"),
        ("{at: 2 s, kill: b2, loudly: true}", 6, "faults.1.loudly", "an unknown key"),
        ("{at: 2 s, heal: [b0, b1], for: 1 s}", 6, "faults.1.for", "`for` with heal"),
        ("{at: 2 s, cut: [b0, b2]}", 6, "faults.1.cut", "['b0', 'b2']"),
        ("{at: 2 s, link: [b0, b1]}", 6, "faults.1", "changes nothing"),
        ("{at: 2 s, link: [b0, b1], loss: 7}", 6, "faults.1", "{'loss': 7}"),
        ("{at: 2 s, slow: b2}", 6, "faults.1", "no `work`"),
        ("{at: 2 s, partition: [[b0, b9]]}", 6, "faults.1.partition", "'b9'"),
        ("{at: 2 s, partition: [[b0, b1, b2]]}", 6, "faults.1", "which cuts no link"),
        ("{random: {every: 1 s}}", 6, "faults.1.random.until", "nothing"),
        ("{random: {every: 1 s, until: 5 s, kinds: [flood]}}", 6, "faults.1.random.kinds", "'flood'"),
        ("{random: {every: 1 s, until: 5 s, mood: bad}}", 6, "faults.1.random.mood", "an unknown key"),
    ],
)
def test_an_entry_that_cannot_be_names_file_line_and_key(
    tmp_path: Path, entry: str, line: int, key: str, found: str
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(f"{SCENARIO}  - {entry}\n")
    loaded = load_scenario(path)
    with pytest.raises(InputError) as error:
        build(loaded)
    assert error.value.place == f"{path}, line {line}, key {key}"
    assert found in error.value.found


def test_entries_mean_what_they_say(tmp_path: Path) -> None:
    path = tmp_path / "good.yaml"
    path.write_text(
        SCENARIO
        + """  - {at: 3 s, link: [b0, b1], loss: 0.5, delay: 20 ms, for: 2 s}
  - {at: 6 s, partition: [[b0]], for: 1 s}
"""
    )
    loaded = load_scenario(path)
    plan = build(loaded).deployment.faults
    assert [(fault.time_us, fault.kind.name) for fault in plan] == [
        (1_000_000, "KILL"),
        (2_000_000, "RESTART"),
        (3_000_000, "CHANGE_LINK"),
        (5_000_000, "CHANGE_LINK"),
        (6_000_000, "PARTITION"),
        (7_000_000, "UNITE"),
    ]
    assert plan[2].link is not None
    assert (plan[2].link.loss, plan[2].link.delay.low_us, plan[3].link) == (0.5, 20_000, None)
    assert plan[4].groups == (("b0", "c0"), ("b1", "b2", "c1", "c2")), "a client stays with its broker"


@pytest.mark.parametrize(
    ("verb", "arguments", "given_up"),
    [
        ("depart", (("to", "b2"),), ("b1",)),
        ("forget", (("by", "b3"), ("broker", "b2")), ("b2",)),
        ("move", (("broker", "b2"),), ()),
    ],
    ids=["the one ordered", "the one named", "none"],
)
def test_an_order_gives_up_the_broker_that_the_protocol_says(
    verb: str, arguments: tuple[tuple[str, str], ...], given_up: tuple[str, ...]
) -> None:
    rules = PlanRules(gives_up={"depart": "", "forget": "broker"})
    assert rules.given_up(Fault(0, FaultKind.ORDER, ("b1",), verb=verb, arguments=arguments)) == given_up


@pytest.mark.parametrize(("count", "end"), [(8, "n7"), (9, "n7 and 1 more"), (30, "n7 and 22 more")])
def test_of_many_names_that_are_allowed_eight_are_listed(count: int, end: str) -> None:
    names = [f"n{number}" for number in range(count)]
    targets = FaultTargets(names, (), {})
    with pytest.raises(InputError) as error:
        check_plan([Fault(0, FaultKind.KILL, ("nobody",))], targets)
    assert error.value.allowed.endswith(f"n6, {end}")


@pytest.mark.parametrize(
    ("plan", "found"),
    [
        (steps((KILL_ACTOR, "b0")), "kill actor of b0; allowed: all nodes of one actor"),
        (steps((KILL_ACTOR, "b0-b1"), (KILL_ACTOR, "b0-b1")), "kill actor of b0, b1, which are down then"),
        (steps((KILL, "b0"), (KILL, "b1"), (KILL_ACTOR, "b0-b1")), "kill actor of b0, b1, which are down then"),
        (steps((RESTART_ACTOR, "b0-b1")), "restart actor of b0, b1, which was not killed"),
        (steps((KILL_ACTOR, "b0-b1"), (KILL, "b1")), "kill b1, which is down then"),
        (steps((KILL_ACTOR, "b0-b1"), (RESTART, "b1")), "restart b1, whose actor was killed; allowed: restart_actor"),
        (
            [Fault(0, KILL, ("b0",), sigkill=True)],
            "a SIGKILL of b0, whose process is that of 2 nodes; allowed: kill without a signal",
        ),
    ],
)  # fmt: skip
def test_a_plan_for_shared_actors_that_could_not_take_effect_is_refused(plan: list[Fault], found: str) -> None:
    with pytest.raises(InputError) as caught:
        check_plan(plan, SHARED)
    assert found in str(caught.value)


def test_the_restart_of_an_actor_brings_back_what_its_kill_took_down_and_nothing_else() -> None:
    both = "b0-b1"
    check_plan(steps((KILL, "b0"), (KILL_ACTOR, both), (RESTART_ACTOR, both), (RESTART, "b0"), (KILL, "b1")), SHARED)
    check_plan(steps((KILL_ACTOR, "b2-b3"), (RESTART_ACTOR, "b2-b3"), (RESTART, "b3")), SHARED)
    check_plan(steps((KILL_ACTOR, "c0"), (RESTART_ACTOR, "c0"), (STALL, "c0")), SHARED)


def test_a_node_that_shares_its_actor_may_be_stalled_and_slow_and_dies_with_it_then() -> None:
    check_plan([*steps((STALL, "b0"), (RESUME, "b0")), Fault(3, SLOW, ("b0",), work_us=5)], SHARED)
    check_plan(steps((STALL, "b0"), (KILL_ACTOR, "b0-b1"), (RESTART_ACTOR, "b0-b1"), (STALL, "b0")), SHARED)
