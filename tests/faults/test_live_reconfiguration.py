"""Links that come and go, brokers that join and orders to brokers, on live actors."""

from pathlib import Path
from typing import Any

import pytest

from actors.ray_session import RaySession
from actors.run import LiveRun
from murmur_pubsub.machine import Answer
from murmuration import Cluster
from murmuration.deployment.build_deployment import build
from murmuration.hunt.trial import judge_faults
from murmuration.scenario.load import check_scenario
from spark_analysis.plain_judge import judge_run
from tests.virtual.test_multipath_orders import CLIENTS, MULTIPATH, check, order_about
from tests.virtual.test_reconfiguration import TOLD

pytestmark = [pytest.mark.ray, pytest.mark.slow]

RECONFIGURED: dict[str, Any] = {
    "name": "live-reconfiguration",
    "seed": 5,
    "overlay": {"kind": "balanced", "brokers": 8, "degree": 3},
    "workload": {
        "kind": "zipf", "clients": 8, "subscribers_per_actor": 2, "publishers": 8, "publications": 1500,
        "rate_per_s": 150, "attributes": 2, "predicates": 1, "integers": 6, "exponent": 0.4, "matching_rate": 0.3,
    },
    "broker": {"reliability": "epidemic", "parameters": {"epidemic": {"algorithm": "push", "interval": "100 ms"}}},
    "last_mile": "broker",
    "links": {"delay": "2 ms"},
    "datagrams": {"delay": "2 ms"},
    "failure_detection": {"heartbeat": "500 ms", "timeout": "3 s", "reconnect": "50 ms"},
    "drain": {"quiet": "1 s", "limit": "20 s"},
    "faults": [
        {"random": {
            "every": "500 ms", "until": "9 s", "kinds": ["reconfigure"], "outage": ["500 ms", "500 ms"], "at_once": 3,
        }},
    ],
}  # fmt: skip


def test_live_a_tree_that_is_reconfigured_all_the_time_loses_nothing_under_push(
    live_ray: RaySession, tmp_path: Path
) -> None:
    deployment = build(check_scenario(RECONFIGURED, "test")).deployment
    (tmp_path / "journal").mkdir()
    LiveRun(deployment, tmp_path, lambda *_: None, "127.0.0.1", live_ray).play()
    outcome = judge_faults(deployment, tmp_path / "journal")
    assert len(outcome.checks) == len(deployment.faults) > 16
    assert {check.outcome for check in outcome.checks} == {"took_effect"}
    verdict = outcome.verdict
    assert verdict.required > 1_000
    assert (verdict.duplicate, verdict.spurious) == ([], [])
    assert len(verdict.missing) < 0.01 * verdict.required


def test_live_links_brokers_and_orders_come_by_hand_as_in_virtual_time(tmp_path: Path) -> None:
    clients = {"alice": "b0", "bob": "b3", "carol": "new"}
    with Cluster.start(
        {"kind": "chain", "brokers": 4},
        clients,
        reliability=TOLD,
        runtime="ray",
        newcomers=["new"],
        links={"delay": "2 ms"},
        folder=tmp_path / "run",
    ) as cluster:
        for name in ("bob", "carol"):
            cluster.clients[name].subscribe("x >= 0")
        cluster.settle()
        cluster.faults.disconnect("b1", "b2")
        cluster.clients["alice"].publish({"x": 0})
        cluster.advance("500 ms")
        cluster.faults.connect("b0", "b3")
        cluster.faults.join("new", "b2")
        cluster.settle()
        cluster.clients["alice"].publish({"x": 1})
        cluster.wait_for(lambda: len(cluster.clients["carol"].deliveries()) == 1)
        hops = {name: cluster.clients[name].deliveries()[0].hops for name in ("bob", "carol")}
        assert hops == {"bob": 1, "carol": 3}
        assert cluster.order("swap", "b0", "b1", "b2").refusal == ""
        number = cluster.faults.order("rest", "b1")
        cluster.wait_for(lambda: cluster.answer(number) == Answer(number, "there is no rest"))
        cluster.faults.kill("b3")
        cluster.faults.restart("b3")
        cluster.settle()
        cluster.clients["alice"].publish({"x": 2})
        cluster.wait_for(lambda: len(cluster.clients["bob"].deliveries()) == 2)
        cluster.end()
        judgement = judge_run(cluster.folder)
    assert judgement.numbers["verdict"] == "valid"
    assert [check.outcome for check in judgement.checks] == ["took_effect"] * 4 + ["not_exercised", "took_effect"]
    assert {pair[0] for pair in judgement.pairs.missing} == {(0, 0)}


def test_live_a_broker_moves_and_another_joins_and_departs(tmp_path: Path) -> None:
    with Cluster.start(
        {"kind": "chain", "brokers": 5}, CLIENTS, runtime="ray", folder=tmp_path / "run", **MULTIPATH
    ) as cluster:
        check(order_about(cluster))


def test_live_a_broker_that_is_dead_is_forgotten(tmp_path: Path) -> None:
    cells = {"p": ["p1"], "m": ["b1", "b2"], "s": ["s1"], "t": ["s2"]}
    overlay = {"kind": "cells", "cells": cells, "links": [["p", "m"], ["m", "s"], ["m", "t"]]}
    clients = {"alice": "p1", "bob": "s1", "carol": "s2"}
    with Cluster.start(
        overlay, clients, routing="cells", reliability="gryphon", runtime="ray", folder=tmp_path / "run"
    ) as cluster:
        for name in ("bob", "carol"):
            cluster.clients[name].subscribe("x >= 0")
        cluster.settle()
        cluster.faults.kill("s1")
        cluster.clients["alice"].publish({"x": 0})
        cluster.wait_for(lambda: len(cluster.clients["carol"].deliveries()) == 1)
        assert cluster.order("forget", "b1", "s1").refusal == ""
        assert cluster.order("forget", "b1", "b1").refusal != ""
        cluster.faults.restart("s1")
        cluster.settle()
        cluster.clients["alice"].publish({"x": 1})
        cluster.wait_for(lambda: len(cluster.clients["carol"].deliveries()) == 2)
        cluster.wait_for(lambda: 1 in [each.attributes["x"] for each in cluster.clients["bob"].deliveries()])
        cluster.end()
        judgement = judge_run(cluster.folder)
    assert judgement.numbers["verdict"] == "valid", judgement.numbers["reason"]
    assert [check.outcome for check in judgement.checks] == ["took_effect", "took_effect", "not_exercised"]
