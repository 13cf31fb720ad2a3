"""What a broker's death costs: `pytest`, or `pytest --murmur-runtime=ray` on live actors.

A fixture names what runs. Put the dotted path of a protocol of your own in place of a built-in one.
"""

import pytest


@pytest.fixture
def overlay():
    return {"kind": "chain", "brokers": 4}


@pytest.fixture
def protocol():
    return {"routing": "forwarding", "reliability": "best_effort"}


@pytest.fixture
def attached():
    return {"alice": "b0", "bob": "b3"}


@pytest.fixture
def scenario():
    return {"links": {"delay": "2 ms"}, "failure_detection": {"heartbeat": "200 ms", "timeout": "1 s"}}


def test_bob_gets_what_he_wants(cluster, clients, verdict):
    clients["bob"].subscribe("price > 10")
    cluster.settle()
    clients["alice"].publish(*({"price": price} for price in range(100)))
    cluster.wait_for(lambda: len(clients["bob"].deliveries()) == 89)
    verdict().assert_valid()


def test_what_a_dead_broker_costs_is_explained_and_then_over(cluster, clients, faults, verdict):
    clients["bob"].subscribe("price > 0")
    cluster.settle()
    faults.kill("b1")
    clients["alice"].publish({"price": 1})
    cluster.advance("2 s")
    faults.restart("b1")
    cluster.settle()
    clients["alice"].publish({"price": 2})
    cluster.wait_for(lambda: len(clients["bob"].deliveries()) == 1)
    result = verdict()
    result.assert_valid()
    assert (result.missing, result.explained) == (1, 1)
