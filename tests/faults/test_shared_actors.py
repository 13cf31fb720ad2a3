"""Nodes that share actors (`density`) on a live Ray: one of them dies alone, or the process dies with all of them."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from actors.processes import state_of
from murmur_pubsub.errors import InputError
from murmur_pubsub.journal_format import FileState
from murmur_pubsub.journal_rows import read_segment
from murmur_pubsub.run_manifest import read_manifest
from murmuration.harness.cluster import Cluster
from murmuration.runs.driver import execute
from murmuration.scenario.load import check_scenario
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
        with pytest.raises(InputError, match="a stall of b2, whose process is that of 2 nodes"):
            cluster.faults.stall("b2")
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


def test_the_death_of_a_shared_process_by_itself_is_the_death_of_each_of_its_nodes(tmp_path: Path) -> None:
    chain, ends = {"kind": "chain", "brokers": 3}, {"alice": "b0", "bob": "b0"}
    with Cluster.start(
        chain, ends, runtime="ray", folder=tmp_path / "run", failure_detection=QUICK, density=3
    ) as cluster:
        cluster.clients["bob"].subscribe("n >= 0")
        cluster.settle()
        os.kill(cluster._runtime._run.group.places["b1"].pid, signal.SIGKILL)  # type: ignore[attr-defined]
        cluster.wait_for(lambda: len(cluster._runtime.observed) == 3)
        cluster.clients["alice"].publish({"n": 0})  # her broker is away
        for name in ("b0", "b1", "b2"):  # each alone, the first in a new process
            cluster.faults.restart(name)
        cluster.settle()
        cluster.clients["alice"].publish({"n": 1})
        cluster.settle()
    manifest = read_manifest(tmp_path / "run")
    assert manifest.by_themselves == ["death of b0", "death of b1", "death of b2"]
    judged = judge_run(tmp_path / "run")
    assert judged.numbers["verdict"] == "valid", judged.numbers
    assert judged.numbers["kills_in_process"] == 0
    assert [check.outcome for check in judged.checks] == ["took_effect"] * 3


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
