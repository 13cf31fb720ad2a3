"""Brokers of cells are replaced on live actors while events flow."""

from pathlib import Path

import pytest

from murmuration.harness.cluster import Cluster
from spark_analysis.plain_judge import judge_run
from tests.protocols.cells.replacing import CLIENTS, PAPERS, departs, goes, joins

pytestmark = [pytest.mark.ray, pytest.mark.slow]


def publish(cluster: Cluster, first: int, count: int) -> None:
    """Alice publishes those events, and all but those on their way have come."""
    for number in range(first, first + count):
        cluster.clients["alice"].publish({"x": number})
        cluster.advance("10 ms")


def test_live_a_cell_and_a_subscribers_broker_are_replaced_while_events_flow(tmp_path: Path) -> None:
    with Cluster.start(
        overlay=PAPERS,
        clients=CLIENTS,
        newcomers=["n1", "n2"],
        routing="cells",
        reliability="durable",
        parameters={"durable": {"pubends": {"p1": 2}}},
        runtime="ray",
        failure_detection={"heartbeat": "200 ms", "timeout": "2 s", "reconnect": "50 ms"},
        folder=tmp_path / "run",
    ) as cluster:
        bob, carol = cluster.clients["bob"], cluster.clients["carol"]
        bob.subscribe("x >= 0")
        carol.subscribe("x >= 0")
        cluster.settle()
        publish(cluster, 0, 50)
        assert joins(cluster, "n1", "m") == ""
        publish(cluster, 50, 50)
        assert departs(cluster, "n1", "b1") == ""
        cluster.faults.kill("b1")
        publish(cluster, 100, 50)
        assert joins(cluster, "n2", "s") == ""
        goes(cluster, "bob", "s1", "n2")
        publish(cluster, 150, 50)
        cluster.wait_for(lambda: len(bob.deliveries()) >= 150, within="20 s")
        assert departs(cluster, "n2", "s1") == ""
        cluster.faults.kill("s1")
        cluster.faults.kill("n1")
        publish(cluster, 200, 50)
        cluster.faults.restart("n1")
        cluster.faults.kill("b2")
        publish(cluster, 250, 50)
        cluster.drain()
        assert [each.sequence for each in bob.deliveries()] == list(range(300))
        assert [each.sequence for each in carol.deliveries()] == list(range(300))
    numbers = judge_run(tmp_path / "run").numbers
    assert numbers["verdict"] == "valid", numbers["reason"]
    assert (numbers["required"], numbers["missing"], numbers["duplicate"], numbers["out_of_order"]) == (600, 0, 0, 0)
