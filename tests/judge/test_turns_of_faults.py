"""Faults that nobody ordered, or that were ordered by hand, have numbers after those of the plan, whenever they were.

What died by itself is away until a step of the plan starts it again, alone or with its actor, and no longer.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from murmur_pubsub.faults import FaultKind
from murmur_pubsub.journal import FaultStage, Phase, RowKind
from murmur_pubsub.run_manifest import FaultEntry, read_manifest, write_manifest
from spark_analysis.fault_windows import NEVER_US, FaultStep, fault_windows
from spark_analysis.plain_judge import Judgement, judge_run
from tests.spark.run_folder import RunFolder

KILL, RESTART = FaultKind.KILL, FaultKind.RESTART
KILL_ACTOR, RESTART_ACTOR = FaultKind.KILL_ACTOR, FaultKind.RESTART_ACTOR
LOSE_HOST, RETURN_HOST = FaultKind.LOSE_HOST, FaultKind.RETURN_HOST
S = 1_000_000
Step = tuple[int, FaultKind, str]
"""When it takes effect, in tenths of a second, its kind and its nodes."""
DIED_AT = 20
BACK_AT = 40
EVENTS = (10, 30, 35, 60, 70)
"""When something is published, in tenths of a second: twice in the outage."""
BOTH = "b1 b2"
OWN: list[Step] = [(DIED_AT, KILL, "b1"), (DIED_AT, KILL, "b2")]
BY_NODES: list[Step] = [(32, KILL, "b1"), (33, KILL, "b2"), (BACK_AT, RESTART, "b1"), (BACK_AT, RESTART, "b2")]
BY_ACTOR: list[Step] = [(32, KILL_ACTOR, BOTH), (BACK_AT, RESTART_ACTOR, BOTH)]
BY_HOST: list[Step] = [(32, LOSE_HOST, BOTH), (BACK_AT, RETURN_HOST, BOTH)]
ONE_ALONE: list[Step] = [
    (31, KILL, "b2"), (32, KILL_ACTOR, BOTH), (BACK_AT, RESTART_ACTOR, BOTH), (BACK_AT, RESTART, "b2"),
]  # fmt: skip
WAYS = {"each": BY_NODES, "actor": BY_ACTOR, "host": BY_HOST, "one was killed before its actor": ONE_ALONE}


def written(
    folder: Path,
    plan: Sequence[Step],
    own: Sequence[Step] = OWN,
    forgets: bool = False,
    back: bool = True,
) -> Path:
    """A run of three brokers in a chain, of which b1 and b2 die by themselves and come back. `forgets`: what is
    published after that does not come. Not `back`: they do not."""
    run = RunFolder(folder, brokers=3, clients=3)
    for client, broker in (("c0", "b0"), ("c1", "b1"), ("c2", "b2")):
        link(run, client, broker, 0)
    for first, second in pairwise(("b0", "b1", "b2")):
        link(run, first, second, 0)
    run.phase(0, Phase.PUBLISHING)
    for number, client in enumerate(("c1", "c2"), 1):
        run.subscribe(client, 0, number, "x > 0")
    run.settled(1, 0)
    for place, tenths in enumerate(EVENTS):
        if tenths == 60 and back:
            come_back(run)
        at_us = tenths * S // 10
        run.publish("c0", at_us, 0, place, {"x": 1})
        run.hop("c0", "b0", at_us, at_us + 10, 0, place)
        away = DIED_AT < tenths < BACK_AT
        if away or (forgets and tenths > BACK_AT):
            continue
        run.hop("b0", "b1", at_us + 20, at_us + 30, 0, place)
        run.hop("b1", "b2", at_us + 40, at_us + 50, 0, place)
        for number, client in enumerate(("c1", "c2"), 1):
            run.hop(f"b{number}", client, at_us + 60, at_us + 70, 0, place)
            run.deliver(client, at_us + 70, 0, place, number)
    for place, (tenths, kind, _) in sorted(enumerate([*plan, *own]), key=lambda each: each[1][0]):
        for stage in FaultStage:
            at_us = tenths * S // 10 - (S // 10 if stage is FaultStage.ORDERED and place >= len(plan) else 0)
            run.row("driver", at_us, RowKind.FAULT, sequence=place, hops=stage, value=kind)
    run.settled(9 * S, 9 * S)
    finished = run.finish()
    entries = [
        FaultEntry(f"{kind.name} {names}", kind, tenths * S // 10, tuple(names.split()), by_itself=place >= len(plan))
        for place, (tenths, kind, names) in enumerate([*plan, *own])
    ]
    write_manifest(finished, replace(read_manifest(finished), links=LINKS, faults=tuple(entries)))
    return finished


LINKS = (("b0", "b1"), ("b1", "b2"), ("c0", "b0"), ("c1", "b1"), ("c2", "b2"))


def link(run: RunFolder, first: str, second: str, at_us: int) -> None:
    run.row(first, at_us, RowKind.LINK_UP, second)
    run.row(second, at_us, RowKind.LINK_UP, first)


def come_back(run: RunFolder) -> None:
    """Both brokers' peers lose their links, and both start again."""
    died_us, back_us = DIED_AT * S // 10 - S // 20, BACK_AT * S // 10
    for peer, broker in (("b0", "b1"), ("c1", "b1"), ("c2", "b2")):
        run.row(peer, died_us, RowKind.LINK_DOWN, broker)
    for broker in BOTH.split():
        run.restart(broker, 1)
        run.row(broker, back_us + 5, RowKind.START)
    for first, second in LINKS:
        if "b1" in (first, second) or "b2" in (first, second):
            link(run, first, second, back_us + 10)
    run.settled(5 * S, 5 * S - 100)


def judged(folder: Path, plan: Sequence[Step], forgets: bool = False) -> Judgement:
    return judge_run(written(folder, plan, forgets=forgets))


@pytest.mark.parametrize("plan", WAYS.values(), ids=WAYS.keys())
def test_an_own_death_ends_with_the_step_that_starts_the_node_again(tmp_path: Path, plan: list[Step]) -> None:
    judgement = judged(tmp_path, plan)
    assert judgement.numbers["verdict"] == "valid", (judgement.numbers["reason"], judgement.checks)
    assert (judgement.numbers["missing"], judgement.numbers["explained"]) == (4, 4)
    assert {check.outcome for check in judgement.checks} == {"took_effect"}
    deaths = [window for window in judgement.windows if window.kills and window.nodes]
    assert {window.undone_us for window in deaths} == {BACK_AT * S // 10}


@pytest.mark.parametrize("plan", WAYS.values(), ids=WAYS.keys())
def test_what_is_lost_after_a_node_is_back_its_own_death_does_not_excuse(tmp_path: Path, plan: list[Step]) -> None:
    judgement = judged(tmp_path, plan, forgets=True)
    assert judgement.numbers["verdict"] == "invalid"
    assert (judgement.numbers["missing"], judgement.numbers["explained"]) == (8, 4)


BY_ITSELF: list[Step] = [(DIED_AT, LOSE_HOST, BOTH), (BACK_AT, RETURN_HOST, BOTH)]


def test_a_node_that_is_stalled_while_it_is_away_may_speak_when_it_is_back(tmp_path: Path) -> None:
    plan = [(32, FaultKind.STALL, "b1"), (75, FaultKind.RESUME, "b1")]
    judgement = judge_run(written(tmp_path, plan, own=BY_ITSELF))
    assert judgement.numbers["verdict"] == "valid", (judgement.numbers["reason"], judgement.checks)
    assert (judgement.numbers["missing"], judgement.numbers["explained"]) == (4, 4)


def test_a_node_that_is_slowed_down_while_it_is_away_is_as_fast_as_ever_when_it_is_back() -> None:
    slow = replace(step(0, 32, FaultKind.SLOW, "b1"), work_us=5_000)
    lost, back = step(1, DIED_AT, LOSE_HOST, "b1", since=19), step(2, BACK_AT, RETURN_HOST, "b1")
    assert ends(lost, slow, back) == [("LOSE_HOST", "b1", 40), ("SLOW", "b1", 40)]


def test_a_restart_that_waits_for_its_host_ends_a_death_when_that_is_back() -> None:
    waits = replace(step(1, 35, RESTART, "b1"), in_effect_us=BACK_AT * S // 10)
    lost, killed, back = (
        step(2, DIED_AT, LOSE_HOST, BOTH, since=19),
        step(0, 32, KILL, "b1"),
        step(3, BACK_AT, RETURN_HOST, BOTH),
    )
    assert ends(lost, killed, waits, back) == [("LOSE_HOST", "b1", 35), ("LOSE_HOST", "b2", 40), ("KILL", "b1", 35)]
    windows = fault_windows([lost, killed, waits, back], [], [])
    assert {window.repaired_us for window in windows} == {BACK_AT * S // 10}


def test_a_node_that_stays_away_to_the_end_excuses_what_it_did_not_get(tmp_path: Path) -> None:
    folder = written(tmp_path, [(32, KILL_ACTOR, BOTH)], forgets=True, back=False)
    judgement = judge_run(folder)
    assert judgement.numbers["verdict"] == "valid", (judgement.numbers["reason"], judgement.checks)
    assert (judgement.numbers["missing"], judgement.numbers["explained"]) == (8, 8)


def step(
    number: int, tenths: int, kind: FaultKind, names: str, since: int | None = None, disk_lost: bool = False
) -> FaultStep:
    """A step that took effect then; `since`: nobody had ordered it, and it may have been any time after that."""
    ordered_us = (tenths if since is None else since) * S // 10
    return FaultStep(
        number, kind, f"{kind.name} {names}", tuple(names.split()), ordered_us=ordered_us,
        in_effect_us=tenths * S // 10, by_itself=since is not None, disk_lost=disk_lost,
    )  # fmt: skip


def ends(*steps: FaultStep) -> list[tuple[str, str, int]]:
    """The kind, the nodes and the end of each window, in tenths of a second (-1: none)."""
    windows = fault_windows(sorted(steps, key=lambda each: each.turn), [], [], brokers=frozenset({"b1", "b2", "b3"}))
    return [
        (
            each.step.kind.name,
            " ".join(sorted(each.nodes)),
            -1 if each.undone_us == NEVER_US else each.undone_us * 10 // S,
        )
        for each in windows
    ]


def test_who_dies_right_after_a_restart_was_not_started_again_by_it() -> None:
    """The driver saw it at 1.5 s; since when, it cannot say, for it had its last answer before the restart."""
    first, again = step(0, 2, KILL, "b1"), step(1, 12, RESTART, "b1")
    assert ends(first, again, step(2, 15, KILL, "b1", since=10)) == [("KILL", "b1", 12), ("KILL", "b1", -1)]


def test_an_actor_comes_back_with_those_that_had_died_by_themselves_only() -> None:
    actor = step(0, 12, KILL_ACTOR, BOTH), step(1, 15, RESTART_ACTOR, BOTH)
    assert ends(*actor, step(2, 10, KILL, "b1", since=9)) == [("KILL", "b1", 15), ("KILL_ACTOR", BOTH, 15)]
    assert ends(step(0, 10, KILL, "b1"), *(replace(each, number=each.number + 1) for each in actor)) == [
        ("KILL", "b1", -1), ("KILL_ACTOR", "b2", 15),
    ]  # fmt: skip
    started = step(0, 10, KILL, "b1", since=9), step(1, 11, RESTART, "b1"), step(2, 11, KILL, "b1")
    assert ends(*started, *(replace(each, number=each.number + 3) for each in actor))[1:] == [
        ("KILL", "b1", -1), ("KILL_ACTOR", "b2", 15),
    ], "it had been started again, and was killed then"  # fmt: skip


def test_the_disk_is_lost_of_a_broker_that_had_died_before_it_was_killed() -> None:
    steps = [step(2, 10, KILL, "b1", since=9), step(0, 12, KILL, "b1", disk_lost=True), step(1, 15, RESTART, "b1")]
    assert ends(*steps) == [("KILL", "b1", 15), ("KILL", "b1", 15)]


def test_nodes_of_a_lost_host_may_come_back_one_by_one() -> None:
    lost = step(0, 10, LOSE_HOST, "b1 b2 b3")
    assert ends(lost, step(1, 12, RESTART, "b2"), step(2, 15, RETURN_HOST, "b1 b2 b3")) == [
        ("LOSE_HOST", "b1 b3", 15), ("LOSE_HOST", "b2", 12),
    ]  # fmt: skip


def test_a_host_starts_none_that_runs_elsewhere() -> None:
    lost, killed = step(0, 10, LOSE_HOST, "b1 b2"), step(2, 14, KILL, "b2")
    one_by_one = step(1, 12, RESTART, "b2"), killed, step(3, 15, RETURN_HOST, "b1 b2")
    assert ends(lost, *one_by_one)[2] == ("KILL", "b2", 15)
    given_up = FaultStep(4, FaultKind.ORDER, "forget b2", ("b1",), ordered_us=S * 13 // 10, in_effect_us=S * 13 // 10,
                         given_up=("b2",))  # fmt: skip
    assert ends(lost, one_by_one[0], given_up, one_by_one[2])[2] == ("ORDER", "b2", -1)


def test_who_is_hit_by_nothing_is_away_at_no_time() -> None:
    assert ends(step(0, 10, KILL, "b1"), step(1, 12, LOSE_HOST, "b1"))[1] == ("LOSE_HOST", "", 12)
