"""Links of a small overlay of cells are cut, for good or healed in some order: who is served, what is left in the log?

The brokers run on the virtual runtime, without clients and without a journal. There is one publisher for each pubend of
p, and one subscriber at each subscribers' broker, which wants everything.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx

from murmur_pubsub.deployment import LinkPlan, NodeSpec, make_machine
from murmur_pubsub.event import Event
from murmur_pubsub.faults import FailureDetection
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.journal import JournalWriter
from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.machine import Deliver, Effect, Input, Machine, Publish, Subscribe
from murmur_pubsub.machine_around import MachineAround
from murmur_pubsub.places import CellPlan
from murmur_virtual.virtual_runtime import VirtualRuntime
from murmuration.registry import BROKER_FACTORY
from reliability.broker import Broker
from reliability.gryphon.gryphon import Gryphon
from reliability.gryphon.parameters import GryphonParameters

PUBENDS = 6
DETECTION = FailureDetection(heartbeat_us=50_000, timeout_us=150_000, reconnect_us=10_000)
LINK = LinkSpec(delay=Delay("constant", 1_000))
PATIENCE_US = 120_000_000
"""After that time a subscriber that has not got everything gets it never."""

LinkName = tuple[str, str]


def one_cell(size: int, subscribers: Sequence[str] = ("s",)) -> CellPlan:
    """p, a cell of that many brokers, and subscribers' brokers: with two of them, half of the paper's overlay."""
    middle = tuple(f"m{number}" for number in range(size))
    cells = {"p": ("p",), "m": middle, **{name: (name,) for name in subscribers}}
    return CellPlan(cells, (("p", "m"), *(("m", name) for name in subscribers)), ("p",))


def two_cells(size: int) -> CellPlan:
    """p, two cells of that many brokers one behind the other, and s."""
    near, far = (tuple(f"{cell}{number}" for number in range(size)) for cell in ("a", "b"))
    return CellPlan({"p": ("p",), "a": near, "b": far, "s": ("s",)}, (("p", "a"), ("a", "b"), ("b", "s")), ("p",))


def chain(size: int) -> CellPlan:
    """p and brokers b1, b2, … one behind the other, that many in all."""
    names = ("p", *(f"b{number}" for number in range(1, size)))
    return CellPlan({name: (name,) for name in names}, tuple(itertools.pairwise(names)), ("p",))


def links_of(plan: CellPlan) -> list[LinkName]:
    """All that there may be: between neighbouring cells, and in a cell."""
    cells = plan.cells
    bundles = [(a, b) for first, second in plan.edges for a in cells[first] for b in cells[second]]
    return bundles + [pair for members in cells.values() for pair in itertools.combinations(members, 2)]


def subscribers_of(plan: CellPlan) -> list[str]:
    """The brokers with subscribers: those alone in their cell, without p."""
    return [members[0] for members in plan.cells.values() if len(members) == 1 and members[0] not in plan.roots]


def connected(plan: CellPlan, cut: Sequence[LinkName]) -> list[str]:
    """The subscribers' brokers to which a path of links from p is left."""
    graph = nx.Graph(each for each in links_of(plan) if each not in cut)
    graph.add_nodes_from(broker for members in plan.cells.values() for broker in members)
    reached = nx.node_connected_component(graph, "p")
    return [name for name in subscribers_of(plan) if name in reached]


def cuts(plan: CellPlan, most: int) -> Iterator[tuple[LinkName, ...]]:
    """All sets of at most so many links that leave p connected with a subscribers' broker at least."""
    for count in range(1, most + 1):
        for cut in itertools.combinations(links_of(plan), count):
            if connected(plan, cut):
                yield cut


class _NoJournal(JournalWriter):
    """Nothing is written down."""

    def __init__(self) -> None:
        pass

    def row(self, *fields: int, **named: int) -> None:
        pass

    def side(self, *fields: Any) -> None:
        pass


class _Watched(MachineAround):
    """Notes what is delivered, and counts what a broker sends."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self.delivered: list[tuple[int, int]] = []

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        effects = self.inner.handle(input, now_us)
        self.delivered += [each.event.id for each in effects if type(each) is Deliver]
        return effects


class CellNetwork:
    """The network; all links are up, and the subscriptions of these brokers (none named: all) have settled."""

    def __init__(
        self,
        plan: CellPlan,
        seed: int = 1,
        link: LinkSpec = LINK,
        pubends: int = PUBENDS,
        subscribers: Sequence[str] = (),
        **parameters: Any,
    ) -> None:
        self.pubends = pubends
        self.subscribers = subscribers or subscribers_of(plan)
        names = [name for members in plan.cells.values() for name in members]
        numbers = {name: number for number, name in enumerate((*names, "driver"))}
        self.runtime = VirtualRuntime(seed, _NoJournal(), numbers, detection=DETECTION)
        self.published = 0
        given = {"pubends": {"p": pubends}, **parameters}
        parts = {
            "matching": "bitset", "routing": "cells", "reliability": "gryphon",
            "reliability_parameters": GryphonParameters(**given),
        }  # fmt: skip
        self._seed = seed
        for name in names:
            spec = NodeSpec(name, "broker", BROKER_FACTORY, parts, place=plan)
            self.runtime.add_node(spec, _Watched(make_machine(spec, seed)))
        for first, second in links_of(plan):
            self.runtime.connect(LinkPlan(first, second, link))
        self.advance(20)
        for number, name in enumerate(self.subscribers):
            self.give(name, Subscribe(number, parse_filter("x >= 0")))
        self.runtime.run(stop=lambda: self.runtime.now_us >= 40_000 and not self.runtime.settling)

    def give(self, name: str, input: Input) -> None:
        """Hand the broker a command."""
        self.runtime.nodes[name].take_input(input, self.runtime.now_us)

    def restart(self, name: str) -> None:
        """Start a crashed broker's next incarnation."""
        node = self.runtime.nodes[name]
        machine = make_machine(node.spec, self._seed, node.incarnation + 1)
        self.runtime.restart(name, _Watched(machine))

    def advance(self, milliseconds: float) -> None:
        """Time passes."""
        self.runtime.run(until_us=self.runtime.now_us + int(milliseconds * 1_000))

    def publish(self, rounds: int, every_ms: float = 20) -> None:
        """Every publisher publishes in each of the rounds."""
        for _ in range(rounds):
            for publisher in range(self.pubends):
                event = Event(publisher, self.published, self.runtime.now_us, {"x": 1})
                self.give("p", Publish(event))
            self.published += 1
            self.advance(every_ms)

    def wait(self, served: Sequence[str], for_log: bool = True) -> None:
        """Time passes until these subscribers' brokers have had everything, and the log is empty if that is waited for;
        in vain at most for `PATIENCE_US`."""
        limit_us = self.runtime.now_us + PATIENCE_US
        while (for_log and self.kept()) or any(self.lacks(name) for name in served):
            if self.runtime.now_us >= limit_us:
                return
            self.advance(100)

    def delivered(self, name: str) -> list[tuple[int, int]]:
        """What the subscribers' broker has delivered, in order."""
        watched = self.runtime.nodes[name].machine
        assert isinstance(watched, _Watched)
        return watched.delivered

    def lacks(self, name: str) -> int:
        """How many events it has not delivered."""
        return self.published * self.pubends - len(self.delivered(name))

    def in_order(self, name: str) -> bool:
        """Has it delivered nothing twice, and each publisher's events in order?"""
        by_publisher: dict[int, list[int]] = {}
        for publisher, sequence in self.delivered(name):
            by_publisher.setdefault(publisher, []).append(sequence)
        return all(each == sorted(set(each)) for each in by_publisher.values())

    def broker(self, name: str) -> Gryphon:
        """Its reliability part."""
        watched = self.runtime.nodes[name].machine
        assert isinstance(watched, _Watched)
        assert isinstance(watched.inner, Broker)
        assert isinstance(watched.inner.reliability, Gryphon)
        return watched.inner.reliability

    def kept(self) -> int:
        """How many messages of the log of p are not acknowledged."""
        return self.broker("p").messages_kept


@dataclass(frozen=True, slots=True)
class CutOutcome:
    """What was wrong. `starving`: subscribers' brokers with a path to p that do not get everything; `kept`: messages
    that stay in the log though all subscribers' brokers have a path; `broken`: brokers that got something twice or out
    of order."""

    starving: tuple[str, ...]
    kept: int
    broken: tuple[str, ...]

    @property
    def is_well(self) -> bool:
        """Nothing was wrong."""
        return not (self.starving or self.kept or self.broken)


def play_cut(plan: CellPlan, cut: Sequence[LinkName], healed: Sequence[LinkName] = ()) -> CutOutcome:
    """Cut these links at once, under traffic, and heal some of them one after the other; then wait."""
    network = CellNetwork(plan)
    network.publish(2)
    for link in cut:
        network.runtime.cut(*link)
    network.publish(8, every_ms=30)
    left = list(cut)
    for link in healed:
        network.advance(100)
        network.runtime.heal(*link)
        left.remove(link)
        network.publish(2, every_ms=7)
    served = connected(plan, left)
    all_served = served == subscribers_of(plan)
    network.wait(served, for_log=all_served)
    network.runtime.check_invariants()
    return CutOutcome(
        tuple(name for name in served if network.lacks(name)),
        network.kept() if all_served else 0,
        tuple(name for name in subscribers_of(plan) if not network.in_order(name)),
    )
