"""A host is lost on which a broker is to be that has not come yet: it was not there to be lost, and the return of the
host does not start it. Once it has come, by the plan or by hand, it is lost as all others are."""

from pathlib import Path
from typing import Any

import pytest

from murmur_pubsub.faults import FaultKind
from murmur_pubsub.run_manifest import read_manifest
from murmur_virtual.run import VirtualRun
from murmuration.harness.cluster import Cluster
from murmuration.hunt.trial import deployment_of, play
from murmuration.runs.manifest import fault_entry
from murmuration.scenario.load import check_scenario
from spark_analysis.plain_judge import judge_run
from tests.page.test_hands import SCENARIO as BY_HAND
from tests.page.test_hands import Script, played

CELLS = {"p": ["p0"], "m": ["m0", "m1"]}


def scenario(*faults: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": "newcomer", "runtime": "virtual", "seed": 2, "hosts": 2, "newcomers": ["n0"],
        "overlay": {"kind": "cells", "cells": CELLS, "links": [["p", "m"]]},
        "last_mile": "broker",
        "broker": {"routing": "cells", "reliability": "gryphon", "parameters": {"gryphon": {"pubends": {"p0": 1}}}},
        "workload": {
            "kind": "zipf", "clients": 3, "subscribers_per_actor": 2, "publishers": 1, "publications": 160,
            "rate_per_s": 40, "matching_rate": 0.5,
        },
        "failure_detection": {"heartbeat": "100 ms", "timeout": "300 ms", "reconnect": "20 ms"},
        "faults": list(faults),
    }  # fmt: skip


JOIN = {"join": "n0", "cell": "m"}


@pytest.mark.parametrize("joins", ["500 ms", "1200 ms", "2500 ms", "never"])
def test_it_joins_before_the_host_is_lost_or_while_it_is_or_later(joins: str) -> None:
    lost: dict[str, Any] = {"at": "1 s", "lose_host": 1, "for": "1 s"}
    faults = [lost] if joins == "never" else sorted([lost, {"at": joins, **JOIN}], key=when)
    deployment = deployment_of(scenario(*faults))
    assert deployment.hosts["n0"] == 1
    outcome = play(deployment, VirtualRun)
    assert all(check.outcome != "failed" for check in outcome.checks), outcome.checks
    assert outcome.judgement.numbers["verdict"] == "valid", outcome.judgement.numbers
    (loss,) = [each for each in deployment.faults if each.kind is FaultKind.LOSE_HOST]
    assert ("n0" in fault_entry(loss, deployment).nodes) == (joins == "500 ms")


def when(entry: dict[str, Any]) -> float:
    number, unit = str(entry["at"]).split()
    return float(number) * (1_000 if unit == "s" else 1)


ALONE: dict[str, Any] = {"density": 2}
ON_A_HOST: dict[str, Any] = {"hosts": 2, "placement": {"b2": 1}}


@pytest.mark.parametrize("where", [ALONE, ON_A_HOST], ids=["actor", "host"])
def test_one_that_joined_by_hand_dies_with_its_actor_or_host(tmp_path: Path, where: dict[str, Any]) -> None:
    chain, ends = {"kind": "chain", "brokers": 2}, {"alice": "b0", "bob": "b2"}
    with Cluster.start(chain, ends, folder=tmp_path / "run", newcomers=["b2"], **where) as cluster:
        faults = cluster.faults
        faults.join("b2", "b1")
        cluster.settle()
        cluster.clients["bob"].subscribe("n >= 0")
        cluster.settle()
        if where is ALONE:
            faults.kill_actor("b2")
        else:
            faults.lose_host(1)
        cluster.clients["alice"].publish({"n": 0})
        cluster.advance("1 s")
        if where is ALONE:
            faults.restart_actor("b2")
        else:
            faults.return_host(1)
        cluster.settle()
        cluster.clients["alice"].publish({"n": 1})
    assert all("b2" in entry.nodes for entry in read_manifest(tmp_path / "run").faults)
    numbers = judge_run(tmp_path / "run").numbers
    assert (numbers["verdict"], numbers["missing"], numbers["explained"]) == ("valid", 1, 1), numbers


@pytest.mark.parametrize("planned", [False, True], ids=["by hand", "by the plan"])
def test_one_that_was_started_on_a_page_is_lost_with_its_host(tmp_path: Path, planned: bool) -> None:
    join = ((300_000, {"connect": ["b4", "b3"]}), (310_000, {"restart": "b4"}))
    lost = ((900_000, {"lose_host": 1}), (1_500_000, {"return_host": 1}))
    plan = [{"at": f"{at_us} us", **entry} for at_us, entry in lost] if planned else []
    keys = {"newcomers": ["b4"], "hosts": 2, "placement": {"b4": 1}, "faults": plan}
    script = Script(*join, *(() if planned else lost), finish_us=2_500_000)
    run = played(check_scenario({**BY_HAND, **keys}, "test"), tmp_path / "run", script.watched)
    assert all(each.result().endswith("took effect") for each in script.answers)
    assert ["b4" in entry.nodes for entry in read_manifest(run).faults] == [True] * 4
    judgement = judge_run(run)
    assert judgement.numbers["verdict"] == "valid", (judgement.numbers["reason"], judgement.checks)
