"""Whom a Pastry node knows: as long as they stand for a range or are leaves, and whom it names to another."""

import pytest

from routing.pastry.identifiers import IdentifierRange, IdentifierSpace
from routing.pastry.known_peers import KnownPeers, TakenIn
from routing.pastry.messages import PastryPeer

SPACE = IdentifierSpace(4, 4)
OWN = int("1111", 4)


def beside(step: int) -> PastryPeer:
    return PastryPeer(f"l{step}", OWN + step)


def at(name: str, text: str) -> PastryPeer:
    return PastryPeer(name, int(text, 4))


def known_to(*peers: PastryPeer) -> KnownPeers:
    known = KnownPeers(SPACE, OWN, 4)
    for peer in peers:
        known.take_in(peer)
    known.check_invariants()
    return known


def test_a_leaf_that_makes_way_for_a_nearer_one_is_forgotten_unless_it_stands_for_a_range() -> None:
    cell = IdentifierRange(int("113", 4), 3)
    known = known_to(*(beside(step) for step in (8, 9, -8, -9)))
    assert known.get("l9") == beside(9), "a leaf, in the range for which l8 stands"
    assert known.take_in(beside(1)) == TakenIn(IdentifierRange(OWN + 1, 4), True)
    assert "l9" not in known
    assert known.take_in(beside(2)) == TakenIn(IdentifierRange(OWN + 2, 4), True)
    assert "l8" not in known.leaves
    assert known.get("l8") == known.table.get(cell) == beside(8)
    assert known.take_in(beside(10)) == TakenIn(None, False)
    known.check_invariants()


def test_whom_another_replaces_in_its_range_is_forgotten_unless_it_is_a_leaf() -> None:
    far, other = at("far", "3000"), at("other", "3300")
    for leaves in ((), (1, 2, -1, -2)):
        known = known_to(*map(beside, leaves), far)
        known.replace(other)
        assert known.table.get(IdentifierRange(3, 1)) == other
        assert ("far" in known) is (leaves == ())
        known.replace(at("else", "2000"))
        assert "else" not in known, "there is nobody in its range to replace"
        known.replace(other)
        assert known.get("other") == other
        known.check_invariants()


def test_of_what_is_known_the_nearest_are_leaves_when_one_has_gone() -> None:
    known = known_to(*(beside(step) for step in (1, 2, -1, -2)), at("far", "3000"))
    assert "far" not in known.leaves
    assert known.remove(beside(2)) == (IdentifierRange(OWN + 2, 4), True)
    assert "far" in known.leaves
    assert known.remove(at("far", "3000")) == (IdentifierRange(3, 1), True)
    assert known.remove(at("far", "3000")) == (None, False)
    assert set(known.names) == {"l1", "l-1", "l-2"}


@pytest.mark.parametrize(
    ("asking", "row", "is_its_leaf", "named"),
    [
        ("3100", 0, False, {"far", "two"}),
        ("3100", 1, False, {"far", "two"}),
        ("1211", 0, False, {"row2"}),
        ("1211", 1, False, {"row2", "far", "two"}),
        ("1211", 2, False, {"row2"}),
        ("1211", -1, False, {"row2"}),
        ("1211", 0, True, {"row2", "l1", "l2", "two"}),
        ("1112", 0, False, {"l1", "l2", "l-1", "l-2"}),
    ],
)
def test_a_peer_may_like_to_know_its_row_the_one_it_asks_for_and_what_is_near(
    asking: str, row: int, is_its_leaf: bool, named: set[str]
) -> None:
    known = known_to(*map(beside, (1, 2, -1, -2)), at("far", "3000"), at("two", "2000"), at("row2", "1300"))
    found = [peer.name for peer in known.useful_to(at("asking", asking), row, is_its_leaf)]
    assert set(found) == named
    assert len(found) == len(named)


def test_two_that_meet_have_the_rows_up_to_that_in_which_they_differ_in_common() -> None:
    known = known_to(*map(beside, (1, 2, -1, -2)), at("far", "3000"), at("row2", "1300"), at("row3", "1130"))
    for other, named in (("2000", {"far"}), ("1200", {"far", "row2"}), ("1100", {"far", "row2", "row3", "l-2"})):
        assert {peer.name for peer in known.in_common_with(at("other", other))} == named
    assert "row2" not in {peer.name for peer in known.in_common_with(at("row2", "1300"))}


def test_a_message_passes_by_whoever_looks_for_others() -> None:
    known = known_to(*map(beside, (1, 2, -1, -2)), at("far", "3000"), at("row2", "1300"))
    assert known.next_hop(int("3100", 4)) == at("far", "3000")
    assert known.next_hop(int("3100", 4), "far") == at("row2", "1300"), "the nearest of the others"
    assert known.next_hop(int("0000", 4), "far") == beside(-2)
    assert known.next_hop(int("1310", 4), "far") == at("row2", "1300")
    assert known.next_hop(OWN) is None
    assert known.next_hop(OWN + 1) == beside(1)
    assert known.next_hop(OWN + 1, "l1") in (None, beside(2))
