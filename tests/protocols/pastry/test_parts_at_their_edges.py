"""Quarantine, leaf set and routing table of a Pastry node, one by one, at their edges."""

import pytest

from routing.pastry.identifiers import IdentifierSpace
from routing.pastry.leaf_set import LeafSet
from routing.pastry.messages import PastryPeer
from routing.pastry.quarantine import QUARANTINE_ROUNDS, Quarantine
from routing.pastry.routing_table import RoutingTable

SPACE = IdentifierSpace(4, 4)


@pytest.mark.parametrize(
    ("incarnation", "after_us", "believed"),
    [(1, 10 * QUARANTINE_ROUNDS - 1, False), (1, 10 * QUARANTINE_ROUNDS, True), (0, 1, False), (2, 1, True)],
)
def test_hearsay_of_a_failed_peer_is_believed_of_a_later_life_or_when_the_quarantine_is_over(
    incarnation: int, after_us: int, believed: bool
) -> None:
    quarantine = Quarantine(10)
    quarantine.begin(PastryPeer("a", 7, 1), 5)
    assert quarantine.believes(PastryPeer("a", 7, incarnation), 5 + after_us) is believed
    assert quarantine.believes(PastryPeer("b", 8, 0), 5)


def test_of_two_equally_close_leaves_the_lower_is_the_closest() -> None:
    leaves = LeafSet(SPACE, 100, 4)
    for identifier in (120, 110):
        assert leaves.add(PastryPeer(f"p{identifier}", identifier))
    found = leaves.closest(115)
    assert found is not None
    assert found.identifier == 110
    assert leaves.closest(105) is None, "this node is as close, and lower"


def test_a_table_forgets_only_the_peer_that_stands_for_the_cell_and_lists_the_cells_anew() -> None:
    table = RoutingTable(SPACE, 0)
    one, other = PastryPeer("a", 200), PastryPeer("b", 201)
    cell = table.put(one)
    assert table.cell_of(other.identifier) == cell
    assert table.cells() == [(cell, one)]
    assert table.remove(other) is None
    assert table.put(other) == cell
    assert table.cells() == [(cell, other)]
    assert table.remove(other) == cell
    assert table.cells() == []
