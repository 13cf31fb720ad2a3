"""The network on which papers are measured: brokers in virtual time, each of them watched.

Brokers deliver to their own subscribers, as the papers' brokers do. A paper's network adds its topology, its way of
publishing and what it counts of arrivals; what is required, missing, duplicate and spurious the oracle says.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from murmur_pubsub.codec import Codec, Encoded
from murmur_pubsub.deployment import NodeSpec
from murmur_pubsub.event import Event
from murmur_pubsub.faults import DEFAULT_DETECTION, FailureDetection
from murmur_pubsub.filter import Filter
from murmur_pubsub.journal import JournalWriter
from murmur_pubsub.links import LinkSpec
from murmur_pubsub.machine import (
    Answer,
    Command,
    Deliver,
    Effect,
    Input,
    NodeContext,
    NodeName,
    Publish,
    Received,
    Send,
    Subscribe,
    Unsubscribe,
)
from murmur_pubsub.machine_around import MachineAround
from murmur_pubsub.places import RingPlace
from murmur_pubsub.values import Value
from murmur_virtual.virtual_node import CONTROL_MESSAGE, EVENT_MESSAGE
from murmur_virtual.virtual_runtime import VirtualRuntime
from murmuration.papers.lab.oracle import Oracle
from murmuration.registry import make_broker
from reliability.best_effort import Forwarded
from reliability.broker import Broker


class MeasuredNetwork:
    """Brokers by name, none of them started yet.

    `beside`: what carries messages between brokers that have no link. `own_count`: see `Oracle`.
    """

    def __init__(
        self,
        names: Sequence[NodeName],
        seed: int,
        folder: Path,
        beside: LinkSpec,
        own_count: bool,
        detection: FailureDetection = DEFAULT_DETECTION,
    ) -> None:
        self.names = list(names)
        self.numbers = {name: number for number, name in enumerate(self.names)}
        self.seed = seed
        self.oracle = Oracle(own_count)
        self.sent: Counter[type] = Counter()
        """How many messages of each class the brokers have sent; a paper may clear it."""
        self.brokers: dict[NodeName, Broker] = {}
        """The last incarnation of each."""
        self._filters: dict[NodeName, list[Filter]] = {name: [] for name in self.names}
        self._holders: dict[Filter, int] = {}
        self._events = 0
        self._writer = JournalWriter(folder, "run", len(self.names))
        self.runtime = VirtualRuntime(seed, self._writer, self.numbers, beside, journal_hops=False, detection=detection)

    # --------------------------------------------------------------------------------- what a paper may add
    def takes(self, node: int) -> bool:
        """Does the node take the message with an event that has come to it? It is lost otherwise."""
        return True

    def arrived(self, node: int, event: Event, hops: int, delivered: bool, now_us: int) -> None:
        """The event has come to the node over a link or as a datagram; `delivered`: to one of its subscribers."""

    def passed_on(self, node: int, event: Event) -> None:
        """The node, to which the event had come so, has sent it on."""

    def answered(self, answer: Answer) -> None:
        """A broker has answered an order."""

    # ---------------------------------------------------------------------------------------------- nodes
    def start(
        self,
        name: NodeName,
        parts: Mapping[str, Any],
        uplink: LinkSpec | None = None,
        place: RingPlace | None = None,
    ) -> None:
        """Start the broker of these parts (`murmuration.registry.make_broker`), or its next incarnation; it subscribes
        again to what it has wanted before."""
        known = self.runtime.nodes.get(name)
        incarnation = 0 if known is None else known.incarnation + 1
        broker = make_broker(NodeContext(name, self.seed, parts, incarnation, place))
        assert isinstance(broker, Broker)
        self.brokers[name] = broker
        watched = _Watched(broker, self.numbers[name], self)
        if known is None:
            self.runtime.add_node(NodeSpec(name, "broker", "", uplink=uplink), watched)
        else:
            self.runtime.restart(name, watched)
        for wanted in self._filters[name]:
            self.command(name, Subscribe(self.numbers[name], wanted))

    def command(self, name: NodeName, command: Command) -> None:
        """Give the broker a command of one of its own clients."""
        self.runtime.nodes[name].take_input(command, self.runtime.now_us)

    def subscribe(self, name: NodeName, wanted: Filter, subscriber: int | None = None) -> None:
        """A subscriber of the broker wants the filter; if the broker is not up, from its next start on."""
        self._filters[name].append(wanted)
        self._holders[wanted] = self._holders.get(wanted, 0) | 1 << self.numbers[name]
        node = self.runtime.nodes.get(name)
        if node is not None and not node.down:
            self.command(name, Subscribe(self.numbers[name] if subscriber is None else subscriber, wanted))

    def unsubscribe_all(self, name: NodeName) -> None:
        """The broker wants nothing any more."""
        withdrawn, self._filters[name] = self._filters[name], []
        for wanted in withdrawn:
            self._holders[wanted] &= ~(1 << self.numbers[name])
            self.command(name, Unsubscribe(self.numbers[name], wanted))

    def wanting(self, attributes: Mapping[str, Value]) -> int:
        """The nodes with a filter that an event of these attributes matches, as bits."""
        found = 0
        for wanted, holders in self._holders.items():
            if wanted.matches(attributes):
                found |= holders
        return found

    def publish(self, name: NodeName, attributes: Mapping[str, Value], wanted: int | None = None) -> int:
        """Publish an event at the broker; its number. `wanted`: the nodes that want it, if that is known already."""
        number = self._events
        self._events += 1
        now_us, publisher = self.runtime.now_us, self.numbers[name]
        self.oracle.published(number, publisher, self.wanting(attributes) if wanted is None else wanted, now_us)
        self.command(name, Publish(Event(publisher, number, now_us, dict(attributes))))
        return number

    # ----------------------------------------------------------------------------------- counting and time
    def count_bytes(self, *message_types: type) -> Mapping[type, Encoded]:
        """Count from now on the bytes of the messages of these classes."""
        return self.codec.count(message_types)

    @property
    def codec(self) -> Codec:
        """The codec that all brokers share."""
        return self.runtime.codec(self.brokers[self.names[0]].message_types)

    def quiet(self) -> None:
        """Let time pass until no message is on its way."""
        in_flight = self.runtime.in_flight
        self.runtime.run(stop=lambda: not in_flight[CONTROL_MESSAGE] and not in_flight[EVENT_MESSAGE])

    def close(self) -> None:
        """Close the journal."""
        self._writer.close()


class _Watched(MachineAround):
    """A broker's machine that tells its network what it sends, what comes to it and what it delivers."""

    def __init__(self, broker: Broker, node: int, network: MeasuredNetwork) -> None:
        super().__init__(broker)
        self._node = node
        self._network = network

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        """See `murmur_pubsub.machine.Machine`."""
        network = self._network
        arrived = input.message if type(input) is Received and type(input.message) is Forwarded else None
        if arrived is not None and not network.takes(self._node):
            return ()
        effects = self.inner.handle(input, now_us)
        sent, delivered, passed_on = network.sent, False, False
        for effect in effects:
            if type(effect) is Send:
                sent[type(effect.message)] += 1
                passed_on = passed_on or type(effect.message) is Forwarded
            elif type(effect) is Deliver:
                delivered = True
                network.oracle.delivered(effect.event.sequence, self._node, effect.hops, now_us)
            elif type(effect) is Answer:
                network.answered(effect)
        if arrived is not None:
            network.arrived(self._node, arrived.event, arrived.hops, delivered, now_us)
            if passed_on:
                network.passed_on(self._node, arrived.event)
        return effects
