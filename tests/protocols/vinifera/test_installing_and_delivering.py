"""What one node of Vinifera installs, what it makes of peers that move, and where it sends events."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from murmur_pubsub.event import Event
from murmur_pubsub.filter import EVERYTHING
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import Effect, NodeContext, Received, Send, Start, TimerFired
from murmur_pubsub.places import RingPlace
from routing.smallworld.messages import Beat, BeatAnswer, GossipPeer, Install
from routing.smallworld.profile import attribute_key
from routing.smallworld.rendezvous import DOWN, UP
from routing.smallworld.ring import RING_SIZE
from routing.vinifera.hashing import AttributeDomain
from routing.vinifera.interests import OwnInterests
from routing.vinifera.parameters import ViniferaParameters
from routing.vinifera.router import Vinifera

PLACE = RingPlace(5, base=4, digits=8, founds=True)


# -------------------------------------------------------------------------------------------------- installation
FLUSH = TimerFired(("routing", "flush"))
AT_P = [1, 3 * (RING_SIZE // 4) - 10, 3 * (RING_SIZE // 4), 0]


def router_between(**chosen: Any) -> Vinifera:
    """A node whose contact a is at P; y wants what is just below P, and that is installed at a."""
    router = Vinifera(NodeContext("n", 1, place=PLACE), ViniferaParameters(**chosen))
    router.handle(Start([]), 0)
    for name, identifier in (("a", AT_P[2]), ("b", RING_SIZE // 2), ("y", RING_SIZE // 8)):
        router.handle(Received(name, Beat(identifier, 0, 0, [], 0, 0, 0, 0)), 1)
    router.handle(Received("y", Install(0, 1, 0, AT_P, [EVERYTHING])), 2)
    assert installed(router.handle(FLUSH, 3)) == {"a": AT_P}
    return router


def installed(effects: Sequence[Effect]) -> dict[str, Sequence[int]]:
    sent = [(each.to, each.message) for each in effects if isinstance(each, Send)]
    return {to: message.regions for to, message in sent if isinstance(message, Install)}


def test_who_wants_nothing_new_brings_nothing_about() -> None:
    router = router_between()
    assert not router.handle(Received("b", Install(0, 1, 0, AT_P, [EVERYTHING])), 4)


BELOW_P = [1, AT_P[1] - 5, AT_P[1] - 1, 0]


def test_what_a_neighbour_comes_to_want_is_passed_on_as_such() -> None:
    router = router_between()
    router.handle(Received("y", Install(0, 2, 1, BELOW_P, [EVERYTHING])), 4)
    assert installed(router.handle(FLUSH, 5)) == {"a": BELOW_P}
    assert router.table.destinations(1, AT_P[1] - 3, {}) == router.table.destinations(1, AT_P[1] + 3, {}) == ["y"]


ROUND = TimerFired(("routing", "round"))


def beats(effects: Sequence[Effect]) -> set[str]:
    return {each.to for each in effects if isinstance(each, Send) and isinstance(each.message, Beat)}


@pytest.mark.parametrize(("resets", "beaten"), [(True, {"b", "y"}), (False, {"a", "b", "y"})])
def test_one_heartbeat_and_its_answer_tell_both_sides_all(resets: bool, beaten: set[str]) -> None:
    """A node sends no heartbeat to a neighbour that it has answered since its last round; it asks a silent one."""
    router = Vinifera(NodeContext("n", 1, place=PLACE), ViniferaParameters(resets=resets))
    router.handle(Start([]), 0)
    identifiers = {"a": RING_SIZE // 4, "b": RING_SIZE // 2, "y": RING_SIZE // 8}
    router.know([GossipPeer(name, 0, identifier, b"") for name, identifier in identifiers.items()])
    for name, identifier in identifiers.items():
        router.handle(Received(name, BeatAnswer(identifier, 0, 0, [], 0, 0, 0, 0, True)), 1)
    for name in "ab":
        router.handle(Received(name, Beat(identifiers[name], 0, 0, [], 0, 0, 0, 0)), 2)
    assert beats(router.handle(ROUND, 3)) == ({"y"} if resets else set(identifiers))
    (answer,) = router.handle(Received("a", Beat(identifiers["a"], 0, 0, [], 0, 0, 0, 0)), 4)
    assert isinstance(answer, Send)
    assert isinstance(answer.message, BeatAnswer)
    assert answer.message.links
    assert beats(router.handle(ROUND, 5)) == beaten


def test_the_answer_to_a_heartbeat_says_what_is_installed_on_either_side() -> None:
    router = router_between()
    (answer,) = [
        each.message
        for each in router.handle(Received("y", Beat(RING_SIZE // 8, 0, 0, [], 0, 0, 1, 0)), 4)
        if isinstance(each, Send) and isinstance(each.message, BeatAnswer)
    ]
    assert (answer.version, answer.held) == (0, 1), "nothing of this node's is at y, y's first version is here"
    effects = router.handle(Received("a", Beat(AT_P[2], 0, 0, [], 0, 0, 0, 0)), 5)
    assert installed(effects) == {"a": AT_P}, "a says that it has nothing of this node's"


def test_an_addition_to_what_is_not_here_is_left_and_the_whole_is_sent_for_the_next_heartbeat() -> None:
    router = router_between()
    router.handle(Received("y", Install(0, 3, 2, BELOW_P, [EVERYTHING])), 4)
    assert not installed(router.handle(FLUSH, 5))
    assert router.table.version("y") == 1, "so y hears that its version 3 has not come"
    router.handle(Received("y", Install(0, 2, 1, BELOW_P, [EVERYTHING])), 6)
    router.handle(FLUSH, 7)
    effects = router.handle(Received("a", BeatAnswer(AT_P[2], 0, 0, [], 0, 0, 0, 1, True)), 8)
    assert installed(effects) == {"a": [1, AT_P[1] - 5, AT_P[2], 0]}


def test_a_next_hop_is_sent_the_whole_once_more_filters_meet_than_the_parameter_has_and_then_nothing_new() -> None:
    """What it has of them, one filter after the other, is not all that is asked for then."""
    router = router_between(filters_max=2)
    found = []
    for version, least in enumerate((1, 2, 3), 2):
        wanted = parse_filter(f"z > {least}")
        router.handle(Received("y", Install(0, version, version - 1, BELOW_P, [wanted])), version)
        sent = [each.message for each in router.handle(FLUSH, version) if isinstance(each, Send)]
        found.append([(word.since > 0, list(word.filters)) for word in sent if isinstance(word, Install)])
    assert found == [[(True, [parse_filter("z > 1")])], [(False, [EVERYTHING])], []]
    assert (1, parse_filter("z > 3")) in router.table.regions("y"), "the node itself knows"


# --------------------------------------------------------------------------------------------- other identifiers
def test_a_heartbeat_that_was_overtaken_does_not_take_its_sender_back_to_where_it_was() -> None:
    """Datagrams may overtake each other, and a node that moves says so just after it has sent its heartbeats."""
    router = router_between()
    moved = AT_P[1] - 5
    router.handle(Received("a", Beat(moved, 0, 8, [], 0, 0, 0, 0)), 4)
    for late in (Beat(AT_P[2], 0, 7, [], 0, 0, 0, 0), BeatAnswer(AT_P[2], 0, 6, [], 0, 0, 0, 0, True)):
        router.handle(Received("a", late), 5)
        assert router.overlay.ring.next_hop(moved) == "a"
        assert router.overlay.ring.next_hop(AT_P[2]) != "a"
    router.handle(Received("a", Beat(AT_P[2], 1, 1, [], 0, 0, 0, 0)), 6)
    assert router.overlay.ring.next_hop(AT_P[2]) == "a", "a later incarnation begins anew"


DEADLINE = TimerFired(("routing", "deadline"))


def test_a_node_that_moves_stands_for_its_new_range_when_its_neighbours_have_had_time_to_ask_for_it() -> None:
    router = router_between()
    own = router.overlay.me.identifier
    taken = (own + RING_SIZE // 16, own + RING_SIZE // 32)
    assert {router.overlay.ring.next_hop(value) for value in taken} == {"y"}
    effects = router.overlay.move(taken[0], 0)
    said = [each.message for each in effects if isinstance(each, Send)]
    assert {each.identifier for each in said if isinstance(each, Beat)} == {taken[0]}
    router.handle(Received("b", Beat(RING_SIZE // 2 + 1, 0, 1, [], 0, 0, 0, 0)), 4)  # so that the ring is made anew
    assert {router.overlay.ring.next_hop(value) for value in taken} == {"y"}
    router.handle(DEADLINE, 5)
    assert {router.overlay.ring.next_hop(value) for value in taken} == {None}


def test_an_event_sent_on_by_the_node_that_is_to_take_over_its_range_goes_down_from_here() -> None:
    """a has told of its move, and its old successor knows; what a does not stand for yet comes back, and goes down."""
    router = Vinifera(NodeContext("n", 1, place=PLACE), ViniferaParameters(spread="none"))
    router.handle(Start([]), 0)
    router.handle(Received("a", Beat(1, 0, 1, [], 0, 0, 0, 0)), 1)
    router.handle(Received("w", Install(0, 1, 0, [attribute_key("x"), 0, RING_SIZE - 1, 0], [EVERYTHING])), 2)
    first, second = (Event(1, sequence, 0, {"x": 0}) for sequence in (1, 2))
    header = (attribute_key("x"), 1, UP)
    assert [hop.peer for hop in router.next_hops(first, None, header)] == ["a"]
    assert [hop.peer for hop in router.next_hops(second, "a", header)] == ["w"]


# ------------------------------------------------------------------------------------------------ delivery
def friends_of(*wanted: str) -> Vinifera:
    """A node that knows a node for each subscription, called f0, f1…, and tells those that want an event."""
    router = Vinifera(NodeContext("n", 1, place=PLACE), ViniferaParameters(spread="friends"))
    router.handle(Start([]), 0)
    profiles = [OwnInterests({}, random.Random(1)).change([parse_filter(text)]) for text in wanted]
    router.know([GossipPeer(f"f{at}", 0, (at + 1) * (RING_SIZE // 10), profile) for at, profile in enumerate(profiles)])
    return router


def test_friends_are_told_at_once_only_where_that_is_asked_for() -> None:
    router = Vinifera(NodeContext("n", 1, place=PLACE), ViniferaParameters())
    router.handle(Start([]), 0)
    profile = OwnInterests({}, random.Random(1)).change([parse_filter("x < 5")])
    router.know([GossipPeer("f0", 0, RING_SIZE // 10, profile), GossipPeer("f1", 0, RING_SIZE // 2, profile)])
    assert not router.next_hops(Event(1, 1, 0, {"x": 4}), None, ()), "nobody has asked for it here"


def test_vinifera_s5b_an_event_is_propagated_at_once_among_nodes_that_are_known_to_want_it() -> None:
    router = friends_of("x < 5", "x > 7", "x < 9 AND y = 1", "x < 3", "TRUE")
    hops = router.next_hops(Event(1, 1, 0, {"x": 4}), None, ())
    assert {hop.peer for hop in hops if hop.header[2] == DOWN} == {"f0", "f4"}
    assert not router.next_hops(Event(1, 1, 0, {"x": 4}), "f4", (*hops[0].header[:2], DOWN)), "it has been spread"


def test_who_sent_an_event_has_told_its_other_neighbours() -> None:
    router = friends_of("x < 5", "x < 6", "x < 7", "x < 8")
    heard = router.handle(Received("f0", Beat(RING_SIZE // 10, 0, 0, [2 * (RING_SIZE // 10)], 0, 0, 0, 0)), 1)
    assert heard
    header = (attribute_key("x"), AttributeDomain("x").hash(4), DOWN)
    assert {hop.peer for hop in router.next_hops(Event(1, 1, 0, {"x": 4}), "f0", header)} == {"f2", "f3"}


def test_an_event_that_comes_up_again_goes_round_no_more() -> None:
    router = friends_of("x < 5", "x > 7")
    router.handle(Received("f0", BeatAnswer(RING_SIZE // 10, 0, 0, [], 0, 0, 0, 0, True)), 1)
    event = Event(1, 1, 0, {"y": -20})
    (hop,) = router.next_hops(event, None, ())
    assert hop.header[2] == UP
    assert not router.next_hops(event, "f0", hop.header)
