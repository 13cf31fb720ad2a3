"""A broker joins a cell, another departs from it for good, and nobody misses anything."""

import pytest

from tests.protocols.cells.replacing import a_cluster, departs, goes, joins, judged, numbers, publish

RELIABILITIES = ("best_effort", "gryphon", "durable")
PROMISING = ("gryphon", "durable")


@pytest.mark.parametrize("reliability", RELIABILITIES)
def test_both_brokers_of_a_cell_are_replaced_while_events_flow(reliability: str) -> None:
    with a_cluster(reliability) as cluster:
        publish(cluster, 10)
        assert joins(cluster, "n1", "m") == ""
        publish(cluster, 10)
        assert departs(cluster, "n1", "b1") == ""
        publish(cluster, 10)
        cluster.faults.kill("b1")
        assert joins(cluster, "n2", "m") == ""
        publish(cluster, 10)
        assert departs(cluster, "n1", "b2") == ""
        publish(cluster, 5)
        cluster.faults.kill("b2")
        publish(cluster, 25)
        cluster.drain()
        for name in ("bob", "carol"):
            assert numbers(cluster, name) == list(range(70))
        judgement = judged(cluster)
    assert judgement.numbers["required"] == 140
    assert judgement.numbers["explained"] == 0


def test_a_subscribers_broker_is_replaced_while_events_flow() -> None:
    with a_cluster("durable") as cluster:
        publish(cluster, 10)
        assert joins(cluster, "n1", "s") == ""
        publish(cluster, 5)
        goes(cluster, "bob", "s1", "n1")
        publish(cluster, 20)
        assert departs(cluster, "n1", "s1") == ""
        cluster.faults.kill("s1")
        publish(cluster, 20)
        cluster.drain()
        assert numbers(cluster, "bob") == list(range(55))
        judgement = judged(cluster)
    assert judgement.numbers["explained"] == 0
