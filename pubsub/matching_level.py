"""One level of the matching index: a fixed set of filters as bit sets, built in bulk.

Theory. Filters are numbered; a set of filters is a Python int used as a bit set, whose AND and OR run at memory
speed without any per-call overhead. For each attribute and ordered domain the values are cut into cells at
some of the bounds that occur in filters. A cell has two bit sets: filters that an event with a value in the
cell matches for `certain` as far as this attribute goes, and those it `possibly` matches (their bound lies
inside the cell). Equality and IN are kept by value. A filter that does not constrain the attribute is in both
sets of every cell. ANDing over the attributes leaves the filters that match for certain and a few to be asked
one by one.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from pubsub.filter import Constraint, Filter
from pubsub.values import Domain, Value

_CELLS_MAX = 512
_BULK = 2_048
"""From so many filters on, bit sets are put together by numpy; below, its cost for a call is not worth it."""
_MANY_BITS = 8

_FEW_DESTINATIONS = 32
_TYPES_OF_DOMAIN: dict[Domain, tuple[type, ...]] = {"number": (int, float), "string": (str,), "boolean": (bool,)}


Destination = TypeVar("Destination", bound=Hashable)


class Entry(NamedTuple, Generic[Destination]):
    """A filter in an index, with its key and destination."""

    key: int
    filter: Filter
    destination: Destination


class _Cells:
    """The constraints on one attribute within one domain. `base` (free or exists) is part of every bit set."""

    __slots__ = ("_ended", "_started", "certain", "edges", "equal", "possible")

    def __init__(self, constraints: Sequence[tuple[int, Constraint]], size: int, base: int) -> None:
        self.equal: dict[Value, int] = {}
        intervals = []
        for number, constraint in constraints:
            if constraint.values is None:
                intervals.append((number, constraint))
            else:
                for value in constraint.values:
                    self.equal[value] = self.equal.get(value, 0) | 1 << number
        self.edges = _edges(intervals)
        possible: list[tuple[int, int, int]] = []
        certain: list[tuple[int, int, int]] = []
        for number, constraint in intervals:
            first, last, inner_first, inner_last = self._reach(constraint)
            possible.append((number, first, last + 1))
            if inner_first <= inner_last:
                certain += _without(
                    number, inner_first, inner_last + 1, [self.cell(each) for each in constraint.excluded]
                )
        cells = len(self.edges) + 1
        self.possible = _spread(possible, cells, size, base)
        self.certain = _spread(certain, cells, size, base)
        self._started: list[int] | None = None
        self._ended: list[int] | None = None

    def cell(self, value: Any) -> int:
        """The number of the cell that holds the value: cell k is from edge k-1 up to, but without, edge k."""
        return bisect_right(self.edges, value)

    def ends(self, constraint: Constraint) -> tuple[int, int]:
        """The cells in which an interval begins and ends."""
        low: Any = constraint.low
        high: Any = constraint.high
        first = 0 if low is None else bisect_right(self.edges, low)
        if high is None:
            return first, len(self.edges)
        last = bisect_left(self.edges, high) if constraint.high_open else bisect_right(self.edges, high)
        return first, max(first, last)

    def begins_within(self, first: int) -> int:
        """The intervals that begin before the cell: all that cannot lie within something beginning there."""
        if self._started is None:
            self._started = [0]
            for cell in self.possible:
                self._started.append(self._started[-1] | cell)
        return self._started[first]

    def ends_after(self, last: int) -> int:
        """The intervals that go on after the cell."""
        if self._ended is None:
            ended = [0]
            for cell in reversed(self.possible):
                ended.append(ended[-1] | cell)
            self._ended = ended[::-1]
        return self._ended[last + 1]

    def _reach(self, constraint: Constraint) -> tuple[int, int, int, int]:
        first, last = self.ends(constraint)
        inner_first, inner_last = first, last
        if constraint.low is not None and (constraint.low_open or not first or self.edges[first - 1] != constraint.low):
            inner_first += 1
        if constraint.high is not None and not (
            constraint.high_open and last < len(self.edges) and self.edges[last] == constraint.high
        ):
            inner_last -= 1
        return first, last, inner_first, inner_last


def _edges(intervals: Sequence[tuple[int, Constraint]]) -> list[Any]:
    bounds: list[Any] = sorted(
        {bound for _, constraint in intervals for bound in (constraint.low, constraint.high) if bound is not None}
    )
    step = -(-len(bounds) // _CELLS_MAX) or 1
    return bounds[::step]


def _without(number: int, begin: int, end: int, holes: list[int]) -> Iterator[tuple[int, int, int]]:
    for hole in sorted(set(holes)):
        if begin <= hole < end:
            if begin < hole:
                yield number, begin, hole
            begin = hole + 1
    if begin < end:
        yield number, begin, end


def _spread(runs: Sequence[tuple[int, int, int]], cells: int, size: int, base: int) -> list[int]:
    """For each cell the bit set of the filters whose run (number, begin, end) holds it, and the base."""
    toggles = [0] * (cells + 1)
    if len(runs) < _BULK:
        for number, begin, end in runs:
            bit = 1 << number
            toggles[begin] ^= bit
            toggles[end] ^= bit
    elif runs:
        table = np.array(runs, dtype=np.int64)
        cell = np.concatenate((table[:, 1], table[:, 2]))
        order = np.argsort(cell, kind="stable")
        numbers = np.concatenate((table[:, 0], table[:, 0]))[order]
        begins = np.searchsorted(cell[order], np.arange(cells + 2))
        for each in range(cells + 1):
            group = numbers[begins[each] : begins[each + 1]]
            if len(group):
                counts = np.bincount(group, minlength=size) & 1
                toggles[each] = int.from_bytes(np.packbits(counts.astype(bool), bitorder="little").tobytes(), "little")
    spread, running = [], base
    for toggle in toggles[:-1]:
        running ^= toggle
        spread.append(running)
    return spread


class _Attribute:
    """All constraints on one attribute. `free`: filters without one; `base`: those, and where it need only exist."""

    __slots__ = ("base", "domains", "free")

    def __init__(self, constraints: Sequence[tuple[int, Constraint]], size: int, everything: int) -> None:
        constrained = _bits([number for number, _ in constraints], size)
        exists = _bits([number for number, constraint in constraints if constraint.domain is None], size)
        self.free = everything & ~constrained
        self.base = self.free | exists
        by_domain: dict[Domain, list[tuple[int, Constraint]]] = {}
        for number, constraint in constraints:
            if constraint.domain is not None:
                by_domain.setdefault(constraint.domain, []).append((number, constraint))
        self.domains = {domain: _Cells(each, size, self.base) for domain, each in by_domain.items()}

    def covering(self, wanted: Constraint) -> int:
        """The filters that may allow all that the constraint allows; none that does is left out."""
        cells = None if wanted.domain is None else self.domains.get(wanted.domain)
        if cells is None:
            return self.base
        if wanted.values is None:
            first, last = cells.ends(wanted)
            return cells.possible[first] & cells.possible[last]
        found = -1
        for value in wanted.values:
            found &= cells.possible[cells.cell(value)] | cells.equal.get(value, 0)
        return found

    def covered(self, wanted: Constraint, everything: int) -> int:
        """The filters that may allow nothing but what the constraint allows; none that does so is left out."""
        if wanted.domain is None:
            return everything & ~self.free
        cells = self.domains.get(wanted.domain)
        if cells is None:
            return 0
        found = 0
        if wanted.values is not None:
            for value in wanted.values:
                found |= cells.equal.get(value, 0)
            return found
        first, last = cells.ends(wanted)
        within = everything & ~(cells.begins_within(first) | cells.ends_after(last))
        return within & ~self.base


def _bits(numbers: Sequence[int], size: int) -> int:
    if len(numbers) < _BULK:
        found = 0
        for number in numbers:
            found |= 1 << number
        return found
    marks = np.zeros(size, dtype=bool)
    marks[numbers] = True
    return int.from_bytes(np.packbits(marks, bitorder="little").tobytes(), "little")


def numbers_of(bits: int, size: int) -> list[int]:
    """The numbers in a bit set, ascending."""
    if bits.bit_count() > _MANY_BITS and size > _BULK:
        octets = np.frombuffer(bits.to_bytes((size + 7) // 8, "little"), dtype=np.uint8)
        listed: list[int] = np.flatnonzero(np.unpackbits(octets, bitorder="little")).tolist()
        return listed
    numbers = []
    while bits:
        lowest = bits & -bits
        numbers.append(lowest.bit_length() - 1)
        bits ^= lowest
    return numbers


class Level(Generic[Destination]):
    """A fixed set of entries; entries can be struck out. No entry's filter may match nothing."""

    __slots__ = ("_attributes", "_destinations", "_plan", "alive", "entries", "size")

    def __init__(self, entries: Sequence[Entry[Destination]]) -> None:
        self.entries = entries
        self.size = len(entries)
        self.alive = everything = (1 << self.size) - 1
        constraints: dict[str, list[tuple[int, Constraint]]] = {}
        owned: dict[Destination, list[int]] = {}
        for number, entry in enumerate(entries):
            assert entry.filter.constraints is not None
            for name, constraint in entry.filter.constraints.items():
                constraints.setdefault(name, []).append((number, constraint))
            owned.setdefault(entry.destination, []).append(number)
        self._attributes = {name: _Attribute(each, self.size, everything) for name, each in constraints.items()}
        # What `match` walks over for every event, laid out flat: by attribute and type of value its bit sets.
        self._plan = [
            (
                name,
                attribute.free,
                attribute.base,
                {
                    kind: (cells.edges, cells.possible, cells.certain, cells.equal)
                    for domain, cells in attribute.domains.items()
                    for kind in _TYPES_OF_DOMAIN[domain]
                },
            )
            for name, attribute in self._attributes.items()
        ]
        self._destinations = {destination: _bits(numbers, self.size) for destination, numbers in owned.items()}

    def strike(self, number: int) -> None:
        """Take an entry out."""
        self.alive ^= 1 << number

    def match(self, attributes: Mapping[str, Value]) -> tuple[int, int]:
        """(entries that match for certain, entries that may match and must be asked)."""
        possible = certain = self.alive
        for name, free, base, by_type in self._plan:
            if name not in attributes:
                possible &= free
                certain &= free
            else:
                value = attributes[name]
                cells = by_type.get(type(value))
                if cells is None:
                    possible &= base
                    certain &= base
                else:
                    edges, possible_in, certain_in, equal = cells
                    cell = bisect_right(edges, value)
                    if equal and value in equal:
                        possible &= possible_in[cell] | equal[value]
                        certain &= certain_in[cell] | equal[value]
                    else:
                        possible &= possible_in[cell]
                        certain &= certain_in[cell]
            if not possible:
                return 0, 0
        return certain, possible ^ certain

    def add_destinations(
        self, attributes: Mapping[str, Value], found: dict[Destination, None], exclude: Destination | None
    ) -> None:
        """Put the destinations of matching entries into `found`, which has some already."""
        certain, unsure = self.match(attributes)
        if not certain and not unsure:
            return
        if len(self._destinations) > _FEW_DESTINATIONS and certain.bit_count() < len(self._destinations):
            for number in numbers_of(certain, self.size):
                destination = self.entries[number].destination
                if exclude is None or destination != exclude:
                    found[destination] = None
            certain = 0
        for destination, owned in self._destinations.items():
            if destination in found or (exclude is not None and destination == exclude):
                continue
            if certain & owned or (unsure & owned and self._any_matches(unsure & owned, attributes)):
                found[destination] = None

    def _any_matches(self, bits: int, attributes: Mapping[str, Value]) -> bool:
        while bits:
            lowest = bits & -bits
            if self.entries[lowest.bit_length() - 1].filter.matches(attributes):
                return True
            bits ^= lowest
        return False

    def matching(self, attributes: Mapping[str, Value]) -> list[Entry[Destination]]:
        """The entries whose filter the event matches."""
        certain, unsure = self.match(attributes)
        entries = [self.entries[number] for number in numbers_of(certain, self.size)]
        for number in numbers_of(unsure, self.size):
            if self.entries[number].filter.matches(attributes):
                entries.append(self.entries[number])
        return entries

    def covering(self, wanted: Mapping[str, Constraint]) -> Iterator[Entry[Destination]]:
        """Entries whose filter may cover the one with these constraints; none that does is left out."""
        candidates = self.alive
        for name, attribute in self._attributes.items():
            candidates &= attribute.covering(wanted[name]) if name in wanted else attribute.free
            if not candidates:
                return
        for number in numbers_of(candidates, self.size):
            yield self.entries[number]

    def covered_by(self, wanted: Mapping[str, Constraint]) -> Iterator[Entry[Destination]]:
        """Entries whose filter may be covered by the one with these constraints; none that is is left out."""
        candidates = self.alive
        for name, constraint in wanted.items():
            if name not in self._attributes:
                return
            candidates &= self._attributes[name].covered(constraint, self.alive)
        for number in numbers_of(candidates, self.size):
            yield self.entries[number]
