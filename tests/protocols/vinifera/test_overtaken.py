"""Nodes that move while their heartbeats are on their way, over links on which messages overtake each other."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import get_args

import pytest

from murmur_pubsub.links import Delay
from murmur_pubsub.machine import Effect
from routing.smallworld.rendezvous import RendezvousRouter
from routing.smallworld.ring import RING_SIZE
from routing.vinifera.parameters import Spread
from tests.protocols.structured import PROBE_US, StructuredNetwork

NODES = 20
LONGEST_US = 15_000


def moves_beside_heartbeats(seed: int, _: Path) -> None:
    """Nodes move just after they have sent their heartbeats. When all has arrived, those that they told know it."""
    rng = random.Random(f"{seed}/moves beside heartbeats")
    network = StructuredNetwork("vinifera", 3, delay=Delay("uniform", 500, LONGEST_US), seed=seed, base=256)
    network.build(rng.sample(range(RING_SIZE >> 8), NODES))
    network.rounds(6)
    runtime = network.runtime
    for mover in rng.choices(network.up, k=10):
        router = router_of(network, mover)
        begin_round(network, mover)
        runtime.run(until_us=runtime.now_us + rng.randrange(LONGEST_US))
        told = list(router.overlay.contacts)
        move(network, mover, rng.randrange(RING_SIZE))
        network.quiet()
        for name in told:
            contact = router_of(network, name).overlay.contacts.get(mover)
            believed = contact and contact.identifier
            assert believed in (None, router.overlay.me.identifier), f"seed {seed}: {name} takes {mover} back"
    network.close()


def begin_round(network: StructuredNetwork, name: str) -> None:
    """Nodes move at the beginning of a round, when they have just sent heartbeats."""
    overlay = router_of(network, name).overlay
    before = overlay.round
    while overlay.round == before:
        network.runtime.run(until_us=network.runtime.now_us + 1_000)


def next_to_begin_a_round(network: StructuredNetwork, besides: Sequence[str]) -> str:
    """The first node that does, of all but those."""
    rounds = {name: router_of(network, name).overlay.round for name in network.up if name not in besides}
    while True:
        network.runtime.run(until_us=network.runtime.now_us + 1_000)
        for name, before in rounds.items():
            if router_of(network, name).overlay.round > before:
                return name


def move(network: StructuredNetwork, name: str, identifier: int) -> None:
    perform(network, name, router_of(network, name).overlay.move(identifier, 0))


def jump(network: StructuredNetwork, name: str, identifier: int) -> None:
    perform(network, name, router_of(network, name).overlay.jump(identifier, 0))


def perform(network: StructuredNetwork, name: str, effects: list[Effect]) -> None:
    after = router_of(network, name)._after(effects)
    network.runtime.nodes[name].perform(after, network.runtime.now_us)


def router_of(network: StructuredNetwork, name: str) -> RendezvousRouter:
    router = network.router(name)
    assert isinstance(router, RendezvousRouter)
    return router


@pytest.mark.parametrize("seed", range(3))
def test_a_node_that_moves_beside_its_heartbeats_is_where_it_moved(tmp_path: Path, seed: int) -> None:
    moves_beside_heartbeats(seed, tmp_path)


def interested_network(
    rng: random.Random, seed: int, spread: Spread, routing: str
) -> tuple[StructuredNetwork, dict[str, list[int]]]:
    """A network that has settled, whose nodes do not move by themselves; the hundredths of x that each wants."""
    chosen = {routing: {"spread": spread, "beta": 0, "attributes": {"x": {"min": 0, "max": 1}}}}
    delay = Delay("uniform", 500, LONGEST_US)
    network = StructuredNetwork(routing, 3, delay=delay, seed=seed, base=256, parameters=chosen)
    network.build(rng.sample(range(RING_SIZE >> 8), NODES))
    wanted = {name: sorted(rng.sample(range(100), 2)) for name in network.up}
    for name, (low, high) in wanted.items():
        network.subscribe(name, f"x BETWEEN {low / 100} AND {high / 100}")
    network.rounds(6)
    return network, wanted


def all_came(
    network: StructuredNetwork, published: Mapping[int, float], wanted: Mapping[str, list[int]], seed: int
) -> None:
    """Each event, of which the value of x is given, has come once to all nodes that want it and to no other."""
    for event, x in published.items():
        due = {name: 1 for name, (low, high) in wanted.items() if low / 100 <= x <= high / 100}
        assert network.got(event) == due, f"seed {seed}: event {event}, x = {x}"


def events_in(
    network: StructuredNetwork, rng: random.Random, count: int, step_us: int, where: tuple[int, int], by: Sequence[str]
) -> dict[int, float]:
    """Publish so many events, each less than `step_us` after the one before, by any of these nodes; the x of each.
    `where`: the least identifier that it may be hashed to, and how many there are."""
    begin, size = where
    published: dict[int, float] = {}
    for _ in range(count):
        network.runtime.run(until_us=network.runtime.now_us + rng.randrange(step_us))
        x = (begin + rng.randrange(size)) % RING_SIZE / RING_SIZE
        published[network.publish(rng.choice(by), {"x": x})] = x
    return published


def events_beside_moves(seed: int, _: Path, spread: Spread = "none", routing: str = "vinifera") -> None:
    """Nodes take a part of their successors' ranges, while events are on their way there. All get what they want."""
    rng = random.Random(f"{seed}/events beside moves")
    network, wanted = interested_network(rng, seed, spread, routing)
    published: dict[int, float] = {}
    for mover in rng.choices(network.up, k=10):
        begin_round(network, mover)
        router = router_of(network, mover)
        own, successor = router.overlay.me.identifier, router.overlay.successor
        assert successor is not None
        gap = (successor.identifier - own) % RING_SIZE
        move(network, mover, (own + gap // 2) % RING_SIZE)
        published |= events_in(network, rng, 20, 2_000, (own, gap // 2 + 1), network.up)
        network.quiet()
        network.rounds(2)
    all_came(network, published, wanted, seed)
    network.close()


@pytest.mark.parametrize("routing", ["vinifera", "vinifera_even"])
@pytest.mark.parametrize("spread", get_args(Spread))
@pytest.mark.parametrize("seed", range(3))
def test_events_beside_moves_come_to_all_that_want_them(
    tmp_path: Path, seed: int, spread: Spread, routing: str
) -> None:
    events_beside_moves(seed, tmp_path, spread, routing)


def events_beside_jumps(seed: int, _: Path, spread: Spread = "none", routing: str = "vinifera") -> None:
    """Nodes leave their places for other parts of the ring, while events of their former ranges are published."""
    rng = random.Random(f"{seed}/events beside jumps")
    network, wanted = interested_network(rng, seed, spread, routing)
    published: dict[int, float] = {}
    for mover in rng.choices(network.up, k=8):
        begin_round(network, mover)
        overlay = router_of(network, mover).overlay
        assert overlay.predecessor is not None
        begin = overlay.predecessor.identifier
        gap = (overlay.me.identifier - begin) % RING_SIZE
        jump(network, mover, rng.randrange(RING_SIZE))
        published |= events_in(network, rng, 40, 30_000, (begin + 1, gap), network.up)
        network.quiet()
        network.rounds(2)
    all_came(network, published, wanted, seed)
    network.close()


@pytest.mark.parametrize("routing", ["vinifera", "vinifera_even"])
@pytest.mark.parametrize("spread", get_args(Spread))
@pytest.mark.parametrize("seed", range(3))
def test_events_of_a_range_that_its_owner_leaves_come_to_all_that_want_them(
    tmp_path: Path, seed: int, spread: Spread, routing: str
) -> None:
    events_beside_jumps(seed, tmp_path, spread, routing)


def events_of_two_that_jump(seed: int, _: Path, spread: Spread = "none", routing: str = "vinifera") -> None:
    """Two nodes jump into one range, soon one after the other: the second has not heard of the first, and takes a third
    for the former owner of what it publishes there."""
    rng = random.Random(f"{seed}/events of two that jump")
    network, wanted = interested_network(rng, seed, spread, routing)
    published: dict[int, float] = {}
    for _turn in range(8):
        owner, first = rng.sample(network.up, k=2)
        begin_round(network, first)
        overlay = router_of(network, owner).overlay
        assert overlay.predecessor is not None
        begin = overlay.predecessor.identifier
        gap = (overlay.me.identifier - begin) % RING_SIZE
        if gap < 4 or overlay.predecessor.name == first:
            continue
        jump(network, first, (begin + 3 * gap // 4) % RING_SIZE)
        second = next_to_begin_a_round(network, besides=(owner, first, overlay.predecessor.name))
        jump(network, second, (begin + gap // 2) % RING_SIZE)
        step_us = rng.choice((2_000, 30_000))
        published |= events_in(network, rng, 20, step_us, (begin + 1, gap // 2), (second, *network.up))
        network.quiet()
        network.rounds(3)
    all_came(network, published, wanted, seed)
    network.close()


@pytest.mark.parametrize("routing", ["vinifera", "vinifera_even"])
@pytest.mark.parametrize("spread", get_args(Spread))
@pytest.mark.parametrize("seed", range(3))
def test_events_of_two_that_jump_into_one_range_come_to_all_that_want_them(
    tmp_path: Path, seed: int, spread: Spread, routing: str
) -> None:
    events_of_two_that_jump(seed, tmp_path, spread, routing)


def ring_after_jumps(seed: int, _: Path, followed: bool = False) -> list[int]:
    """After each of some jumps in a network of few links: how many nodes have a wrong neighbour on the ring, half a
    round later. `followed`: a neighbour of the mover jumps to the place before it, as nodes do that share a load."""
    rng = random.Random(f"{seed}/ring after jumps")
    chosen = {"vinifera": {"degree": 4, "friend_links": 2, "beta": 0}}
    network = StructuredNetwork("vinifera", 3, seed=seed, base=256, parameters=chosen)
    network.build(rng.sample(range(RING_SIZE >> 8), 3 * NODES))
    network.rounds(20)
    wrong = []
    for mover in rng.choices(network.up, k=10):
        begin_round(network, mover)
        jump(network, mover, rng.randrange(RING_SIZE))
        if followed:
            network.quiet()
            overlay = router_of(network, mover).overlay
            follower = rng.choice([name for name in overlay.neighbours if name not in overlay.neighbours.ring])
            jump(network, follower, overlay.me.identifier - 1)
        network.runtime.run(until_us=network.runtime.now_us + PROBE_US // 2)
        wrong.append(wrong_on_the_ring(network))
        network.rounds(3)
    network.close()
    return wrong


def wrong_on_the_ring(network: StructuredNetwork) -> int:
    """How many nodes take another for their predecessor or successor than the one that is."""
    overlays = {name: router_of(network, name).overlay for name in network.up}
    ring = sorted(overlays, key=lambda name: overlays[name].me.identifier)
    wrong = 0
    for before, name, after in zip([ring[-1], *ring], ring, [*ring[1:], ring[0]], strict=False):
        around = overlays[name].predecessor, overlays[name].successor
        assert None not in around
        wrong += [contact and contact.name for contact in around] != [before, after]
    return wrong


@pytest.mark.parametrize("followed", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_all_know_their_neighbours_on_the_ring_soon_after_one_has_jumped(
    tmp_path: Path, seed: int, followed: bool
) -> None:
    assert sum(ring_after_jumps(seed, tmp_path, followed)) == 0
