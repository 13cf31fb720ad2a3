"""One block of the matching index, at its edges."""

from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.matching_block import Block
from murmur_pubsub.matching_columns import cuts_of
from murmur_pubsub.matching_level import IndexEntry


def test_a_block_has_room_for_the_codes_of_any_number_of_attributes() -> None:
    """It begins with fifteen places, and each attribute with an interval takes one."""
    entries = [IndexEntry(key, parse_filter(f"a{key} BETWEEN 1 AND 2"), key) for key in range(40)]
    steps = cuts_of(entries)
    try:
        while True:
            next(steps)
    except StopIteration as done:
        cuts = done.value
    block: Block[int] = Block(64, cuts)
    block.append(entries)
    for key in range(40):
        name = f"a{key}"
        assert block.matching((name,), {name: 2}).tolist() == [key]
        assert block.matching((name,), {name: 3}).tolist() == []
