"""What one node of the two baselines does with each message, held in the hand; and what it says of its own state."""

from typing import Any

import pytest

from murmur_pubsub.event import Event
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import LinkDown, NodeContext, Received, Start
from murmur_pubsub.places import RingPlace
from routing.filter_digest import digest
from routing.pastry.changes import PeerFailed
from routing.pastry.messages import Hello, PastryPeer, Pong
from routing.pastry.neighbour_filters import Forgotten
from routing.pastry.reverse_paths import ReversePathParameters
from routing.router import Hop
from routing.rpf.covering import PathParameters
from routing.rpf.router import PathFilter, PathReleased, PathWithdrawn, ReversePathForwarding
from routing.scribe.router import Detached, Scribe, TreeCancellation, TreeSubscription
from tests.protocols.one_node import sent
from tests.protocols.pastry.one_node import ROUND, end_round

X, Y, TRUE = (parse_filter(text) for text in ("x > 1", "y > 1", "TRUE"))
UP, DOWN, CLIMBING = range(3)
TOP, BELOW = PastryPeer("top", 128), PastryPeer("below", 1)


def scribe_at(identifier: int, *known: PastryPeer, routed: bool = False) -> Scribe:
    """A node of the tree, whose rendezvous is 128."""
    parameters = ReversePathParameters(reverse_paths="routed" if routed else "direct")
    router = Scribe(NodeContext("n", 1, place=RingPlace(identifier, digits=4, leaf_set=4)), parameters)
    router.handle(Start([]), 0)
    router.know(known)
    return router


def rpf_at(identifier: int, *known: PastryPeer) -> ReversePathForwarding:
    place = RingPlace(identifier, digits=4, leaf_set=4)
    router = ReversePathForwarding(NodeContext("n", 1, place=place), PathParameters())
    router.handle(Start([]), 0)
    router.know(known)
    return router


# -------------------------------------------------------------------------------------------------- Scribe
def test_an_answer_before_the_first_round_is_for_an_earlier_life_and_says_nothing_of_this_one() -> None:
    router = scribe_at(2, TOP)
    assert router.parent == TOP
    assert not router.handle(Received("top", Pong(TOP, 0, digest([X]), [])), 0)
    router.handle(ROUND, 10)
    anew = sent(router.handle(Received("top", Pong(TOP, 0, digest([X]), [])), 11))
    assert anew == [("top", Detached(0))], "the parent holds what was never asked for"
    assert not router.handle(Received("top", Pong(TOP, 0, digest([]), [])), 12)


def test_a_parent_that_holds_something_else_is_told_all_again_once_in_a_round() -> None:
    router = scribe_at(2, TOP)
    router.subscribe(X)
    router.handle(ROUND, 10)
    assert not router.handle(Received("top", Pong(TOP, 0, digest([X]), [])), 11)
    assert not router.handle(Received("low", Pong(BELOW, 0, digest([]), [])), 11), "it is not the parent"
    lacks = Received("top", Pong(TOP, 0, digest([]), []))
    me = router.pastry.me
    assert sent(router.handle(lacks, 12)) == [("top", Detached(0)), ("top", TreeSubscription(me, [X]))]
    assert not router.handle(lacks, 13), "it has been told since it was asked"


def test_a_child_that_is_back_wants_nothing_of_what_it_wanted_before() -> None:
    router, again = scribe_at(2, TOP), PastryPeer("below", 1, 1)
    me = router.pastry.me
    assert sent(router.handle(Received("below", TreeSubscription(BELOW, [X])), 1)) == [
        ("top", TreeSubscription(me, [X]))
    ]
    effects = router.handle(Received("below", TreeSubscription(again, [Y])), 2)
    assert sent(effects) == [("top", TreeCancellation(X)), ("top", TreeSubscription(me, [Y]))]
    assert router.children.of("below") == [Y]
    assert router.children.peers["below"] == again
    assert not router.next_hops(Event(1, 1, 0, {"x": 2}), None, (DOWN,))
    effects = router.handle(Received("below", TreeSubscription(again, [X])), 3)
    assert sent(effects) == [("top", TreeSubscription(me, [X]))]
    assert router.children.of("below") == [Y, X], "the same one wants more"


@pytest.mark.parametrize(("incarnation", "left"), [(0, [X]), (1, []), (2, [])])
def test_a_child_is_let_go_by_its_own_life_or_a_later_one(incarnation: int, left: list[Any]) -> None:
    router = scribe_at(2, TOP)
    router.handle(Received("below", TreeSubscription(PastryPeer("below", 1, 1), [X])), 1)
    effects = router.handle(Received("below", Detached(incarnation)), 2)
    assert sent(effects) == ([] if left else [("top", TreeCancellation(X))])
    assert router.children.of("below") == left
    assert not router.handle(Received("stranger", Detached(5)), 3)


def test_what_several_want_is_told_to_the_parent_with_the_first_and_taken_back_with_the_last() -> None:
    router = scribe_at(2, TOP)
    me = router.pastry.me
    assert sent(router.subscribe(X)) == [("top", TreeSubscription(me, [X]))]
    assert sent(router.handle(Received("below", TreeSubscription(BELOW, [X, Y])), 1)) == [
        ("top", TreeSubscription(me, [Y]))
    ]
    assert not router.unsubscribe(X)
    assert sent(router.handle(Received("below", TreeCancellation(X)), 2)) == [("top", TreeCancellation(X))]
    assert not router.handle(Received("below", TreeCancellation(X)), 3), "it is known"
    router.check_invariants()


def test_an_event_comes_down_once_and_is_forgotten_after_two_rounds() -> None:
    """What a router remembers of events would grow for ever."""
    router, event = scribe_at(2, TOP), Event(1, 1, 0, {"x": 2})
    router.handle(Received("below", TreeSubscription(BELOW, [X])), 1)
    assert router.next_hops(event, "top", (DOWN,)) == [Hop("below", (DOWN,))]
    assert not router.is_relay(event, (DOWN,))
    for number in (1, 2):
        assert not router.next_hops(event, "top", (DOWN,))
        assert router.is_relay(event, (DOWN,))
        sent(end_round(router, 10 * number, TOP, BELOW))
    assert router.next_hops(event, "top", (DOWN,))
    assert not router.is_relay(event, (DOWN,))


@pytest.mark.parametrize("own", [0, 2])
def test_a_routed_event_is_delivered_by_the_node_that_asked_for_it_whatever_its_identifier_is(own: int) -> None:
    """Its header: that it is on its way down, and to which identifier."""
    router, event = scribe_at(own, TOP, BELOW, routed=True), Event(1, 1, 0, {"x": 2})
    router.handle(Received("below", TreeSubscription(BELOW, [X])), 1)
    assert router.is_relay(event, (DOWN, 130)), "to another"
    assert not router.is_relay(event, (DOWN, own))
    assert router.next_hops(event, "top", (DOWN, 130)) == [Hop("top", (DOWN, 130))]
    assert router.next_hops(event, "top", (DOWN, own)) == [Hop("below", (DOWN, 1))]
    for header in ((), (UP,)):
        assert router.is_relay(event, header)
        assert router.next_hops(event, None, header) == [Hop("top", (UP,))]


def test_gossip_that_has_gone_down_climbs_no_more() -> None:
    router = scribe_at(2, TOP)
    router.handle(Received("below", TreeSubscription(BELOW, [X])), 1)
    up, down = Hop("top", (CLIMBING,)), Hop("below", (DOWN,))
    assert router.towards(X, None, ()) == router.towards(X, "other", (CLIMBING,)) == [down, up]
    assert router.towards(X, "top", (DOWN,)) == [down]
    assert router.towards(X, "below", (CLIMBING,)) == [up]


def test_a_node_whose_parent_has_failed_has_another_and_one_of_whose_children_forgets_it() -> None:
    router = scribe_at(2, TOP, PastryPeer("next", 129))
    router.subscribe(X)
    router.handle(Received("below", TreeSubscription(BELOW, [Y])), 1)
    assert ("top", TreeCancellation(Y)) in sent(router.handle(LinkDown("below", "reset"), 2))
    assert not len(router.children)
    effects = sent(router.handle(LinkDown("top", "reset"), 3))
    assert ("next", TreeSubscription(router.pastry.me, [X])) in effects
    assert router.parent == PastryPeer("next", 129)
    router.handle(LinkDown("next", "reset"), 4)
    assert router.parent is None, "it is the rendezvous"


def test_a_node_whose_parent_is_no_leaf_has_another_when_it_fails() -> None:
    leaves = [PastryPeer(f"l{identifier}", identifier) for identifier in (0, 1, 3, 4)]
    router = scribe_at(2, *leaves, TOP)
    router.subscribe(X)
    assert "top" not in router.pastry.leaves
    effects = sent(router.handle(LinkDown("top", "reset"), 1))
    assert router.parent == PastryPeer("l4", 4)
    assert ("l4", TreeSubscription(router.pastry.me, [X])) in effects
    router.handle(LinkDown("l0", "reset"), 2)
    assert router.parent == PastryPeer("l4", 4)
    router.handle(Received("below", TreeSubscription(BELOW, [X])), 3)
    assert router.patterns_of(Event(1, 1, 0, {"x": 2})) == [X]


@pytest.mark.parametrize("resets", [True, False])
@pytest.mark.parametrize("make", [Scribe, ReversePathForwarding])
def test_a_node_is_told_of_closed_connections_if_it_is_to_heed_them(make: Any, resets: bool) -> None:
    router = make(NodeContext("n", 1, place=RingPlace(2)), PathParameters(resets=resets))
    assert router.hears_resets is resets


def test_the_state_of_a_node_of_the_tree_says_what_hangs_on_it() -> None:
    def states(router: Scribe) -> set[str]:
        return {state for part, _, state in router.fingerprint() if part == "Scribe"}

    router = scribe_at(2)
    assert states(router) == {"no parent"}
    assert len(router.fingerprint()) == 2, "and that of Pastry"
    router.know([TOP])
    assert states(router) == {"nothing"}
    router.subscribe(X)
    assert states(router) == {"wants"}
    router.handle(Received("below", TreeSubscription(BELOW, [X])), 1)
    assert states(router) == {"children + wants"}


def test_a_node_of_the_tree_probes_its_parent_and_its_children_and_nobody_else() -> None:
    router = scribe_at(2, TOP, PastryPeer("next", 129))
    router.handle(Received("below", TreeSubscription(BELOW, [X])), 1)
    assert set(router.pastry._watched) == {"top", "below"}
    router.handle(Received("below", Detached(0)), 2)
    assert set(router.pastry._watched) == {"top"}
    router.pastry.peers.remove(TOP)
    router.know([PastryPeer("nearer", 127)])
    assert router.parent == PastryPeer("nearer", 127)
    assert set(router.pastry._watched) == {"nearer"}


def test_a_parent_that_has_forgotten_this_life_of_a_node_is_told_all_again() -> None:
    router = scribe_at(2, TOP)
    assert not router.handle(Received("top", Forgotten(0)), 1), "it wants nothing"
    router.subscribe(X)
    assert not router.handle(Received("top", Forgotten(1)), 2)
    assert not router.handle(Received("other", Forgotten(0)), 3)
    assert sent(router.handle(Received("top", Forgotten(0)), 4)) == [("top", TreeSubscription(router.pastry.me, [X]))]
    rendezvous = scribe_at(128)
    rendezvous.subscribe(X)
    assert not rendezvous.handle(Received("top", Forgotten(0)), 5)
    assert not rendezvous.is_relay(Event(1, 1, 0, {"x": 2}), ())


def test_a_failure_of_a_former_life_of_a_child_takes_nothing_from_its_present_one() -> None:
    for incarnation in (0, 1):
        router = scribe_at(2, TOP)
        router.handle(Received("below", TreeSubscription(PastryPeer("below", 1, 1), [X])), 1)
        router.watchers[PeerFailed](PeerFailed(PastryPeer("below", 1, incarnation), None))
        assert router.children.of("below") == ([] if incarnation else [X])
    assert router.patterns_of(Event(1, 1, 0, {"x": 2})) == []


# ---------------------------------------------------------------------------------- reverse path forwarding
def test_a_peer_that_holds_something_else_is_asked_anew_once_in_a_round() -> None:
    router = rpf_at(2, TOP)
    assert sent(router.subscribe(X)) == [("top", PathFilter(router.pastry.me, X))]
    router.handle(ROUND, 10)
    assert not router.handle(Received("top", Pong(TOP, 0, digest([X]), [])), 11)
    lacks = Received("top", Pong(TOP, 0, digest([]), []))
    anew = [("top", PathReleased(0)), ("top", PathFilter(router.pastry.me, X))]
    assert sent(router.handle(lacks, 12)) == anew
    assert not router.handle(lacks, 13), "it has been told since it was asked"
    router.handle(ROUND, 20)
    assert sent(router.handle(lacks, 21)) == anew


def test_what_a_peer_is_told_or_told_no_more_in_a_round_its_answer_says_nothing_of() -> None:
    router, lacks = rpf_at(2, TOP), Received("top", Pong(TOP, 0, digest([Y]), []))
    for change in (router.subscribe, router.unsubscribe):
        router.handle(ROUND, 10)
        assert change(X)
        assert not router.handle(lacks, 11)
        router.handle(ROUND, 20)
        assert router.handle(lacks, 21)


def test_a_filter_goes_to_those_that_share_more_digits_and_an_event_to_those_that_share_fewer() -> None:
    """This node is 0002: `below` shares three digits with it, `top` none."""
    router = rpf_at(2, TOP, BELOW)
    me = router.pastry.me
    assert sent(router.handle(Received("top", PathFilter(TOP, X)), 1)) == [("below", PathFilter(me, X))]
    assert not router.handle(Received("below", PathFilter(BELOW, Y)), 2)
    event = Event(1, 1, 0, {"x": 2, "y": 2})
    assert router.next_hops(event, None, ()) == [Hop("top", (0,)), Hop("below", (3,))]
    assert router.next_hops(event, "p", (3,)) == router.towards(TRUE, "p", (3,)) == [Hop("top", (0,))]
    assert router.next_hops(event, "p", (0,)) == router.towards(TRUE, "p", (0,)) == []
    assert router.towards(TRUE, None, ()) == [Hop("top", (0,)), Hop("below", (3,))]
    assert sent(router.handle(Received("top", PathWithdrawn(X)), 3)) == [("below", PathWithdrawn(X))]
    assert not router.handle(Received("top", PathWithdrawn(X)), 4), "it is known"


def test_a_neighbour_that_is_back_wants_nothing_of_what_it_wanted_before() -> None:
    router, again = rpf_at(2, TOP, BELOW), PastryPeer("top", 128, 1)
    router.handle(Received("top", PathFilter(TOP, X)), 1)
    me = router.pastry.me
    effects = sent(router.handle(Received("top", PathFilter(again, Y)), 2))
    assert effects == [("below", PathWithdrawn(X)), ("below", PathFilter(me, Y))]
    assert router.received.of("top") == [Y]
    for incarnation in (0, 1):
        router.handle(Received("top", PathReleased(incarnation)), 3)
        assert router.received.of("top") == ([] if incarnation else [Y])


def test_a_wider_filter_takes_the_place_of_those_of_the_same_neighbour_that_it_covers() -> None:
    router, narrow = rpf_at(2, TOP, BELOW), parse_filter("x > 5")
    for source, peer, wanted in (("top", TOP, narrow), ("below", BELOW, narrow), ("top", TOP, X), ("top", TOP, X)):
        router.handle(Received(source, PathFilter(peer, wanted)), 1)
    assert router.received.of("top") == [X]
    assert router.received.of("below") == [narrow]
    router.handle(Received("mid", PathFilter(MID, narrow)), 2)
    router.handle(Received("below", PathWithdrawn(narrow)), 3)
    router.handle(Received("top", PathFilter(TOP, TRUE)), 4)
    assert (router.received.of("top"), router.received.of("mid")) == ([TRUE], [narrow])


def test_a_wider_filter_takes_the_place_of_the_one_there_was() -> None:
    router = rpf_at(2, BELOW)
    for wanted in (parse_filter("x > 5"), X, Y):
        router.handle(Received("top", PathFilter(TOP, wanted)), 1)
    assert router.received.of("top") == [X, Y]


def test_who_was_taken_for_dead_asks_again_where_its_present_life_was_meant() -> None:
    router = rpf_at(2, TOP, BELOW)
    router.subscribe(X)
    assert not router.handle(Received("top", Forgotten(1)), 1)
    assert sent(router.handle(Received("top", Forgotten(0)), 2)) == [("top", PathFilter(router.pastry.me, X))]
    assert not router.handle(Received("stranger", Forgotten(0)), 3)


def test_a_peer_that_has_failed_is_released_and_what_it_wanted_forgotten() -> None:
    router = rpf_at(2, TOP, BELOW)
    router.subscribe(Y)
    router.handle(Received("top", PathFilter(TOP, X)), 1)
    effects = sent(router.handle(LinkDown("top", "reset"), 2))
    assert ("top", PathReleased(0)) in effects
    assert ("below", PathWithdrawn(X)) in effects
    assert not len(router.received)
    assert list(router._told) == list(router._forwarded) == [BELOW], "nothing is kept of it"
    router.check_invariants()


def test_the_state_of_a_node_says_whether_paths_lead_to_it_and_from_it() -> None:
    def states(router: ReversePathForwarding) -> set[str]:
        return {state for part, _, state in router.fingerprint() if part == "paths"}

    router = rpf_at(2, TOP)
    assert states(router) == {"nothing"}
    assert len(router.fingerprint()) == 2, "and that of Pastry"
    router.subscribe(X)
    assert states(router) == {"to peers"}
    router.handle(Received("below", PathFilter(BELOW, Y)), 1)
    assert states(router) == {"to peers + from peers"}


MID, STRANGER, BESIDE_MID = PastryPeer("mid", 16), PastryPeer("stranger", 64), PastryPeer("beside mid", 17)
"""They share one digit with the node 0002, none, and one."""
NARROW, MIDDLE = parse_filter("x > 5"), parse_filter("x > 3")


def test_a_new_peer_is_told_what_is_wanted_here_and_by_those_that_share_fewer_digits() -> None:
    router = rpf_at(2)
    me = router.pastry.me
    router.handle(Received("stranger", PathFilter(STRANGER, X)), 1)
    router.handle(Received("beside mid", PathFilter(BESIDE_MID, Y)), 2)
    router.subscribe(parse_filter("z = 1"))
    effects = sent(router.handle(Received("mid", Hello(MID, True)), 3))
    told = [message.filter for to, message in effects if to == "mid" and isinstance(message, PathFilter)]
    assert told == [parse_filter("z = 1"), X]
    assert set(router.pastry._watched) == {"stranger", "beside mid"}
    assert router.patterns_of(Event(1, 1, 0, {"x": 2, "y": 0})) == [X]
    router.handle(Received("stranger", PathReleased(0)), 4)
    assert set(router.pastry._watched) == {"beside mid"}
    effects = sent(router.handle(Received("below", Hello(BELOW, True)), 5))
    assert [message for to, message in effects if to == "below" and isinstance(message, PathFilter)] == [
        PathFilter(me, parse_filter("z = 1")),
        PathFilter(me, Y),
    ]
    router.check_invariants()


def test_what_a_withdrawn_filter_alone_had_covered_is_sent_before_it() -> None:
    """To each peer what is wanted on tracks that pass this node on their way to it."""
    router = rpf_at(2, TOP, MID, BELOW)
    me = router.pastry.me
    for wanted in (X, NARROW):
        router.subscribe(wanted)
    assert not router.handle(Received("stranger", PathFilter(STRANGER, MIDDLE)), 1)
    assert sent(router.unsubscribe(X)) == [
        ("top", PathFilter(me, NARROW)), ("top", PathWithdrawn(X)),
        ("mid", PathFilter(me, MIDDLE)), ("mid", PathWithdrawn(X)),
        ("below", PathFilter(me, MIDDLE)), ("below", PathWithdrawn(X)),
    ]  # fmt: skip
    router.check_invariants()


def test_what_another_track_wants_exactly_so_is_not_withdrawn_there() -> None:
    router = rpf_at(2, TOP, MID, BELOW)
    router.subscribe(X)
    router.handle(Received("stranger", PathFilter(STRANGER, X)), 1)
    assert sent(router.unsubscribe(X)) == [("top", PathWithdrawn(X))]
    router.handle(Received("beside mid", PathFilter(BESIDE_MID, X)), 2)
    assert sent(router.handle(Received("stranger", PathWithdrawn(X)), 3)) == [("mid", PathWithdrawn(X))]
    assert sent(router.handle(Received("beside mid", PathReleased(0)), 4)) == [("below", PathWithdrawn(X))]
    assert not len(router.received)


def test_a_peer_that_was_only_out_of_reach_hears_what_was_forgotten_and_is_asked_anew() -> None:
    router = rpf_at(2, TOP)
    router.subscribe(X)
    router.handle(Received("top", PathFilter(TOP, Y)), 1)
    router.handle(LinkDown("top", "reset"), 2)
    effects = sent(router.handle(Received("top", Hello(TOP, True)), 3))
    assert ("top", Forgotten(0)) in effects
    assert ("top", PathReleased(0)) in effects
    assert effects.count(("top", PathFilter(router.pastry.me, X))) >= 1
    assert set(router._told) == {TOP}
    assert [message for to, message in effects if isinstance(message, PathWithdrawn)] == []


@pytest.mark.parametrize("own", [0, 2])
def test_a_routed_event_of_a_path_is_for_the_node_that_asked_for_it(own: int) -> None:
    place, event = RingPlace(own, digits=4, leaf_set=4), Event(1, 1, 0, {"x": 2})
    router = ReversePathForwarding(NodeContext("n", 1, place=place), PathParameters(reverse_paths="routed"))
    router.handle(Start([]), 0)
    router.know([TOP, MID, BELOW])
    router.handle(Received("mid", PathFilter(MID, X)), 1)
    assert [router.is_relay(event, header) for header in ((), (3,), (3, own), (3, 128))] == [False] * 3 + [True]
    assert router.next_hops(event, "p", (3, 128)) == [Hop("top", (3, 128))]
    assert router.next_hops(event, "p", (2, own)) == [Hop("mid", (1, 16))]
    assert router.next_hops(event, "p", (1, own)) == []


# ------------------------------------------------------------------------------------------------ invariants
@pytest.mark.parametrize("make", [scribe_at, rpf_at])
@pytest.mark.parametrize("part", ["pastry", "filters"])
def test_a_contradiction_in_either_part_of_a_node_is_found(make: Any, part: str) -> None:
    router = make(2, TOP)
    router.check_invariants()
    if part == "pastry":
        router.pastry.peers._peers.clear()
    else:
        (router.children if isinstance(router, Scribe) else router.received)._peers["ghost"] = BELOW
    with pytest.raises(AssertionError):
        router.check_invariants()
