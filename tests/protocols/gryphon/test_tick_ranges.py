"""Ranges of ticks against plain sets."""

from hypothesis import given, settings
from hypothesis import strategies as st

from reliability.gryphon.tick_ranges import TickRanges

STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 40), st.integers(-2, 12)), max_size=30)


@settings(max_examples=300)
@given(STEPS, st.integers(0, 45), st.integers(0, 20))
def test_ranges_are_sets(steps: list[tuple[bool, int, int]], first: int, length: int) -> None:
    ranges, plain = TickRanges(), set[int]()
    for adds, begin, size in steps:
        ticks = set(range(begin, begin + size + 1))
        if adds:
            ranges.add(begin, begin + size)
            plain |= ticks
        else:
            ranges.remove(begin, begin + size)
            plain -= ticks
        ranges.check_invariants()
    assert {tick for begin, end in ranges for tick in range(begin, end + 1)} == plain
    assert len(ranges) == len(plain)
    assert ranges.newest == max(plain, default=-1)
    asked = set(range(first, first + length + 1))
    assert {
        tick for begin, end in ranges.within(first, first + length) for tick in range(begin, end + 1)
    } == plain & asked
    assert {
        tick for begin, end in ranges.missing(first, first + length) for tick in range(begin, end + 1)
    } == asked - plain
    assert ranges.first_missing(first) == next(tick for tick in range(first, 100) if tick not in plain)
    assert (first in ranges) == (first in plain)
