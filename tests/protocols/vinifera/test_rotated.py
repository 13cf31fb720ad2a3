"""Vinifera over rotated hashes: what a node installs, where an event goes, who relays."""

import random
from pathlib import Path
from typing import Any

import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.event import Event
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import NodeContext, Start
from murmur_pubsub.places import RingPlace
from routing.smallworld.ring import RING_SIZE
from routing.vinifera.hashing import AttributeDomain
from routing.vinifera.rotated import RotatedParameters, RotatedVinifera
from tests.protocols.vinifera.test_overlay import Overlay

DOMAINS = {"x": {"min": 0, "max": 100}, "y": {"min": 0, "max": 100}}


def node(rotations: int, **chosen: Any) -> RotatedVinifera:
    """A node that has just founded an overlay."""
    place = RingPlace(0, base=4, digits=8, founds=True, probe_us=2_000_000, probe_timeout_us=500_000)
    parameters = RotatedParameters(attributes=DOMAINS, rotations=rotations, **chosen)
    router = RotatedVinifera(NodeContext("n", 1, place=place), parameters)
    router.handle(Start([]), 0)
    return router


@pytest.mark.parametrize("rotations", [1, 2, 3, 7])
def test_a_node_has_asked_for_an_event_where_that_goes_if_and_only_if_it_wants_its_value(rotations: int) -> None:
    rng = random.Random(rotations)
    for _ in range(20):
        low, high = sorted(rng.sample(range(101), 2))
        router = node(rotations)
        router.subscribe(parse_filter(f"x BETWEEN {low} AND {high}"))
        regions = router.own_regions()
        for number, x in enumerate([low, high, *rng.choices(range(101), k=20)]):
            ((attribute, place),) = router.targets(Event(1, number, 0, {"x": x}))
            asked = [
                key
                for (key, _), ranges in regions.items()
                if key == attribute and any(begin <= place <= end for begin, end in ranges)
            ]
            assert len(asked) == (low <= x <= high), (low, high, x, number % rotations)


def test_the_number_of_an_event_says_which_of_the_hashes_it_goes_by() -> None:
    router, hashed = node(4), AttributeDomain("x", 0, 100).hash(70)
    places = [router.targets(Event(1, number, 0, {"x": 70})) for number in range(8)]
    assert places[:4] == places[4:]
    assert [place for ((_, place),) in places[:4]] == [
        (hashed + turn * RING_SIZE // 4) % RING_SIZE for turn in range(4)
    ]
    assert len({key for ((key, _),) in places[:4]}) == 4, "an event of one hash is no event of another"
    assert places[0] == node(1).targets(Event(1, 0, 0, {"x": 70})), "the first is Vinifera's own"


def test_what_is_installed_changes_with_what_is_wanted() -> None:
    router = node(2)
    wanted = parse_filter("x < 10")
    router.subscribe(wanted)
    assert len(router.own_regions()) == 2
    assert router.own_regions() is router.own_regions()
    router.unsubscribe(wanted)
    assert router.own_regions() == {}


def test_a_filter_that_asks_for_no_attribute_gets_events_of_all_hashes(tmp_path: Path) -> None:
    overlay = Overlay(tmp_path, "vinifera_rotated", nodes=12, rotations=3)
    overlay.settle(["TRUE" if number % 3 else "x > 50" for number in range(12)])
    overlay.publish_and_check(12)
    overlay.publish_and_check(12, attributes=("undeclared",))
    overlay.network.close()


@pytest.mark.parametrize("rotations", [0, 65])
def test_a_number_of_hashes_that_cannot_be_is_refused(rotations: int) -> None:
    with pytest.raises(InputError, match="rotations"):
        RotatedParameters(rotations=rotations)


def test_of_skewed_events_no_node_relays_as_many_as_with_one_hash(tmp_path: Path) -> None:
    """All events are at one end of the domain, and every third node wants them."""
    most = {}
    for rotations in (1, 4):
        folder = tmp_path / str(rotations)
        folder.mkdir()
        overlay = Overlay(folder, "vinifera_rotated", nodes=60, rotations=rotations)
        overlay.settle([f"x < {5 + number % 5}" if number % 3 == 0 else f"y > {number}" for number in range(60)])
        for _ in range(200):
            overlay.network.publish(overlay.rng.choice(overlay.network.names), {"x": overlay.rng.uniform(0, 5)})
            overlay.network.cycles(0.01)
        totals = overlay.network.totals()
        assert totals.delivered == totals.interested > 0
        assert totals.duplicate == 0
        most[rotations] = max(totals.relayed.values()) / 200
        overlay.network.close()
    assert most[4] < 0.5 * most[1], most
