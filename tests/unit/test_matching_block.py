"""One block of the matching index, at its edges."""

from collections.abc import Sequence

import pytest

from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.matching import MatchingIndex
from murmur_pubsub.matching_block import Block
from murmur_pubsub.matching_columns import Cuts, cuts_of
from murmur_pubsub.matching_level import IndexEntry
from tests.unit.test_matching import SMALL_TABLE_BOUNDS, settled


def cuts_in(entries: Sequence[IndexEntry[int]]) -> Cuts:
    """All at once."""
    steps = cuts_of(entries)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: Cuts = done.value
            return found


def test_a_block_has_room_for_the_codes_of_any_number_of_attributes() -> None:
    """It begins with fifteen places, and each attribute with an interval takes one."""
    entries = [IndexEntry(key, parse_filter(f"a{key} BETWEEN 1 AND 2"), key) for key in range(40)]
    block: Block[int] = Block(64, cuts_in(entries))
    block.append(entries)
    for key in range(40):
        name = f"a{key}"
        assert block.matching((name,), {name: 2}).tolist() == [key]
        assert block.matching((name,), {name: 3}).tolist() == []


def test_a_block_that_was_asked_finds_what_it_takes_later_of_another_kind_of_value() -> None:
    """It keeps how it asks for a combination of attributes."""
    block: Block[int] = Block(64, cuts_in([]))
    block.append([IndexEntry(1, parse_filter("a > 1"), 1)])
    assert block.matching(("a",), {"a": "x"}).tolist() == []
    block.append([IndexEntry(2, parse_filter("a >= 'x'"), 2)])
    assert block.matching(("a",), {"a": "x"}).tolist() == [2]
    assert block.matching(("a",), {"a": 2}).tolist() == [1]


def test_a_block_keeps_the_edges_of_each_kind_of_value_of_an_attribute() -> None:
    """Without those of numbers each interval of numbers was possible for each number, and blocks were crowded soon."""
    filters = [f"a BETWEEN {low} AND {low}.5" for low in range(40)] + ["a >= 'x'"]
    entries = [IndexEntry(key, parse_filter(each), key) for key, each in enumerate(filters)]
    block: Block[int] = Block(64, cuts_in(entries))
    edges = {domain: len(cells.edges) for domain, cells in block._columns["a"].domains.items()}
    assert sorted(edges.values()) == [1, 80]
    block.append(entries)
    assert block.matching(("a",), {"a": 7.2}).tolist() == [7]
    assert block.matching(("a",), {"a": "y"}).tolist() == [40]


def test_a_block_is_cut_by_intervals_alone() -> None:
    filters = ["a IS NOT NULL", "a IS NULL", "a IN (1, 2)", "a = 'x'"]
    cuts = cuts_in([IndexEntry(key, parse_filter(each), key) for key, each in enumerate(filters)])
    assert (cuts.edges, cuts.intervals_max) == ({}, 0)


def test_blocks_grow_with_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to a million filters are in one block, and not in sixteen."""
    for module, name, value in SMALL_TABLE_BOUNDS:
        if name != "_CAPACITY_MAX":
            monkeypatch.setattr(module, name, value)
    homes = settled(MatchingIndex(), [f"x BETWEEN {key * 7 % 10} AND 20" for key in range(1_200)])
    assert max(block.capacity for block in homes._blocks.values()) >= 1_024
