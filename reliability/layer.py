"""The face that every reliability protocol shows to the broker it is part of, and what it may ask the broker.

A reliability protocol owns the way of an event through a broker: it is told of events published here and of
its own messages, asks the routing part where an event goes (`BrokerServices.next_hops`) and has local
subscribers notified. Every message class of reliability has a `KIND` from 128 on, and the first element of its
timers' keys is "reliability".
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import Effect, Machine, NodeName
from routing.router import GossipRouter, Hop, StreamRouter


class BrokerServices(Protocol):
    """What the broker does for its reliability part."""

    def next_hops(self, event: Event, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        """See `routing.router.Router.next_hops`."""
        ...

    def notify(self, event: Event, hops: int, until: int | None = None) -> list[Effect]:
        """The effects that hand the event to every local subscriber it matches; `until` as below."""
        ...

    def subscribers(self, event: Event, until: int) -> Mapping[NodeName | None, list[int]]:
        """Client by client (None: the broker's own), the local subscribers that the event is for, by subscriptions
        made up to the time `until`; over a router that carries streams, while its `version` was at most that."""
        ...

    @property
    def has_subscribers(self) -> bool:
        """Are there any subscriptions here?"""
        ...

    def is_relay(self, event: Event, header: Sequence[int]) -> bool:
        """See `routing.router.Router.is_relay`: asked once whenever an event is published here or comes by routing. If
        it only passes, it is not for the subscribers here."""
        ...

    @property
    def gossip_router(self) -> GossipRouter | None:
        """The routing part, if it carries gossip."""
        ...

    def stream_router(self) -> StreamRouter:
        """The routing part, if it carries streams; raises `InputError`."""
        ...


class Reliability(Machine):
    """A reliability protocol at one broker. Its `handle` takes `Start`, link changes of brokers, `Received` of a
    message of its own, its timer, an `Order` that it declares, or `Stored`."""

    persists = False
    """Does it use `Persist` over routers that do so too? Then the two share the broker's log."""

    @abstractmethod
    def publish(self, event: Event, now_us: int) -> Sequence[Effect]:
        """A local publisher has published the event."""


@runtime_checkable
class FilterWatcher(Protocol):
    """A reliability protocol that must know which filters there are: the broker tells it what it tells routing."""

    def subscribe(self, wanted: Filter, now_us: int) -> Sequence[Effect]:
        """The first local subscriber with exactly this filter has come."""
        ...

    def unsubscribe(self, wanted: Filter, now_us: int) -> Sequence[Effect]:
        """The last local subscriber with exactly this filter has gone."""
        ...


@runtime_checkable
class ClientWatcher(Protocol):
    """A reliability protocol that must know which clients are there: the broker tells it of their links."""

    def client_up(self, client: NodeName, now_us: int) -> Sequence[Effect]:
        """The client's link is up (again)."""
        ...

    def client_down(self, client: NodeName, now_us: int) -> Sequence[Effect]:
        """The client's link is gone; its subscriptions are still there, and go next."""
        ...


@runtime_checkable
class OwnWatcher(Protocol):
    """A reliability protocol that must know the broker's own subscribers: those that are no clients."""

    def own_changed(self, wanted: Sequence[tuple[int, Filter]], now_us: int) -> Sequence[Effect]:
        """That is all that they want now: subscribers and filters."""
        ...
