"""Sets of integers as disjoint intervals: hashed values, and ticks of a stream, which are many and come in runs.

There are two forms. A list of intervals, disjoint and ascending, is a value: it is compared, sent and put together with
others by the functions here. An `IntervalSet` changes in place, in steps that cost the logarithm of its intervals.
"""

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

Interval = tuple[int, int]
"""(first, last); both belong to it."""


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The same values as disjoint intervals, ascending; neighbouring ones are joined."""
    joined: list[Interval] = []
    for low, high in sorted(intervals):
        if joined and low <= joined[-1][1] + 1:
            if high > joined[-1][1]:
                joined[-1] = (joined[-1][0], high)
        else:
            joined.append((low, high))
    return joined


def overlap(first: Sequence[Interval], second: Sequence[Interval]) -> int:
    """How many values are in both; each side disjoint and ascending."""
    shared = begin = 0
    for low, high in first:
        while begin < len(second) and second[begin][1] < low:
            begin += 1
        position = begin
        while position < len(second) and second[position][0] <= high:
            shared += min(high, second[position][1]) - max(low, second[position][0]) + 1
            position += 1
    return shared


def value_count(intervals: Sequence[Interval]) -> int:
    """How many values are in them."""
    return sum(high - low + 1 for low, high in intervals)


def contains(wide: Sequence[Interval], narrow: Sequence[Interval]) -> bool:
    """Is every value of the second in the first? Both disjoint and ascending, the first as `union` leaves it."""
    place = 0
    for low, high in narrow:
        while place < len(wide) and wide[place][1] < high:
            place += 1
        if place == len(wide) or wide[place][0] > low:
            return False
    return True


def fill_gaps(ranges: list[Interval], most: int) -> list[Interval]:
    """At most `most` ranges that hold all of these: the smallest gaps are filled."""
    while len(ranges) > most:
        gap = min(range(len(ranges) - 1), key=lambda number: ranges[number + 1][0] - ranges[number][1])
        ranges = [*ranges[:gap], (ranges[gap][0], ranges[gap + 1][1]), *ranges[gap + 2 :]]
    return ranges


class IntervalSet:
    """A set of integers that changes, mostly at its end. Its intervals are ascending and do not touch."""

    __slots__ = ("_firsts", "_lasts")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def __bool__(self) -> bool:
        return bool(self._firsts)

    def __iter__(self) -> Iterator[Interval]:
        return zip(self._firsts, self._lasts, strict=True)

    def __contains__(self, number: int) -> bool:
        place = bisect_right(self._firsts, number) - 1
        return place >= 0 and number <= self._lasts[place]

    @property
    def greatest(self) -> int:
        """The greatest number (-1: the set is empty)."""
        return self._lasts[-1] if self._lasts else -1

    def __len__(self) -> int:
        """How many numbers are in it."""
        return sum(self._lasts) - sum(self._firsts) + len(self._firsts)

    def add(self, first: int, last: int) -> None:
        """Add the numbers from `first` to `last`."""
        if first > last:
            return
        firsts, lasts = self._firsts, self._lasts
        if not lasts or first > lasts[-1] + 1:
            firsts.append(first)
            lasts.append(last)
            return
        if first >= firsts[-1]:
            if last > lasts[-1]:
                lasts[-1] = last
            return
        begin = bisect_left(lasts, first - 1)  # the first interval that touches or follows
        end = bisect_right(firsts, last + 1)  # one after the last interval that touches
        if begin < end:
            first = min(first, firsts[begin])
            last = max(last, lasts[end - 1])
        firsts[begin:end] = [first]
        lasts[begin:end] = [last]

    def extend(self, first: int, last: int) -> bool:
        """Add numbers that follow the greatest one; False, and nothing is done, if that is not what they do."""
        lasts = self._lasts
        if not lasts or not self._firsts[-1] <= first <= lasts[-1] + 1 or last <= lasts[-1]:
            return False
        lasts[-1] = last
        return True

    def remove(self, first: int, last: int) -> None:
        """Take away the numbers from `first` to `last`, as far as they are there."""
        if first > last:
            return
        firsts, lasts = self._firsts, self._lasts
        begin = bisect_left(lasts, first)
        end = bisect_right(firsts, last)
        if begin >= end:
            return
        left = [(firsts[begin], first - 1)] if firsts[begin] < first else []
        right = [(last + 1, lasts[end - 1])] if lasts[end - 1] > last else []
        kept = left + right
        firsts[begin:end] = [each for each, _ in kept]
        lasts[begin:end] = [each for _, each in kept]

    def within(self, first: int, last: int) -> list[Interval]:
        """The parts of [first, last] that are in the set."""
        firsts, lasts = self._firsts, self._lasts
        begin = bisect_left(lasts, first)
        end = bisect_right(firsts, last)
        if begin >= end:
            return []
        found = list(zip(firsts[begin:end], lasts[begin:end], strict=True))
        # All but the first and the last lie within.
        if found[0][0] < first:
            found[0] = first, found[0][1]
        if found[-1][1] > last:
            found[-1] = found[-1][0], last
        return found

    def missing(self, first: int, last: int) -> list[Interval]:
        """The parts of [first, last] that are not in the set."""
        if not self._firsts:
            return [(first, last)] if first <= last else []
        found = []
        for known_first, known_last in self.within(first, last):
            if first < known_first:
                found.append((first, known_first - 1))
            first = known_last + 1
        if first <= last:
            found.append((first, last))
        return found

    def first_missing(self, number: int) -> int:
        """The first one from `number` on that is not in the set."""
        place = bisect_right(self._firsts, number) - 1
        return self._lasts[place] + 1 if place >= 0 and number <= self._lasts[place] else number

    def check_invariants(self) -> None:
        firsts, lasts = self._firsts, self._lasts
        assert len(firsts) == len(lasts)
        assert all(map(operator.le, firsts, lasts))
        assert all(last + 1 < first for last, first in zip(lasts, firsts[1:], strict=False))
