"""What a level of the bit-set index is asked, in questions that long histories seldom come to; and in which order
either index names destinations."""

from collections.abc import Sequence

import pytest

from murmur_pubsub import matching_level
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.matching import MatchingIndex
from murmur_pubsub.matching_cells import bits_of
from murmur_pubsub.matching_level import IndexEntry, Level, numbers_of
from murmur_pubsub.matching_naive import NaiveIndex


def built(wanted: Sequence[tuple[int, str]]) -> Level[int]:
    """A level of filters of these destinations."""
    level = Level([IndexEntry(key, parse_filter(text), each) for key, (each, text) in enumerate(wanted)])
    for _ in level.build():
        pass
    return level


def test_a_level_is_asked_on_while_another_destination_than_the_excluded_one_is_missing() -> None:
    level = built([(0, "x = 1"), (1, "s LIKE '%b'")])  # only of the first do the bit sets tell whether it matches
    for exclude in (None, 0, 1, 2):
        found: dict[int, None] = {}
        level.add_destinations(("x", "s"), {"x": 1, "s": "ab"}, found, exclude)
        assert sorted(found) == [each for each in range(2) if each != exclude]


def test_of_many_filters_in_doubt_a_level_asks_for_each_destination_its_own() -> None:
    level = built([(0, "s LIKE '%b'"), *((1, f"s LIKE '%{number}'") for number in range(matching_level._MANY_BITS))])
    for ending, expected in (("b", [0]), ("5", [1]), ("c", [])):
        found: dict[int, None] = {}
        level.add_destinations(("s",), {"s": f"a{ending}"}, found, None)
        assert list(found) == expected


def test_the_cells_of_all_attributes_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a bit for every filter of the level."""
    monkeypatch.setattr(matching_level, "_CELLS_TOTAL", 64)
    level = built([(0, f"a{name} > {bound}") for name in range(8) for bound in range(20)])
    cells = [each for sets in level._attributes.values() for each in sets.domains.values()]
    assert len(cells) == 8
    assert sum(len(each.possible) for each in cells) <= 64


def test_a_destination_that_comes_back_is_the_last_in_turn() -> None:
    for index in (MatchingIndex[str](), NaiveIndex[str]()):
        for key, destination in enumerate(("b0", "b1")):
            index.add(key, parse_filter("x = 1"), destination)
        index.remove(0)
        index.add(2, parse_filter("x = 1"), "b0")
        assert index.destinations({"x": 1}) == ["b1", "b0"]


@pytest.mark.parametrize("size", range(4_096, 4_106))
def test_a_set_of_bits_holds_the_last_number_below_its_size(size: int) -> None:
    numbers = [0, 7, 64, size - 1]
    assert numbers_of(bits_of(numbers, size), size) == numbers
