"""Do hop acknowledgements lose nothing on lossy links? `pytest`, or `pytest --murmur-runtime=ray` on live actors."""

import pytest


@pytest.fixture
def overlay():
    return {"kind": "chain", "brokers": 4}


@pytest.fixture
def protocol():
    return {"reliability": "hop_acks:HOP_ACKS"}


@pytest.fixture
def parameters():
    return {"hop_acks": {"retry": "20 ms", "attempts": 50}}


@pytest.fixture
def attached():
    return {"alice": "b0", "bob": "b3"}


@pytest.fixture
def scenario():
    return {"links": {"delay": "2 ms", "loss": 0.3}}


def test_lossy_links_lose_nothing(cluster, clients, verdict):
    clients["bob"].subscribe("price > 10")
    cluster.settle()
    clients["alice"].publish(*({"price": price} for price in range(100)))
    result = verdict()
    result.assert_valid()
    assert (result.missing, result.delivered) == (0, 89)


def test_a_broker_that_dies_and_comes_back_is_forgiven(cluster, clients, faults, verdict):
    clients["bob"].subscribe("price > 0")
    cluster.settle()
    faults.kill("b1")
    cluster.advance("100 ms")
    faults.restart("b1")
    cluster.settle()
    clients["alice"].publish({"price": 1})
    cluster.wait_for(lambda: len(clients["bob"].deliveries()) == 1)
    verdict().assert_valid()
