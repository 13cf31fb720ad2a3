"""Vinifera with an even load: who is a friend, over which links a node routes, where events go, who relays."""

import random
from pathlib import Path

import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.event import Event
from murmur_pubsub.filter_parser import parse_filter
from routing.smallworld.contacts import Alike, Contacts
from routing.smallworld.friends_at_distances import FriendsAtDistances
from routing.smallworld.messages import Beat, GossipPeer
from routing.smallworld.ring import RING_SIZE
from routing.vinifera.even import VINIFERA_EVEN, EvenParameters
from routing.vinifera.hashing import AttributeDomain
from routing.vinifera.interests import OwnInterests, WholeInterests
from routing.vinifera.router import Vinifera
from tests.protocols.vinifera.one_node import made
from tests.protocols.vinifera.test_overlay import Overlay

PERCENT = {name: AttributeDomain(name, 0, 100) for name in ("x", "y", "z")}
DOMAINS = {"x": {"min": 0, "max": 100}, "y": {"min": 0, "max": 100}}


def rotated(rotations: int) -> Vinifera:
    """A node that has just founded an overlay."""
    return made(VINIFERA_EVEN, {"attributes": DOMAINS, "rotations": rotations})


@pytest.mark.parametrize("rotations", [1, 2, 3, 7])
def test_a_node_has_asked_for_an_event_where_that_goes_if_and_only_if_it_wants_its_value(rotations: int) -> None:
    rng = random.Random(rotations)
    for _ in range(20):
        low, high = sorted(rng.sample(range(101), 2))
        router = rotated(rotations)
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
    router, hashed = rotated(4), AttributeDomain("x", 0, 100).hash(70)
    places = [router.targets(Event(1, number, 0, {"x": 70})) for number in range(8)]
    assert places[:4] == places[4:]
    assert [place for ((_, place),) in places[:4]] == [
        (hashed + turn * RING_SIZE // 4) % RING_SIZE for turn in range(4)
    ]
    assert len({key for ((key, _),) in places[:4]}) == 4, "an event of one hash is no event of another"
    assert places[0] == rotated(1).targets(Event(1, 0, 0, {"x": 70})), "the first is Vinifera's own"


def test_what_is_installed_changes_with_what_is_wanted() -> None:
    router = rotated(2)
    wanted = parse_filter("x < 10")
    router.subscribe(wanted)
    assert len(router.own_regions()) == 2
    assert router.own_regions() is router.own_regions()
    router.unsubscribe(wanted)
    assert router.own_regions() == {}


def test_a_filter_that_asks_for_no_attribute_gets_events_of_all_hashes(tmp_path: Path) -> None:
    overlay = Overlay(tmp_path, "vinifera_even", nodes=12, rotations=3)
    overlay.settle(["TRUE" if number % 3 else "x > 50" for number in range(12)])
    overlay.publish_and_check(12)
    overlay.publish_and_check(12, attributes=("undeclared",))
    overlay.network.close()


@pytest.mark.parametrize("rotations", [0, 65])
def test_a_number_of_hashes_that_cannot_be_is_refused(rotations: int) -> None:
    with pytest.raises(InputError, match="rotations"):
        EvenParameters(rotations=rotations)


def test_of_skewed_events_no_node_relays_as_many_as_with_one_hash(tmp_path: Path) -> None:
    """All events are at one end of the domain, and every third node wants them."""
    most = {}
    for rotations in (1, 4):
        folder = tmp_path / str(rotations)
        folder.mkdir()
        overlay = Overlay(folder, "vinifera_even", nodes=60, rotations=rotations)
        overlay.settle([f"x < {5 + number % 5}" if number % 3 == 0 else f"y > {number}" for number in range(60)])
        for _ in range(200):
            overlay.network.publish(overlay.rng.choice(overlay.network.names), {"x": overlay.rng.uniform(0, 5)})
            overlay.network.cycles(0.01)
        totals = overlay.network.totals()
        assert totals.delivered == totals.interested > 0
        assert totals.duplicate == 0
        most[rotations] = max(totals.relayed.values()) / 200
        overlay.network.close()
    assert most[4] < 0.6 * most[1], most


def test_a_friend_at_a_distance_is_the_most_alike_of_those_that_are_about_there() -> None:
    likeness = {b"": 0.0, b"some": 0.3, b"most": 0.9}
    selection = FriendsAtDistances(1, 0, random.Random(5), likeness.__getitem__)
    ring = {name: GossipPeer(name, 0, at % RING_SIZE, b"") for name, at in (("after", 100), ("before", -100))}
    selection.select(0, {**ring, "far": GossipPeer("far", 0, RING_SIZE // 2, b"")}, {})
    (link,) = selection._links
    half = link.distance // 2

    def peer(name: str, off: int, profile: bytes = b"") -> GossipPeer:
        return GossipPeer(name, 0, (off - link.distance) % RING_SIZE, profile)

    def chosen(*peers: GossipPeer) -> str:
        *_, name = selection.select(0, ring | {each.name: each for each in peers}, {})
        return name

    assert chosen(peer("near", 1), peer("alike", half - 1, b"some"), peer("too far", half + 1, b"most")) == "alike"
    assert [selection.prefers(0, peer("x", off, b"most")) for off in (half - 1, half + 1)] == [True, False]
    assert [selection.prefers(0, peer("x", 2, profile)) for profile in (b"", b"some")] == [False, False]
    assert chosen(peer("farther", half + 2, b"most"), peer("far", half + 1)) == "far", "none is about there"
    assert selection.prefers(0, peer("x", half - 1))
    assert [selection.prefers(0, peer("x", off)) for off in (half + 1, half + 2)] == [False, False]
    assert chosen(peer("first", 5, b"some"), peer("second", 4, b"some")) == "second"
    both = {each.name: each for each in (peer("first", 5, b"some"), peer("second", 4, b"some"))}
    assert selection.select(0, ring | both, {"first": None})[-1] == "first", "a neighbour stays for an equal one"


def test_a_node_routes_over_the_links_of_those_that_are_half_as_alike_as_its_neighbours() -> None:
    contacts = Contacts(["neighbour"], 9, Alike(lambda profile: profile[0] / 100, lambda: 0.8))
    places = {"neighbour": 0, "last": 10, "unlike": 20, "half": 30, "more": 40, "unknown": 50, "first": 60}
    for name, place in places.items():
        contacts.hear(name, Beat(place, 0, 1, [], 0, 0, 0, 0), 1)
        contacts.links_here(name)
    contacts.answered("neighbour")
    assert contacts.unprofiled() == ["last", "unlike", "half", "more", "unknown", "first"]
    for name, likeness in (("last", 0), ("unlike", 39), ("half", 40), ("more", 90), ("first", 0)):
        contacts.profiled(name, bytes([likeness]))
    contacts.profiled("stranger", b"x")
    assert contacts.unprofiled() == ["unknown"]

    def routed() -> list[str | None]:
        return [contacts.ring(65).next_hop(place) for place in places.values()]

    # "first" is the closest on the ring, whatever it wants.
    assert routed() == ["neighbour", "half", "half", "half", "more", "first", "first"]
    contacts.profiled("half", bytes([39]))
    contacts.profiled("unknown", bytes([41]))
    assert routed() == ["neighbour", "more", "more", "more", "more", "unknown", "first"]
    for nobody_to_ask in (Contacts(["neighbour"], 9), Contacts(["neighbour"], 0, Alike(len, lambda: 0.8))):
        nobody_to_ask.hear("first", Beat(60, 0, 1, [], 0, 0, 0, 0), 1)
        nobody_to_ask.links_here("first")
        assert nobody_to_ask.unprofiled() == []


def test_friends_are_alike_on_all_attributes_where_the_whole_of_interests_counts() -> None:
    def profile(text: str) -> bytes:
        return OwnInterests(PERCENT, random.Random(1)).change([parse_filter(text)])

    interests = WholeInterests(PERCENT, random.Random(1))
    assert interests.utility(profile("x < 50")) == 0
    interests.change([parse_filter("x < 50 AND y < 50")])
    assert interests.utility(profile("x < 50 AND y < 50")) == 1
    assert interests.utility(profile("x < 50 AND y < 25")) == pytest.approx(0.5)
    assert interests.utility(profile("x < 25 AND y < 25")) == pytest.approx(0.25)
    assert interests.utility(profile("x < 50 AND y > 51")) == 0
    assert interests.utility(profile("x < 50")) == pytest.approx(0.5), "one of two attributes"
    assert interests.utility(profile("z < 50")) == 0
    interests.change([parse_filter("x < 5 AND x > 6")])
    assert interests.utility(profile("x < 5 AND x > 6")) == 0, "neither wants anything"
