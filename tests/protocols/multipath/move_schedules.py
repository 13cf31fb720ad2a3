"""Random moves on random trees, at random times, with and without brokers that die: all from one seed."""

import random
from dataclasses import dataclass
from pathlib import Path

from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.machine import NodeName
from routing.multipath.overlay_maps import MasterOverlayMap
from routing.multipath.router import MultipathRouter
from tests.protocols.multipath.network import MS, Network, parameters, topics_by_broker
from workloads.overlay import Overlay, Tree, random_tree

TOPICS = 8


def caterpillar(brokers: int) -> Overlay:
    """A path with a leaf at every other broker of it."""
    path = brokers * 2 // 3
    edges = [(f"b{n}", f"b{n + 1}") for n in range(path - 1)]
    edges += [(f"b{2 * n}", f"b{path + n}") for n in range(brokers - path)]
    return Overlay(tuple(f"b{n}" for n in range(brokers)), tuple(edges))


def spider(brokers: int) -> Overlay:
    """Legs of equal length at one broker."""
    edges = [(f"b{n - 4 if n > 4 else 0}", f"b{n}") for n in range(1, brokers)]
    return Overlay(tuple(f"b{n}" for n in range(brokers)), tuple(edges))


@dataclass(frozen=True)
class Schedule:
    """What is drawn from a seed: the tree, the parameters, the links."""

    seed: int
    overlay: Overlay
    strategy: str
    delta: int
    covering: bool
    links: LinkSpec
    datagrams: LinkSpec


def draw(seed: int, brokers: int = 20) -> Schedule:
    """The schedule of a seed."""
    rng = random.Random(f"{seed}/schedule")
    overlay = (caterpillar(brokers), spider(brokers), random_tree(Tree(brokers, 3), seed))[rng.randrange(3)]
    high_us = rng.choice((1 * MS, 3 * MS, 12 * MS))
    return Schedule(
        seed,
        overlay,
        rng.choice(("S1", "S2", "S2", "SH", "S0")),
        rng.choice((2, 3, 4, 4, 6)),
        rng.random() < 0.2,
        LinkSpec(delay=Delay("uniform", 200, high_us)),
        LinkSpec(delay=Delay("uniform", 200, rng.choice((1, 2)) * high_us), ordered=False),
    )


def build(schedule: Schedule, folder: Path, make: type[MultipathRouter] = MultipathRouter) -> Network:
    """The network of a schedule."""
    chosen = parameters(
        strategy=schedule.strategy, delta=schedule.delta, covering=schedule.covering, fanout=9, maxlinks=14,
        coordinator="b0", uplink_messages_per_s=150,
    )  # fmt: skip
    return Network(schedule.overlay, folder, chosen, schedule.links, schedule.datagrams, schedule.seed, make=make)


class Run:
    """A network under traffic in which brokers are ordered to move, and may die."""

    def __init__(self, schedule: Schedule, folder: Path, make: type[MultipathRouter] = MultipathRouter) -> None:
        self.network = build(schedule, folder, make)
        self.rng = random.Random(f"{schedule.seed}/run")
        self.holders = topics_by_broker(self.network, self.rng, TOPICS, 0.3)
        self.wanted: dict[int, set[NodeName]] = {}
        self.moves: dict[int, tuple[NodeName, NodeName, NodeName]] = {}
        self.down: dict[NodeName, None] = {}
        self.made = 0

    def order_a_move(self) -> int | None:
        """Some broker is told to move, by the tree as it is known to be; None if the one drawn cannot."""
        network, rng = self.network, self.rng
        mover = rng.choice([name for name in network.names if name not in self.down])
        adjacency = network.adjacency()
        mom = MasterOverlayMap(mover, network.parameters.delta, adjacency)
        neighbour = rng.choice(adjacency[mover]) if adjacency[mover] else None
        behind = [peer for peer in mom.brokers if peer != neighbour and mom.first_hop(peer) == neighbour]
        if neighbour is None or not behind:
            return None
        destination = rng.choice(behind)
        number = network.order(mover, "move", neighbour, destination)
        self.moves[number] = (mover, neighbour, destination)
        self.note_answers()
        return number

    def begin_a_move(self, tries: int = 1_000) -> tuple[NodeName, NodeName, NodeName] | None:
        """Order moves up to the first that is not answered at once: its mover, neighbour and destination."""
        for _ in range(tries):
            number = self.order_a_move()
            if number is not None and number in self.moves:
                return self.moves[number]
        return None

    def note_answers(self) -> None:
        """Moves that have been made are in the tree from now on."""
        network = self.network
        for number, (mover, neighbour, destination) in list(self.moves.items()):
            if number in network.answers:
                del self.moves[number]
                if not network.answers[number]:
                    network.edges -= {frozenset((mover, neighbour))}
                    network.edges |= {frozenset((mover, destination))}
                    self.made += 1

    def publish(self) -> None:
        """A publication at some broker that is up."""
        topic = self.rng.randrange(TOPICS)
        source = self.rng.choice([name for name in self.network.names if name not in self.down])
        self.wanted[self.network.publish(source, topic=topic)] = set(self.holders[topic])

    def traffic(self, time_ms: int, every_ms: int = 4) -> None:
        """Publications, for so long."""
        for _ in range(max(1, time_ms // every_ms)):
            self.publish()
            self.network.run_ms(every_ms)
            self.note_answers()

    def settle_moves(self) -> None:
        """Until every move that was ordered has been answered."""
        for _ in range(400):
            if not self.moves:
                return
            self.traffic(20)
        raise AssertionError(f"without an answer: {self.moves}")

    # ------------------------------------------------------------------------------------------------ faults
    def kill(self, name: NodeName) -> None:
        """The broker's process is gone; nobody will answer for it."""
        self.network.runtime.crash(name)
        self.down[name] = None
        self.moves = {number: move for number, move in self.moves.items() if move[0] != name}

    def restart(self, name: NodeName, unreached_ms: int = 0) -> None:
        """It is back, and its subscribers subscribe anew."""
        del self.down[name]
        self.network.restart(name, unreached_ms)
        for topic in range(TOPICS):
            if name in self.holders[topic]:
                self.network.subscribe(name, f"topic = {topic}")

    def tree_as_stated(self) -> set[frozenset[NodeName]]:
        """The edges on which both ends agree."""
        routers = self.network.routers
        stated = {name: router.knowledge.network.peers for name, router in routers.items()}
        for name, peers in stated.items():
            for peer in peers:
                assert name in stated[peer], f"{name} takes {peer} for a neighbour: {stated}"
        return {frozenset((name, peer)) for name, peers in stated.items() for peer in peers}

    def check_agreement(self, probes: int = 30) -> None:
        """All is at rest: brokers and coordinator agree, and publications find their way."""
        network = self.network
        (desk,) = [router.desk.coordinator for router in network.routers.values() if router.desk.coordinator]
        assert (desk.active, list(desk.waiting)) == ({}, [])
        network.edges = self.tree_as_stated()
        assert len(network.edges) == len(network.names) - 1
        network.check_from_scratch()
        self.wanted = {}
        network.got.clear()
        for _ in range(probes):
            self.publish()
            network.run_ms(3)
        network.run_ms(200)
        network.check_deliveries(self.wanted)
