"""Clients: the machine of publishers and subscribers, and the messages between a client and its broker.

One client node may stand for many subscribers and publishers at one broker. It passes publications and
subscriptions on and delivers what the broker notifies it of. A subscriber may hold filters that are equal in
normal form, whatever their texts: the broker hears of the first to come and of the last to go. When the link
comes back the client subscribes again: the broker forgot it when the link went down.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import (
    Deliver,
    Effect,
    Input,
    LinkDown,
    LinkUp,
    Machine,
    Publish,
    Received,
    Send,
    Start,
    Subscribe,
    Unsubscribe,
)
from murmur_pubsub.message import Hops, Way, message


@message(1, control=True, way=Way.TO_BROKER)
class ClientSubscribe(NamedTuple):
    """Client to broker: the subscriber wants what matches the filter."""

    subscriber: int
    filter: Filter


@message(2, control=True, way=Way.TO_BROKER)
class ClientUnsubscribe(NamedTuple):
    """Client to broker: the subscriber withdraws that subscription."""

    subscriber: int
    filter: Filter


@message(3, way=Way.TO_BROKER)
class Publication(NamedTuple):
    """Client to broker: a new event."""

    event: Event


@message(4, way=Way.TO_CLIENT)
class Notification(NamedTuple):
    """Broker to client: the event matches subscriptions of these subscribers."""

    event: Event
    hops: Hops
    subscribers: list[int]


CLIENT_MESSAGES: tuple[type, ...] = (ClientSubscribe, ClientUnsubscribe, Publication, Notification)


class ClientMachine(Machine):
    """The machine of a client node: best effort, no memory of what was published or delivered."""

    message_types: Sequence[type] = CLIENT_MESSAGES

    def __init__(self, broker: str) -> None:
        self.broker = broker
        self._connected = False
        self.subscriptions: Counter[tuple[int, Filter]] = Counter()

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        """See `murmur_pubsub.machine.Machine`."""
        if type(input) is Received:
            message = input.message
            if type(message) is Notification:
                return (Deliver(message.event, message.hops, message.subscribers),)
            raise TypeError(f"a client does not understand {message!r}")
        if type(input) is Publish:
            return (Send(self.broker, Publication(input.event)),)
        if type(input) is Subscribe:
            key = (input.subscriber, input.filter)
            self.subscriptions[key] += 1
            if self.subscriptions[key] > 1 or not self._connected:
                return ()
            return (Send(self.broker, ClientSubscribe(*input)),)
        if type(input) is Unsubscribe:
            key = (input.subscriber, input.filter)
            if not self.subscriptions[key]:
                return ()
            self.subscriptions[key] -= 1
            if self.subscriptions[key] or not self._connected:
                return ()
            del self.subscriptions[key]
            return (Send(self.broker, ClientUnsubscribe(*input)),)
        if type(input) is LinkUp:
            self._connected = True
            return [Send(self.broker, ClientSubscribe(*held)) for held, count in self.subscriptions.items() if count]
        if type(input) is LinkDown:
            self._connected = False
            return ()
        if type(input) is Start:
            return ()
        raise TypeError(f"a client takes no {input!r}")

    def check_invariants(self) -> None:
        """Subscription counts are never negative."""
        assert all(count >= 0 for count in self.subscriptions.values())
