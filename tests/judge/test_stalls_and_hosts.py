"""A broker dies, and its host is lost meanwhile: it may be started on another one, and be stalled there. The host that
returns starts those alone that are down, and ends a stall of no other. A guided hunt found it."""

from dataclasses import replace
from typing import Any

import pytest

from murmur_page.recorded import frames_of
from murmur_pubsub.faults import FaultKind
from murmur_pubsub.run_manifest import read_manifest
from murmur_virtual.run import VirtualRun
from murmuration.harness.cluster import Cluster
from murmuration.hunt.trial import deployment_of, play
from spark_analysis.fault_windows import FaultStep
from tests.judge.test_turns_of_faults import BOTH, KILL, LOSE_HOST, RESTART, RETURN_HOST, S, ends, step

KILL_ACTOR, RESTART_ACTOR = FaultKind.KILL_ACTOR, FaultKind.RESTART_ACTOR
HINDERED = pytest.mark.parametrize("kind", [FaultKind.STALL, FaultKind.SLOW])
SCENARIO: dict[str, Any] = {
    "name": "elsewhere", "runtime": "virtual", "seed": 2, "hosts": 3, "placement": {"b1": 1, "b2": 2},
    "overlay": {"kind": "chain", "brokers": 3},
    "workload": {"kind": "paced", "publishers": {"b0": 1}, "subscribers": {"b2": 1}, "rate_per_s": 40, "seconds": 6},
    "broker": {"routing": "forwarding", "reliability": "best_effort"},
    "failure_detection": {"heartbeat": "100 ms", "timeout": "300 ms", "reconnect": "20 ms"},
    "faults": [
        {"at": "500 ms", "kill": "b1"}, {"at": "1 s", "lose_host": 1}, {"at": "1500 ms", "restart": "b1"},
        {"at": "2 s", "stall": "b1"}, {"at": "2200 ms", "return_host": 1}, {"at": "4 s", "resume": "b1"},
    ],
}  # fmt: skip


def test_a_stall_explains_what_is_missed_though_the_nodes_former_host_returns() -> None:
    outcome = play(deployment_of(SCENARIO), VirtualRun)
    numbers = outcome.judgement.numbers
    assert numbers["verdict"] == "valid", numbers
    assert numbers["missing"] == numbers["explained"] > 2 * 40, "it passed nothing on for two seconds, at 40 a second"
    (stall,) = [window for window in outcome.judgement.windows if window.step.kind is FaultKind.STALL]
    assert stall.undone_us - stall.from_us == 2 * S


def hindered(kind: FaultKind, *steps: FaultStep) -> int:
    """When the stall of b1, or its slowness, was over, in tenths of a second (-1: it was not)."""
    hinders = replace(step(3, 14, kind, "b1"), work_us=9)
    (ended,) = [until for name, _, until in ends(*steps, hinders) if name == kind.name]
    return ended


LOST, BACK = step(1, 11, LOSE_HOST, BOTH), step(4, 18, RETURN_HOST, BOTH)


@HINDERED
def test_a_host_ends_what_hinders_those_that_it_starts(kind: FaultKind) -> None:
    killed, started = step(0, 10, KILL, "b1"), step(2, 12, RESTART, "b1")
    assert hindered(kind, killed, LOST, BACK) == 18, "it was dead until then"
    assert hindered(kind, killed, LOST, started, BACK) == -1
    assert hindered(kind, LOST, started, BACK) == -1, "it was lost with the host, and started all the same"
    assert hindered(kind, killed, LOST, started, BACK, step(5, 20, FaultKind.KILL_ACTOR, BOTH)) == 20


@HINDERED
@pytest.mark.parametrize("back_at", [18, 12], ids=["with the host", "at once"])
def test_a_start_that_waits_for_the_host_comes_with_it(kind: FaultKind, back_at: int) -> None:
    """The start was ordered before the host was back, and before the stall."""
    ended = 18 if back_at == 18 else -1
    seen_us = back_at * S // 10 + 1
    lost, back = step(6, 11, LOSE_HOST, BOTH, since=11), replace(BACK, number=7, nodes=("b1",), by_itself=True)
    for death, start in ((KILL, RESTART), (KILL_ACTOR, RESTART_ACTOR)):
        names = "b1" if death is KILL else BOTH
        started = replace(step(2, 12, start, names), in_effect_us=seen_us)
        assert hindered(kind, step(0, 10, death, names), lost, started, back) == ended


def test_the_live_page_lets_the_stall_go_on() -> None:
    with Cluster.start(
        {"kind": "chain", "brokers": 3}, {"alice": "b0", "bob": "b2"}, hosts=3, placement={"b1": 1, "b2": 2}
    ) as cluster:
        faults = cluster.faults
        faults.kill("b1")
        faults.lose_host(1)
        faults.restart("b1")
        faults.stall("b1")
        faults.return_host(1)
        faults.resume("b1")
        folder = cluster.folder
        manifest = read_manifest(folder)
    told = [each for frame in frames_of(folder, manifest, 600) for each in frame.story if each["k"] == "fault"]
    over = {each["kind"]: each.get("ends", []) for each in told if each["stage"] == "done"}
    assert (over["return_host"], over["resume"]) == ([], [3])
