"""A node hears its neighbours in each round by heartbeats, which say nothing of what they have subscribed to."""

import random
from pathlib import Path
from typing import Any, get_args

import pytest

from murmur_pubsub.event import Event
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import Received
from routing.smallworld.messages import Exchange, GossipPeer, Shuffle
from routing.smallworld.peer_sampling import PeerSampling
from routing.smallworld.profile import attribute_key
from routing.smallworld.rendezvous import BACK, UP
from routing.smallworld.ring import RING_SIZE
from routing.vinifera.parameters import Spread
from tests.protocols.structured import StructuredNetwork
from tests.protocols.vinifera.one_node import ROUND, TENTH, acquainted, answer, beat, fields
from tests.protocols.vinifera.test_installed_and_selected import AROUND, NO_NEWS, overlay_of, profile

NODES, ROUNDS = 12, 8


def told(name: str, at: int, profile: bytes, revision: int, age: int = 0, incarnation: int = 0) -> tuple[Any, ...]:
    return name, incarnation, at, profile, revision, age


WAYS = {
    "by itself": ("a", Exchange(told("a", TENTH, b"new", 1), [], True)),
    "by the table of another": ("b", Exchange(fields("b", 9 * TENTH), [told("a", TENTH, b"new", 1, age=3)], True)),
    "by a shuffle": ("b", Shuffle([told("a", TENTH, b"new", 1, age=3)], False)),
    "by the answer to one": ("b", Shuffle([told("a", TENTH, b"new", 1, age=3)], True)),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_later_profile_of_a_neighbour_that_has_just_been_heard_is_taken(way: str) -> None:
    router = acquainted(a=TENTH, b=9 * TENTH)
    router.handle(ROUND, 2)
    router.handle(Received("a", beat(TENTH, 2)), 3)
    router.handle(Received(*WAYS[way]), 4)
    assert router.overlay.neighbours.peer("a") == GossipPeer("a", 0, TENTH, b"new", 1)


@pytest.mark.parametrize(("revision", "incarnation"), [(0, 0), (9, 1)])
def test_an_earlier_profile_is_not_taken_from_one_that_has_heard_the_neighbour_later(
    revision: int, incarnation: int
) -> None:
    """Nor one of another incarnation."""
    router = acquainted(a=TENTH, b=9 * TENTH)
    router.handle(Received("a", Exchange(told("a", TENTH, b"new", 1), [], True)), 2)
    for number in range(3):
        router.handle(ROUND, 10 * number + 3)
        router.handle(Received("b", answer(9 * TENTH, number + 2)), 10 * number + 4)
    stale = told("a", TENTH, b"old", revision, age=0 if incarnation == 0 else 9, incarnation=incarnation)
    router.handle(Received("b", Exchange(fields("b", 9 * TENTH), [stale], True)), 40)
    assert router.overlay.neighbours.peer("a").profile == b"new"


def test_a_view_keeps_the_later_of_two_profiles_whoever_was_heard_last() -> None:
    sampling = PeerSampling("n", 4, 2, random.Random(1))
    sampling.add(GossipPeer("a", 0, TENTH, b"new", 2), 3)
    sampling.answer([told("a", TENTH, b"old", 1, age=0)], 9)
    assert sampling.view["a"] == (GossipPeer("a", 0, TENTH, b"new", 2), 9)
    sampling.answer([told("a", TENTH, b"newest", 3, age=5)], 9)
    assert sampling.view["a"] == (GossipPeer("a", 0, TENTH, b"newest", 3), 9)
    sampling.add(GossipPeer("a", 0, TENTH, b"old", 1), 10)
    assert sampling.view["a"] == (GossipPeer("a", 0, TENTH, b"newest", 3), 10)


def test_a_friend_that_wants_something_else_by_now_is_one_no_more() -> None:
    friends = {"best": (RING_SIZE // 2, "x BETWEEN 0 AND 10"), "other": (RING_SIZE // 3, "x BETWEEN 0 AND 100")}
    router = overlay_of(1, {**AROUND, **friends})
    router.subscribe(parse_filter("x BETWEEN 0 AND 10"))
    router.handle(Received("after", NO_NEWS), 1)
    assert set(router.overlay.neighbours) == {*AROUND, "best"}
    router.handle(Received("after", Shuffle([told("best", RING_SIZE // 2, profile("y = 7"), 1, age=3)], True)), 2)
    router.handle(Received("after", NO_NEWS), 3)
    assert set(router.overlay.neighbours) == {*AROUND, "other"}


def test_a_profile_of_another_incarnation_is_not_compared() -> None:
    peer = GossipPeer("a", 1, TENTH, b"restarted", 1)
    for incarnation in (0, 2):
        assert peer.with_later_profile(GossipPeer("a", incarnation, TENTH, b"other", 9)) == peer


def test_a_node_says_with_each_profile_how_often_it_has_changed() -> None:
    router = acquainted(a=TENTH, b=9 * TENTH)
    router.overlay.set_profile(b"first")
    assert router.overlay.me[3:] == (b"first", 1)
    router.overlay.set_profile(b"second")
    assert router.overlay.me[3:] == (b"second", 2)


def changing_profiles(seed: int, _: Path) -> None:
    """Nodes want something else, one after the other. Some rounds later all whose neighbours they are know it."""
    rng = random.Random(f"{seed}/changing profiles")
    network = StructuredNetwork("vinifera", 3, seed=seed, base=256)
    network.build(rng.sample(range(RING_SIZE >> 8), NODES))
    network.rounds(4)
    for changed in rng.choices(network.up, k=8):
        network.subscribe(changed, f"x BETWEEN {rng.random() / 2} AND {rng.random() + 1}")
        network.rounds(ROUNDS)
        for name in network.up:
            for peer in network.router(name).overlay.neighbours.peers():
                said = network.router(peer.name).overlay.me.profile
                assert peer.profile == said, f"seed {seed}: {name} knows an old profile of {peer.name}"
    network.close()


@pytest.mark.parametrize("seed", range(3))
def test_rounds_after_a_profile_has_changed_all_neighbours_know_it(tmp_path: Path, seed: int) -> None:
    changing_profiles(seed, tmp_path)


@pytest.mark.parametrize("spread", get_args(Spread))
def test_an_event_that_overtakes_what_the_former_owner_of_a_range_tells_goes_back_to_it(spread: Spread) -> None:
    """This node moves into the range of its successor. That knows so and sends an event on, before its word of what is
    wanted there has come."""
    router = acquainted({"spread": spread}, a=5 * TENTH, b=9 * TENTH)
    router.overlay.move(3 * TENTH, 0)
    header = (attribute_key("x"), 2 * TENTH, UP)
    hops = router.next_hops(Event(1, 1, 0, {"x": 0}), "a", header)
    assert [(hop.peer, hop.header) for hop in hops] == [("a", (*header[:2], BACK))]
