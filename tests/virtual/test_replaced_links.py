"""A link that is taken away while something is still to happen to it, and another one in its place."""

import pytest

from murmuration import Cluster

CHAIN = {"kind": "chain", "brokers": 2}
CLIENTS = {"alice": "b0", "bob": "b1"}
DETECTION = {"heartbeat": "100 ms", "timeout": "300 ms", "reconnect": "20 ms"}


@pytest.mark.parametrize("fault", ["cut", "partition"])
def test_a_link_in_the_place_of_one_that_was_cut_is_not_given_up_with_it(fault: str) -> None:
    """Who missed the heartbeats of the former link gave up the new one, for good: it counts as up, and nobody tries
    again (schedule forwarding/best_effort 2001465)."""
    with Cluster.start(overlay=CHAIN, clients=CLIENTS, failure_detection=DETECTION) as cluster:
        cluster.clients["bob"].subscribe("x >= 0")
        cluster.settle()
        if fault == "cut":
            cluster.faults.cut("b0", "b1")
            cluster.advance("50 ms")
            cluster.faults.heal("b0", "b1")
        else:
            cluster.faults.partition(["b0", "alice"])
            cluster.advance("50 ms")
            cluster.faults.unite()
        cluster.faults.disconnect("b0", "b1")
        cluster.advance("50 ms")
        cluster.faults.connect("b0", "b1")
        cluster.advance("1 s")
        cluster.clients["alice"].publish({"x": 1})
        cluster.advance("1 s")
        assert len(cluster.clients["bob"].deliveries()) == 1
