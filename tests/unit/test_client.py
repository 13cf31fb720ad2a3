"""A client's machine: what it says to its broker, input by input."""

import pytest

from murmur_pubsub.client import ClientMachine, ClientSubscribe, ClientUnsubscribe, Notification, Publication
from murmur_pubsub.event import Event
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import (
    Deliver,
    Input,
    LinkDown,
    LinkUp,
    Publish,
    Received,
    Send,
    Start,
    Subscribe,
    TimerFired,
    Unsubscribe,
)

WANTED, OTHER = parse_filter("x > 3"), parse_filter("x > 4")
EVENT = Event(0, 0, 1, {"x": 5})


def told(client: ClientMachine, input: Input) -> str:
    """The effects in words, which name the classes: tuples of two classes are equal if their fields are."""
    return repr(client.handle(input, 1))


def connected() -> ClientMachine:
    client = ClientMachine("b0")
    assert told(client, Start()) == repr(())
    assert list(client.handle(LinkUp("b0", True), 1)) == []
    return client


def test_a_client_passes_on_what_is_published_and_delivers_what_it_is_told() -> None:
    client = connected()
    assert told(client, Publish(EVENT)) == repr((Send("b0", Publication(EVENT)),))
    assert told(client, Received("b0", Notification(EVENT, 2, [7, 8]))) == repr((Deliver(EVENT, 2, [7, 8]),))


def test_the_broker_hears_of_the_first_subscription_to_come_and_of_the_last_to_go() -> None:
    client = connected()
    assert told(client, Subscribe(7, WANTED)) == repr((Send("b0", ClientSubscribe(7, WANTED)),))
    assert told(client, Subscribe(7, WANTED)) == repr(())
    assert told(client, Subscribe(8, WANTED)) == repr((Send("b0", ClientSubscribe(8, WANTED)),))
    assert told(client, Unsubscribe(7, WANTED)) == repr(())
    assert told(client, Unsubscribe(7, WANTED)) == repr((Send("b0", ClientUnsubscribe(7, WANTED)),))
    assert told(client, Unsubscribe(7, WANTED)) == repr(()), "there is none left to withdraw"
    assert told(client, Subscribe(7, WANTED)) == repr((Send("b0", ClientSubscribe(7, WANTED)),))


def test_what_is_held_when_the_link_comes_up_is_told_once_each() -> None:
    client = ClientMachine("b0")
    client.handle(Start(), 0)
    for subscriber, wanted in ((7, WANTED), (7, WANTED), (8, OTHER), (9, WANTED)):
        assert told(client, Subscribe(subscriber, wanted)) == repr(()), "there is nobody to tell yet"
    assert told(client, Unsubscribe(9, WANTED)) == repr(())
    again = [Send("b0", ClientSubscribe(7, WANTED)), Send("b0", ClientSubscribe(8, OTHER))]
    assert told(client, LinkUp("b0", True)) == repr(again)
    assert told(client, LinkDown("b0", "gone")) == repr(())
    assert told(client, Unsubscribe(8, OTHER)) == repr(())
    assert told(client, Subscribe(9, WANTED)) == repr(())
    again = [Send("b0", ClientSubscribe(7, WANTED)), Send("b0", ClientSubscribe(9, WANTED))]
    assert told(client, LinkUp("b0", True)) == repr(again)


def test_what_a_client_does_not_understand_it_refuses() -> None:
    client = connected()
    with pytest.raises(TypeError, match="does not understand Publication"):
        client.handle(Received("b0", Publication(EVENT)), 1)
    with pytest.raises(TypeError, match="takes no TimerFired"):
        client.handle(TimerFired(("client",)), 1)


def test_a_count_below_zero_is_seen() -> None:
    client = connected()
    client.check_invariants()
    client.subscriptions[7, WANTED] = -1
    with pytest.raises(AssertionError):
        client.check_invariants()
