"""What a node of the gossip overlay tells of itself and others, what it installs, stores and forgets, word by word."""

from collections.abc import Sequence
from typing import Any, get_args

import msgpack
import pytest

from murmur_pubsub.event import Event
from murmur_pubsub.filter import EVERYTHING
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import (
    Effect,
    LinkDown,
    LinkUp,
    NodeContext,
    Persist,
    Received,
    Send,
    SetTimer,
    Start,
    Stored,
    Truncate,
)
from murmur_pubsub.places import RingPlace
from routing.founding import Outside
from routing.smallworld.contacts import Contacts
from routing.smallworld.content_table import ContentTable, Entry
from routing.smallworld.messages import (
    Beat,
    BeatAnswer,
    Exchange,
    GossipJoinRequest,
    GossipPeer,
    GossipWelcome,
    Install,
    Shuffle,
)
from routing.smallworld.profile import attribute_key
from routing.smallworld.quarantine import QUARANTINE_ROUNDS
from routing.smallworld.rendezvous import DOWN, UP
from routing.smallworld.ring import RING_SIZE
from routing.vinifera.hashing import AttributeDomain
from routing.vinifera.parameters import Spread, ViniferaParameters
from routing.vinifera.router import Vinifera
from tests.protocols.one_node import sent
from tests.protocols.vinifera.one_node import (
    CYCLE_US,
    DEADLINE,
    FLUSH,
    RETRY,
    ROUND,
    TENTH,
    acquainted,
    answer,
    beat,
    fields,
    node,
    requests,
)

TWO_LINKS = {"degree": 2, "friend_links": 0}
ALL = [1, 0, RING_SIZE - 1, 0]


def flushes(effects: Sequence[Effect]) -> bool:
    """Is something to be installed soon?"""
    return any(isinstance(each, SetTimer) and each.key == FLUSH.key for each in effects)


def tenths(router: Vinifera) -> list[str | None]:
    """Where lookups for places on the ring go from here."""
    return [router.overlay.ring.next_hop(number * TENTH) for number in (1, 3, 5, 7, 9)]


# -------------------------------------------------------------------------------------------- ages of what is told
def test_whoever_speaks_of_itself_has_just_been_heard() -> None:
    router = acquainted(a=TENTH)
    me = (*router.overlay.me, 0)
    effects = router.handle(ROUND, 1)
    (shuffle,) = [word for _, word in sent(effects, Shuffle)]
    (table,) = [word for _, word in sent(effects, Exchange)]
    (request,) = [word for _, word in sent(effects, GossipJoinRequest)]
    assert shuffle.peers[0] == table.me == request.me == me
    ((_, welcome),) = sent(router.handle(Received("a", GossipJoinRequest(fields("w", 9 * TENTH))), 2), GossipWelcome)
    assert welcome.peers[0] == me
    joining = node("a")
    ((_, request),) = sent(joining.handle(RETRY, 1), GossipJoinRequest)
    assert request.me == me
    joining.handle(Received("a", GossipWelcome([fields("a", TENTH)])), 2)
    for _ in range(2):
        joining.handle(ROUND, 3)
    through = [word for number in range(6) for _, word in sent(joining.handle(ROUND, 4 + number), GossipJoinRequest)]
    assert through
    assert {word.me for word in through} == {me}


def test_what_is_told_of_others_grows_older_by_what_it_has_come_with() -> None:
    router = node(**TWO_LINKS)
    for _ in range(5):
        router.handle(ROUND, 1)
    told = [("a", 0, TENTH, b"", 0, 3), ("b", 0, 9 * TENTH, b"", 0, 1), ("c", 0, 5 * TENTH, b"", 0, 2)]
    router.handle(Received("a", GossipWelcome(told)), 2)
    assert {name: 5 - spoke for name, (_, spoke) in router.overlay._sampling.view.items()} == {"a": 3, "b": 1, "c": 2}
    router.handle(ROUND, 3)
    asked = Exchange(fields("c", 3 * TENTH), [], False)
    ((_, table),) = sent(router.handle(Received("c", asked), 4), Exchange)
    assert {name: age for name, *_, age in table.table} == {"a": 4, "b": 2}


def test_a_shuffle_goes_to_the_oldest_of_the_view_and_its_answer_takes_the_places_of_what_was_sent() -> None:
    router = node(view=2, shuffled=2)
    told = [("old", 0, TENTH, b"", 0, 3), ("young", 0, 5 * TENTH, b"", 0, 1)]
    router.handle(Received("old", GossipWelcome(told)), 1)
    ((to, shuffle),) = sent(router.handle(ROUND, 2), Shuffle)
    assert to == "old"
    assert [name for name, *_ in shuffle.peers] == ["n", "young"]
    assert not shuffle.answer
    router.handle(Received("old", Shuffle([fields("x", 1), fields("y", 2)], True)), 3)
    assert set(router.overlay._sampling.view) == {"x", "y"}


# ---------------------------------------------------------------------------------------------- who is spoken to
def test_a_new_neighbour_is_greeted_and_one_next_on_the_ring_is_sent_the_table() -> None:
    router = acquainted(after=TENTH, before=9 * TENTH)
    told = [fields("friend", 5 * TENTH), fields("nearer", TENTH // 2)]
    effects = router.handle(Received("after", Exchange(fields("after", TENTH), told, True)), 2)
    assert sorted(to for to, _ in sent(effects, Beat)) == ["friend", "nearer"]
    assert [(to, word.answer) for to, word in sent(effects, Exchange)] == [("nearer", True)]
    assert {"friend", "nearer"} <= set(router.overlay._sampling.view)
    assert not router.handle(Received("after", Exchange(fields("after", TENTH), told, True)), 3)


def test_a_node_looks_for_other_parts_through_those_that_it_has_only_heard_of() -> None:
    router = acquainted(TWO_LINKS, after=TENTH, before=9 * TENTH)
    told = [fields("heard of", 5 * TENTH)]
    router.handle(Received("after", Exchange(fields("after", TENTH), told, True)), 2)
    assert "heard of" not in router.overlay.neighbours
    assert [(number, to) for number, to in requests(router, 8) if number > 2] == [(8, "heard of"), (8, "after")]


def test_what_it_wants_and_its_load_are_told_with_the_next_table_and_heartbeat() -> None:
    router = acquainted(a=TENTH)
    router.subscribe(parse_filter("x > 1"))
    for value in (5, 7, 9):
        router.load.add(value)
    router.handle(ROUND, 1)
    ((_, table),) = sent(router.handle(Received("a", Exchange(fields("a", TENTH), [], False)), 2), Exchange)
    assert table.me[3] == router.overlay.me.profile != b""
    ((_, said),) = sent(router.handle(Received("a", beat(TENTH, 2)), 3), BeatAnswer)
    assert (said.load, said.median) == (3, 7)
    ((_, first),) = sent(node().handle(Received("a", beat(TENTH)), 3), BeatAnswer)
    assert (first.load, first.median, first.number) == (0, 0, 1)


# ------------------------------------------------------------------------------------------------- whom it routes over
def test_the_ring_is_made_anew_whenever_a_contact_comes_answers_moves_or_goes() -> None:
    router = acquainted(TWO_LINKS, a=TENTH, b=9 * TENTH)
    assert tenths(router) == ["a", "b", "b", "b", "b"]
    router.handle(Received("in", beat(5 * TENTH)), 2)
    assert tenths(router) == ["a", "in", "in", "b", "b"], "it has sent a heartbeat, so it has a link to this node"
    router.handle(Received("in", beat(7 * TENTH, 2)), 3)
    assert tenths(router) == ["a", "in", "in", "in", "b"]
    router.handle(LinkDown("in", "reset"), 4)
    assert tenths(router) == ["a", "b", "b", "b", "b"]
    effects = router.handle(Received("a", Exchange(fields("a", TENTH), [fields("c", TENTH // 2)], True)), 5)
    assert [to for to, _ in sent(effects, Beat)] == ["c"]
    assert tenths(router)[0] == "a", "it still routes over its link"
    assert router.overlay.ring.next_hop(TENTH // 4) == "a", "c has not answered"
    assert flushes(router.handle(FLUSH, 6)) is False
    assert flushes(router.handle(Received("c", answer(TENTH // 2)), 7)), "what goes by way of it is to be installed"
    assert router.overlay.ring.next_hop(TENTH // 4) == "c"
    router.handle(LinkDown("c", "reset"), 8)
    assert router.overlay.ring.next_hop(TENTH // 4) == "a"


def test_the_ring_is_made_anew_when_a_neighbour_is_not_selected_any_more_or_one_that_links_here_is_silent() -> None:
    router = node(**TWO_LINKS)
    router.know([GossipPeer(name, 0, place, b"") for name, place in (("a", TENTH), ("b", 9 * TENTH))])
    for name, place in (("a", TENTH), ("b", 9 * TENTH)):
        router.handle(Received(name, answer(place)._replace(links=False)), 1)
    router.handle(Received("in", beat(5 * TENTH)), 1)
    assert tenths(router) == ["a", "in", "in", "b", "b"]
    router.handle(Received("a", Exchange(fields("a", TENTH), [fields("c", TENTH // 2)], True)), 2)
    assert tenths(router) == ["in", "in", "in", "b", "b"]
    for number in range(2, 6):
        assert "in" in tenths(router)
        router.handle(ROUND, number)
        for name, place in (("b", 9 * TENTH), ("c", TENTH // 2)):
            router.handle(Received(name, answer(place, number)), number)
    assert tenths(router) == ["b"] * 5


def test_a_neighbour_is_on_the_ring_from_its_first_answer_on() -> None:
    contacts = Contacts(["a"], inbound_max=0)
    contacts.hear("a", beat(TENTH), 1)
    assert contacts.ring(0).next_hop(TENTH) is None
    assert list(contacts.reach()) == []
    assert contacts.answered("a")
    assert contacts.ring(0).next_hop(TENTH) == "a"
    assert list(contacts.reach()) == [TENTH]
    assert not contacts.answered("a")


@pytest.mark.parametrize("links", [False, True])
@pytest.mark.parametrize("inbound", [False, True])
def test_a_node_routes_over_links_that_others_have_to_it_if_it_may(inbound: bool, links: bool) -> None:
    router = acquainted({**TWO_LINKS, "inbound": inbound}, a=TENTH, b=9 * TENTH)
    router.handle(Received("other", answer(5 * TENTH)._replace(links=links)), 2)
    assert router.overlay.ring.next_hop(4 * TENTH) == ("other" if inbound and links else "b")


def test_a_node_that_has_moved_stands_for_its_new_range_from_the_deadline_on_and_installs_by_it() -> None:
    router = acquainted(a=TENTH, b=9 * TENTH)
    router.handle(FLUSH, 1)
    assert not flushes(router.handle(DEADLINE, 2)), "it has not moved"
    router.overlay.move(TENTH // 2, 0)
    assert router.overlay.ring.next_hop(TENTH // 4) == "a"
    assert flushes(router.handle(DEADLINE, 3))
    assert router.overlay.ring.next_hop(TENTH // 4) is None


def test_the_neighbours_of_a_contact_are_those_that_it_has_named_itself() -> None:
    router = node()
    router.handle(Received("a", beat(TENTH)._replace(reach=[7, 9])), 1)
    assert router.overlay.reached_from("a") == [7, 9]
    assert router.overlay.reached_from("b") == router.overlay.reached_from(None) == ()
    acquaintances = acquainted(a=TENTH, b=5 * TENTH)
    ((_, said),) = sent(acquaintances.handle(Received("c", beat(9)), 2), BeatAnswer)
    assert sorted(said.reach) == [TENTH, 5 * TENTH]


# ------------------------------------------------------------------------------------------------------ failures
def test_who_is_back_before_the_deadline_for_an_answer_of_its_former_life_does_not_fail_again() -> None:
    router = acquainted(a=TENTH, b=5 * TENTH)
    router.handle(ROUND, 1)
    router.handle(Received("b", answer(5 * TENTH, 2)), 2)
    router.handle(LinkDown("a", "reset"), 3)
    router.handle(Received("a", beat(TENTH, 1, incarnation=1)), 4)
    router.handle(DEADLINE, 5)
    assert "a" in router.overlay.contacts


def test_a_contact_of_a_later_incarnation_has_failed_in_between() -> None:
    router = acquainted(a=TENTH)
    router.handle(Received("a", Install(0, 1, 0, ALL, [EVERYTHING])), 2)
    router.handle(Received("a", beat(TENTH, 1, incarnation=1)), 3)
    contact = router.overlay.contacts.get("a")
    assert contact is not None
    assert (contact.incarnation, contact.answered) == (1, False)
    assert len(router.table) == 0
    assert not router.handle(LinkDown("stranger", "reset"), 4)


def test_hearsay_of_a_failed_peer_is_believed_again_when_its_quarantine_is_over() -> None:
    router = acquainted(a=TENTH, gone=5 * TENTH)
    router.handle(LinkDown("gone", "reset"), 2)
    for number in range(1, QUARANTINE_ROUNDS + 1):
        router.handle(ROUND, number * CYCLE_US)
        router.handle(Received("a", answer(TENTH, number + 1)), number * CYCLE_US + 1)
        stale = ("gone", 0, 5 * TENTH, b"", 0, number)
        router.handle(Received("a", Exchange(fields("a", TENTH), [stale], True)), number * CYCLE_US + 2)
        assert ("gone" in router.overlay.neighbours) is (number == QUARANTINE_ROUNDS)


# ------------------------------------------------------------------------------------------------ stored, founded
def test_a_node_stores_whom_it_knows_at_the_deadline_and_asks_them_when_it_is_back() -> None:
    router = acquainted(a=TENTH, b=5 * TENTH)
    (record,) = [each for each in router.handle(DEADLINE, 2) if isinstance(each, Persist)]
    assert record == Persist(0, msgpack.packb([0, "a", "b"]))
    assert router.handle(Stored(0), 3) == [Truncate(0)]
    assert not [each for each in router.handle(DEADLINE, 4) if isinstance(each, Persist)]
    place = RingPlace(0, base=4, digits=8, bootstrap=("x",), founds=True, probe_us=CYCLE_US)
    back = Vinifera(NodeContext("n", 1, incarnation=1, place=place), ViniferaParameters())
    effects = back.handle(Start([record.record]), 0)
    assert not back.overlay.joined, "a founder founds once"
    assert [to for to, _ in sent(effects, GossipJoinRequest)] == ["x"]
    for remembered in ("a", "b", "a"):
        assert [to for to, _ in sent(back.handle(RETRY, 1), GossipJoinRequest)] == ["x", remembered]


def test_who_waits_outside_tells_another_of_the_first_by_name_until_it_has_joined() -> None:
    waits = Received("a", Outside("z", 0))
    router = node("a", incarnation=1)
    assert router.handle(waits, 1) == [Send("a", Outside("n", 0))]
    assert router.handle(Received("a", Outside("m", 0)), 2) == [], "that is no news to it"
    router.handle(Received("a", GossipWelcome([fields("a", TENTH)])), 3)
    assert not sent(router.handle(waits, 4), Outside)


@pytest.mark.parametrize("incarnation", [0, 1])
def test_the_first_of_those_that_wait_founds_the_overlay_anew_if_it_has_been_inside_before(incarnation: int) -> None:
    router = node("a", incarnation=incarnation)
    router.handle(Received("a", Outside("", 0)), 1)
    router.handle(Received("w", GossipJoinRequest(fields("w", TENTH))), 2)
    for number in range(1, 9):
        assert not router.overlay.joined
        effects = router.handle(RETRY, 2)
        assert [to for to, _ in sent(effects, GossipJoinRequest)] == (["a"] if number < 8 or not incarnation else [])
    assert router.overlay.joined is bool(incarnation)
    assert [to for to, _ in sent(effects, GossipWelcome)] == (["w"] if incarnation else [])


def test_a_link_that_comes_up_is_nothing_to_it_and_what_it_does_not_know_is_an_error() -> None:
    router = node()
    assert router.handle(LinkUp("a", True), 1) == ()
    with pytest.raises(TypeError, match="takes no"):
        router.handle(object(), 2)  # type: ignore[arg-type]
    assert router.hears_resets
    assert not node(resets=False).hears_resets


# ------------------------------------------------------------------------------------------- settling and delivery
def test_a_node_that_has_just_started_settles_in_three_rounds() -> None:
    router = node()
    router.handle(FLUSH, 1)
    settling = []
    for _ in range(4):
        settling.append(router.settling)
        router.handle(ROUND, 2)
    assert settling == [True, True, True, False]


@pytest.mark.parametrize("asked_in", [0, 40])
def test_ten_rounds_after_the_last_own_change_a_node_has_settled_whatever_neighbours_want(
    asked_in: int,
) -> None:
    """Ways change for long in a large overlay, and what a node itself has asked for has arrived by then."""
    router = node()
    for number in range(asked_in + 11):
        if number == asked_in and number:
            router.subscribe(parse_filter("x > 1"))
        router.handle(Received("a", Install(0, number + 1, 0, [1, 0, number, 0], [EVERYTHING])), 1)
        assert router.settling == (number >= asked_in or number <= 10)
        router.handle(ROUND, 2)
    router.handle(Received("a", Install(0, 999, 0, [1, 0, 999, 0], [EVERYTHING])), 3)
    assert not router.settling


def test_what_is_withdrawn_is_wanted_no_more() -> None:
    router, wanted = node(), parse_filter("x > 1")
    router.subscribe(wanted)
    assert router.installation.wanted()
    assert router.overlay.me.profile
    router.unsubscribe(wanted)
    assert not router.installation.wanted()
    assert not router.overlay.me.profile


def test_events_that_come_to_their_rendezvous_node_are_its_load() -> None:
    router = node(attributes={"x": {"min": 0, "max": 100}})
    router.subscribe(parse_filter("x > 50"))
    for number, value in enumerate((20, 60, 30, 70)):
        router.next_hops(Event(1, number, 0, {"x": value}), None, ())
    percent = AttributeDomain("x", 0, 100)
    assert router.load.events == 4, "whether it wants them or not"
    assert router.load.median(RING_SIZE - 1) == percent.hash(30)


@pytest.mark.parametrize("spread", get_args(Spread))
def test_an_event_is_spread_on_its_way_up_to_those_that_have_asked_for_it_here(spread: Spread) -> None:
    router = acquainted({"spread": spread, "attributes": {"x": {"min": 0, "max": 100}}}, top=9 * TENTH)
    x = attribute_key("x")
    for name in ("v", "w", "top"):
        router.handle(Received(name, Install(0, 1, 0, [x, 0, RING_SIZE - 1, 0], [parse_filter("y = 1")])), 2)
    router.handle(Received("else", Install(0, 1, 0, [x, 0, RING_SIZE - 1, 0], [parse_filter("y = 2")])), 3)
    place = AttributeDomain("x", 0, 100).hash(50)
    up = [("top", (x, place, UP))]
    spread_to = [("v", (x, place, DOWN)), ("w", (x, place, DOWN))]
    first, second = (Event(1, number, 0, {"x": 50, "y": 1}) for number in (1, 2))
    hops = [(hop.peer, hop.header) for hop in router.next_hops(first, None, (x, place, UP))]
    assert hops == up + (spread_to if spread != "none" else [])
    hops = [(hop.peer, hop.header) for hop in router.next_hops(second, "v", (x, place, UP))]
    assert hops == up + (spread_to[1:] if spread != "none" else [])


def test_of_two_entries_with_one_version_the_first_holds_and_a_later_one_takes_its_place_as_a_whole() -> None:
    table: Any = ContentTable()
    first, other = {(1, EVERYTHING): [(10, 20)]}, {(1, EVERYTHING): [(30, 40)]}
    assert table.install("a", Entry(0, 1, first), 0)
    assert not table.install("a", Entry(0, 1, other), 0)
    assert table.destinations(1, 15, {}) == ["a"]
    assert table.install("a", Entry(0, 2, other), 0)
    assert (table.destinations(1, 15, {}), table.destinations(1, 35, {})) == ([], ["a"])
    table.check_invariants()


def test_of_what_is_known_by_both_ways_the_peer_with_the_place_it_gave_itself_is_selected() -> None:
    """A table names a contact where it has been before."""
    router = acquainted(TWO_LINKS, a=TENTH, b=9 * TENTH)
    router.handle(Received("c", beat(5 * TENTH)), 2)
    told = GossipPeer("c", 0, TENTH // 2, b"")
    assert not router.handle(Received("a", Exchange(fields("a", TENTH), [(*told, 0)], True)), 3), "it is not there"
    assert set(router.overlay.neighbours) == {"a", "b"}
