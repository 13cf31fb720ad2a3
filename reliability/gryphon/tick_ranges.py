"""Sets of ticks as disjoint ranges: streams are kept by run lengths, never tick by tick."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

TickRange = tuple[int, int]
"""(first, last), both included."""


class TickRanges:
    """A set of ticks. Ranges are in order, do not touch, and the last is where most changes happen."""

    __slots__ = ("_firsts", "_lasts")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def __bool__(self) -> bool:
        return bool(self._firsts)

    def __iter__(self) -> Iterator[TickRange]:
        return zip(self._firsts, self._lasts, strict=True)

    def __contains__(self, tick: int) -> bool:
        place = bisect_right(self._firsts, tick) - 1
        return place >= 0 and tick <= self._lasts[place]

    @property
    def newest(self) -> int:
        """The greatest tick (-1: there is none)."""
        return self._lasts[-1] if self._lasts else -1

    def __len__(self) -> int:
        """How many ticks there are."""
        return sum(self._lasts) - sum(self._firsts) + len(self._firsts)

    def add(self, first: int, last: int) -> None:
        """Add the ticks from `first` to `last`."""
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
        begin = bisect_left(lasts, first - 1)  # the first range that touches or follows
        end = bisect_right(firsts, last + 1)  # one after the last range that touches
        if begin < end:
            first = min(first, firsts[begin])
            last = max(last, lasts[end - 1])
        firsts[begin:end] = [first]
        lasts[begin:end] = [last]

    def extend(self, first: int, last: int) -> bool:
        """Add ticks that follow the newest ones; False, and nothing is done, if that is not what they do."""
        lasts = self._lasts
        if not lasts or not self._firsts[-1] <= first <= lasts[-1] + 1 or last <= lasts[-1]:
            return False
        lasts[-1] = last
        return True

    def remove(self, first: int, last: int) -> None:
        """Take away the ticks from `first` to `last`, as far as they are there."""
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

    def within(self, first: int, last: int) -> list[TickRange]:
        """The parts of [first, last] that are in the set."""
        firsts, lasts = self._firsts, self._lasts
        begin = bisect_left(lasts, first)
        end = bisect_right(firsts, last)
        return [(max(first, firsts[at]), min(last, lasts[at])) for at in range(begin, end)]

    def missing(self, first: int, last: int) -> list[TickRange]:
        """The parts of [first, last] that are not in the set."""
        found = []
        for known_first, known_last in self.within(first, last):
            if first < known_first:
                found.append((first, known_first - 1))
            first = known_last + 1
        if first <= last:
            found.append((first, last))
        return found

    def first_missing(self, tick: int) -> int:
        """The first tick from `tick` on that is not in the set."""
        place = bisect_right(self._firsts, tick) - 1
        return self._lasts[place] + 1 if place >= 0 and tick <= self._lasts[place] else tick

    def check_invariants(self) -> None:
        assert all(first <= last for first, last in self)
        assert all(self._lasts[at] + 1 < self._firsts[at + 1] for at in range(len(self._firsts) - 1))
