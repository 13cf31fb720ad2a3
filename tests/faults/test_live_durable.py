"""Durable subscriptions on live actors: brokers die, and subscribers come back elsewhere."""

from pathlib import Path

import pytest

from murmuration import Cluster
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
