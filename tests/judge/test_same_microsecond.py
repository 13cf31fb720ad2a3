"""What is owed to a subscription that comes or goes in the microsecond in which an event is published."""

from murmuration.harness.cluster import Cluster
from tests.judge.by_hand import judge_ended


def test_an_event_is_not_owed_to_who_subscribes_in_its_microsecond() -> None:
    """A hunt found it: the client of the publishers' broker itself, whose subscription settles at once."""
    with Cluster.start(overlay={"kind": "chain", "brokers": 2}, clients={"alice": "b0", "bob": "b0"}) as cluster:
        alice, bob = cluster.clients["alice"], cluster.clients["bob"]
        alice.publish({"x": 1})
        bob.subscribe("x >= 0")
        cluster.advance("1 s")
        alice.publish({"x": 2})
        cluster.advance("1 s")
        judged = judge_ended(cluster)
        assert [each.attributes["x"] for each in bob.deliveries()] == [2]
    assert judged.numbers["required"] == 1
    assert judged.numbers["verdict"] == "valid", judged.numbers["reason"]


def test_an_event_is_not_owed_to_who_withdraws_in_its_microsecond() -> None:
    with Cluster.start(
        overlay={"kind": "chain", "brokers": 2}, clients={"alice": "b0", "bob": "b0"}, withdrawal_grace="0 s"
    ) as cluster:
        alice, bob = cluster.clients["alice"], cluster.clients["bob"]
        wanted = bob.subscribe("x >= 0")
        cluster.settle()
        alice.publish({"x": 1})
        cluster.advance("1 s")
        bob.unsubscribe(wanted)
        alice.publish({"x": 2})
        cluster.advance("1 s")
        judged = judge_ended(cluster)
        assert [each.attributes["x"] for each in bob.deliveries()] == [1]
    assert judged.numbers["required"] == 1
    assert judged.numbers["verdict"] == "valid", judged.numbers["reason"]


def test_what_is_published_once_all_has_settled_is_owed() -> None:
    with Cluster.start(overlay={"kind": "chain", "brokers": 2}, clients={"alice": "b0", "bob": "b0"}) as cluster:
        cluster.clients["bob"].subscribe("x >= 0")
        cluster.settle()
        cluster.clients["alice"].publish({"x": 1})
        cluster.advance("1 s")
        judged = judge_ended(cluster)
    assert judged.numbers["required"] == 1
