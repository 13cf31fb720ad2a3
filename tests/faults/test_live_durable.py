"""Durable subscriptions on live actors: brokers die, and subscribers come back elsewhere."""

from pathlib import Path

import pytest

from actors.ray_session import RaySession
from actors.run import LiveRun
from benchmarks.durable_soak import soak
from murmuration import Cluster
from murmuration.hunt.trial import deployment_of, judge_faults
from spark_analysis.plain_judge import judge_run

pytestmark = [pytest.mark.ray, pytest.mark.slow]


def test_live_a_subscriber_comes_back_elsewhere_and_has_what_it_missed(tmp_path: Path) -> None:
    with Cluster.start(
        overlay={"kind": "chain", "brokers": 3},
        clients={"alice": "b0", "bob": "b2", "carol": "b1"},
        routing="cells",
        reliability="durable",
        runtime="ray",
        failure_detection={"heartbeat": "200 ms", "timeout": "2 s", "reconnect": "50 ms"},
        folder=tmp_path / "run",
    ) as cluster:
        alice, bob, carol = (cluster.clients[name] for name in ("alice", "bob", "carol"))
        bob.subscribe("x >= 0")
        carol.subscribe("x >= 50")
        cluster.settle()
        alice.publish(*({"x": number} for number in range(50)))
        cluster.wait_for(lambda: len(bob.deliveries()) == 50)
        cluster.faults.kill("b2")
        alice.publish(*({"x": number} for number in range(50, 150)))
        cluster.wait_for(lambda: len(carol.deliveries()) == 100)
        cluster.faults.disconnect("bob", "b2")
        cluster.faults.connect("bob", "b1")
        cluster.wait_for(lambda: len(bob.deliveries()) == 150)
        cluster.faults.restart("b2")
        cluster.faults.disconnect("bob", "b1")
        alice.publish(*({"x": number} for number in range(150, 200)))
        cluster.wait_for(lambda: len(carol.deliveries()) == 150)
        cluster.faults.connect("bob", "b2")
        cluster.drain()
        assert [each.sequence for each in bob.deliveries()] == list(range(200))
        assert [each.sequence for each in carol.deliveries()] == list(range(50, 200))
    numbers = judge_run(tmp_path / "run").numbers
    assert numbers["verdict"] == "valid", numbers["reason"]
    assert (numbers["required"], numbers["missing"], numbers["duplicate"]) == (350, 0, 0)


def test_live_every_broker_dies_and_its_clients_go_to_another(live_ray: RaySession, tmp_path: Path) -> None:
    """The soak of `benchmarks.durable_soak` in seconds, with two brokers of subscribers and a cell of two between."""
    cells = {"p": ["p1"], "m": ["m1", "m2"], "s1": ["s1"], "s2": ["s2"]}
    links = [["p", "m"], ["m", "s1"], ["m", "s2"]]
    deployment = deployment_of(soak(8, cells, links, publishers=2, subscribers=2, deaths=1))
    (tmp_path / "journal").mkdir()
    LiveRun(deployment, tmp_path, lambda *_: None, "127.0.0.1", live_ray).play()
    outcome = judge_faults(deployment, tmp_path / "journal")
    assert [check for check in outcome.checks if check.outcome == "failed"] == []
    assert outcome.verdict.counts == (0, 0, 0, 0)
    assert outcome.verdict.required == 2 * 200 * 2
    assert outcome.judgement.numbers["verdict"] == "valid"
