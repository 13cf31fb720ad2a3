"""A broker: matching for its own subscribers, routing and reliability side by side, with one machine's face.

The broker owns what the parts share and nothing else: which subscribers are local, which peers are brokers.
It hands each input to the part it is for (messages by their class, timers by the first element of their key:
"routing" or "reliability"), and turns subscriptions of clients into filters that appear and disappear, which
is all that routing has to know of them.

Subscribers and publishers are clients over a link, or the broker's own (commands given to the broker itself):
then it delivers without a last mile, as the multipath paper's brokers did.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

from murmur_pubsub.client import CLIENT_MESSAGES, ClientSubscribe, ClientUnsubscribe, Notification, Publication
from murmur_pubsub.contract import ContractError, is_bool
from murmur_pubsub.errors import InputError
from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.fingerprint import Fact
from murmur_pubsub.machine import (
    Answer,
    Deliver,
    Effect,
    Input,
    LinkDown,
    LinkUp,
    Machine,
    NodeName,
    Order,
    Publish,
    Received,
    Send,
    Start,
    Stored,
    Subscribe,
    TimerFired,
    Unsubscribe,
)
from murmur_pubsub.message import goes_by_routing
from reliability.layer import BrokerServices, ClientWatcher, FilterWatcher, OwnWatcher, Reliability
from reliability.shared_log import SharedLog
from routing.local_subscriptions import LocalSubscriptions
from routing.router import GossipRouter, Hop, Router, StreamRouter


class Broker(Machine):
    """The machine of a broker node; also the `BrokerServices` of its reliability part."""

    def __init__(
        self, matching: str, router: Router, reliability: Callable[[BrokerServices], Reliability], name: NodeName = ""
    ) -> None:
        self.local = LocalSubscriptions(matching)
        self.router = router
        self._streams = router if isinstance(router, StreamRouter) else None
        self.gossip_router = router if isinstance(router, GossipRouter) else None
        self.reliability = reliability(self)
        # Asked for every event: the router's own methods, so that a call is one call.
        self._next_hops: Callable[[Event, NodeName | None, Sequence[int]], Sequence[Hop]] = router.next_hops
        self.is_relay: Callable[[Event, Sequence[int]], bool] = router.is_relay
        self._take_remarks = router.take_remarks
        self._watcher: FilterWatcher | None = self.reliability if isinstance(self.reliability, FilterWatcher) else None
        self._client_watcher = self.reliability if isinstance(self.reliability, ClientWatcher) else None
        self._own_watcher = self.reliability if isinstance(self.reliability, OwnWatcher) else None
        self._log = SharedLog(name) if router.persists and self.reliability.persists else None
        self._clients: dict[NodeName, None] = {}
        self._neighbours: dict[NodeName, None] = {}
        self._routing_messages = frozenset(self.router.message_types)
        self._reliability_messages = frozenset(self.reliability.message_types)
        self._routed_events = frozenset(filter(goes_by_routing, self.reliability.message_types))
        self.message_types: tuple[type, ...] = (
            *CLIENT_MESSAGES,
            *self.router.message_types,
            *self.reliability.message_types,
        )
        self.orders = {**self.router.orders, **self.reliability.orders}
        self._handlers: dict[type, Callable[[Any, int], Sequence[Effect]]] = {
            Received: self._on_received,
            TimerFired: self._on_timer,
            LinkUp: self._on_link_up,
            LinkDown: self._on_link_down,
            Subscribe: lambda command, now_us: [
                *self._add((None, command.subscriber), command.filter, now_us),
                *self._own_changed(now_us),
            ],
            Unsubscribe: lambda command, now_us: [
                *self._remove((None, command.subscriber), command.filter, now_us),
                *self._own_changed(now_us),
            ],
            Publish: lambda command, now_us: self._above(self.reliability.publish(command.event, now_us)),
            Start: self._on_start,
            Stored: self._on_stored,
            Order: self._on_order,
        }

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        """See `murmur_pubsub.machine.Machine`."""
        effects = self._handlers[type(input)](input, now_us)
        remarks = self._take_remarks()
        return [*effects, *remarks] if remarks else effects

    def next_hops(self, event: Event, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        """See `reliability.layer.BrokerServices`."""
        hops = self._next_hops(event, came_from, header)
        if type(hops) is list or type(hops) is tuple:
            for hop in hops:
                if type(hop) is not Hop:
                    break
            else:
                return hops
        raise ContractError(
            f"{hops!r:.80} from next_hops of {type(self.router).__name__}", "a list of Hop(peer, header)"
        )

    def notify(self, event: Event, hops: int, until: int | None = None) -> list[Effect]:
        """See `reliability.layer.BrokerServices`."""
        found = self.local.subscribers(event, until)
        if not found:
            return []
        return [
            Deliver(event, hops, subscribers)
            if client is None
            else Send(client, Notification(event, hops, subscribers))
            for client, subscribers in found.items()
        ]

    def subscribers(self, event: Event, until: int) -> Mapping[NodeName | None, list[int]]:
        """See `reliability.layer.BrokerServices`."""
        return self.local.subscribers(event, until)

    @property
    def has_subscribers(self) -> bool:
        """See `reliability.layer.BrokerServices`."""
        return len(self.local) > 0

    def stream_router(self) -> StreamRouter:
        """See `reliability.layer.BrokerServices`."""
        if self._streams is None:
            raise InputError("broker.routing", type(self.router).__name__, "a routing that carries streams")
        return self._streams

    @property
    def settling(self) -> bool:
        """See `murmur_pubsub.machine.Machine`."""
        own, below = self.reliability.settling, self.router.settling
        if type(own) is type(below) is bool:
            return own or below
        return is_bool("settling", own) or is_bool("settling", below)

    @property
    def settled_until_us(self) -> int:
        """See `murmur_pubsub.machine.Machine`."""
        parts = [part for part in (self.reliability, self.router) if part.settling]
        return min((part.settled_until_us for part in parts), default=-1)

    @property
    def waiting(self) -> bool:
        """See `murmur_pubsub.machine.Machine`."""
        own, below = self.reliability.waiting, self.router.waiting
        if type(own) is type(below) is bool:
            return own or below
        return is_bool("waiting", own) or is_bool("waiting", below)

    @property
    def hears_resets(self) -> bool:
        """See `murmur_pubsub.machine.Machine`."""
        return self.router.hears_resets

    def fingerprint(self) -> Set[Fact]:
        """See `murmur_pubsub.machine.Machine`: what the parts say."""
        return {*self.router.fingerprint(), *self.reliability.fingerprint()}

    def check_invariants(self) -> None:
        """All parts' invariants."""
        self.local.check_invariants()
        self.router.check_invariants()
        self.reliability.check_invariants()

    def _on_received(self, received: Received, now_us: int) -> Sequence[Effect]:
        message: Any = received.message
        message_type = type(message)
        if message_type in self._reliability_messages:
            if message_type in self._routed_events and self.router.is_duplicate(message.event):
                return ()
            return self._above(self.reliability.handle(received, now_us))
        if message_type in self._routing_messages:
            return self._below(self.router.handle(received, now_us))
        if message_type is Publication:
            return self._above(self.reliability.publish(message.event, now_us))
        if received.source not in self._clients:
            return ()  # sent before its link broke here; a client subscribes anew when it is back
        if message_type is ClientSubscribe:
            return self._add((received.source, message.subscriber), message.filter, now_us)
        if message_type is ClientUnsubscribe:
            return self._remove((received.source, message.subscriber), message.filter, now_us)
        raise TypeError(f"a broker does not understand {message!r}")

    def _on_timer(self, fired: TimerFired, now_us: int) -> Sequence[Effect]:
        if fired.key[0] == "routing":
            return self._below(self.router.handle(fired, now_us))
        if fired.key[0] == "reliability":
            return self._above(self.reliability.handle(fired, now_us))
        raise ContractError(f"a timer {fired.key!r:.60}", "a key that begins with 'routing' or 'reliability'")

    def _on_order(self, order: Order, now_us: int) -> Sequence[Effect]:
        if order.verb in self.router.orders:
            return self._below(self.router.handle(order, now_us))
        if order.verb in self.reliability.orders:
            return self._above(self.reliability.handle(order, now_us))
        return (Answer(order.number, f"no part of the broker knows {order.verb!r}"),)

    def _on_link_up(self, change: LinkUp, now_us: int) -> Sequence[Effect]:
        if change.is_broker:
            self._neighbours[change.peer] = None
            return self._both(change, now_us)
        self._clients[change.peer] = None
        return () if self._client_watcher is None else self._above(self._client_watcher.client_up(change.peer, now_us))

    def _on_link_down(self, change: LinkDown, now_us: int) -> Sequence[Effect]:
        if change.peer in self._neighbours:
            del self._neighbours[change.peer]
            return self._both(change, now_us)
        if change.peer not in self._clients:  # a peer of datagrams, of which only a router asks to hear
            return self._below(self.router.handle(change, now_us))
        del self._clients[change.peer]
        effects: list[Effect] = []
        if self._client_watcher is not None:
            effects += self._above(self._client_watcher.client_down(change.peer, now_us))
        for wanted in self.local.remove_client(change.peer):
            effects += self._gone(wanted, now_us)
        return effects

    def _on_start(self, start: Start, now_us: int) -> Sequence[Effect]:
        if self._log is None:
            return self._both(start, now_us)
        below, above = (start._replace(records=records) for records in self._log.recover(start.records))
        return [*self._below(self.router.handle(below, now_us)), *self._above(self.reliability.handle(above, now_us))]

    def _on_stored(self, stored: Stored, now_us: int) -> Sequence[Effect]:
        if self._log is None:
            return (self.router if self.router.persists else self.reliability).handle(stored, now_us)
        whose, effects = self._log.stored(stored.token)
        if whose is None:
            return effects
        is_routers, token = whose
        if is_routers:
            return self._below(self.router.handle(Stored(token), now_us))
        return self._above(self.reliability.handle(Stored(token), now_us))

    def _both(self, input: Input, now_us: int) -> Sequence[Effect]:
        return [*self._below(self.router.handle(input, now_us)), *self._above(self.reliability.handle(input, now_us))]

    def _add(self, owner: tuple[NodeName | None, int], wanted: Filter, now_us: int) -> Sequence[Effect]:
        effects: list[Effect] = []
        if self.local.add(owner, wanted):
            effects += self._below(self.router.subscribe(wanted))
            if self._watcher is not None:
                effects += self._above(self._watcher.subscribe(wanted, now_us))
        self.local.begin(owner, wanted, now_us if self._streams is None else self._streams.version)
        return effects

    def _remove(self, owner: tuple[NodeName | None, int], wanted: Filter, now_us: int) -> Sequence[Effect]:
        return self._gone(wanted, now_us) if self.local.remove(owner, wanted) else ()

    def _gone(self, wanted: Filter, now_us: int) -> Sequence[Effect]:
        effects = self._below(self.router.unsubscribe(wanted))
        if self._watcher is None:
            return effects
        return [*effects, *self._above(self._watcher.unsubscribe(wanted, now_us))]

    def _own_changed(self, now_us: int) -> Sequence[Effect]:
        if self._own_watcher is None:
            return ()
        return self._above(self._own_watcher.own_changed(self.local.of_client(None), now_us))

    def _below(self, handed_back: Sequence[Effect]) -> Sequence[Effect]:
        """What the router has handed back."""
        effects = _effects(handed_back, self.router)
        return effects if self._log is None else self._log.put(effects, is_routers=True)

    def _above(self, handed_back: Sequence[Effect]) -> Sequence[Effect]:
        """What the reliability part has handed back."""
        effects = _effects(handed_back, self.reliability)
        return effects if self._log is None else self._log.put(effects, is_routers=False)


def _effects(handed_back: Sequence[Effect], part: Machine) -> Sequence[Effect]:
    """What a part has handed back, if it may be put together with another's."""
    if type(handed_back) is not list and type(handed_back) is not tuple:
        raise ContractError(f"{handed_back!r:.80} from {type(part).__name__}", "a list or tuple of effects")
    return handed_back
