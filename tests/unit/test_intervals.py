"""Sets of integers as intervals, in both forms, against plain sets."""

from hypothesis import given, settings
from hypothesis import strategies as st

from murmur_pubsub.intervals import Interval, IntervalSet, contains, fill_gaps, overlap, union, value_count

STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 40), st.integers(-2, 12)), max_size=30)
RANGES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)).map(lambda ends: (min(ends), max(ends))))


@settings(max_examples=300)
@given(STEPS, st.integers(0, 45), st.integers(0, 20))
def test_an_interval_set_is_a_set(steps: list[tuple[bool, int, int]], first: int, length: int) -> None:
    ranges, plain = IntervalSet(), set[int]()
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
    assert ranges.greatest == max(plain, default=-1)
    asked = set(range(first, first + length + 1))
    assert {
        tick for begin, end in ranges.within(first, first + length) for tick in range(begin, end + 1)
    } == plain & asked
    assert {
        tick for begin, end in ranges.missing(first, first + length) for tick in range(begin, end + 1)
    } == asked - plain
    assert ranges.first_missing(first) == next(tick for tick in range(first, 100) if tick not in plain)
    assert (first in ranges) == (first in plain)


@given(first=RANGES, second=RANGES)
def test_lists_of_intervals_behave_like_sets_of_values(first: list[Interval], second: list[Interval]) -> None:
    def values(each: list[Interval]) -> set[int]:
        return {value for low, high in each for value in range(low, high + 1)}

    one, other = union(first), union(second)
    assert values(one) == values(first)
    assert value_count(one) == len(values(first))
    assert overlap(one, other) == len(values(first) & values(second))
    assert contains(one, other) == (values(second) <= values(first))
    assert values(fill_gaps(one, 2)) >= values(first)
    assert len(fill_gaps(one, 2)) <= 2


def test_the_smallest_gap_is_filled_however_wide_the_ranges_are() -> None:
    ranges = [(0, 9), (20, 21), (23, 24)]
    assert fill_gaps(ranges, 2) == [(0, 9), (20, 24)]
    assert fill_gaps(ranges, 1) == [(0, 24)]
    assert fill_gaps(ranges, 3) == ranges


def test_only_numbers_that_follow_the_greatest_extend_a_set() -> None:
    made = IntervalSet()
    assert not made.extend(0, 3), "there is none that they could follow"
    made.add(10, 20)
    for first, last in ((10, 20), (15, 19), (22, 30), (9, 30)):
        assert not made.extend(first, last), "known, or with a gap before it, or from below"
        assert list(made) == [(10, 20)]
    assert made.extend(21, 21)
    assert made.extend(15, 30), "the beginning may be known"
    assert list(made) == [(10, 30)]


def test_the_gap_that_is_filled_is_the_smallest_however_long_the_ranges_are() -> None:
    assert fill_gaps([(0, 100), (105, 106), (120, 121)], 2) == [(0, 106), (120, 121)]
