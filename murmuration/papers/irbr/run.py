"""One run of the IRBR paper's experiments on the virtual runtime, measured in process.

Nodes form a Pastry overlay with complete tables; each is a broker that delivers to its own subscribers. Operations are
issued one at a time, each waited for, as their cost is meant to be counted: all messages of the routing protocol
between nodes count as one each, those of Pastry do not. What each event has to reach is worked out with
`Filter.matches`, so that missing and duplicate deliveries are counted against an oracle.
"""

import functools
import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from murmur_pubsub.filter import Filter
from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.machine import NodeName
from murmur_pubsub.places import RingPlace
from murmuration.papers.irbr.workload import Generator, Rates, measured_rates
from murmuration.papers.lab.measured_network import MeasuredNetwork
from murmuration.registry import routing_named
from reliability.best_effort import Forwarded
from reliability.epidemic.parameters import EpidemicParameters
from routing.irbr.messages import IRBR_MESSAGES, MEMBER_MESSAGES
from routing.pastry.identifiers import IdentifierRange, IdentifierSpace
from routing.pastry.layer import OverPastry
from routing.pastry.messages import PastryPeer
from routing.rpf.router import PathFilter, PathReleased, PathWithdrawn
from routing.scribe.router import Detached, TreeCancellation, TreeSubscription

PROTOCOLS = ("irbr", "rpf", "scribe")
ROUTED = ("rpf_routed", "scribe_routed")
"""The baselines whose events take Pastry's way back over each edge, as the text has it."""
TEXT_RPF = "rpf_receiver"
"""Reverse path forwarding whose covering is the text's: a node looks at what the neighbour has sent it before."""
_VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{each: (each.removesuffix("_routed"), {"reverse_paths": "routed"}) for each in ROUTED},
    TEXT_RPF: ("rpf", {"covering": "receiver"}),
    "irbr_probes": ("irbr", {"resets": False}),
    **{f"{each}_resets": (each, {"resets": True}) for each in ("rpf", "scribe")},
}
"""Name of a variant to the routing and its parameters."""
RESETS = tuple(name for name, (_, parameters) in _VARIANTS.items() if "resets" in parameters)
"""IRBR that learns of failures by probes alone, and the baselines that are told of closed connections as IRBR is."""
BASE = 4
DIGITS = {64: 3, 256: 4, 1_024: 5, 4_096: 6}
"""Nodes to digits: as in the paper every identifier is a node's."""
_DELAY_US = 1_000
PROBE_US = 2_000_000
PROBE_TIMEOUT_US = 500_000
_NEVER_US = 3_600_000_000
_TREE_OPERATIONS = (TreeSubscription, TreeCancellation, Detached)
_PATH_OPERATIONS = (PathFilter, PathWithdrawn, PathReleased)
_OPERATIONS = frozenset((*IRBR_MESSAGES, *MEMBER_MESSAGES, *_TREE_OPERATIONS, *_PATH_OPERATIONS))


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
class OperationCost:
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


class PastryNetwork(MeasuredNetwork):
    """A Pastry overlay of brokers that know each other from the start. `loss`: of events and gossip; `epidemic`:
    parameters of recovery (None: there is none)."""

    def __init__(
        self,
        routing: str,
        nodes: int,
        seed: int,
        folder: Path,
        probe_us: int,
        loss: float = 0.0,
        epidemic: EpidemicParameters | None = None,
    ) -> None:
        datagrams = LinkSpec(delay=Delay("constant", _DELAY_US), loss=loss)
        super().__init__([f"b{number}" for number in range(nodes)], seed, folder, datagrams, own_count=True)
        self.rng = random.Random(f"{seed}/irbr/{nodes}")
        identifiers = list(range(BASE ** DIGITS[nodes]))
        self.rng.shuffle(identifiers)
        self._identifiers = dict(zip(self.names, identifiers, strict=False))
        routing, chosen = _VARIANTS.get(routing, (routing, {}))
        self._parts: dict[str, Any] = {
            "matching": "bitset", "routing": routing, "routing_parameters": routing_named(routing).parameters(**chosen),
            "reliability": "best_effort" if epidemic is None else "epidemic",
        }  # fmt: skip
        if epidemic is not None:
            self._parts["reliability_parameters"] = epidemic
        self._probe_us = probe_us
        for name in self.names:
            self.join(name)
        self._acquaint()
        self.quiet()

    def join(self, name: NodeName, through: Sequence[NodeName] = ()) -> None:
        """Start the node, or start it again so that it joins through one of the given nodes."""
        place = RingPlace(
            self._identifiers[name], BASE, DIGITS[len(self.names)], leaf_set=16, bootstrap=tuple(through),
            probe_us=self._probe_us, probe_timeout_us=PROBE_TIMEOUT_US,
        )  # fmt: skip
        self.start(name, self._parts, place=place)

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
        places = {wide: place for place, wide in enumerate(members)}
        for at, peer in enumerate(ring):
            router = self.brokers[peer.name].router
            assert isinstance(router, OverPastry)
            beside = {
                IdentifierRange(space.range_of(peer.identifier, length - 1).value * BASE + digit, length)
                for length in range(1, space.digits + 1)
                for digit in range(BASE)
            } - {space.range_of(peer.identifier, length) for length in range(1, space.digits + 1)}
            stand = [self.rng.choice(members[wide]) for wide in sorted(beside & members.keys(), key=places.__getitem__)]
            leaves = [ring[(at + step) % len(ring)] for step in (*range(-8, 0), *range(1, 9))]
            router.know([*stand, *leaves])

    @property
    def operations(self) -> int:
        """Messages of the routing protocol that were sent."""
        return sum(self.sent[kind] for kind in _OPERATIONS)


def measure_operations(spec: CostSpec) -> OperationCost:
    """Subscribe one after the other, and publish at the checkpoints."""
    cost = OperationCost(spec)
    generator = Generator(spec.rates, spec.seed)
    with tempfile.TemporaryDirectory() as folder:
        network = PastryNetwork(spec.routing, spec.nodes, spec.seed, Path(folder), _NEVER_US)
        filters: list[Filter] = []
        events: list[dict[str, float]] = []
        for checkpoint in spec.checkpoints:
            network.sent.clear()
            since = len(filters)
            while len(filters) < checkpoint:
                filters.append(generator.filter())
                network.subscribe(network.rng.choice(network.names), filters[-1])
                network.quiet()
            cost.subscribe.append(network.operations / (checkpoint - since))
            reached = 0
            for _ in range(spec.events):
                events.append(generator.event())
                publisher = network.rng.choice(network.names)
                number = network.publish(publisher, events[-1])
                network.quiet()
                reached += (network.oracle.fates[number].wanted & ~(1 << network.numbers[publisher])).bit_count()
            if spec.events:
                cost.publish.append(network.sent[Forwarded] / spec.events)
                cost.interested.append(reached / spec.events)
        network.close()
    tally = network.oracle.tally()
    cost.required, cost.missing = tally.required, tally.missing
    cost.duplicate, cost.spurious = tally.duplicate, tally.spurious
    probe = [generator.filter() for _ in range(20_000)]
    cost.covering, _ = measured_rates(probe, ())
    _, cost.matching = measured_rates(filters, events or [generator.event() for _ in range(50)])
    return cost


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
        staying = sum(1 << network.numbers[name] for name in stays)

        def crash(name: str, now_us: int) -> None:
            runtime.crash(name)

        def come_back(name: str, now_us: int) -> None:
            network.join(name, rng.sample(stays, 4))

        for name in killed:
            runtime.call_at(begin_us + KILL_US, functools.partial(crash, name))
        for at_us, name in churned:
            runtime.call_at(begin_us + at_us, functools.partial(crash, name))
            runtime.call_at(begin_us + at_us + BACK_US, functools.partial(come_back, name))

        def publish(now_us: int) -> None:
            attributes = generator.event()
            network.publish(rng.choice(stays), attributes, network.wanting(attributes) & staying)

        count = (PUBLISH_UNTIL_US - PUBLISH_FROM_US) * spec.rate_per_s // 1_000_000
        for number in range(count):
            runtime.call_at(begin_us + PUBLISH_FROM_US + int(number * 1e6 / spec.rate_per_s), publish)
        runtime.run(until_us=begin_us + PUBLISH_UNTIL_US + 1_000_000)
        network.close()
    bins = PUBLISH_UNTIL_US // BIN_US
    result.required, result.made = [0] * bins, [0] * bins
    for fate in network.oracle.fates.values():
        at = (fate.at_us - begin_us) // BIN_US
        result.required[at] += fate.required
        result.made[at] += fate.made
    result.duplicate = network.oracle.tally().duplicate
    return result
