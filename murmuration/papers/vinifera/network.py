"""An overlay of Vinifera or of its Ferry-like baseline in virtual time, measured as the paper measures.

Nodes are brokers that deliver to their own subscribers. What each event has to reach is worked out with
`Filter.matches`, for the nodes that are up. Every message that carries an event counts: as traffic overhead, if who
receives it has no interest in the event.
"""

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from murmur_pubsub.deployment import NodeSpec
from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.journal import JournalWriter
from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.machine import Deliver, Effect, Input, NodeContext, Publish, Received, Subscribe
from murmur_pubsub.machine_around import MachineAround
from murmur_pubsub.places import RingPlace
from murmur_pubsub.values import Value
from murmur_virtual.virtual_runtime import VirtualRuntime
from murmuration.registry import make_broker, routing_named
from reliability.best_effort import Forwarded
from reliability.broker import Broker
from routing.smallworld.messages import GossipPeer
from routing.smallworld.rendezvous import RendezvousRouter
from routing.smallworld.ring import RING_SIZE

DELAY_US = 1_000
CYCLE_US = 60_000_000
TIMEOUT_US = 1_000_000
_ACQUAINTED = 20
"""So many random peers are in a node's view when a network begins as a whole."""


@dataclass(slots=True)
class EventCount:
    """One event. interested: nodes that were up and wanted it when it was published. received: messages with it;
    uninterested: those whose receiver did not want it. hops: of each first delivery, from the publisher."""

    interested: int
    received: int = 0
    uninterested: int = 0
    delivered: int = 0
    duplicate: int = 0
    hops: int = 0


@dataclass(slots=True)
class Totals:
    """Sums over events."""

    events: int = 0
    interested: int = 0
    received: int = 0
    uninterested: int = 0
    delivered: int = 0
    duplicate: int = 0
    hops: int = 0
    relayed: Counter[str] = field(default_factory=Counter)

    @property
    def overhead(self) -> float:
        """Traffic overhead: the share of messages with events that reached nodes without interest in them."""
        return self.uninterested / max(1, self.received)

    @property
    def hit_ratio(self) -> float:
        """Deliveries made of those to be made."""
        return self.delivered / self.interested if self.interested else 1.0

    @property
    def path(self) -> float:
        """Mean hops from the publisher to an interested node."""
        return self.hops / max(1, self.delivered)

    @property
    def relays(self) -> float:
        """Messages with an event that reached a node without interest, for each delivery."""
        return self.uninterested / max(1, self.delivered)

    @property
    def copies(self) -> float:
        """Messages with an event that reached an interested node, for each delivery."""
        return (self.received - self.uninterested) / max(1, self.delivered)


class _Node(MachineAround):
    """A broker that is watched: who gets which event, over how many hops, and who has no use for it."""

    def __init__(self, name: str, broker: Broker, network: "GossipNetwork") -> None:
        super().__init__(broker)
        self.broker = broker
        self._name = name
        self._network = network

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        network = self._network
        if type(input) is Received:
            message = input.message
            if not isinstance(message, Forwarded):
                return self.broker.handle(input, now_us)
            if not network.has_room(self._name):
                return ()
            network.note_received(self._name, message.event)
        effects = self.broker.handle(input, now_us)
        for effect in effects:
            if type(effect) is Deliver:
                network.note_delivered(self._name, effect.event.sequence, effect.hops)
        return effects


class GossipNetwork:
    """`routing`: "vinifera" or "ferry"; `parameters`: its own. `capacity`: so many messages with events a node takes in
    a cycle, and drops the others (None: it takes all). `joining_us`: so long after its start nothing is owed to a node.
    """

    def __init__(
        self,
        routing: str,
        names: Sequence[str],
        seed: int,
        folder: Path,
        parameters: Mapping[str, Any],
        cycle_us: int = CYCLE_US,
    ) -> None:
        self.names = list(names)
        self.cycle_us = cycle_us
        self.rng = random.Random(f"{seed}/vinifera/network")
        self.wanted: dict[str, list[Filter]] = {}
        self.up: dict[str, None] = {}
        self.events: dict[int, EventCount] = {}
        self.capacity: int | None = None
        self.joining_us = 0
        self._started_us: dict[str, int] = {}
        self._taken: Counter[str] = Counter()
        self._taken_in = 0
        self._numbers = {name: number for number, name in enumerate(self.names)}
        self._writer = JournalWriter(folder, "run", len(self.names))
        datagrams = LinkSpec(delay=Delay("constant", DELAY_US))
        self.runtime = VirtualRuntime(seed, self._writer, self._numbers, datagrams, journal_hops=False)
        self._seed = seed
        self._parts = {
            "matching": "naive", "routing": routing, "reliability": "best_effort",
            "routing_parameters": routing_named(routing).parameters(**parameters),
        }  # fmt: skip
        identifiers = self.rng.sample(range(RING_SIZE >> 8), len(self.names))
        self.identifiers = dict(zip(self.names, identifiers, strict=True))
        self._published = 0
        self._delivered: dict[int, set[str]] = {}
        self._interested: dict[int, set[str]] = {}
        self._relays: dict[int, set[str]] = {}

    # --------------------------------------------------------------------------------------------- nodes
    def start(self, name: str, through: Sequence[str] = ()) -> None:
        """Start the node, or its next incarnation; it joins through one of the given nodes and subscribes again."""
        place = RingPlace(
            self.identifiers[name], base=256, digits=3, bootstrap=tuple(through), founds=not through,
            probe_us=self.cycle_us, probe_timeout_us=TIMEOUT_US,
        )  # fmt: skip
        spec = NodeSpec(name, "broker", "", self._parts, place=place)
        known = self.runtime.nodes.get(name)
        incarnation = 0 if known is None else known.incarnation + 1
        broker = make_broker(NodeContext(name, self._seed, spec.parameters, incarnation, place))
        assert isinstance(broker, Broker)
        machine = _Node(name, broker, self)
        if known is None:
            self.runtime.add_node(spec, machine)
        else:
            self.runtime.restart(name, machine)
        self.up[name] = None
        self._started_us[name] = self.runtime.now_us
        for wanted in self.wanted.get(name, ()):
            self._command(name, Subscribe(self._numbers[name], wanted))

    def start_together(self, names: Iterable[str]) -> None:
        """All of them know their neighbours on the ring and some random peers from the start."""
        names = list(names)
        for name in names:
            self.start(name)
        ring = sorted(names, key=self.identifiers.__getitem__)
        peers = {name: self.router(name).overlay.me for name in ring}
        for at, name in enumerate(ring):
            told = [ring[at - 1], ring[(at + 1) % len(ring)], *self.rng.sample(ring, min(_ACQUAINTED, len(ring)))]
            self._acquaint(name, [peers[each] for each in dict.fromkeys(told) if each != name])

    def _acquaint(self, name: str, peers: Sequence[GossipPeer]) -> None:
        node = self.runtime.nodes[name]
        node.perform(self.router(name).know(peers), self.runtime.now_us)

    def crash(self, name: str) -> None:
        """The node is gone at once."""
        self.runtime.crash(name)
        del self.up[name]

    def router(self, name: str) -> RendezvousRouter:
        """The node's routing part."""
        machine = self.runtime.nodes[name].machine
        assert isinstance(machine, _Node)
        assert isinstance(machine.broker.router, RendezvousRouter)
        return machine.broker.router

    # ----------------------------------------------------------------------------- subscribing, publishing
    def subscribe(self, name: str, wanted: Filter) -> None:
        """A subscriber of the node wants the filter (also before the node is there)."""
        self.wanted.setdefault(name, []).append(wanted)
        if name in self.up:
            self._command(name, Subscribe(self._numbers[name], wanted))

    def unsubscribe_all(self, name: str) -> list[Filter]:
        """Forget what the node wants, before it is started again."""
        return self.wanted.pop(name, [])

    def publish(self, name: str, attributes: Mapping[str, Value]) -> int:
        """Publish at the node; the event's number."""
        self._published += 1
        number = self._published
        since_us = self.runtime.now_us - self.joining_us
        interested = {
            each
            for each in self.up
            if self._started_us[each] <= since_us
            and any(want.matches(attributes) for want in self.wanted.get(each, ()))
        }
        self._interested[number], self._delivered[number], self._relays[number] = interested, set(), set()
        self.events[number] = EventCount(len(interested))
        event = Event(self._numbers[name], number, self.runtime.now_us, dict(attributes))
        self._command(name, Publish(event))
        return number

    def has_room(self, name: str) -> bool:
        """Does the node take one more message with an event in this cycle?"""
        if self.capacity is None:
            return True
        cycle = self.runtime.now_us // self.cycle_us
        if cycle != self._taken_in:
            self._taken.clear()
            self._taken_in = cycle
        self._taken[name] += 1
        return self._taken[name] <= self.capacity

    def note_received(self, name: str, event: Event) -> None:
        """A message with the event has come to the node."""
        number = event.sequence
        count = self.events[number]
        count.received += 1
        wants = name in self._interested[number]
        if not wants:
            count.uninterested += 1
            self._relays[number].add(name)

    def note_delivered(self, name: str, number: int, hops: int) -> None:
        """The node's subscriber was given the event."""
        count = self.events[number]
        if name not in self._interested[number]:
            return  # it has come (back) since: nobody had to deliver it
        if name in self._delivered[number]:
            count.duplicate += 1
            return
        self._delivered[number].add(name)
        count.delivered += 1
        count.hops += hops

    def missing(self, number: int) -> set[str]:
        """Who should have got the event and has not."""
        return self._interested[number] - self._delivered[number]

    def totals(self) -> Totals:
        """What has come of all events since the last time it was asked, none of which is on its way any more."""
        totals = Totals(events=len(self.events))
        for number, count in self.events.items():
            for name in ("interested", "received", "uninterested", "delivered", "duplicate", "hops"):
                setattr(totals, name, getattr(totals, name) + getattr(count, name))
            totals.relayed.update(self._relays[number])
        for kept in (self.events, self._delivered, self._interested, self._relays):
            kept.clear()
        return totals

    # ---------------------------------------------------------------------------------------------- time
    def cycles(self, count: float) -> None:
        """Let so many cycles pass."""
        self.runtime.run(until_us=self.runtime.now_us + int(count * self.cycle_us))

    def close(self) -> None:
        """Leave the journal closed."""
        self._writer.close()

    def _command(self, name: str, command: Any) -> None:
        self.runtime.nodes[name].take_input(command, self.runtime.now_us)
