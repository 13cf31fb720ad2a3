"""Does the protocol of own_protocol.py survive what a ring can survive? `pytest`, or `pytest --murmur-runtime=ray`."""

import pytest


@pytest.fixture
def overlay():
    return {"kind": "ring", "brokers": 5}


@pytest.fixture
def protocol():
    return {"routing": "own_protocol:EVERY_LINK", "reliability": "own_protocol:FIRST_TIME_ONLY"}


@pytest.fixture
def attached():
    return {"alice": "b0", "bob": "b2"}


@pytest.fixture
def scenario():
    return {"links": {"delay": "2 ms"}, "failure_detection": {"heartbeat": "200 ms", "timeout": "1 s"}}


def test_bob_gets_what_he_wants_once(cluster, clients, verdict):
    wanted = clients["bob"].subscribe("price > 10")
    cluster.settle()
    clients["alice"].publish({"price": 5}, {"price": 12}, {"price": 20})
    cluster.wait_for(lambda: len(clients["bob"].deliveries()) == 2)
    assert [delivery.attributes["price"] for delivery in clients["bob"].deliveries(wanted)] == [12, 20]
    verdict().assert_valid()


def test_a_dead_broker_on_one_way_costs_nothing(cluster, clients, faults, verdict):
    clients["bob"].subscribe("price > 0")
    cluster.settle()
    faults.kill("b1")
    clients["alice"].publish(*({"price": price} for price in range(1, 51)))
    cluster.wait_for(lambda: len(clients["bob"].deliveries()) == 50)
    result = verdict()
    result.assert_valid()
    assert (result.missing, result.faults_took_effect) == (0, 1)


def test_bob_alone_in_a_partition_misses_what_happens_outside(cluster, clients, faults, verdict):
    clients["bob"].subscribe("price > 0")
    cluster.settle()
    faults.partition(["b2", "bob"])
    clients["alice"].publish({"price": 1})
    cluster.advance("2 s")
    faults.unite()
    cluster.settle()
    clients["alice"].publish({"price": 2})
    cluster.wait_for(lambda: len(clients["bob"].deliveries()) == 1)
    result = verdict()
    assert (result.missing, result.explained) == (1, 1)
