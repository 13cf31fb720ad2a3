"""Nodes that share actors (`density`) on a live Ray: one of them dies alone, or the process dies with all of them."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from actors.actor_group import ActorGroup
from actors.processes import state_of
from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import FaultKind
from murmur_pubsub.journal import RowKind
from murmur_pubsub.journal_format import FileState
from murmur_pubsub.journal_rows import read_segment
from murmur_pubsub.run_manifest import read_manifest
from murmuration.harness.cluster import Cluster
from murmuration.runs.driver import execute
from murmuration.scenario.load import check_scenario
from spark_analysis.history import read_history
from spark_analysis.plain_judge import judge_plainly, judge_run

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("live_ray")]
QUICK = {"heartbeat": "200 ms", "timeout": "1 s", "reconnect": "50 ms"}
WORKLOAD = {
    "kind": "zipf", "clients": 6, "subscribers_per_actor": 2, "publishers": 3, "publications": 900, "rate_per_s": 300,
    "attributes": 2, "predicates": 1, "matching_rate": 0.4,
}  # fmt: skip
SCENARIO: dict[str, Any] = {
    "name": "shared",
    "seed": 5,
    "overlay": {"kind": "chain", "brokers": 6},
    "workload": WORKLOAD,
    "density": 3,
    "failure_detection": QUICK,
    "drain": {"quiet": "300 ms"},
}


def played(folder: Path, **keys: Any) -> Path:
    return execute(check_scenario({**SCENARIO, **keys}, "test"), folder, lambda *_: None).folder


def states(folder: Path, pattern: str) -> set[FileState]:
    return {read_segment(path)[0].state for path in (folder / "journal").glob(pattern)}


def publish(cluster: Cluster, count: int) -> None:
    cluster.clients["alice"].publish(*({"n": number} for number in range(count)))


def has(cluster: Cluster, name: str, count: int) -> None:
    """Wait until the client was delivered so many events."""
    cluster.wait_for(lambda: len(cluster.clients[name].deliveries()) >= count)


def test_a_node_dies_alone_and_an_actor_with_all_of_its_nodes(tmp_path: Path) -> None:
    chain, ends = {"kind": "chain", "brokers": 4}, {"alice": "b0", "bob": "b3"}
    with Cluster.start(
        chain, ends, runtime="ray", folder=tmp_path / "run", failure_detection=QUICK, density=2
    ) as cluster:
        group = cluster._runtime._run.group  # type: ignore[attr-defined]
        alice, bob = cluster.clients["alice"], cluster.clients["bob"]
        pid = {name: group.places[name].pid for name in group.specs}
        assert pid["b0"] == pid["b1"] != pid["b2"] == pid["b3"]
        assert pid["alice"] == pid["bob"] not in (pid["b0"], pid["b2"]), "clients are not killed with brokers"
        wanted = bob.subscribe("n >= 0")
        cluster.settle()
        cluster.faults.kill("b1")
        assert state_of(pid["b1"]) == "running"
        cluster.settle()
        alice.publish({"n": 0})  # b1 is on its way
        cluster.faults.restart("b1")
        assert group.places["b1"].pid == pid["b1"]
        cluster.settle()
        alice.publish({"n": 1})
        cluster.wait_for(lambda: len(bob.deliveries(wanted)) == 1)
        with pytest.raises(InputError, match="a SIGKILL of b2, whose process is that of 2 nodes"):
            cluster.faults.kill("b2", sigkill=True)
        cluster.faults.kill_actor("b2")
        assert state_of(pid["b3"]) == "gone"
        cluster.settle()
        with pytest.raises(InputError, match="restart b3, whose actor was killed"):
            cluster.faults.restart("b3")
        cluster.faults.restart_actor("b3")
        assert group.places["b2"].pid == group.places["b3"].pid != pid["b2"]
        cluster.settle()
        alice.publish({"n": 2})
        cluster.wait_for(lambda: len(bob.deliveries(wanted)) == 2)
    assert [(each.text, each.in_process) for each in read_manifest(tmp_path / "run").faults] == [
        ("kill b1 in its process", True), ("restart b1", False),
        ("kill actor of b2, b3", False), ("restart actor of b2, b3", False),
    ]  # fmt: skip
    judged = judge_run(tmp_path / "run")
    assert judged.numbers["verdict"] == "valid", judged.numbers
    assert (judged.numbers["kills_of_processes"], judged.numbers["kills_in_process"]) == (1, 1)
    assert (judged.numbers["missing"], judged.numbers["explained"]) == (1, 1)
    assert [check.outcome for check in judged.checks] == ["took_effect", "took_effect"]
    for name in ("b1", "b2", "b3"):
        assert states(tmp_path / "run", f"{name}-0-*.seg") == {FileState.LAST_OF_DEAD}, "the driver has sealed it"
        assert states(tmp_path / "run", f"{name}-1-*.seg") == {FileState.LAST}


@pytest.mark.parametrize("runtime", ["ray", "virtual"])
def test_who_was_down_before_its_actor_stays_away_when_that_comes_back(tmp_path: Path, runtime: str) -> None:
    chain, ends = {"kind": "chain", "brokers": 2}, {"alice": "b0", "bob": "b1"}
    with Cluster.start(
        chain, ends, runtime=runtime, folder=tmp_path / "run", failure_detection=QUICK, density=2
    ) as cluster:
        for client in cluster.clients.values():
            client.subscribe("n >= 0")
        cluster.settle()
        cluster.faults.kill("bob")
        cluster.faults.kill_actor("alice")
        cluster.faults.restart_actor("alice")
        assert (cluster.faults.runs("alice"), cluster.faults.runs("bob")) == (True, False)
        cluster.settle()
        publish(cluster, 1)
        has(cluster, "alice", 1)
        cluster.faults.restart("bob")
        cluster.settle()
        cluster.clients["alice"].publish({"n": 1})
        has(cluster, "bob", 1)
    judged = judge_run(tmp_path / "run")
    assert judged.numbers["verdict"] == "valid", judged.numbers


def test_the_death_of_a_shared_process_by_itself_is_one_of_all_its_nodes(tmp_path: Path) -> None:
    chain, ends = {"kind": "chain", "brokers": 3}, {"alice": "b0", "bob": "b0"}
    with Cluster.start(
        chain, ends, runtime="ray", folder=tmp_path / "run", failure_detection=QUICK, density=3
    ) as cluster:
        cluster.clients["bob"].subscribe("n >= 0")
        cluster.settle()
        cluster.faults.stall("b2")  # which cannot say that it is dead, and is all the same
        os.kill(cluster._runtime._run.group.places["b1"].pid, signal.SIGKILL)  # type: ignore[attr-defined]
        cluster.wait_for(lambda: bool(cluster._runtime.observed))
        cluster.clients["alice"].publish({"n": 0})  # her broker is away
        for name in ("b0", "b1", "b2"):  # each alone, the first in a new process
            cluster.faults.restart(name)
        cluster.settle()
        cluster.clients["alice"].publish({"n": 1})
        cluster.settle()
    manifest = read_manifest(tmp_path / "run")
    assert manifest.by_themselves == ["death of b0, b1, b2"]
    judged = judge_run(tmp_path / "run")
    assert judged.numbers["verdict"] == "valid", judged.numbers
    assert (judged.numbers["kills_of_processes"], judged.numbers["kills_in_process"]) == (1, 0)
    assert [check.outcome for check in judged.checks] == ["took_effect"] * 2


def test_a_node_that_stays_stalled_is_thrown_away_at_the_end_and_one_may_be_killed(tmp_path: Path) -> None:
    chain, ends = {"kind": "chain", "brokers": 4}, {"alice": "b0", "bob": "b3", "carol": "b0"}
    with Cluster.start(
        chain, ends, runtime="ray", folder=tmp_path / "run", failure_detection=QUICK, density=4
    ) as cluster:
        for name in ("bob", "carol"):
            cluster.clients[name].subscribe("n >= 0")
        cluster.settle()
        for name in ("b1", "b3"):
            cluster.faults.stall(name)
        publish(cluster, 5)
        has(cluster, "carol", 5)
        cluster.faults.kill("b1")
        cluster.faults.restart("b1")
        cluster.settle()  # its peers have found out that b3 is silent
        publish(cluster, 5)
        has(cluster, "carol", 10)
    judged = judge_run(tmp_path / "run")
    assert judged.numbers["verdict"] == "valid", judged.numbers
    assert (judged.numbers["missing"], judged.numbers["explained"]) == (10, 10)
    assert [check.outcome for check in judged.checks] == ["took_effect"] * 3
    assert states(tmp_path / "run", "b1-0-*.seg") == states(tmp_path / "run", "b3-0-*.seg") == {FileState.LAST_OF_DEAD}


PATIENT = {"heartbeat": "500 ms", "timeout": "30 s", "reconnect": "50 ms"}
BEHIND_OTHERS = {"alice": "b0", "bob": "b3", "carol": "b2"}
WORK_US = 100_000


@contextmanager
def a_shared_chain(folder: Path) -> Iterator[Cluster]:
    """Four brokers in one actor, and three clients in another; nobody is taken for dead soon."""
    chain = {"kind": "chain", "brokers": 4}
    with Cluster.start(
        chain, BEHIND_OTHERS, runtime="ray", folder=folder, failure_detection=PATIENT, density=4
    ) as cluster:
        for name in ("bob", "carol"):
            cluster.clients[name].subscribe("n >= 0")
        cluster.settle()
        yield cluster


def received(folder: Path, name: str) -> list[tuple[int, int]]:
    """(sequence, time_us) of the events that the node received, in their order."""
    number = read_manifest(folder).numbers[name]
    rows = read_history(folder / "journal").rows.of(RowKind.RECEIVE)
    return [(row.sequence, row.time_us) for row in rows if row.node == number and row.sequence >= 0]


def test_a_node_is_stalled_and_slow_alone_in_its_process(tmp_path: Path) -> None:
    with a_shared_chain(tmp_path / "run") as cluster:
        places = cluster._runtime._run.group.places  # type: ignore[attr-defined]
        assert len({places[name].pid for name in ("b0", "b1", "b2", "b3")}) == 1
        cluster.faults.stall("b3")
        assert state_of(places["b3"].pid) == "running"
        publish(cluster, 20)
        has(cluster, "carol", 20)  # by three brokers of the same process
        cluster.advance("700 ms")  # heartbeats are due
        assert cluster.clients["bob"].deliveries() == []
        cluster.faults.resume("b3")
        has(cluster, "bob", 20)
        cluster.faults.slow("b3", f"{WORK_US} us")
        publish(cluster, 40)
        has(cluster, "carol", 60)  # b3 has four seconds of work before it
        publish(cluster, 5)
        has(cluster, "carol", 65)
        has(cluster, "bob", 65)
        cluster.faults.slow("b3", "0 s")
    judged = judge_run(tmp_path / "run")
    assert judged.numbers["verdict"] == "valid", judged.numbers
    assert (judged.numbers["missing"], judged.numbers["required"]) == (0, 130)
    assert [(check.fault, check.outcome) for check in judged.checks] == [
        ("stall b3 in its process (step 1)", "took_effect"), ("slow b3 in its process (step 3)", "took_effect"),
    ], judged.checks  # fmt: skip
    beside, slow = received(tmp_path / "run", "b2"), received(tmp_path / "run", "b3")
    assert [number for number, _ in slow] == list(range(65))
    times_us = [time_us for number, time_us in slow if number >= 20]
    assert min(later - earlier for earlier, later in pairwise(times_us)) >= WORK_US
    assert beside[-1][1] < times_us[39], "what came while b3 had its forty to do was not held up by that"


def test_a_stall_that_holds_nobody_is_found_by_the_judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ActorGroup, "hold", lambda self, name, held: True)
    with a_shared_chain(tmp_path / "run") as cluster:
        cluster.faults.stall("b3")
        publish(cluster, 20)
        has(cluster, "bob", 20)
        cluster.faults.resume("b3")
    judged = judge_run(tmp_path / "run")
    assert (judged.numbers["verdict"], judged.numbers["finding"]) == ("invalid", "faults_failed")
    [check] = judged.checks
    assert (check.outcome, "where there should be silence" in check.seen) == ("failed", True)


@pytest.mark.slow
def test_all_densities_deliver_the_same(tmp_path: Path) -> None:
    verdicts = {}
    for density in (1, 3, 6):
        verdicts[density] = judge_plainly(played(tmp_path / str(density), density=density) / "journal", 1_000_000)
    virtual = judge_plainly(played(tmp_path / "virtual", runtime="virtual") / "journal", 1_000_000)
    for verdict in verdicts.values():
        assert verdict.counts == (0, 0, 0, 0)
        assert verdict.delivered == virtual.delivered
    assert len(virtual.delivered) > 1_000


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["ray", "virtual"])
def test_a_plan_with_both_sorts_of_kills_is_valid_on_both_runtimes(tmp_path: Path, runtime: str) -> None:
    faults = [
        {"at": "500 ms", "kill": "b1", "for": "500 ms"},
        {"at": "600 ms", "kill": "b4", "for": "3 s"},
        {"at": "1500 ms", "kill_actor": "b3", "for": "600 ms"},
        {"at": "2500 ms", "kill_actor": "c0", "for": "300 ms"},
    ]
    keys = {"faults": faults, "runtime": runtime, "workload": {**WORKLOAD, "publications": 1_500}}
    folder = played(tmp_path / "run", **keys)
    judged = judge_run(folder)
    assert judged.numbers["verdict"] == "valid", judged.numbers
    assert judged.numbers["missing"] == judged.numbers["explained"] > 0
    assert [check.outcome for check in judged.checks] == ["took_effect"] * 4, judged.checks
    kills = judged.numbers["kills_of_processes"], judged.numbers["kills_in_process"]
    assert kills == ((2, 2) if runtime == "ray" else (0, 0)), "in virtual time there are no processes"
    starts = {
        name: len(list((folder / "journal").glob(f"{name}-*-00000.seg"))) for name in ("b1", "b3", "b4", "b5", "c2")
    }
    if runtime == "ray":
        assert starts == {"b1": 2, "b3": 2, "b4": 2, "b5": 2, "c2": 2}, (
            "b4 was down, and its actor's start is not its own"
        )


@pytest.mark.slow
def test_what_a_broker_had_stored_is_kept_when_it_dies_alone_in_its_process(tmp_path: Path) -> None:
    """Guaranteed delivery loses nothing, for its brokers start again from their logs."""
    keys: dict[str, Any] = {
        "overlay": {
            "kind": "cells",
            "cells": {"p": ["p1"], "m": ["b1"], "s": ["s1"]},
            "links": [["p", "m"], ["m", "s"]],
        },
        "workload": {
            "kind": "paced", "publishers": {"p1": 2}, "subscribers": {"s1": 2}, "rate_per_s": 50, "seconds": 5,
        },
        "broker": {"routing": "cells", "reliability": "gryphon", "parameters": {"gryphon": {"pubends": {"p1": 2}}}},
        "faults": [
            {"at": "1 s", "kill": "p1", "for": "500 ms"},
            {"at": "2 s", "kill": "b1", "for": "500 ms"},
            {"at": "3 s", "kill": "s1", "for": "500 ms"},
        ],
    }  # fmt: skip
    folder = played(tmp_path / "run", **keys)
    judged = judge_run(folder)
    assert judged.numbers["verdict"] == "valid", judged.numbers
    assert judged.numbers["kills_in_process"] == 3
    assert judged.numbers["missing"] == judged.numbers["explained"], "what clients said while their broker was away"
    assert (folder / "storage" / "p1.sqlite").exists(), "it had stored something"


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["ray", "virtual"])
def test_random_faults_kill_actors_and_hold_nodes_of_shared_ones_on_both_runtimes(tmp_path: Path, runtime: str) -> None:
    drawn = {
        "every": "400 ms", "until": "8 s", "outage": ["300 ms", "1 s"], "at_once": 2, "work": "1 ms",
        "kinds": ["kill_actor", "kill", "stall", "slow"],
    }  # fmt: skip
    workload = {**WORKLOAD, "publications": 2_400}
    folder = played(tmp_path / "run", runtime=runtime, workload=workload, faults=[{"random": drawn}])
    judged = judge_run(folder)
    assert judged.numbers["verdict"] == "valid", judged.numbers
    kinds = {entry.kind for entry in read_manifest(folder).faults}
    assert kinds >= {FaultKind.KILL_ACTOR, FaultKind.KILL, FaultKind.STALL, FaultKind.SLOW}
    outcomes = {check.fault: check.outcome for check in judged.checks}
    assert "failed" not in outcomes.values(), outcomes
    assert [each for each, outcome in outcomes.items() if each.startswith("stall") and outcome == "took_effect"]
