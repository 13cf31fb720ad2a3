"""Whom a Pastry node asks, greets, names to others and forgets, word by word; what it stores."""

from typing import Any

import msgpack
import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.machine import LinkDown, NodeContext, Persist, Received, Send, SetTimer, Start, Stored, Truncate
from murmur_pubsub.places import RingPlace
from routing.founding import Outside
from routing.pastry.changes import CellFilled, Joined, LeavesChanged, PeerFailed, PeerReturned, RoundEnded
from routing.pastry.identifiers import IdentifierRange
from routing.pastry.messages import (
    Arrived,
    Hello,
    Introduced,
    JoinReply,
    JoinRequest,
    PastryPeer,
    Ping,
    Pong,
    RepairRequest,
    Seek,
    Welcome,
)
from routing.pastry.node import Pastry
from routing.pastry.quarantine import Quarantine
from tests.protocols.one_node import sent
from tests.protocols.pastry.one_node import (
    DEADLINE,
    JOIN,
    PROBE_US,
    ROUND,
    SETTLE,
    gathering,
    identifier,
    inside,
    node_at,
    peer,
)

FAR, ROW2, ROW3, ROW4 = (
    peer(name, text) for name, text in (("far", "3000"), ("row2", "1200"), ("row3", "1120"), ("row4", "1112"))
)
"""Those that stand for the ranges 3…, 12.., 112. and 1112, as seen from 1111."""


def names(known: Any) -> set[str]:
    return {name for name, *_ in known}


# ---------------------------------------------------------------------------------------- requests on their way
def test_a_request_gathers_on_its_way_the_row_in_which_the_new_node_belongs() -> None:
    node, joining = inside("1111", FAR, ROW2, ROW3, ROW4), peer("new", "1130")
    request = JoinRequest(joining, [("before", 7, 0)])
    ((to, passed_on),) = sent(node.handle(Received("before", request), 1), JoinRequest)
    assert (to, passed_on.joining) == ("row3", joining)
    assert names(passed_on.known) == {"before", "n", "row3"}, "row 3 has the new node, too"
    again = JoinRequest(joining, [node.me, ROW3])
    ((_, passed_on),) = sent(node.handle(Received("before", again), 2), JoinRequest)
    assert [name for name, *_ in passed_on.known] == ["n", "row3"], "each once"


def test_the_closest_node_names_all_its_cells_and_leaves_to_the_new_one() -> None:
    leaves = [peer(f"leaf{step}", "1111")._replace(identifier=identifier("1111") + step) for step in (-4, -3, 2, 3)]
    node, joining = inside("1111", FAR, ROW2, *leaves), peer("new", "1110")
    ((to, reply),) = sent(node.handle(Received("before", JoinRequest(joining, [("before", 7, 0)])), 1), JoinReply)
    assert to == "new"
    assert names(reply.known) == {"before", "n", "far", "row2", *(each.name for each in leaves)}


def test_a_search_goes_to_the_closest_node_and_is_answered_there() -> None:
    node, seeking = inside("1111", FAR, ROW3), peer("s", "2222")
    for key in (FAR.identifier, ROW3.identifier):
        seek = Seek(seeking, key)
        assert node.handle(Received("p", seek), 1) == [Send("far" if key == FAR.identifier else "row3", seek)]
    ((to, welcome),) = sent(node.handle(Received("p", Seek(seeking, node.own)), 2), Welcome)
    assert to == "s"
    assert (welcome.peer, welcome.joined, welcome.sought) == (node.me, True, True)
    assert "far" in names(welcome.known)


def test_whom_a_new_node_seeks_is_in_the_range_of_the_one_that_has_answered() -> None:
    keys = set()
    for number in range(20):
        node = Pastry(NodeContext(f"n{number}", 1, place=RingPlace(85, digits=4, leaf_set=4, bootstrap=("a",))))
        node.handle(Start([]), 0)
        node.handle(Received("a", JoinReply([ROW2])), 1)
        ((_, seek),) = sent(node.handle(Received("row2", Welcome(ROW2, True, False, [])), 2), Seek)
        assert node.space.contains(IdentifierRange(identifier("12"), 2), seek.key)
        keys.add(seek.key)
    assert len(keys) > 5, "at random"


# --------------------------------------------------------------------------------------------- who is asked
def test_of_several_in_one_empty_range_the_first_is_asked_and_those_that_would_be_leaves() -> None:
    near = [peer(f"l{step}", "1111")._replace(identifier=identifier("1111") + step) for step in (-2, -1, 1, 2)]
    node = inside("1111", *near)
    told = [peer("first", "2000"), peer("second", "2100"), peer("other", "3000"), node.me, near[0]]
    asked = sent(node.handle(Received("l1", Introduced(told)), 1), Hello)
    assert asked == [("first", Hello(node.me, True)), ("other", Hello(node.me, True))]
    assert not node.handle(Received("l1", Introduced([*told, peer("third", "2200")])), 2), "it is asked already"
    back = near[0]._replace(incarnation=1)
    assert [to for to, _ in sent(node.handle(Received("l1", Introduced([back])), 3), Hello)] == []
    node.handle(ROUND, 4)
    assert [to for to, _ in sent(node.handle(Received("l1", Introduced(told)), 5), Hello)] == ["first", "other"]


def test_one_nearer_than_a_leaf_is_asked_though_its_range_has_a_peer() -> None:
    leaves = [peer(f"l{step}", "1111")._replace(identifier=identifier("1111") + step) for step in (-9, -8, 8, 9)]
    node = inside("1111", *leaves)
    for step, asked in ((10, False), (9, False), (8, True), (-8, True), (-9, False)):
        told = PastryPeer(f"p{step}", node.own + step)
        assert bool(sent(node.handle(Received("l8", Introduced([told])), 1), Hello)) is asked


def test_who_says_hello_and_has_joined_is_taken_in_and_told_the_rows_that_both_have() -> None:
    for joined in (True, False):
        node = inside("1111", FAR, ROW2)
        effects = node.handle(Received("row3", Hello(ROW3, joined)), 1)
        ((to, welcome),) = sent(effects, Welcome)
        assert (to, welcome.peer, welcome.joined, welcome.sought) == ("row3", node.me, True, False)
        assert ("row3" in node.peers) is joined
        assert names(welcome.known) == {"far", "row2"}


@pytest.mark.parametrize("asked", [True, False])
def test_two_that_meet_tell_each_other_what_the_other_does_not_know(asked: bool) -> None:
    """Who was asked has taken this node in; who was found otherwise is told that it is there."""
    node = inside("1111", FAR, ROW2, ROW4)
    if asked:
        node.handle(Received("far", Introduced([ROW3])), 1)
    effects = node.handle(Received("row3", Welcome(ROW3, True, False, [ROW2])), 2)
    assert [word for to, word in sent(effects, Hello) if to == "row3"] == ([] if asked else [Hello(node.me, True)])
    assert [names(word.known) for to, word in sent(effects, Introduced) if to == "row3"] == [{"far", "row4"}]
    assert not sent(node.handle(Received("row3", Welcome(ROW3, True, False, [])), 3), Introduced), "they have met"


def test_who_fills_a_range_is_named_to_those_that_have_the_same_range() -> None:
    """All that share as many digits; and one nearer than all known hears of this node, as do those between."""
    node = inside("1111", FAR, ROW2, ROW3)
    effects = node.handle(Received("new", Hello(peer("new", "1300"), True)), 1)
    assert sorted(to for to, word in sent(effects, Introduced) if names(word.known) == {"new"}) == ["row2", "row3"]
    assert not sent(effects, Arrived)
    effects = node.handle(Received("row4", Hello(ROW4, True)), 2)
    assert [(to, word.peer) for to, word in sent(effects, Arrived)] == [
        (each, node.me) for each in ("row4", *(leaf.name for leaf in node.leaves if leaf != ROW4))
    ]
    assert ("row4", Hello(node.me, True)) in sent(effects, Hello)
    for name, text in (("same", "1310"), ("beside", "1130")):
        assert not sent(node.handle(Received(name, Hello(peer(name, text), True)), 3), Arrived)
    node = inside("1111", ROW4)
    assert not sent(node.handle(Received("other", Hello(peer("other", "1113"), True)), 4), Arrived), (
        "as near as another"
    )


def test_who_has_nothing_to_tell_another_introduces_nobody() -> None:
    node = inside("1111")
    assert not sent(node.handle(Received("far", Welcome(FAR, True, False, [])), 1), Introduced)


def test_a_first_peer_is_nearer_than_all_known() -> None:
    node = inside("1111")
    effects = node.handle(Received("far", Hello(FAR, True)), 1)
    assert [to for to, _ in sent(effects, Arrived)] == ["far"]
    assert node.take_changes() == [CellFilled(IdentifierRange(3, 1), FAR, None), LeavesChanged()]


def test_what_changes_as_a_node_joins_is_told_in_order() -> None:
    node = gathering()
    node.take_changes()
    node.handle(SETTLE, 3)
    assert node.take_changes() == [Joined(), CellFilled(IdentifierRange(2, 1), peer("p", "2000"), None)]


# ----------------------------------------------------------------------------------------------- probes, repair
def test_a_probe_says_of_which_length_its_range_is_which_row_is_asked_for_and_whether_it_is_a_leaf() -> None:
    near = [peer(f"l{step}", "1111")._replace(identifier=identifier("1111") + step) for step in (-2, -1, 1, 2)]
    node, rows = inside("1111", *near, FAR), set()
    node.watch(peer("watched", "2000"))
    for number in range(1, 4):
        pings = dict(sent(node.handle(ROUND, number * PROBE_US), Ping))
        node.handle(DEADLINE, number * PROBE_US)
        assert {name: (ping.length, ping.leaf) for name, ping in pings.items()} == {
            "watched": (0, False),
            "far": (1, False),
            "l-2": (3, True),
            "l-1": (4, True),
            "l1": (4, True),
            "l2": (4, True),
        }
        assert all(ping.peer == node.me for ping in pings.values())
        asked = {name: ping.row for name, ping in pings.items() if ping.row}
        assert len(asked) == 1
        rows |= set(asked.values())
        for each in (*near, FAR):
            node.heard(each.name, number * PROBE_US)
    assert rows == {1, 2, 3}


def test_the_peers_of_a_failed_ones_row_are_asked_for_another_and_the_ends_of_the_leaf_set_for_leaves() -> None:
    leaves = [peer(f"l{step}", "1111")._replace(identifier=identifier("1111") + step) for step in (-2, -1, 1, 2)]
    node = inside("1111", *leaves, FAR, ROW2, peer("row2b", "1300"))
    effects = node.handle(LinkDown("row2", "reset"), 1)
    cell = IdentifierRange(identifier("12"), 2)
    asked = sent(effects, RepairRequest)
    assert len(asked) == 3
    assert asked[0][0] == "row2b", "the row itself first"
    assert {to for to, _ in asked} <= {"row2b", *(leaf.name for leaf in leaves)}
    assert {word for _, word in asked} == {RepairRequest(cell)}
    assert not sent(effects, Hello)
    assert node.take_changes() == [PeerFailed(ROW2, cell)]
    effects = node.handle(LinkDown("l2", "reset"), 2)
    assert {to for to, _ in sent(effects, Hello)} == {"l-2", "row2b"}, "the farthest on each side now"
    assert LeavesChanged() in node.take_changes()


def test_a_leaf_in_the_range_of_a_failed_peer_takes_its_place_at_once() -> None:
    node = inside("1111", peer("old", "2000"), peer("leaf", "2100"))
    effects = node.handle(LinkDown("old", "reset"), 1)
    assert not sent(effects, RepairRequest)
    assert CellFilled(IdentifierRange(2, 1), peer("leaf", "2100"), 0) in node.take_changes()
    assert not node.vacant()


@pytest.mark.parametrize(("text", "told"), [("11", ["row3", "row4", "n"]), ("12", ["row2"]), ("2", [])])
def test_who_is_asked_for_a_range_names_up_to_three_that_are_in_it(text: str, told: list[str]) -> None:
    node = inside("1111", FAR, ROW2, ROW3, ROW4)
    effects = node.handle(Received("far", RepairRequest((identifier(text), len(text)))), 1)
    assert [[each.name for each in word.known] for _, word in sent(effects, Introduced)] == ([told] if told else [])
    all_of_them = sent(node.handle(Received("far", RepairRequest((0, 0))), 2), Introduced)
    assert [len(word.known) for _, word in all_of_them] == [3]


def test_who_probes_and_is_unknown_is_taken_in_once_this_node_is_part_of_the_overlay() -> None:
    node = inside("1111", FAR)
    node.handle(Received("row3", Ping(ROW3, 0, 0, False)), 1)
    assert "row3" in node.peers
    outside = node_at("1111", "a")
    ((to, pong),) = sent(outside.handle(Received("row3", Ping(ROW3, 2, 0, False)), 1), Pong)
    assert (to, pong.peer, pong.length, pong.note) == ("row3", outside.me, 2, 0)
    assert "row3" not in outside.peers


# ----------------------------------------------------------------------------------- what is forgotten or stored
def test_of_what_has_failed_or_passed_nothing_is_kept() -> None:
    node = inside("1111", FAR)
    node.watch(peer("watched", "2000"))
    node.handle(Received("far", Introduced([ROW2])), 1)
    for name in ("far", "watched"):
        node.handle(LinkDown(name, "reset"), 2)
    node.handle(Received("x", Outside("", 0)), 3)
    assert not node._heard_us.keys() & {"far", "watched"}
    assert not node._watched
    assert set(node._asked) == {"row2"}
    node._fail(ROW2)
    assert not node._asked
    joining = gathering()
    joining.handle(Received("p", Welcome(peer("q", "2100"), True, True, [FAR])), 3)
    assert set(joining._asked) == {"far"}
    joining.handle(SETTLE, 4)
    assert joining.joined
    assert not joining._asked, "whoever has not answered by now may be asked again"


def test_a_peer_that_was_only_out_of_reach_has_returned_and_is_said_to_once() -> None:
    quarantine = Quarantine(PROBE_US)
    for failed, back in ((1, True), (0, False)):
        quarantine.begin(peer("a", "2000", failed), 10)
        assert not quarantine.believes(peer("a", "2000", failed), 11)
        assert quarantine.believes(peer("a", "2000", failed + 1), 11)
        quarantine.heard("a")
        assert quarantine.believes(peer("a", "2000", failed), 11)
        assert quarantine.has_returned(peer("a", "2000", 1)) is back
        assert not quarantine.has_returned(peer("a", "2000", 1))
    node = inside("1111", FAR)
    node.handle(LinkDown("far", "reset"), 1)
    node.take_changes()
    for returned in (True, False):
        node.handle(Received("far", Ping(FAR, 0, 0, False)), 2)
        assert (PeerReturned(FAR) in node.take_changes()) is returned


def test_a_node_stores_whom_it_knows_as_a_round_ends_and_asks_them_when_it_is_back() -> None:
    node = inside("1111", FAR, ROW2)
    node.handle(ROUND, 1)
    for each in (FAR, ROW2):
        node.heard(each.name, 2)
    effects = [effect for _ in range(3) for effect in node.handle(DEADLINE, 3)]
    (record,) = [each for each in effects if isinstance(each, Persist)]
    assert record == Persist(0, msgpack.packb([0, "far", "row2"]))
    assert RoundEnded() in node.take_changes()
    assert node.handle(Stored(0), 4) == [Truncate(0)]
    back = Pastry(NodeContext("n", 1, incarnation=1, place=RingPlace(85, digits=4, leaf_set=4, bootstrap=("a",))))
    effects = back.handle(Start([record.record]), PROBE_US + 7)
    assert [to for to, _ in sent(effects, JoinRequest)] == ["a"]
    assert SetTimer(ROUND.key, PROBE_US - 7) in effects
    for remembered in ("far", "row2", "far"):
        assert [to for to, _ in sent(back.handle(JOIN, 9), JoinRequest)] == ["a", remembered]
    with pytest.raises(InputError, match="log of n"):
        Pastry(NodeContext("n", 1, incarnation=1, place=RingPlace(85, bootstrap=("a",)))).handle(Start([b"x"]), 0)


def test_who_waits_outside_tells_another_of_the_first_by_name_until_it_has_joined() -> None:
    """A node that is back may found the overlay anew, once half of its peers wait too; `m` comes before it by name."""
    waits = Received("a", Outside("z", 0))
    node = node_at("1111", "a", incarnation=1)
    assert node.handle(waits, 1) == [Send("a", Outside("n", 0))]
    assert node.handle(Received("a", Outside("m", 0)), 2) == [], "that is no news to it"
    node.handle(Received("a", JoinReply([ROW4])), 3)
    node.handle(Received("row4", Welcome(ROW4, True, False, [])), 4)
    assert node.joined
    assert node.handle(waits, 5) == []


def test_a_node_that_is_the_first_of_those_that_wait_founds_the_overlay_anew() -> None:
    node = node_at("1111", "a", incarnation=1)
    node.handle(Received("a", Outside("", 0)), 1)
    asked = 0
    while not node.joined:
        assert [to for to, _ in sent(node.handle(JOIN, 2), JoinRequest)] == ([] if node.joined else ["a"])
        asked += 1
    assert asked == 8, "four times each peer and one that it may remember"
    new = node_at("1111", "a")
    new.handle(Received("a", Outside("", 0)), 1)
    for _ in range(20):
        new.handle(JOIN, 2)
    assert not new.joined, "who starts for the first time founds nothing"


def test_who_has_been_let_in_once_waits_anew_before_it_founds_anything() -> None:
    """There is an overlay, though the one peer of the reply was dead."""
    node = node_at("1111", "a", incarnation=1)
    node.handle(Received("a", Outside("", 0)), 1)
    for _ in range(7):
        node.handle(JOIN, 2)
    node.handle(Received("a", JoinReply([FAR])), 3)
    node.handle(SETTLE, 4)
    for _ in range(8):
        assert not node.joined
        node.handle(Received("a", Outside("", 0)), 5)
        node.handle(JOIN, 6)
    assert node.joined


def test_a_node_waits_for_all_that_it_seeks() -> None:
    node = node_at("1111", "a")
    node.handle(Received("a", JoinReply([FAR, peer("p", "2000")])), 1)
    for each in (FAR, peer("p", "2000")):
        assert len(sent(node.handle(Received(each.name, Welcome(each, True, False, [])), 2), Seek)) == 1
    for name, text in (("q", "3100"), ("r", "2100")):
        assert not node.joined
        node.handle(Received(name, Welcome(peer(name, text), True, True, [])), 3)
    assert node.joined


def test_an_identifier_that_is_none_of_the_space_is_refused() -> None:
    with pytest.raises(InputError, match=r"overlay\.identifiers"):
        Pastry(NodeContext("n", 1, place=RingPlace(256, digits=4)))
