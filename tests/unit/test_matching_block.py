"""One block of the matching index, at its edges."""

from collections.abc import Sequence

from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.matching_block import Block
from murmur_pubsub.matching_columns import Cuts, cuts_of
from murmur_pubsub.matching_level import IndexEntry


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
