"""A structured overlay to hold in one's hands: brokers in virtual time that start, crash, subscribe and publish.

What each broker delivered is counted, so that a test can compare it with a plain set of (node, filter).
"""

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

from murmur_pubsub.deployment import NodeSpec
from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.journal import JournalWriter
from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.machine import Deliver, Effect, Input, Machine, NodeContext, Publish, Send, Subscribe, Unsubscribe
from murmur_pubsub.machine_around import MachineAround
from murmur_pubsub.places import RingPlace
from murmur_virtual.virtual_node import CONTROL_MESSAGE, EVENT_MESSAGE
from murmur_virtual.virtual_runtime import VirtualRuntime
from murmuration.registry import make_broker
from reliability.broker import Broker
from routing.filter_set import FilterSet
from routing.pastry.leaf_set import LeafSet
from routing.pastry.messages import PastryPeer
from routing.pastry.node import Pastry
from tests.parameters import parts

CONSTANT = Delay("constant", 1_000)
PROBE_US = 2_000_000
PROBE_TIMEOUT_US = 500_000
ROUND_US = PROBE_US
VARIANTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {"rpf_receiver": ("rpf", {"covering": "receiver"})}
"""Name of a variant to the routing and its parameters."""


class Tap(MachineAround):
    """A broker that notes what it delivers, and which messages it sends."""

    def __init__(self, name: str, broker: Broker, delivered: Counter[tuple[int, str]]) -> None:
        super().__init__(broker)
        self.name = name
        self.broker = broker
        self.delivered = delivered
        self.sent: Counter[str] = Counter()

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        effects = self.broker.handle(input, now_us)
        for effect in effects:
            if type(effect) is Deliver:
                self.delivered[effect.event.sequence, self.name] += len(effect.subscribers)
            elif type(effect) is Send:
                self.sent[type(effect.message).__name__] += 1
        return effects


class StructuredNetwork:
    """Nodes n0, n1, … of one routing; the first founds the overlay."""

    def __init__(
        self,
        routing: str = "irbr",
        digits: int = 4,
        leaf_set: int = 8,
        delay: Delay = CONSTANT,
        seed: int = 1,
        nodes_max: int = 1_100,
        reliability: str = "best_effort",
        parameters: Mapping[str, Any] = MappingProxyType({}),
        loss: float = 0.0,
        base: int = 4,
        ordered: bool = False,
    ) -> None:
        self._folder = TemporaryDirectory()
        self._numbers = {f"n{number}": number for number in range(nodes_max)}
        self.writer = JournalWriter(Path(self._folder.name), "run", nodes_max)
        self.runtime = VirtualRuntime(
            seed, self.writer, self._numbers, LinkSpec(delay=delay, loss=loss, ordered=ordered), journal_hops=False
        )
        self.delivered: Counter[tuple[int, str]] = Counter()
        named, chosen = VARIANTS.get(routing, (routing, {}))
        self._parts = parts(named, reliability, **{**parameters, named: {**chosen, **parameters.get(routing, {})}})
        self._place = RingPlace(0, base=base, digits=digits, leaf_set=leaf_set, probe_us=PROBE_US)
        self._seed = seed
        self._events = 0
        self._specs: dict[str, NodeSpec] = {}

    def start(self, name: str, identifier: int, through: Sequence[str] = (), founds: bool = False) -> None:
        """A new node, or the next incarnation of one that is down."""
        place = dataclasses.replace(self._place, identifier=identifier, bootstrap=tuple(through), founds=founds)
        spec = NodeSpec(name, "broker", "", self._parts, place=place)
        known = self.runtime.nodes.get(name)
        incarnation = 0 if known is None else known.incarnation + 1
        broker = make_broker(NodeContext(name, self._seed, spec.parameters, incarnation, place))
        assert isinstance(broker, Broker)
        machine: Machine = Tap(name, broker, self.delivered)
        if known is None:
            self.runtime.add_node(spec, machine)
        else:
            self.runtime.restart(name, machine)

    def build(self, identifiers: Sequence[int]) -> None:
        """n0 founds the overlay, each of the others joins through an earlier one; until all is quiet."""
        for number, identifier in enumerate(identifiers):
            self.start(f"n{number}", identifier, [f"n{(number - 1) // 2}"] if number else [])
        self.quiet()

    def crash(self, name: str) -> None:
        """The node is gone at once."""
        self.runtime.crash(name)

    def subscribe(self, name: str, text: str) -> None:
        """A subscriber of the node wants the filter."""
        self._command(name, Subscribe(self._numbers[name], parse_filter(text)))

    def unsubscribe(self, name: str, text: str) -> None:
        """It wants it no more."""
        self._command(name, Unsubscribe(self._numbers[name], parse_filter(text)))

    def publish(self, name: str, attributes: Mapping[str, Any]) -> int:
        """The number of the event."""
        self._events += 1
        event = Event(self._numbers[name], self._events, self.runtime.now_us, dict(attributes))
        self._command(name, Publish(event))
        return self._events

    def quiet(self) -> None:
        """Until no message is on its way."""
        self.runtime.run(
            until_us=self.runtime.now_us + 60_000_000,
            stop=lambda: not self.runtime.in_flight[CONTROL_MESSAGE] + self.runtime.in_flight[EVENT_MESSAGE],
        )

    def rounds(self, count: int) -> None:
        """Let `count` rounds of probes pass, to the time at which the last of those asked must have answered."""
        self.runtime.run(until_us=self.runtime.now_us + count * ROUND_US + PROBE_TIMEOUT_US)
        self.quiet()

    def close(self) -> None:
        """Check every machine once more, and leave nothing behind."""
        self.runtime.check_invariants()
        self.writer.close()
        self._folder.cleanup()

    @property
    def up(self) -> list[str]:
        """The nodes that run."""
        return [name for name, node in self.runtime.nodes.items() if not node.down]

    def router(self, name: str) -> Any:
        """The node's routing part."""
        machine = self.runtime.nodes[name].machine
        assert isinstance(machine, Tap)
        return machine.broker.router

    def pastry(self, name: str) -> Pastry:
        """The node's Pastry part."""
        found: Pastry = self.router(name).pastry
        return found

    def sent(self, *kinds: str) -> int:
        """How many messages of these classes have been sent by the nodes that run (or ran last)."""
        taps = [node.machine for node in self.runtime.nodes.values()]
        return sum(tap.sent[kind] for tap in taps if isinstance(tap, Tap) for kind in kinds)

    def got(self, event: int) -> dict[str, int]:
        """Which nodes delivered the event, and how often."""
        return {name: count for (number, name), count in self.delivered.items() if number == event}

    def check_overlay(self) -> None:
        """Tables are complete (`check_tables`), and each leaf set is exactly the node's neighbours on the ring, by a
        look at all identifiers."""
        self.check_tables()
        nodes = {name: self.pastry(name) for name in self.up}
        for name, pastry in nodes.items():
            leaves = LeafSet(pastry.space, pastry.own, pastry.place.leaf_set)
            for other in nodes.values():
                if other is not pastry:
                    leaves.add(PastryPeer(other.me.name, other.own))
            assert {leaf.name for leaf in leaves} == {leaf.name for leaf in pastry.leaves}, f"leaves of {name}"

    def check_tables(self) -> None:
        """Every node is part of the overlay, and its table has exactly the cells that have nodes."""
        nodes = {name: self.pastry(name) for name in self.up}
        for name, pastry in nodes.items():
            assert pastry.joined, f"{name} has not joined"
            others = [other for other in nodes.values() if other is not pastry]
            cells = {pastry.table.cell_of(other.own) for other in others}
            found = dict(pastry.table.cells())
            assert cells == found.keys(), f"{name} lacks {cells - found.keys()}, has {found.keys() - cells} for nothing"
            assert {peer.name for peer in found.values()} <= nodes.keys(), f"{name} knows dead peers"
        self.runtime.check_invariants()

    def check_filter_tables(self, wanted: Mapping[str, Sequence[str]]) -> None:
        """Every IRBR node holds for each range exactly the filters of its nodes that no other of them covers."""
        for name in self.up:
            router = self.router(name)
            expected: dict[Any, list[Filter]] = {}
            for other in self.up:
                if other != name:
                    cell = router.pastry.table.cell_of(self.pastry(other).own)
                    expected.setdefault(cell, []).extend(map(parse_filter, wanted.get(other, ())))
            for cell, filters in expected.items():
                assert set(FilterSet.of(filters)) == set(router.table.of(cell)), f"{cell} at {name}"
            assert set(router.table.ranges()) <= expected.keys(), f"{name} has filters of ranges without nodes"

    def _command(self, name: str, command: Any) -> None:
        self.runtime.nodes[name].take_input(command, self.runtime.now_us)
