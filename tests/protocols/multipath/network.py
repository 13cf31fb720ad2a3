"""A network of multipath brokers on the virtual runtime, whose deliveries are counted."""

import functools
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from murmur_pubsub.deployment import LinkPlan, NodeSpec
from murmur_pubsub.event import Event
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.journal import JournalWriter
from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.machine import (
    Answer,
    Effect,
    Input,
    NodeContext,
    NodeName,
    Order,
    Publish,
    Record,
    Send,
    Start,
    Subscribe,
)
from murmur_virtual.virtual_node import CONTROL_MESSAGE
from murmur_virtual.virtual_runtime import VirtualRuntime
from reliability.best_effort import BestEffort
from reliability.broker import Broker
from routing.multipath.overlay_maps import MasterOverlayMap
from routing.multipath.parameters import MultipathParameters
from routing.multipath.router import CANDIDATES, SOFT_LINKS, MultipathRouter
from routing.protocol import NoParameters
from workloads.overlay import Overlay

MS = 1_000
CONSTANT = LinkSpec(delay=Delay("constant", 1 * MS))
STAR = Overlay(("b0", "b1", "b2", "b3", "b4"), (("b0", "b1"), ("b0", "b2"), ("b1", "b3"), ("b2", "b4")))
UNEVEN = LinkSpec(delay=Delay("uniform", 200, 5 * MS), ordered=False)


class Counted(Broker):
    """A broker that counts in `got` how often its subscribers were handed each event, and keeps its answers to orders
    and the rows that it asks for."""

    def __init__(self, name: NodeName, network: "Network", *arguments: Any) -> None:
        super().__init__(*arguments)
        self.name, self.got, self.network = name, network.got, network

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        effects = [each for each in super().handle(input, now_us) if not self.network.is_lost(self.name, input, each)]
        for effect in effects:
            if isinstance(effect, Answer):
                self.network.answers[effect.number] = effect.refusal
            elif isinstance(effect, Record) and effect.topic not in (SOFT_LINKS, CANDIDATES):
                self.network.records.append((self.name, effect))
        return effects

    def notify(self, event: Event, hops: int, until: int | None = None) -> list[Effect]:
        effects = super().notify(event, hops, until)
        if effects:
            self.got[self.name, event.sequence] = self.got.get((self.name, event.sequence), 0) + 1
        return effects


class Network:
    """Multipath brokers whose deliveries are counted. Each broker's subscriber 0 holds the filters it is given."""

    def __init__(
        self,
        overlay: Overlay,
        folder: Path,
        parameters: MultipathParameters,
        links: LinkSpec = CONSTANT,
        datagrams: LinkSpec = CONSTANT,
        seed: int = 1,
        more: int = 0,
        make: type[MultipathRouter] = MultipathRouter,
    ) -> None:
        self.links, self.make = links, make
        self.names = [*overlay.brokers, *(f"new{number}" for number in range(more))]
        self.numbers = {name: number for number, name in enumerate(self.names)}
        self.writer = JournalWriter(folder, "run", len(self.numbers))
        self.runtime = VirtualRuntime(seed, self.writer, self.numbers, datagrams, journal_hops=False)
        self.parameters = parameters
        self.routers: dict[NodeName, MultipathRouter] = {}
        self.got: dict[tuple[NodeName, int], int] = {}
        self.published = self.ordered = 0
        self.answers: dict[int, str] = {}
        self.records: list[tuple[NodeName, Record]] = []
        self.edges = {frozenset(edge) for edge in overlay.edges}
        self.linked: set[frozenset[NodeName]] = set()
        self.lives = dict.fromkeys(self.names, 0)
        self.unreached_us: dict[NodeName, int] = {}
        for name in overlay.brokers:
            self.add(name)
        for first, second in overlay.edges:
            self.connect(first, second)
        self.run_ms(50)

    def add(self, name: NodeName, incarnation: int = 0) -> None:
        machine = self.machine(name, incarnation)
        self.runtime.add_node(NodeSpec(name, "broker", ""), machine)

    def machine(self, name: NodeName, incarnation: int = 0) -> Broker:
        context = NodeContext(name, 1, {}, incarnation)
        router = self.routers[name] = self.make(context, self.parameters)
        return Counted(name, self, "bitset", router, functools.partial(BestEffort, context, NoParameters()))

    def restart(self, name: NodeName, unreached_ms: int = 0) -> None:
        """The broker is back, on a network that is harsher than the runtimes are: what it sends as it starts is lost,
        and so are datagrams to it for so long. Until then only links lead to it."""
        self.lives[name] += 1
        self.unreached_us[name] = self.runtime.now_us + unreached_ms * MS
        self.runtime.restart(name, self.machine(name, self.lives[name]))

    def is_lost(self, sender: NodeName, input: Input, effect: Effect) -> bool:
        """Does that not reach whom it is for, by `restart`?"""
        if type(effect) is not Send or not self.unreached_us or frozenset((sender, effect.to)) in self.linked:
            return False
        starts = type(input) is Start and self.lives[sender] > 0
        return starts or self.runtime.now_us < self.unreached_us.get(effect.to, 0)

    def settle(self) -> None:
        """Until nothing about subscriptions moves, as both runtimes see it."""
        runtime = self.runtime
        for _ in range(30_000):
            self.run_ms(1)
            moving = runtime.in_flight[CONTROL_MESSAGE] or not runtime.links.quiet or runtime.busy
            if not moving and not runtime.settling:
                return
        raise AssertionError("it does not settle")

    def answer_to(self, number: int) -> str:
        """The refusal of an order ("": it is carried out), as soon as there is an answer."""
        for _ in range(30_000):
            if number in self.answers:
                return self.answers[number]
            self.run_ms(1)
        raise AssertionError(f"order {number} is not answered")

    def connect(self, first: NodeName, second: NodeName) -> None:
        self.linked.add(frozenset((first, second)))
        self.runtime.connect(LinkPlan(first, second, self.links))

    def run_ms(self, time_ms: int) -> None:
        self.runtime.run(until_us=self.runtime.now_us + time_ms * MS)

    def subscribe(self, name: NodeName, text: str) -> None:
        self.runtime.nodes[name].take_input(Subscribe(0, parse_filter(text)), self.runtime.now_us)

    def event(self, name: NodeName, **attributes: int) -> Event:
        """The next one of the network's publishers."""
        return Event(self.numbers[name], self.published, self.runtime.now_us, attributes)

    def publish(self, name: NodeName, **attributes: int) -> int:
        event = self.event(name, **attributes)
        self.published += 1
        self.runtime.nodes[name].take_input(Publish(event), self.runtime.now_us)
        return event.sequence

    def order(self, name: NodeName, verb: str, *arguments: NodeName) -> int:
        """The order's number, under which `answers` has what became of it."""
        number, self.ordered = self.ordered, self.ordered + 1
        self.runtime.nodes[name].take_input(Order(number, verb, arguments), self.runtime.now_us)
        return number

    def adjacency(self) -> dict[NodeName, list[NodeName]]:
        found: dict[NodeName, list[NodeName]] = {name: [] for name in self.routers}
        for first, second in sorted(map(sorted, self.edges)):
            found[first].append(second)
            found[second].append(first)
        return found

    def check_from_scratch(self) -> None:
        """MOM, and anchors and ppaths of the MST, of every broker against those computed for the tree."""
        adjacency = self.adjacency()
        delta = self.parameters.delta
        for name, router in self.routers.items():
            scratch = MasterOverlayMap(name, delta, adjacency)
            assert router.knowledge.network.mom == scratch, name
            whole_map = MasterOverlayMap(name, len(adjacency), adjacency)
            assert router.knowledge.mst.ppaths == {origin: whole_map.path(origin)[:delta] for origin in adjacency}, name
            router.check_invariants()
            assert router.moves.zone is None

    def check_deliveries(self, wanted: dict[int, set[NodeName]]) -> None:
        missing = [(name, event) for event, names in wanted.items() for name in names if (name, event) not in self.got]
        assert not missing, missing[:5]
        duplicate = [key for key, count in self.got.items() if count > 1]
        assert not duplicate, duplicate[:5]
        assert {(name, event) for event, names in wanted.items() for name in names} == set(self.got)


def parameters(**given: Any) -> MultipathParameters:
    base: dict[str, Any] = {
        "round_us": 200 * MS,
        "load_exchange_us": 100 * MS,
        "move_grace_us": 60 * MS,
        "watch_us": 50 * MS,
    }
    return MultipathParameters(**(base | given))


def topics_by_broker(network: Network, rng: random.Random, topics: int = 8, share: float = 0.4) -> dict[int, set[str]]:
    holders: dict[int, set[str]] = {topic: set() for topic in range(topics)}
    for name in network.routers:
        for topic in range(topics):
            if rng.random() < share:
                network.subscribe(name, f"topic = {topic}")
                holders[topic].add(name)
    network.run_ms(60)
    return holders
