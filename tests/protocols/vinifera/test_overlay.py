"""Vinifera as a whole: lookups, ranges, degree, delivery, failures, balancing, on small overlays in virtual time."""

import itertools
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import pytest

from murmur_pubsub.filter_parser import parse_filter
from murmuration.papers.vinifera.network import GossipNetwork
from routing.smallworld.rendezvous import RendezvousRouter
from routing.smallworld.ring import RING_SIZE, KnownRing, clockwise
from routing.vinifera.hashing import AttributeDomain
from routing.vinifera.parameters import Spread
from routing.vinifera.router import Vinifera

NODES = 40
DOMAINS = {name: {"min": 0, "max": 100} for name in ("x", "y", "z")}
PERCENT = AttributeDomain("x", 0, 100)


class Overlay:
    """A settled network and what its nodes want."""

    def __init__(
        self, folder: Path, routing: str = "vinifera", seed: int = 1, nodes: int = NODES, **given: Any
    ) -> None:
        parameters: dict[str, Any] = {"attributes": list(DOMAINS) if routing == "ferry" else DOMAINS, **given}
        self.network = GossipNetwork(routing, [f"b{number}" for number in range(nodes)], seed, folder, parameters)
        self.rng = random.Random(seed)

    def settle(self, wanted: Sequence[str], cycles: int = 12) -> None:
        for name, text in zip(self.network.names, wanted, strict=False):
            self.network.subscribe(name, parse_filter(text))
        self.network.start_together(self.network.names)
        self.network.cycles(cycles)

    @property
    def routers(self) -> dict[str, RendezvousRouter]:
        return {name: self.network.router(name) for name in self.network.up}

    def rendezvous(self, value: int) -> str:
        return min(self.network.up, key=lambda name: clockwise(value, self.network.router(name).overlay.me.identifier))

    def publish_and_check(self, events: int, attributes: Sequence[str] = ("x",)) -> None:
        """Each event reaches exactly the interested nodes, once."""
        for _ in range(events):
            publisher = self.rng.choice(list(self.network.up))
            event = {name: self.rng.uniform(0, 100) for name in attributes}
            number = self.network.publish(publisher, event)
            self.network.cycles(0.01)
            assert not self.network.oracle.fates[number].missing, f"{event} from {publisher}"
        totals = self.network.totals()
        assert totals.interested > 0
        assert totals.duplicate == 0


def intervals(seed: int, attributes: Sequence[str] = ("x",), width: float = 20) -> list[str]:
    rng = random.Random(seed)
    texts = []
    for _ in range(NODES):
        centres = [(name, rng.uniform(0, 100)) for name in attributes]
        texts.append(" AND ".join(f"{name} BETWEEN {at - width / 2} AND {at + width / 2}" for name, at in centres))
    return texts


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("routing", "given"),
    [
        ("vinifera", {"friend_links": 8}),
        ("vinifera", {"friend_links": 4, "small_world_links": 4}),
        ("vinifera", {"friend_links": 4, "small_world_links": 4, "inbound": False}),
        ("ferry", {}),
    ],
)
def test_vinifera_s4b2_every_lookup_ends_at_the_rendezvous_node_within_the_poly_logarithmic_bound(
    tmp_path: Path, routing: str, given: dict[str, Any], seed: int
) -> None:
    overlay = Overlay(tmp_path, routing, seed, **given)
    overlay.settle(intervals(seed))
    routers = overlay.routers
    links = given.get("small_world_links", 8)
    bound = 2 + math.log2(NODES) ** 2 / max(1, links)  # the paper's O(log² N / K_sw), with room for N this small
    total = 0
    for _ in range(40):
        value = overlay.rng.randrange(RING_SIZE)
        at, hops = overlay.rng.choice(list(routers)), 0
        while (hop := routers[at].overlay.ring.next_hop(value)) is not None:
            at, hops = hop, hops + 1
            assert hops <= NODES, "a circle"
        assert at == overlay.rendezvous(value)
        total += hops
    if links:
        assert total / 40 <= bound
    overlay.network.close()


@pytest.mark.parametrize("seed", [1, 2])
def test_vinifera_s4b2_every_range_lookup_reaches_all_and_only_the_nodes_of_the_range(
    tmp_path: Path, seed: int
) -> None:
    overlay = Overlay(tmp_path, seed=seed)
    overlay.settle(intervals(seed))
    routers = overlay.routers
    for _ in range(20):
        low, high = sorted(overlay.rng.sample(range(RING_SIZE), 2))
        reached: dict[str, list[tuple[int, int]]] = {}
        waiting = [(overlay.rng.choice(list(routers)), low, high)]
        while waiting:
            name, begin, end = waiting.pop()
            for first, last, hop in routers[name].overlay.ring.split_range(begin, end):
                if hop is None:
                    reached.setdefault(name, []).append((first, last))
                else:
                    waiting.append((hop, first, last))
        parts = sorted(part for each in reached.values() for part in each)
        assert parts[0][0] == low
        assert parts[-1][1] == high
        for (_, end), (begin, _) in itertools.pairwise(parts):
            assert end + 1 == begin, "a gap, or twice the same"
        for name, each in reached.items():
            assert all(overlay.rendezvous(value) == name for part in each for value in part)
        inside = [name for name in routers if low <= routers[name].overlay.me.identifier <= high]
        assert set(reached) == {*inside, overlay.rendezvous(high)}
    overlay.network.close()


@pytest.mark.parametrize("routing", ["vinifera", "ferry"])
@pytest.mark.parametrize("seed", [1, 2])
def test_vinifera_s4b4_every_interested_node_gets_every_event_once(tmp_path: Path, routing: str, seed: int) -> None:
    overlay = Overlay(tmp_path, routing, seed)
    overlay.settle(intervals(seed, ("x", "y", "z"), width=60))
    overlay.publish_and_check(30, ("x", "y", "z"))
    overlay.network.runtime.check_invariants()
    overlay.network.close()


def test_vinifera_s4b4_every_subscriber_is_registered_in_one_attributes_trees(tmp_path: Path) -> None:
    overlay = Overlay(tmp_path)
    overlay.settle(intervals(1, ("x", "y", "z"), width=40))
    registered: dict[int, int] = {}
    for router in overlay.routers.values():
        attributes = {attribute for attribute, _ in router.own_regions()}
        assert len(attributes) == 1
        assert isinstance(router, Vinifera)
        assert attributes == {router.interests.primary}
        registered[attributes.pop()] = registered.get(router.interests.primary or 0, 0) + 1
    assert max(registered.values()) >= 0.9 * len(overlay.routers), "they agree on it, since all three are alike"
    overlay.network.close()


def test_vinifera_s4b1_the_degree_never_exceeds_its_limit_and_friends_are_alike(tmp_path: Path) -> None:
    overlay = Overlay(tmp_path, friend_links=6, degree=8)
    wanted = [f"x BETWEEN {10 * (number % 6)} AND {10 * (number % 6) + 5}" for number in range(NODES)]
    for name, text in zip(overlay.network.names, wanted, strict=True):
        overlay.network.subscribe(name, parse_filter(text))
    overlay.network.start_together(overlay.network.names)
    for _ in range(25):
        overlay.network.cycles(0.5)
        assert all(len(router.overlay.neighbours) <= 8 for router in overlay.routers.values())
    alike = 0.0
    for name, router in overlay.routers.items():
        group = overlay.network.names.index(name) % 6
        friends = [each for each in router.overlay.neighbours if each not in router.overlay.neighbours.ring]
        alike += sum(overlay.network.names.index(each) % 6 == group for each in friends) / len(friends)
    assert alike / NODES > 0.9
    overlay.network.close()


def test_fewer_nodes_than_links_are_an_overlay_too(tmp_path: Path) -> None:
    overlay = Overlay(tmp_path, nodes=3)
    overlay.settle(["x > 1", "x > 2", "x > 3"], cycles=5)
    assert all(len(router.overlay.neighbours) == 2 for router in overlay.routers.values())
    overlay.publish_and_check(10)
    overlay.network.close()


@pytest.mark.parametrize("routing", ["vinifera", "ferry"])
def test_vinifera_s4c_failures_are_repaired_and_their_subscriptions_removed(tmp_path: Path, routing: str) -> None:
    overlay = Overlay(tmp_path, routing)
    overlay.settle(intervals(1))
    killed = overlay.rng.sample(overlay.network.names, NODES // 5)
    for name in killed:
        overlay.network.crash(name)
    overlay.network.cycles(8)
    overlay.publish_and_check(40)
    for router in overlay.routers.values():
        assert not {name for name, _ in router.table} & set(killed)
        assert not set(router.overlay.neighbours) & set(killed)
    overlay.network.close()


@pytest.mark.parametrize("routing", ["vinifera", "ferry"])
def test_nodes_that_join_or_come_back_get_every_event_once_they_have_settled(tmp_path: Path, routing: str) -> None:
    overlay = Overlay(tmp_path, routing)
    network = overlay.network
    for name, text in zip(network.names, intervals(1), strict=True):
        network.subscribe(name, parse_filter(text))
    network.start_together(network.names[:28])
    network.cycles(6)
    for name in network.names[28:]:
        network.join(name, overlay.rng.sample(network.names[:28], 3))
    for name in network.names[5:10]:
        network.crash(name)
    network.cycles(3)
    for name in network.names[5:10]:
        network.join(name, overlay.rng.sample(network.names[14:28], 3))
    network.cycles(6)
    overlay.publish_and_check(40)
    network.close()


def test_nodes_that_start_for_the_first_time_wait_for_a_founder_that_is_late(tmp_path: Path) -> None:
    network = GossipNetwork("vinifera", ["b0", "b1", "b2"], 1, tmp_path, {"attributes": DOMAINS})
    for name, peer in (("b1", "b2"), ("b2", "b1")):
        network.join(name, [peer, "b0"])
    network.cycles(3)  # of 60 requests each
    assert not any(network.router(name).overlay.joined for name in network.up)
    network.join("b0")
    network.cycles(1)
    assert all(network.router(name).overlay.joined for name in network.up)
    network.close()


def test_vinifera_s4b3_what_is_wanted_no_more_is_de_aggregated_all_the_way(tmp_path: Path) -> None:
    overlay = Overlay(tmp_path)
    overlay.settle(["x BETWEEN 10 AND 30", "x BETWEEN 20 AND 40"])
    network = overlay.network

    def lowest() -> int:
        wanted = [router.installation.wanted() for router in overlay.routers.values()]
        return min(low for regions in wanted for held in regions.values() for low, _ in held)

    assert lowest() == PERCENT.hash(10)
    network.unsubscribe_all("b0")
    network.cycles(14)
    assert lowest() == PERCENT.hash(20)
    overlay.publish_and_check(20)
    network.close()


def test_vinifera_s4b5_skewed_events_draw_identifiers_and_the_load_is_shared(tmp_path: Path) -> None:
    """All events are in a twenty-fifth of the domain, and one node wants them."""
    most = {}
    for beta in (0, 5):
        folder = tmp_path / str(beta)
        folder.mkdir()
        overlay = Overlay(folder, beta=beta, balance_rounds=2)
        overlay.settle(["y > 1" if number else "x > 0" for number in range(NODES)], cycles=6)
        for _ in range(600):
            overlay.network.publish(overlay.rng.choice(overlay.network.names), {"x": overlay.rng.uniform(40, 44)})
            overlay.network.cycles(0.03)
        overlay.network.cycles(4)
        drawn = [overlay.rendezvous(PERCENT.hash(overlay.rng.uniform(40, 44))) for _ in range(300)]
        most[beta] = max(map(drawn.count, drawn)) / 300
        overlay.network.totals()
        overlay.publish_and_check(20)
        overlay.network.close()
    assert most[5] < 0.6 * most[0], most


def test_a_single_hot_value_moves_no_node(tmp_path: Path) -> None:
    overlay = Overlay(tmp_path, beta=5, balance_rounds=2)
    overlay.settle(["y > 1" if number else "x > 0" for number in range(NODES)], cycles=6)
    before = {name: router.overlay.me.identifier for name, router in overlay.routers.items()}
    for _ in range(600):
        overlay.network.publish(overlay.rng.choice(overlay.network.names), {"x": 42})
        overlay.network.cycles(0.03)
    moved = [name for name, router in overlay.routers.items() if router.overlay.me.identifier != before[name]]
    assert not moved, "half of its events cannot be taken from its rendezvous node"
    overlay.network.close()


def two_move_to_one_identifier(seed: int, folder: Path, spread: Spread = "tree") -> None:
    """Two nodes that are drawn take the median of a successor's range while neither knows of the other."""
    overlay = Overlay(folder, seed=seed, spread=spread)
    overlay.settle(intervals(seed))
    ring = sorted(overlay.routers, key=lambda name: overlay.routers[name].overlay.me.identifier)
    at = overlay.rng.randrange(NODES - 3)
    median = sum(overlay.routers[name].overlay.me.identifier for name in ring[at + 2 : at + 4]) // 2
    for name in ring[at : at + 2]:
        router = overlay.network.router(name)
        effects = router._after(router.overlay.move(median, 0))
        overlay.network.runtime.nodes[name].perform(effects, overlay.network.runtime.now_us)
    overlay.network.cycles(12)
    places = {name: router.overlay.me.identifier for name, router in overlay.routers.items()}
    assert len(set(places.values())) == NODES
    assert places[min(ring[at : at + 2])] == median, "the node with the earlier name stays"
    overlay.publish_and_check(60)
    overlay.network.close()


@pytest.mark.parametrize("spread", get_args(Spread))
@pytest.mark.parametrize("seed", [2, 3])
def test_of_two_nodes_that_have_moved_to_one_identifier_one_draws_another(
    tmp_path: Path, seed: int, spread: Spread
) -> None:
    two_move_to_one_identifier(seed, tmp_path, spread)


def test_vinifera_figure_2_the_installation_path() -> None:
    """Q subscribes to [75, 85] and knows R, R knows S: R and S and T hold it, each for the neighbour before."""
    places = {"Q": 10, "R": 50, "S": 78, "T": 90}
    knows = {"Q": ["R"], "R": ["S"], "S": ["T"], "T": ["S"]}
    rings = {
        name: KnownRing(places[name], {places[other]: other for other in others}) for name, others in knows.items()
    }
    assert rings["R"].split_range(75, 78) == [(75, 78, "S")]
    assert rings["S"].split_range(75, 85) == [(75, 78, None), (79, 85, "T")]
    assert rings["T"].split_range(79, 85) == [(79, 85, None)]


@pytest.mark.parametrize("resets", [True, False])
def test_a_killed_neighbours_closed_connections_are_heard_before_its_next_heartbeat(
    tmp_path: Path, resets: bool
) -> None:
    overlay = Overlay(tmp_path, resets=resets)
    overlay.settle(intervals(1))
    killed = overlay.rng.sample(overlay.network.names, NODES // 5)
    for name in killed:
        overlay.network.crash(name)
    overlay.network.cycles(0.02)
    known = {
        name for router in overlay.routers.values() for name in (*router.overlay.neighbours, *router.overlay.contacts)
    }
    assert bool(known & set(killed)) != resets
    overlay.network.close()
