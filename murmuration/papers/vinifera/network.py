"""An overlay of Vinifera or of its Ferry-like baseline, measured as the paper measures.

What each event has to reach are the nodes that are up and want it. Every message that carries an event counts: as
traffic overhead, if the node that receives it has no interest in the event.
"""

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from murmur_pubsub.event import Event
from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.machine import NodeName
from murmur_pubsub.places import RingPlace
from murmur_pubsub.values import Value
from murmuration.papers.lab.measured_network import MeasuredNetwork
from murmuration.registry import routing_named
from routing.smallworld.messages import GossipPeer
from routing.smallworld.rendezvous import RendezvousRouter
from routing.smallworld.ring import RING_SIZE

_DELAY_US = 1_000
CYCLE_US = 60_000_000
_TIMEOUT_US = 1_000_000
_BASE, _DIGITS = 256, 3
_PLACES = _BASE**_DIGITS
_ACQUAINTED = 20
"""So many random peers are in a node's view when a network begins as a whole."""


@dataclass(slots=True)
class Totals:
    """Sums over events. received: messages with an event; uninterested: those whose receiver did not want it. hops: of
    each first delivery, from the publisher. relayed: by a node's number, how many events it sent on and did not want (a
    leaf of the trees relays nothing, whatever comes to it: V-C)."""

    events: int = 0
    interested: int = 0
    received: int = 0
    uninterested: int = 0
    delivered: int = 0
    duplicate: int = 0
    hops: int = 0
    relayed: Counter[int] = field(default_factory=Counter)

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


class GossipNetwork(MeasuredNetwork):
    """`routing`: "vinifera" or "ferry"; `parameters`: its own. `up`: the nodes that are up, in the order of their last
    starts. `capacity`: so many messages with events a node takes in a cycle, and drops the others (None: it takes all).
    `joining_us`: so long after its start nothing is owed to a node.
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
        super().__init__(names, seed, folder, LinkSpec(delay=Delay("constant", _DELAY_US)), own_count=True)
        self.cycle_us = cycle_us
        self.rng = random.Random(f"{seed}/vinifera/network")
        identifiers = self.rng.sample(range(_PLACES), len(self.names))
        self.identifiers = dict(zip(self.names, identifiers, strict=True))
        self.up: dict[NodeName, None] = {}
        self.capacity: int | None = None
        self.joining_us = 0
        self._parts = {
            "matching": "naive", "routing": routing, "reliability": "best_effort",
            "routing_parameters": routing_named(routing).parameters(**parameters),
        }  # fmt: skip
        self._started_us: dict[NodeName, int] = {}
        self._taken: Counter[int] = Counter()
        self._taken_in = 0
        self._totals = Totals()
        self._relayed: set[tuple[int, int]] = set()

    # --------------------------------------------------------------------------------------------- nodes
    def join(self, name: NodeName, through: Sequence[NodeName] = ()) -> None:
        """Start the node, or its next incarnation; it joins through one of the given nodes."""
        place = RingPlace(
            self.identifiers[name], base=_BASE, digits=_DIGITS, bootstrap=tuple(through), founds=not through,
            probe_us=self.cycle_us, probe_timeout_us=_TIMEOUT_US,
        )  # fmt: skip
        self.start(name, self._parts, place=place)
        self.up[name] = None
        self._started_us[name] = self.runtime.now_us

    def start_together(self, names: Iterable[str]) -> None:
        """All of them know their neighbours on the ring and some random peers from the start."""
        names = list(names)
        for name in names:
            self.join(name)
        ring = sorted(names, key=self.identifiers.__getitem__)
        peers = {name: self.router(name).overlay.me for name in ring}
        for at, name in enumerate(ring):
            told = [ring[at - 1], ring[(at + 1) % len(ring)], *self.rng.sample(ring, min(_ACQUAINTED, len(ring)))]
            self._acquaint(name, [peers[each] for each in dict.fromkeys(told) if each != name])

    def _acquaint(self, name: NodeName, peers: Sequence[GossipPeer]) -> None:
        self.runtime.nodes[name].perform(self.router(name).know(peers), self.runtime.now_us)

    def crash(self, name: NodeName) -> None:
        """The node is gone at once."""
        self.runtime.crash(name)
        del self.up[name]

    def router(self, name: NodeName) -> RendezvousRouter:
        """The node's routing part."""
        router = self.brokers[name].router
        assert isinstance(router, RendezvousRouter)
        return router

    def moved(self) -> int:
        """How many nodes that are up have another identifier than they began with."""
        begun = {name: self.identifiers[name] * (RING_SIZE // _PLACES) for name in self.up}
        return sum(self.router(name).overlay.me.identifier != at for name, at in begun.items())

    # ------------------------------------------------------------------------------------------ measuring
    def wanting(self, attributes: Mapping[str, Value]) -> int:
        """The nodes that want the event and have been up for long enough."""
        since_us = self.runtime.now_us - self.joining_us
        there = sum(1 << self.numbers[name] for name in self.up if self._started_us[name] <= since_us)
        return super().wanting(attributes) & there

    def takes(self, node: int) -> bool:
        """Has the node room for one more message with an event in this cycle?"""
        if self.capacity is None:
            return True
        cycle = self.runtime.now_us // self.cycle_us
        if cycle != self._taken_in:
            self._taken.clear()
            self._taken_in = cycle
        self._taken[node] += 1
        return self._taken[node] <= self.capacity

    def arrived(self, node: int, event: Event, hops: int, delivered: bool, now_us: int) -> None:
        """Count the message, and whether its receiver wanted it."""
        self._totals.received += 1
        if not self.oracle.fates[event.sequence].wanted >> node & 1:
            self._totals.uninterested += 1

    def passed_on(self, node: int, event: Event) -> None:
        """A node without interest in the event relays it."""
        if not self.oracle.fates[event.sequence].wanted >> node & 1:
            self._relayed.add((event.sequence, node))

    def totals(self) -> Totals:
        """What has come of all events since the last time it was asked, none of which is on its way any more."""
        totals, tally = self._totals, self.oracle.tally()
        totals.events, totals.interested, totals.delivered = tally.events, tally.required, tally.made
        totals.duplicate, totals.hops = tally.duplicate, tally.hops
        totals.relayed = Counter(node for _, node in self._relayed)
        self._totals = Totals()
        self._relayed.clear()
        self.oracle.fates.clear()
        return totals

    def cycles(self, count: float) -> None:
        """Let so many cycles pass."""
        self.runtime.run(until_us=self.runtime.now_us + int(count * self.cycle_us))
