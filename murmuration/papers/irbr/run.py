"""One run of the IRBR paper's experiments on the virtual runtime, measured in process.

Nodes form a Pastry overlay with complete tables; each is a broker that delivers to its own subscribers. Operations are
issued one at a time, each waited for, as their cost is meant to be counted: all messages of the routing protocol
between nodes count as one each, those of Pastry do not. What each event has to reach is worked out with
`Filter.matches`, so that missing and duplicate deliveries are counted against an oracle.
"""

import dataclasses
import functools
import random
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from murmur_pubsub.deployment import NodeSpec
from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.journal import JournalWriter
from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.machine import Deliver, Effect, Input, Machine, NodeContext, Publish, Send, Subscribe
from murmur_pubsub.machine_around import MachineAround
from murmur_pubsub.places import RingPlace
from murmur_virtual.virtual_node import CONTROL_MESSAGE, EVENT_MESSAGE
from murmur_virtual.virtual_runtime import VirtualRuntime
from murmuration.papers.irbr.workload import Generator, Rates, measured_rates
from murmuration.registry import make_broker, routing_named
from reliability.best_effort import Forwarded
from reliability.broker import Broker
from reliability.epidemic.parameters import EpidemicParameters
from routing.irbr.messages import IRBR_MESSAGES
from routing.pastry.identifiers import IdentifierRange, IdentifierSpace
from routing.pastry.layer import OverPastry
from routing.pastry.messages import PastryPeer
from routing.protocol import NoParameters
from routing.rpf.router import PathFilter, PathReleased, PathWithdrawn
from routing.scribe.router import Detached, TreeCancellation, TreeSubscription

ROUTINGS = ("irbr", "rpf", "scribe")
ROUTED = ("rpf_routed", "scribe_routed")
"""The baselines whose events take Pastry's way back over each edge, as the text has it."""
_VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{each: (each.removesuffix("_routed"), {"reverse_paths": "routed"}) for each in ROUTED},
    "irbr_probes": ("irbr", {"resets": False}),
    **{f"{each}_resets": (each, {"resets": True}) for each in ("rpf", "scribe")},
}
"""Name of a variant to the routing and its parameters."""
RESETS = tuple(name for name, (_, parameters) in _VARIANTS.items() if "resets" in parameters)
"""IRBR that learns of failures by probes alone, and the baselines that are told of closed connections as IRBR is."""
BASE = 4
DIGITS = {64: 3, 256: 4, 1_024: 5, 4_096: 6}
"""Nodes to digits: as in the paper every identifier is a node's."""
DELAY_US = 1_000
PROBE_US = 2_000_000
PROBE_TIMEOUT_US = 500_000
_NEVER_US = 3_600_000_000
_OPERATIONS = frozenset(
    {*IRBR_MESSAGES, TreeSubscription, TreeCancellation, Detached, PathFilter, PathWithdrawn, PathReleased}
)


@dataclass(frozen=True, slots=True)
class CostSpec:
    """A run without failures. checkpoints: numbers of subscriptions at which costs are reported; at each, `events` are
    published by random nodes (0: none)."""

    routing: str
    nodes: int
    rates: Rates
    checkpoints: tuple[int, ...]
    events: int
    seed: int = 1


@dataclass(slots=True)
class Cost:
    """What came out, by checkpoint. subscribe: mean messages of a subscribe operation since the checkpoint before.
    publish: mean messages of a publish operation; interested: mean number of interested nodes but the publisher."""

    spec: CostSpec
    subscribe: list[float] = field(default_factory=list)
    publish: list[float] = field(default_factory=list)
    interested: list[float] = field(default_factory=list)
    covering: float = 0.0
    matching: float = 0.0
    required: int = 0
    missing: int = 0
    duplicate: int = 0
    spurious: int = 0


@dataclass(frozen=True, slots=True)
class FaultSpec:
    """A run in which a share of the nodes is killed at once at `KILL_US`, or (churn above 0) so many nodes a second are
    killed from then on, each back after `BACK_US` as a new node that subscribes again. So many nodes have a
    subscription each."""

    routing: str
    nodes: int
    killed: float
    churn_per_s: float = 0.0
    rate_per_s: int = 50
    matching: float = 0.1
    subscriptions: int = 256
    seed: int = 1


KILL_US = 2_600_000
"""After the round of probes at 2 s is over: the failures are found after the next one, 1.9 s later."""
FOUND_US = 4_000_000 + PROBE_TIMEOUT_US
BACK_US = 4_000_000
PUBLISH_FROM_US, PUBLISH_UNTIL_US = 1_000_000, 12_000_000
BIN_US = 500_000


@dataclass(slots=True)
class Resilience:
    """Deliveries to nodes that stayed up of events that such nodes published, by time of publication in bins of
    `BIN_US`: how many were required, how many made. The times are from the start of the experiment."""

    spec: FaultSpec
    required: list[int] = field(default_factory=list)
    made: list[int] = field(default_factory=list)
    duplicate: int = 0

    def rate(self, from_us: int, until_us: int) -> float:
        """The delivery rate of what was published in that time (whole bins)."""
        bins = range(from_us // BIN_US, until_us // BIN_US)
        required = sum(self.required[at] for at in bins)
        return sum(self.made[at] for at in bins) / required if required else 1.0


class _Node(MachineAround):
    """A broker whose sends and deliveries are counted."""

    def __init__(self, name: str, machine: Machine, overlay: "PastryNetwork") -> None:
        super().__init__(machine)
        self._name = name
        assert isinstance(machine, Broker)
        assert isinstance(machine.router, OverPastry)
        self.router = machine.router
        self._overlay = overlay

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        """See `murmur_pubsub.machine.Machine`."""
        effects = self.inner.handle(input, now_us)
        for effect in effects:
            if type(effect) is Send:
                if type(effect.message) in _OPERATIONS:
                    self._overlay.operations += 1
                elif type(effect.message) is Forwarded:
                    self._overlay.forwarded += 1
            elif type(effect) is Deliver:
                self._overlay.delivered[effect.event.sequence, self._name] += 1
        return effects


class PastryNetwork:
    """An overlay whose nodes know each other. `operations` and `forwarded` count messages sent, `delivered` counts
    deliveries by event and node. `loss`: of events and gossip; `epidemic`: parameters of recovery (None: none)."""

    def __init__(
        self,
        routing: str,
        nodes: int,
        seed: int,
        folder: Path,
        probe_us: int,
        loss: float = 0.0,
        epidemic: Mapping[str, Any] | None = None,
    ) -> None:
        self.names = [f"b{number}" for number in range(nodes)]
        self.operations = self.forwarded = 0
        self.delivered: Counter[tuple[int, str]] = Counter()
        self.wanted: dict[str, list[Filter]] = {}
        self._numbers = {name: number for number, name in enumerate(self.names)}
        self._writer = JournalWriter(folder, "run", nodes)
        datagrams = LinkSpec(delay=Delay("constant", DELAY_US), loss=loss)
        self.runtime = VirtualRuntime(seed, self._writer, self._numbers, datagrams, journal_hops=False)
        self.rng = random.Random(f"{seed}/irbr/{nodes}")
        self._seed = seed
        self._events = 0
        identifiers = list(range(BASE ** DIGITS[nodes]))
        self.rng.shuffle(identifiers)
        routing, chosen = _VARIANTS.get(routing, (routing, {}))
        self._parameters: dict[str, Any] = {
            "matching": "bitset",
            "routing": routing,
            "routing_parameters": routing_named(routing).parameters(**chosen),
            "reliability": "best_effort" if epidemic is None else "epidemic",
            "reliability_parameters": NoParameters() if epidemic is None else EpidemicParameters(**epidemic),
        }
        self._places = {
            name: RingPlace(
                identifiers[number], BASE, DIGITS[nodes], leaf_set=16, probe_us=probe_us,
                probe_timeout_us=PROBE_TIMEOUT_US,
            )
            for number, name in enumerate(self.names)
        }  # fmt: skip
        self._identifiers = dict(zip(self.names, identifiers, strict=False))
        for name in self.names:
            self.start(name)
        self._acquaint()
        self.quiet()

    def start(self, name: str, through: Sequence[str] = ()) -> None:
        """Start the node, or restart it so that it joins through one of the given nodes."""
        place = dataclasses.replace(self._places[name], bootstrap=tuple(through))
        known = self.runtime.nodes.get(name)
        spec = NodeSpec(name, "broker", "", self._parameters, place=place)
        incarnation = 0 if known is None else known.incarnation + 1
        machine = _Node(name, make_broker(NodeContext(name, self._seed, self._parameters, incarnation, place)), self)
        if known is None:
            self.runtime.add_node(spec, machine)
        else:
            self.runtime.restart(name, machine)

    def _acquaint(self) -> None:
        """Give each node its leaf set and for each of its ranges a random member, which is whom Pastry's choice by
        proximity would give it; grown node by node, the first nodes would stand for far more than the others."""
        members: dict[IdentifierRange, list[PastryPeer]] = {}
        ring = sorted(
            (PastryPeer(name, identifier) for name, identifier in self._identifiers.items()), key=lambda peer: peer[1]
        )
        space = IdentifierSpace(BASE, DIGITS[len(self.names)])
        for peer in ring:
            for length in range(1, space.digits + 1):
                members.setdefault(space.range_of(peer.identifier, length), []).append(peer)
        for at, peer in enumerate(ring):
            node = self.runtime.nodes[peer.name].machine
            assert isinstance(node, _Node)
            own = [space.range_of(peer.identifier, length) for length in range(space.digits + 1)]
            stand = [
                self.rng.choice(found)
                for wide, found in members.items()
                if wide not in own and IdentifierRange(wide.value // BASE, wide.length - 1) in own
            ]
            leaves = [ring[(at + step) % len(ring)] for step in (*range(-8, 0), *range(1, 9))]
            node.router.know([*stand, *leaves])

    def quiet(self) -> None:
        """Until nothing is on its way."""
        in_flight = self.runtime.in_flight
        self.runtime.run(stop=lambda: not in_flight[CONTROL_MESSAGE] and not in_flight[EVENT_MESSAGE])

    def subscribe(self, name: str, wanted: Filter) -> None:
        """A subscriber of the node wants the filter."""
        self.wanted.setdefault(name, []).append(wanted)
        command = Subscribe(self._numbers[name], wanted)
        self.runtime.nodes[name].take_input(command, self.runtime.now_us)

    def publish(self, name: str, attributes: dict[str, float]) -> int:
        """Publish; the event's number."""
        self._events += 1
        event = Event(self._numbers[name], self._events, self.runtime.now_us, dict(attributes))
        self.runtime.nodes[name].take_input(Publish(event), self.runtime.now_us)
        return self._events

    def interested(self, attributes: dict[str, float]) -> set[str]:
        """The nodes with a filter that matches."""
        return {name for name, held in self.wanted.items() if any(each.matches(attributes) for each in held)}

    def close(self) -> None:
        """Leave the journal closed."""
        self._writer.close()


def measure_cost(spec: CostSpec) -> Cost:
    """Subscribe one after the other, and publish at the checkpoints."""
    cost = Cost(spec)
    generator = Generator(spec.rates, spec.seed)
    with tempfile.TemporaryDirectory() as folder:
        network = PastryNetwork(spec.routing, spec.nodes, spec.seed, Path(folder), _NEVER_US)
        filters: list[Filter] = []
        events: list[dict[str, float]] = []
        for checkpoint in spec.checkpoints:
            network.operations = 0
            since = len(filters)
            while len(filters) < checkpoint:
                filters.append(generator.filter())
                network.subscribe(network.rng.choice(network.names), filters[-1])
                network.quiet()
            cost.subscribe.append(network.operations / (checkpoint - since))
            network.forwarded = reached = 0
            for _ in range(spec.events):
                events.append(generator.event())
                reached += _publish_and_check(network, events[-1], cost)
            if spec.events:
                cost.publish.append(network.forwarded / spec.events)
                cost.interested.append(reached / spec.events)
        network.close()
    probe = [generator.filter() for _ in range(20_000)]
    cost.covering, _ = measured_rates(probe, ())
    _, cost.matching = measured_rates(filters, events or [generator.event() for _ in range(50)])
    return cost


def _publish_and_check(network: PastryNetwork, attributes: dict[str, float], cost: Cost) -> int:
    """How many nodes but the publisher were interested."""
    publisher = network.rng.choice(network.names)
    number = network.publish(publisher, attributes)
    network.quiet()
    interested = network.interested(attributes)
    got = {name: count for (event, name), count in network.delivered.items() if event == number}
    network.delivered.clear()
    cost.required += len(interested)
    cost.missing += len(interested - got.keys())
    cost.spurious += len(got.keys() - interested)
    cost.duplicate += sum(count - 1 for count in got.values())
    return len(interested - {publisher})


def measure_resilience(spec: FaultSpec) -> Resilience:
    """Subscriptions of random nodes, a steady stream of events, and failures."""
    result = Resilience(spec)
    generator = Generator(Rates(matching=spec.matching), spec.seed)
    with tempfile.TemporaryDirectory() as folder:
        network = PastryNetwork(spec.routing, spec.nodes, spec.seed, Path(folder), PROBE_US)
        runtime, rng = network.runtime, network.rng
        for name in rng.sample(network.names, min(spec.nodes, spec.subscriptions)):
            network.subscribe(name, generator.filter())
            network.quiet()
        begin_us = (runtime.now_us // PROBE_US + 1) * PROBE_US
        killed = rng.sample(network.names, int(spec.killed * spec.nodes))
        churned = [
            (int(KILL_US + number * 1e6 / spec.churn_per_s), name)
            for number, name in enumerate(rng.sample(network.names, int(spec.churn_per_s * 9)))
        ] if spec.churn_per_s else []  # fmt: skip
        stays = [name for name in network.names if name not in {*killed, *(name for _, name in churned)}]

        def crash(name: str, now_us: int) -> None:
            runtime.crash(name)

        def come_back(name: str, now_us: int) -> None:
            network.start(name, rng.sample(stays, 4))
            for wanted in network.wanted.pop(name, ()):
                network.subscribe(name, wanted)

        for name in killed:
            runtime.call_at(begin_us + KILL_US, functools.partial(crash, name))
        for at_us, name in churned:
            runtime.call_at(begin_us + at_us, functools.partial(crash, name))
            runtime.call_at(begin_us + at_us + BACK_US, functools.partial(come_back, name))
        published: dict[int, tuple[int, set[str]]] = {}

        def publish(now_us: int) -> None:
            attributes = generator.event()
            number = network.publish(rng.choice(stays), attributes)
            published[number] = now_us - begin_us, network.interested(attributes).intersection(stays)

        count = (PUBLISH_UNTIL_US - PUBLISH_FROM_US) * spec.rate_per_s // 1_000_000
        for number in range(count):
            runtime.call_at(begin_us + PUBLISH_FROM_US + int(number * 1e6 / spec.rate_per_s), publish)
        runtime.run(until_us=begin_us + PUBLISH_UNTIL_US + 1_000_000)
        network.close()
    bins = PUBLISH_UNTIL_US // BIN_US
    result.required, result.made = [0] * bins, [0] * bins
    for number, (at_us, interested) in published.items():
        result.required[at_us // BIN_US] += len(interested)
        result.made[at_us // BIN_US] += sum(network.delivered[number, name] > 0 for name in interested)
    result.duplicate = sum(count > 1 for count in network.delivered.values())
    return result
