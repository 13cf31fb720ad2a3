"""The constraints on one attribute as bit sets: which filters may an event with this value match?

Theory. Filters are numbered; a set of filters is a Python int used as a bit set, whose AND and OR run at memory
speed without any overhead for a call. For each attribute and ordered domain the values are cut into cells at
some of the bounds that occur in filters. A cell has two bit sets: filters that an event with a value in the
cell matches for `certain` as far as this attribute goes, and those it `possibly` matches (their bound lies
inside the cell, or they want a suffix). Equality and IN are kept by value. A filter that does not constrain the
attribute, or wants it only to exist, is in both sets of every cell: they are the `base`. One that wants it absent is
in no cell.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any

from murmur_pubsub.filter import EXISTS, Constraint
from murmur_pubsub.values import Domain, Value

_OWN_BITS_FROM = 16
"""A value of at least this number of filters has a bit set; with fewer, in a large level, it lists their numbers."""
_SMALL_SIZE = 4_096
_AT_ONCE = 128
"""Constraints, or values, that one step of building sees to."""
_CELLS_AT_ONCE = 48
_LISTED_AT_ONCE = 1_024
"""Constraints that one step looks at, to list them by what they are."""
_BOUNDS_MAX = 4_096
"""Bounds that are sorted, in one step, to find the edges of cells."""
_NULS = "\0" * 65
"""No bound ends in so many."""
_STRIDE = 16
"""For questions of covering, the distance, in cells, between two unions of all cells before, and after."""


def within(wanted: Constraint) -> Constraint:
    """The constraint with a low end that no constraint which covers it begins behind: what wants a suffix may begin
    before one that covers it, by some NULs."""
    return wanted._replace(low=f"{wanted.low or ''}{_NULS}") if wanted.suffix else wanted


def around(wanted: Constraint) -> Constraint:
    """The constraint with a low end before which nothing begins that it covers."""
    return wanted._replace(low=wanted.low.rstrip("\0")) if type(wanted.low) is str else wanted


def bits_of(numbers: Sequence[int], size: int) -> int:
    """The bit set of these distinct numbers, all below `size`."""
    if size <= _SMALL_SIZE // 2 or len(numbers) <= 2:
        bits = 0
        for number in numbers:
            bits |= 1 << number
        return bits
    # Each `|=` on a large int copies it; bytes are changed in place.
    octets = bytearray((size + 7) >> 3)
    for number in numbers:
        octets[number >> 3] |= 1 << (number & 7)
    return int.from_bytes(octets, "little")


class AttributeCells:
    """The constraints of one domain on one attribute; there to be used once all steps of `build` are taken."""

    __slots__ = ("_after", "_before", "_size", "by_value", "certain", "edges", "possible")

    def __init__(self, size: int) -> None:
        self._size = size
        self.by_value: dict[Value, int | list[int]] = {}
        self.edges: list[Any] = []
        self.possible: list[int] = []
        self.certain: list[int] = []
        self._before: list[int] | None = None
        self._after: list[int] | None = None

    def build(self, constraints: Sequence[tuple[int, Constraint]], base: int, cells_max: int) -> Iterator[None]:
        """Take the constraints in, in short steps."""
        size = self._size
        listed: dict[Value, list[int]] = {}
        intervals = []
        for position, (number, constraint) in enumerate(constraints):
            if constraint.values is None:
                intervals.append((number, constraint))
            else:
                for value in constraint.values:
                    listed.setdefault(value, []).append(number)
            if position % _LISTED_AT_ONCE == 0:
                yield
        for position, (value, numbers) in enumerate(listed.items()):
            own_bits = size <= _SMALL_SIZE or len(numbers) >= _OWN_BITS_FROM
            self.by_value[value] = bits_of(numbers, size) if own_bits else numbers
            if position % _AT_ONCE == 0:
                yield
        self.edges = yield from _edges(intervals, cells_max)
        possible: list[tuple[int, int, int]] = []
        certain: list[tuple[int, int, int]] = []
        for position, (number, constraint) in enumerate(intervals):
            if position % _AT_ONCE == 0:
                yield
            first, last, inner_first, inner_end = self._reach(constraint)
            possible.append((number, first, last + 1))
            if constraint.excluded and not constraint.suffix:
                holes = [bisect_right(self.edges, value) for value in constraint.excluded]
                certain += _without(number, inner_first, inner_end, holes)
            elif inner_first < inner_end and not constraint.suffix:
                certain.append((number, inner_first, inner_end))
        yield from _spread(self.possible, possible, len(self.edges) + 1, size, base)
        if intervals:
            yield from _spread(self.certain, certain, len(self.edges) + 1, size, base)
        else:
            self.certain = self.possible

    def equal(self, value: Value) -> int:
        """The filters whose finite set has the value."""
        found = self.by_value.get(value, 0)
        return found if isinstance(found, int) else bits_of(found, self._size)

    def covering(self, wanted: Constraint) -> int:
        """The filters that may allow all that the constraint allows; none that does is left out."""
        if wanted.values is None:
            # An interval that holds another one holds both its ends, so it meets the cells of both. No finite set holds
            # one: an interval of few strings is a set in normal form.
            first, last = self._ends(within(wanted))
            return self.possible[first] & self.possible[last]
        found = -1
        for value in wanted.values:
            found &= self.possible[bisect_right(self.edges, value)] | self.equal(value)
        return found

    def outside(self, wanted: Constraint) -> int:
        """The filters with an interval that goes beyond the constraint's; without the rest that do not fit it."""
        first, last = self._ends(around(wanted))
        return self._begin_before(first) | self._end_after(last)

    def _begin_before(self, first: int) -> int:
        if self._before is None:
            self._before = list(_unions(self.possible))
        found = self._before[first // _STRIDE]
        for cell in self.possible[first - first % _STRIDE : first]:
            found |= cell
        return found

    def _end_after(self, last: int) -> int:
        if self._after is None:
            self._after = list(_unions(self.possible[::-1]))
        rest = len(self.possible) - 1 - last
        found = self._after[rest // _STRIDE]
        for cell in self.possible[last + 1 : last + 1 + rest % _STRIDE]:
            found |= cell
        return found

    def _ends(self, constraint: Constraint) -> tuple[int, int]:
        """The cells in which an interval begins and ends; cell k is from edge k-1 up to, but without, edge k."""
        low: Any = constraint.low
        high: Any = constraint.high
        first = 0 if low is None else bisect_right(self.edges, low)
        if high is None:
            return first, len(self.edges)
        return first, bisect_left(self.edges, high) if constraint.high_open else bisect_right(self.edges, high)

    def _reach(self, constraint: Constraint) -> tuple[int, int, int, int]:
        """(first and last cell that meets the interval; first cell wholly in it, and the cell after the last)."""
        first, last = inner_first, inner_end = self._ends(constraint)
        edges = self.edges
        if constraint.low is not None and (constraint.low_open or not first or edges[first - 1] != constraint.low):
            inner_first += 1
        if constraint.high is None or (last < len(edges) and edges[last] == constraint.high):
            inner_end += 1
        return first, last, inner_first, inner_end


def _edges(intervals: Sequence[tuple[int, Constraint]], cells_max: int) -> Generator[None, None, list[Any]]:
    """The edges of at most so many cells, found in short steps."""
    bounds: list[Any] = [constraint.low for _, constraint in intervals if constraint.low is not None]
    yield
    bounds += [constraint.high for _, constraint in intervals if constraint.high is not None]
    yield
    distinct = set(bounds)
    yield
    if len(distinct) < cells_max:
        return sorted(distinct)
    bounds = bounds[:: len(bounds) // _BOUNDS_MAX + 1]
    bounds.sort()  # at equal numbers of bounds, however often each occurs: cells then are uncertain of equally many
    return list(dict.fromkeys(bounds[:: -(-len(bounds) // (cells_max - 1))]))


def _without(number: int, begin: int, end: int, holes: Iterable[int]) -> Iterator[tuple[int, int, int]]:
    for hole in sorted(set(holes)):
        if begin <= hole < end:
            if begin < hole:
                yield number, begin, hole
            begin = hole + 1
    if begin < end:
        yield number, begin, end


def _spread(
    spread: list[int], runs: Sequence[tuple[int, int, int]], cells: int, size: int, base: int
) -> Iterator[None]:
    """Add for each cell the bit set of the filters whose run (number, begin, end) holds it, and the base."""
    # A filter's bit is flipped where a run of it begins and where it ends. That is right as long as no two runs of one
    # filter overlap or touch (a hole lies between two of them), and no filter of the base has a run.
    changes: list[list[int]] = [[] for _ in range(cells + 1)]
    for number, begin, end in runs:
        changes[begin].append(number)
        changes[end].append(number)
    for cell, numbers in enumerate(changes[:-1]):
        if cell % _CELLS_AT_ONCE == 0:
            yield
        if numbers:
            base ^= bits_of(numbers, size)
        spread.append(base)


def _unions(cells: Sequence[int]) -> Iterator[int]:
    """The unions of the first 0, `_STRIDE`, twice `_STRIDE` … cells."""
    union = 0
    for number, cell in enumerate(cells):
        if number % _STRIDE == 0:
            yield union
        union |= cell
    yield union


class AttributeSets:
    """All constraints on one attribute. `constrained`: the filters that have one; `required`: those of them that do not
    want it absent; `base`: see above.

    There to be used once all steps of `build` are taken.
    """

    __slots__ = ("base", "constrained", "domains", "required")

    def __init__(self) -> None:
        self.constrained = self.required = self.base = 0
        self.domains: dict[Domain, AttributeCells] = {}

    def build(
        self, constraints: Sequence[tuple[int, Constraint]], size: int, everything: int, cells_max: int
    ) -> Iterator[None]:
        """Take the constraints in, in short steps."""
        exists: list[int] = []
        absent: list[int] = []
        by_domain: dict[Domain, list[tuple[int, Constraint]]] = {}
        for position, (number, constraint) in enumerate(constraints):
            if constraint.domain is not None:
                by_domain.setdefault(constraint.domain, []).append((number, constraint))
            elif constraint.is_absence:
                absent.append(number)
            elif constraint == EXISTS:
                exists.append(number)
            if position % _LISTED_AT_ONCE == 0:
                yield
        self.constrained = bits_of([number for number, _ in constraints], size)
        self.required = self.constrained & ~bits_of(absent, size)
        self.base = everything & ~self.constrained | bits_of(exists, size)
        for domain, each in by_domain.items():
            cells = self.domains[domain] = AttributeCells(size)
            yield from cells.build(each, self.base, cells_max)

    def covering(self, wanted: Constraint) -> int:
        """The filters that may allow all that the constraint allows; none that does is left out."""
        if wanted.is_absence:
            return ~self.required
        cells = None if wanted.domain is None else self.domains.get(wanted.domain)
        return self.base if cells is None else cells.covering(wanted)

    def covered(self, wanted: Constraint) -> int:
        """The filters that may allow nothing but what the constraint allows; none that does so is left out."""
        if wanted.domain is None:
            return self.constrained & ~self.required if wanted.is_absence else self.required
        cells = self.domains.get(wanted.domain)
        if cells is None:
            return 0
        if wanted.values is None:
            return self.required & ~cells.outside(wanted)
        found = 0
        for value in wanted.values:
            found |= cells.equal(value)
        return found
