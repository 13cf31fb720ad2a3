"""One dispatcher's epidemic recovery by hand, without a network: its broker is a stand-in that routes as it is told."""

from collections.abc import Sequence
from typing import Any, cast

from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import (
    Deliver,
    Effect,
    LinkDown,
    LinkUp,
    NodeContext,
    NodeName,
    Received,
    Send,
    SetTimer,
    Start,
    TimerFired,
)
from reliability.epidemic.epidemic import ROUND, Epidemic
from reliability.epidemic.messages import PatternsForwarded, TaggedEvent, signature
from reliability.epidemic.parameters import EpidemicParameters
from reliability.layer import BrokerServices
from routing.router import Hop

MS = 1_000


def pattern(name: str) -> Filter:
    """Events that have the attribute."""
    return parse_filter(f"{name} IS NOT NULL")


def sign(name: str) -> int:
    """The signature of `pattern(name)`."""
    return signature(pattern(name))


def an_event(source: int, sequence: int, *names: str, time_us: int = 0) -> Event:
    """An event with these attributes, of one letter each: it matches their patterns."""
    return Event(source, sequence, time_us, dict.fromkeys("".join(names), 1))


def tagged(
    event: Event, source: NodeName, *numbers: int | str, incarnation: int = 0, route: Sequence[str] = (), hops: int = 1
) -> TaggedEvent:
    """The event on its way; `numbers`: attribute name, number, …"""
    packed = [sign(each) if isinstance(each, str) else each for each in numbers]
    return TaggedEvent(event, hops, (), source, incarnation, packed, route)


class Station:
    """A dispatcher called `me` with neighbours; `hops` is where events go, whatever they are. `sent` and `delivered`
    are what the last input brought about; `wake_us` is when the next round is due (None: it sleeps)."""

    gossip_router = None

    def __init__(
        self, *neighbours: NodeName, hops: Sequence[NodeName] = (), incarnation: int = 0, now_us: int = 0, **given: Any
    ) -> None:
        self.hops = list(hops)
        self.local: dict[Filter, None] = {}
        self.now_us = now_us
        self.wake_us: int | None = None
        self.sent: list[tuple[NodeName, Any]] = []
        self.delivered: list[int] = []
        parameters = EpidemicParameters(**({"settle_us": 0, "p_forward": 1.0} | given))
        self.machine = Epidemic(NodeContext("me", 1, {}, incarnation), parameters, cast(BrokerServices, self))
        self.carry(self.machine.handle(Start(), now_us))
        for peer in neighbours:
            self.carry(self.machine.handle(LinkUp(peer, True), now_us))

    # what a broker does for its reliability part
    def next_hops(self, event: Event, came_from: NodeName | None, header: Sequence[int]) -> list[Hop]:
        return [Hop(peer) for peer in self.hops if peer != came_from]

    def is_relay(self, event: Event, header: Sequence[int]) -> bool:
        return False

    def notify(self, event: Event, hops: int, until: int | None = None) -> list[Effect]:
        return [Deliver(event, hops, [0])] if any(each.matches(event.attributes) for each in self.local) else []

    # what happens
    def carry(self, effects: Sequence[Effect]) -> None:
        """Note the effects."""
        self.sent, self.delivered = [], []
        for effect in effects:
            if isinstance(effect, Send):
                self.sent.append((effect.to, effect.message))
            elif isinstance(effect, Deliver):
                self.delivered.append(effect.event.sequence)
            elif isinstance(effect, SetTimer):
                assert effect.key == ROUND
                self.wake_us = self.now_us + effect.delay_us
        self.machine.check_invariants()

    def subscribe(self, name: str) -> None:
        """A local subscriber wants the pattern."""
        self.local[pattern(name)] = None
        self.carry(self.machine.subscribe(pattern(name), self.now_us))

    def unsubscribe(self, name: str) -> None:
        """It does not any more."""
        del self.local[pattern(name)]
        self.carry(self.machine.unsubscribe(pattern(name), self.now_us))

    def publish(self, event: Event) -> None:
        """Published here."""
        self.carry(self.machine.publish(event, self.now_us))

    def get(self, source: NodeName, message: Any) -> None:
        """A message arrives."""
        self.carry(self.machine.handle(Received(source, message), self.now_us))

    def told(self, peer: NodeName, *names: str) -> None:
        """The neighbour's side holds these patterns."""
        self.get(peer, PatternsForwarded([pattern(name) for name in names]))

    def lose_link(self, peer: NodeName) -> None:
        """The link to the neighbour is gone."""
        self.carry(self.machine.handle(LinkDown(peer, "test"), self.now_us))

    def gain_link(self, peer: NodeName) -> None:
        """There is a link to it."""
        self.carry(self.machine.handle(LinkUp(peer, True), self.now_us))

    def round(self) -> None:
        """Let the next round take place."""
        assert self.wake_us is not None, "it sleeps"
        self.now_us, self.wake_us = max(self.now_us, self.wake_us), None
        self.carry(self.machine.handle(TimerFired(ROUND), self.now_us))

    def rounds(self, count: int) -> list[tuple[NodeName, Any]]:
        """Let rounds take place until it sleeps, at most `count`; everything that was sent."""
        sent = []
        for _ in range(count):
            if self.wake_us is None:
                break
            self.round()
            sent += self.sent
        return sent

    def messages(self, kind: type) -> list[Any]:
        """Those of the kind that the last input sent."""
        return [message for _, message in self.sent if type(message) is kind]
