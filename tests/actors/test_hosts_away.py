"""Hosts with disks of their own, one lost during a run: journals are gathered, its brokers come back to it."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from murmur_pubsub.journal import RowKind
from murmur_pubsub.journal_rows import read_segment
from spark_analysis.plain_judge import judge_plainly
from tests.actors.joined import HAS_JOBS, JoinedCluster, await_excused, await_publishing

GUARANTEED: dict[str, Any] = {
    "name": "away",
    "overlay": {
        "kind": "cells",
        "cells": {"p": ["p1"], "left": ["b1", "b2"], "s1": ["s1"], "s2": ["s2"]},
        "links": [["p", "left"], ["left", "s1"], ["left", "s2"]],
        "redundancy": {"left": 2},
    },
    "workload": {
        "kind": "paced", "publishers": {"p1": 2}, "subscribers": {"s1": 2, "s2": 2}, "rate_per_s": 10, "seconds": 15,
    },
    "broker": {"routing": "cells", "reliability": "gryphon", "parameters": {"gryphon": {"pubends": {"p1": 2}}}},
    "failure_detection": {"heartbeat": "500 ms", "timeout": "2 s", "reconnect": "100 ms"},
    "placement": {"p1": "host2", "b1": "host2", "b2": "host1", "s1": "host1", "s2": "host0"},
}  # fmt: skip


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JoinedCluster]:
    with JoinedCluster(tmp_path_factory.mktemp("cluster"), scratch=True) as made:
        yield made


def incarnations(journal: Path, node: str) -> list[int]:
    return sorted({int(path.name.split("-")[1]) for path in journal.glob(f"{node}-*.seg")})


@pytest.mark.ray
@pytest.mark.parametrize("by", ["command", "job"])
@pytest.mark.slow
def test_a_host_lost_and_back_during_a_run(cluster: JoinedCluster, tmp_path: Path, by: str) -> None:
    if by == "job" and not HAS_JOBS:
        pytest.skip("`ray job submit` needs ray[default], which is not installed")
    file, out = tmp_path / "away.yaml", tmp_path / "run"
    file.write_text(yaml.safe_dump(GUARANTEED))
    command = ["run", str(file), "--address", cluster.address, "--out", str(out)]
    process = cluster.murmur(*command, "--json") if by == "command" else cluster.submit(*command, "--no-analysis")
    try:
        await_publishing(process, out)
        cluster.lose(2)
        cluster.start_host(2)
        said, complaint = process.communicate(timeout=200)
    finally:
        process.kill()
    assert process.returncode == 0, said + complaint
    if by == "command":
        verdict = json.loads(said.splitlines()[-1])  # Ray says before it what it saw of the host
        assert verdict["verdict"] == "valid", verdict
        assert verdict["faults_took_effect"] == 1, verdict
    manifest = json.loads((out / "manifest.json").read_text())
    assert [fault["kind"] for fault in manifest["faults"]] == ["LOSE_HOST", "RETURN_HOST"]
    assert manifest["faults"][0]["nodes"] == ["b1", "p1"]
    gathered = {host["name"]: host["gathered"] for host in manifest["cluster"]["hosts"]}
    assert gathered["host0"] is None, "it is the command's own: it writes into the run folder"
    assert all(gathered[name]["failure"] is None for name in ("host1", "host2")), gathered
    journal = out / "journal"
    assert judge_plainly(journal, 1_000_000).counts == (0, 0, 0, 0), (
        "delivery is guaranteed, though the log's host was lost"
    )
    assert [incarnations(journal, name) for name in ("p1", "b1", "b2", "s1", "s2")] == [[0, 1], [0, 1], [0], [0], [0]]
    assert all(not list(cluster.scratch_of(number).iterdir()) for number in range(3)), "what was gathered is removed"
    started = np.concatenate([read_segment(path)[1] for path in sorted(journal.glob("p1-1-*.seg"))])
    assert (started["kind"] == RowKind.RECEIVE).any(), "it is of use again"


@pytest.mark.ray
@pytest.mark.slow
def test_journals_go_to_a_uri_and_those_of_a_lost_host_when_it_is_back(cluster: JoinedCluster, tmp_path: Path) -> None:
    out, store = tmp_path / "run", tmp_path / "store"
    settings = ["workload.publications=1000", "workload.rate_per_s=200", "last_mile=broker", "placement={b5: host2}"]
    process = cluster.murmur(
        "run", "parity", "--no-analysis", "--address", cluster.address, "--out", str(out), f"--store={store.as_uri()}",
        *(f"--set={each}" for each in ["runtime=ray", "overlay.brokers=6", "workload.clients=3", *settings]),
    )  # fmt: skip
    await_publishing(process, out / "journal", *(cluster.scratch_of(number) for number in range(3)))
    cluster.lose(2)
    said = process.communicate(timeout=200)[1]
    assert process.returncode == 0, said
    assert "the journals of host2 are not here" in said
    manifest = json.loads((out / "manifest.json").read_text())
    on_it = next(host["brokers"] for host in manifest["cluster"]["hosts"] if host["name"] == "host2")
    assert "b5" in on_it
    there = {path.name.split("-")[0] for path in store.glob("*.seg")}
    assert there == {"driver", "faults", *(f"b{number}" for number in range(6))} - set(on_it)
    assert not list((out / "journal").iterdir()), "all is in the store"
    cluster.start_host(2)
    gather = cluster.murmur("gather", str(out), "--address", cluster.address)
    assert gather.wait(timeout=100) == 0, gather.communicate()
    there = {path.name.split("-")[0] for path in store.glob("*.seg")}
    assert there == {"driver", "faults", *(f"b{number}" for number in range(6))}
    assert judge_plainly(store, 1_000_000).counts[1:] == (0, 0, 0), "what is there is sound"


RESTARTED: dict[str, Any] = {
    "name": "restarted",
    "overlay": {"kind": "chain", "brokers": 3},
    "workload": {"kind": "paced", "publishers": {"b0": 2}, "subscribers": {"b2": 2}, "rate_per_s": 10, "seconds": 40},
    "failure_detection": GUARANTEED["failure_detection"],
    "placement": {"b0": "host0", "b1": "host2", "b2": "host1"},
    "faults": [
        {"at": "2 s", "kill": "b1"}, {"at": "12 s", "restart": "b1"}, {"at": "12 s", "stall": "b1"},
        {"at": "38 s", "resume": "b1"},
    ],
}  # fmt: skip


def await_ordered(journal: Path, step: int) -> None:
    """Return when that step of the plan has been ordered, as the journal says."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for path in journal.glob("faults-*.seg"):
            rows = read_segment(path)[1]
            if (rows["sequence"][rows["kind"] == RowKind.FAULT] == step).any():
                return
        time.sleep(0.2)
    pytest.fail(f"step {step} is not ordered")


@pytest.mark.ray
@pytest.mark.slow
def test_a_restart_of_the_plan_waits_for_the_host(cluster: JoinedCluster, tmp_path: Path) -> None:
    file, out = tmp_path / "restarted.yaml", tmp_path / "run"
    file.write_text(yaml.safe_dump(RESTARTED))
    process = cluster.murmur("run", str(file), "--address", cluster.address, "--out", str(out), "--json")
    try:
        await_publishing(process, out)
        await_ordered(out / "journal", 0)
        cluster.lose(2)
        await_ordered(out / "journal", 2)
        cluster.start_host(2)
        await_excused(process)
    finally:
        process.kill()
    manifest = json.loads((out / "manifest.json").read_text())
    assert [fault["kind"] for fault in manifest["faults"][4:]] == ["LOSE_HOST", "RETURN_HOST"]
    assert manifest["faults"][5]["nodes"] == ["b1"]
    assert incarnations(out / "journal", "b1") == [0, 1]
