"""What a broker does for its clients, over subscription forwarding and best effort."""

import pytest

from murmur_pubsub.client import ClientSubscribe
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import Effect, LinkDown, LinkUp, NodeContext, Received, Send
from reliability.best_effort import BestEffort
from reliability.broker import Broker
from routing.forwarding import FilterForwarded, FilterWithdrawn, SubscriptionForwarding
from routing.protocol import NoParameters

LOW, HIGH = parse_filter("x > 3"), parse_filter("x > 5")


@pytest.fixture
def broker() -> Broker:
    """With a neighbour and two clients."""
    context = NodeContext("b0", 1)
    made = Broker(
        "bitset",
        SubscriptionForwarding(context, NoParameters()),
        lambda services: BestEffort(context, NoParameters(), services),
    )
    made.handle(LinkUp("b1", True), 0)
    for client in ("c0", "c1"):
        made.handle(LinkUp(client, False), 0)
    return made


def told(broker: Broker, source: str, subscriber: int, text: str) -> list[Effect]:
    return list(broker.handle(Received(source, ClientSubscribe(subscriber, parse_filter(text))), 1))


def test_what_only_a_client_that_is_gone_had_wanted_is_withdrawn(broker: Broker) -> None:
    assert told(broker, "c0", 1, "x > 3") == [Send("b1", FilterForwarded(LOW))]
    assert told(broker, "c1", 2, "x > 5") == []
    assert list(broker.handle(LinkDown("c0", "closed"), 2)) == [
        Send("b1", FilterForwarded(HIGH)),
        Send("b1", FilterWithdrawn(LOW)),
    ]
    assert list(broker.handle(LinkDown("c1", "closed"), 3)) == [Send("b1", FilterWithdrawn(HIGH))]
    assert not broker.has_subscribers
