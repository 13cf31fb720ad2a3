"""What one node of identifier range based routing does with each message, held in the hand."""

import pytest

from murmur_pubsub.errors import WireError
from murmur_pubsub.event import Event
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import LinkDown, NodeContext, Received, Start
from murmur_pubsub.places import RingPlace
from routing.filter_digest import digest
from routing.irbr.filter_table import FilterTable
from routing.irbr.members import IrbrMembers
from routing.irbr.messages import (
    MemberCancellation,
    MemberSubscription,
    MemberSummary,
    MemberTransfer,
    RangeSubscription,
    Summary,
    SummaryRequest,
)
from routing.irbr.router import Irbr, IrbrParameters
from routing.pastry.messages import Hello, JoinReply, PastryPeer, Ping, Pong, Welcome
from routing.router import Hop
from tests.protocols.irbr.one_node import BESIDE, FAR, NARROW, NEAR, X, Y, node, wide
from tests.protocols.one_node import sent
from tests.protocols.pastry.one_node import DEADLINE, PROBE_US, ROUND, end_round, peer


def state_of(router: Irbr, part: str) -> str:
    """What a node says of itself, by part."""
    return {name: state for name, _, state in router.fingerprint()}[part]


# ---------------------------------------------------------------------------------------------- gossip, events
@pytest.mark.parametrize("header", [(), (1, 1), (int("11", 4), 2), (2, 1), (3, 1)])
def test_gossip_goes_on_towards_a_range_that_this_node_is_not_in_and_within_one_that_it_is_in(
    header: tuple[int, ...],
) -> None:
    router = node(FAR, BESIDE, NEAR)
    for each, cell in ((FAR, wide("2")), (BESIDE, wide("10")), (NEAR, wide("1112"))):
        router.handle(Received(each.name, RangeSubscription(each.identifier, 1, cell, X, (0, 0))), 1)
    hops = {
        "": [Hop("far", wide("2")), Hop("beside", wide("10")), Hop("near", wide("1112"))],
        "1": [Hop("beside", wide("10")), Hop("near", wide("1112"))],
        "11": [Hop("near", wide("1112"))],
        "2": [Hop("far", wide("2"))],
        "3": [Hop("far", wide("3"))],
    }
    text = {(): "", (1, 1): "1", (5, 2): "11", (2, 1): "2", (3, 1): "3"}[header]
    assert list(router.next_hops(Event(1, 1, 0, {"x": 2}), "far", header)) == hops[text]
    for pattern in (X, NARROW, parse_filter("TRUE")):
        assert list(router.towards(pattern, "far", header)) == hops[text]
    if text in ("", "1", "11"):
        assert list(router.towards(Y, "far", header)) == [], "nobody wants anything like it"


# --------------------------------------------------------------------------------------------- summaries
@pytest.mark.parametrize(("note", "length", "asked"), [(0, 1, False), (None, 1, False), (7, 1, True), (7, 2, False)])
def test_a_representative_is_asked_for_its_summary_if_it_knows_something_else(
    note: int | None, length: int, asked: bool
) -> None:
    """Note 0: it has nothing to say, since it has not joined. None: it holds the same."""
    router = node(FAR)
    router.handle(Received("far", RangeSubscription(FAR.identifier, 1, wide("2"), X, (0, 0))), 1)
    pong = Pong(FAR, length, digest([X]) if note is None else note, [])
    assert sent(router.handle(Received("far", pong), 2)) == ([("far", SummaryRequest(1))] if asked else [])


def test_a_node_that_has_not_joined_has_nothing_to_say_of_its_range() -> None:
    place = RingPlace(int("1111", 4), digits=4, leaf_set=4, bootstrap=("far",))
    router = Irbr(NodeContext("n", 1, place=place), IrbrParameters())
    router.handle(Start([]), 0)
    router.subscribe(X)

    def notes() -> list[int]:
        answers = [sent(router.handle(Received("far", Ping(FAR, length, 0, False)), 1), Pong) for length in (0, 1)]
        return [message.note for ((_, message),) in answers]

    assert router.settling
    assert notes() == [0, 0]
    router.handle(Received("far", JoinReply([NEAR])), 2)
    router.handle(Received("near", Welcome(NEAR, True, False, [])), 3)
    assert not router.settling
    assert notes() == [0, digest([X])], "of length 0: it stands for no range"


@pytest.mark.parametrize(("age_us", "held"), [(5 * PROBE_US, True), (5 * PROBE_US + 1, False)])
def test_what_a_summary_does_not_say_is_dropped_once_a_change_must_have_gone_through_all_lengths(
    age_us: int, held: bool
) -> None:
    router = node(FAR)
    router.handle(Received("far", RangeSubscription(FAR.identifier, 1, wide("2"), X, (0, 0))), 100)
    router.handle(Received("far", Summary(1, [Y])), 100 + age_us)
    assert set(router.table.of(wide("2"))) == ({X, Y} if held else {Y})
    assert not router.handle(Received("near", Summary(1, [NARROW])), 100 + age_us), "it stands for no such range"
    assert NARROW not in router.table.of(wide("2"))
    router.check_invariants()


# --------------------------------------------------------------------------------------------- empty ranges
def test_a_range_that_is_found_empty_is_said_so_at_the_end_of_the_round_and_once() -> None:
    lower = peer("lower", "1110")  # no nearer to the middle of the range than this node
    router = node(FAR, lower)

    def state() -> str:
        return state_of(router, "ranges")

    assert state() == "nothing"
    assert len(router.fingerprint()) == 2, "and that of Pastry"
    router.handle(Received("far", RangeSubscription(FAR.identifier, 1, wide("2"), X, (0, 0))), 1)
    assert state() == "told of"
    router.handle(LinkDown("far", "reset"), 2)
    router.subscribe(Y)
    assert state() == "wants + told of + found empty"
    assert router.pastry.vacant() == [wide("2")]
    end_round(router, 10, lower)
    assert state() == "wants"
    assert not router.pastry.vacant()
    with pytest.raises(WireError, match="no identifier"):
        router.handle(Received("lower", Hello(PastryPeer("far", 256), True)), 20)
    router.unsubscribe(Y)
    assert state() == "nothing"
    router.check_invariants()


def test_the_ranges_of_a_table_are_those_with_entries() -> None:
    table = FilterTable()
    assert table.ranges() == []
    for text, wanted in (("2", X), ("10", X), ("10", Y)):
        table.put(wide(text), wanted, 1)
    assert table.ranges() == [wide("2"), wide("10")]
    table.remove(wide("2"), X)
    table.remove(wide("10"), X)
    assert table.ranges() == [wide("10")]
    assert table.remove_range(wide("10")) == [Y]
    assert table.ranges() == []


@pytest.mark.parametrize("text", ["1", "111", "20"])
def test_an_entry_of_a_range_that_is_no_cell_of_this_node_is_a_contradiction(text: str) -> None:
    """The node is in the first two, and sees the third as a part of another."""
    router = node(FAR, NEAR)
    router.check_invariants()
    router.table.put(wide(text), X, 1)
    with pytest.raises(AssertionError):
        router.check_invariants()


@pytest.mark.parametrize("part", ["pastry", "table", "local"])
def test_a_contradiction_in_any_part_of_a_node_is_found(part: str) -> None:
    router = node(FAR, NEAR, make=IrbrMembers)
    router.check_invariants()
    if part == "pastry":
        router.pastry.peers._peers.clear()
    elif part == "table":
        router.table._since_us[7] = 1
    else:
        router._local_since_us[X] = 1
    with pytest.raises(AssertionError):
        router.check_invariants()


# ------------------------------------------------------------------------------------------------- members
NOBODY = PastryPeer("", 0)


def told_of(router: IrbrMembers, member: PastryPeer, cell: str, number: int = 1) -> None:
    """X is wanted in that range, by that node."""
    word = MemberSubscription(member.identifier, number, wide(cell), X, (0, 0), member)
    router.handle(Received(member.name, word), number)


@pytest.mark.parametrize("turned", [False, True])
def test_a_summary_names_a_member_of_the_very_range_that_it_is_about(turned: bool) -> None:
    """Not one of the ranges beside it, whichever of them this node has heard of last."""
    router = node(FAR, BESIDE, NEAR, make=IrbrMembers)
    for member, cell in ((NEAR, "1112"), (BESIDE, "10"))[:: -1 if turned else 1]:
        told_of(router, member, cell)
    named = {}
    for length in range(1, 5):
        ((_, summary),) = sent(router.handle(Received("far", SummaryRequest(length)), 5), MemberSummary)
        assert summary.filters == ([X] if length < 4 else [])
        named[length] = [PastryPeer(*each) for each in summary.members]
    assert named[2] == named[3] == [NEAR]
    assert named[1] in ([NEAR], [BESIDE])
    assert named[4] == []
    router.subscribe(X)
    ((_, summary),) = sent(router.handle(Received("far", SummaryRequest(2)), 6), MemberSummary)
    assert summary.members == [router.pastry.me]


@pytest.mark.parametrize(("length", "count"), [(-7, 1), (0, 1), (4, 1), (9, 1)])
def test_a_summary_of_any_length_that_a_peer_may_ask_for_is_answered(length: int, count: int) -> None:
    router = node(FAR, make=IrbrMembers)
    router.subscribe(X)
    ((to, summary),) = sent(router.handle(Received("far", SummaryRequest(length)), 1), MemberSummary)
    assert (to, summary.length, len(summary.filters), summary.members) == ("far", length, count, [router.pastry.me])


def test_a_cancellation_takes_away_its_own_member_and_names_one_for_what_it_adds() -> None:
    router, other = node(FAR, NEAR, make=IrbrMembers), peer("other", "2100")
    told_of(router, FAR, "2")
    cancelled = MemberCancellation(other.identifier, 1, wide("2"), [X], [NARROW], [], (1, 1), [other])
    router.handle(Received("other", cancelled), 2)
    assert router._members == {(wide("2"), X): FAR, (wide("2"), NARROW): other}, "another node's"
    own = cancelled._replace(origin=FAR.identifier, number=2, added=[], members=[])
    router.handle(Received("far", own), 3)
    assert router._members == {(wide("2"), NARROW): other}
    with pytest.raises(WireError, match="1 members of 0 filters"):
        router.handle(Received("far", own._replace(members=[FAR])), 4)


def test_a_member_that_is_in_another_range_than_its_entry_is_none() -> None:
    router = node(FAR, NEAR, make=IrbrMembers)
    for said_to_be in (NEAR, NOBODY):
        transfer = MemberTransfer([wide("2")], [X], (1, 1), [said_to_be])
        router.handle(Received("far", transfer), 1)
        assert not router._members
        assert not router.handle(Received("far", MemberSummary(1, [X], [said_to_be])), 2)
        assert not router._members
    router.handle(Received("far", MemberSummary(1, [X], [FAR])), 3)
    assert router._members == {(wide("2"), X): FAR}


def test_a_member_is_entered_at_while_it_answers_and_probed_while_it_is_needed() -> None:
    router, member, event = node(FAR, make=IrbrMembers), peer("member", "2100"), Event(1, 1, 0, {"x": 2})

    def state() -> str:
        return state_of(router, "members")

    def probed(now_us: int) -> list[str]:
        effects = router.handle(ROUND, now_us)
        for each in (FAR, member):
            router.pastry.heard(each.name, now_us)
        for at in (1, 2, 3):
            router.handle(DEADLINE, now_us + at)
        return [to for to, _ in sent(effects, Ping)]

    assert state() == "nothing"
    told_of(router, member, "2")
    assert state() == "known"
    assert "member" not in probed(10)
    assert router.next_hops(event, None, ()) == [Hop("far", wide("2"))]
    assert state() == "known + probed"
    router.handle(Received("member", Pong(member, 0, 0, [])), 11)
    assert state() == "known + probed + answering"
    assert router.next_hops(event, None, ()) == [Hop("member", wide("2"))]
    needed = ["member" in probed(20 + 10 * number) for number in range(7)]
    assert needed == [True] * 5 + [False] * 2
    assert state() == "known"
    router.check_invariants()
    router.next_hops(event, None, ())
    router.handle(Received("member", Pong(member, 0, 0, [])), 99)
    assert state() == "known + probed + answering"
    router.handle(LinkDown("member", "reset"), 100)
    router.check_invariants()
    assert state() == "nothing", "what is gone is no member"
