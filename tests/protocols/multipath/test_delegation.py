"""Multipath forwarding that delegates (`routing.multipath.delegation`): murmur's own."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from murmur_pubsub.errors import InputError
from routing.multipath.delegation import MULTIPATH_DELEGATION, Copy, DelegatingRouter, Delegation, border_number
from routing.multipath.overlay_maps import MasterOverlayMap, WorkingOverlayMap
from routing.multipath.parameters import MultipathParameters
from routing.multipath.router import NO_WAY, MultipathRouter
from routing.multipath.subscription_tables import MasterSubscriptionTable, WorkingSubscriptionTable
from routing.multipath.view import NoWay, View
from routing.protocol import OverlayTraits
from routing.router import Hop
from tests.protocols.multipath.move_schedules import Run, Schedule
from tests.protocols.multipath.network import CONSTANT, UNEVEN, Network, parameters, topics_by_broker
from tests.protocols.multipath.test_move_schedules import moves_alone, moves_and_deaths
from workloads.overlay import Overlay, Tree, random_tree

TREE = Overlay(
    ("b0", "b1", "b2", "b3", "b4", "b5"), (("b0", "b1"), ("b1", "b2"), ("b2", "b3"), ("b2", "b4"), ("b4", "b5"))
)
"""b0 is on one side, b3 and b5 are on the other; the way to b5 is over b4."""


def learned(folder: Path, make: type[MultipathRouter] = DelegatingRouter) -> Network:
    """The tree above after some traffic from b0 and from b3."""
    folder.mkdir(exist_ok=True)
    network = Network(TREE, folder, parameters(delta=3, fanout=6, maxlinks=12), make=make)
    network.subscribe("b3", "topic = 1")
    network.subscribe("b5", "topic = 1")
    network.run_ms(20)
    for _ in range(40):
        network.publish("b0", topic=1)
        network.publish("b3", topic=1)
        network.run_ms(25)
    return network


def onward(network: Network, name: str, came_from: str | None = None, *borders: str) -> Sequence[Hop]:
    header = [border_number(border) for border in borders]
    return network.routers[name].next_hops(network.event("b0", topic=1), came_from, header)


def test_a_broker_beside_the_relay_is_the_delegate(tmp_path: Path) -> None:
    assert onward(learned(tmp_path / "s2", MultipathRouter), "b0") == [Hop("b3"), Hop("b4")]
    network = learned(tmp_path / "delegation")
    assert onward(network, "b0") == [Hop("b3", (border_number("b1"),))]
    assert onward(network, "b3", "b0", "b1") == [Hop("b5")]


def test_a_delegate_sends_nothing_beyond_its_borders(tmp_path: Path) -> None:
    network = learned(tmp_path)
    assert not onward(network, "b3", "b0", "b4")
    assert not onward(network, "b3", "b0", "b1", "b5")
    assert onward(network, "b2", "b0", "b1", "b5") == [Hop("b3")]


def test_a_border_that_is_not_in_the_map_is_journaled(tmp_path: Path) -> None:
    network = learned(tmp_path)
    assert onward(network, "b3", "b0", "nobody") == ()
    remarks = network.routers["b3"].take_remarks()
    assert [remark[:3] for remark in remarks] == [(NO_WAY, NoWay.UNKNOWN_SENDER, "b0")]
    router = network.routers["b3"]
    router.knowledge.working().dropped.append(NoWay.NO_LINK)
    told = [(onward(network, "b3", "b0", "b1"), len(router.take_remarks())) for _ in range(2)]
    assert told == [([Hop("b5")], 1), ([Hop("b5")], 0)], "it is said of one event and of no later one"


@pytest.mark.parametrize("seed", [*range(4), *range(5, 12)])
def test_every_broker_that_wants_a_publication_gets_it_once(seed: int, tmp_path: Path) -> None:
    rng = Random(f"{seed}/delegation")
    chosen = parameters(delta=rng.choice((2, 3, 4, 6)), fanout=rng.choice((4, 9)), maxlinks=14)
    overlay = random_tree(Tree(24, 3), seed)
    network = Network(overlay, tmp_path, chosen, CONSTANT, UNEVEN, seed, make=DelegatingRouter)
    holders = topics_by_broker(network, rng, share=rng.choice((0.1, 0.3, 0.6)))
    wanted: dict[int, set[str]] = {}
    delegated = 0
    for _ in range(150):
        topic, name = rng.randrange(8), rng.choice(network.names)
        wanted[network.publish(name, topic=topic)] = holders[topic]
        network.run_ms(rng.choice((1, 5, 20)))
        found = network.routers[name].next_hops(network.event(name, topic=topic), None, ())
        delegated += any(hop.header for hop in found)
    network.run_ms(100)
    network.check_deliveries(wanted)
    network.check_from_scratch()
    assert delegated


def delegating(schedule: Schedule, folder: Path) -> Run:
    """The schedule's run, with the one strategy that delegates."""
    return Run(dataclasses.replace(schedule, strategy="S2", covering=False), folder, DelegatingRouter)


@pytest.mark.parametrize("seed", [24, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(201, 214))])
def test_delta_moves_lose_and_repeat_nothing(seed: int, tmp_path: Path) -> None:
    assert moves_alone(seed, tmp_path, begin=delegating).made >= 10


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(200, 210))])
def test_delta_moves_survive_a_broker_that_dies(seed: int, tmp_path: Path) -> None:
    assert moves_and_deaths(seed, tmp_path, begin=delegating).made


@pytest.mark.parametrize(("given", "place"), [({"strategy": "S1"}, "strategy"), ({"covering": True}, "covering")])
def test_what_cannot_be_delegated_is_refused(given: dict[str, object], place: str) -> None:
    traits = OverlayTraits("tree", frozenset(), 3, has_datagrams=True)
    with pytest.raises(InputError, match=place):
        MULTIPATH_DELEGATION.check(MultipathParameters(**given), traits)  # type: ignore[arg-type]


def test_only_a_broker_that_wants_the_publication_itself_is_a_delegate() -> None:
    """R is a relay for X. Behind it N1 is one for Y, and N2 wants the publication."""
    tree = {"A": ("R",), "R": ("A", "X", "N1", "N2"), "X": ("R",), "N1": ("R", "Y"), "Y": ("N1",), "N2": ("R",)}
    wom = WorkingOverlayMap(MasterOverlayMap("A", 4, tree), ["R", "N1", "N2"])
    assert wom.brokers == ("R", "N1", "N2")
    mst = MasterSubscriptionTable()
    for origin, ppath in {"X": ("R", "X"), "Y": ("R", "N1", "Y"), "N2": ("R", "N2")}.items():
        mst.note_origin(origin, (0, 0), ppath)
    delegation = Delegation(wom, WorkingSubscriptionTable(mst, wom, mst.ppaths), mst.bits)
    wanted = mst.bits["X"] | mst.bits["Y"]
    assert delegation.copies(wanted, ()) == [Copy("R", 0)], "neither wants it: nothing would be spared"
    assert delegation.copies(wanted | mst.bits["N2"], ()) == [Copy("R", 2)]


def test_no_copy_goes_past_a_border_though_the_tables_say_so() -> None:
    """The map has B behind A by now. The table still has the way to B over a broker that has left the map."""
    tree = {"N": ("A",), "A": ("N", "B"), "B": ("A",)}
    wom = WorkingOverlayMap(MasterOverlayMap("N", 3, tree), ["A", "B"])
    mst = MasterSubscriptionTable()
    mst.note_origin("B", (0, 0), ("gone", "B"))
    delegation = Delegation(wom, WorkingSubscriptionTable(mst, wom, mst.ppaths), mst.bits)
    assert delegation.copies(mst.bits["B"], []) == [Copy("B", 1)]
    assert delegation.copies(mst.bits["B"], ["A"]) == []


def test_nothing_goes_past_a_border_in_a_move_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """b2 still has the way to b5 over a broker that has left the map, which has b5 behind b4."""
    network = learned(tmp_path)
    router = network.routers["b2"]
    table = router.knowledge.mst
    ways = table.ppaths | {"b5": ("gone", "b5")}
    links = tuple(router.knowledge.network.peers)
    working = View(router.knowledge.network.mom, ways).working(table, links, (), covering=False)
    monkeypatch.setattr(router.moves, "zone", object())
    monkeypatch.setattr(router.moves, "choose", lambda *_: (working, ()))
    assert [hop.peer for hop in onward(network, "b2", "b1")] == ["b3", "b4"]
    assert [hop.peer for hop in onward(network, "b2", "b4")] == ["b3"]
