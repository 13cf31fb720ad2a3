"""What a block of the matching index keeps of one attribute: rows of bits, written 64 filters at a time.

Theory. As in `murmur_pubsub.matching_cells`, but the edges of the cells are given when the block is opened, and a row
has only the filters that possibly match. Between the edges of two cells lie finer ones. A value's code says where it is
among the fine edges: codes divisible by 4 are the edges themselves, those in the middle between two are the gaps. The
lowest and highest code of an interval then decide all but the few filters with a bound in the very gap that the event's
value is in. An interval without the edge it ends at has a code next to the edge's, which no value has.
"""

from array import array
from bisect import bisect_right
from collections.abc import Generator, Iterator, Sequence
from itertools import accumulate
from operator import xor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from murmur_pubsub.filter import Constraint
from murmur_pubsub.matching_cells import around, within
from murmur_pubsub.matching_level import IndexEntry
from murmur_pubsub.values import DOMAINS, Domain, Value

Row = npt.NDArray[np.uint64]
"""A set of filters: bit k of word w is filter 64 w + k."""
WORD_BITS = 64
IN_GAP = 2
"""What is left of a code divided by 4, if the value is no edge."""
_CODE_MAX = 65_535
_EDGES_MAX = 8_191
_ROW_FROM = 16
"""A value that so many filters ask for has a row; with fewer it lists their numbers."""
_ROW_FROM_OF_MANY = 1_024
"""Once there are many rows, a value has one if it is asked for by one in so many filters of a full block."""
_ENTRIES_AT_ONCE = 32
_CLAIMED_AT_ONCE = 1 << 21
"""Bytes: a large page, if memory comes in such."""
_PADDING = 8
"""Words between rows: rows a power of two apart would share a few sets of the processor's cache."""


class Cuts(NamedTuple):
    """What a block is cut by, after a sample of filters.

    edges: those of each attribute and domain that have intervals.
    intervals_max: the most intervals of one filter.
    """

    edges: dict[tuple[str, Domain], "Edges"]
    intervals_max: int


def cuts_of(entries: Sequence[IndexEntry[Any]]) -> Generator[None, None, Cuts]:
    """The bounds that occur in the entries' intervals as edges, in short steps."""
    bounds: dict[tuple[str, Domain], list[Any]] = {}
    counts: dict[tuple[str, Domain], int] = {}
    intervals_max = 0
    for number, entry in enumerate(entries):
        intervals = 0
        for name, constraint in (entry.filter.constraints or {}).items():
            if constraint.domain is not None and constraint.values is None:
                met = bounds.setdefault((name, constraint.domain), [])
                met += [end for end in (constraint.low, constraint.high) if end is not None]
                counts[name, constraint.domain] = counts.get((name, constraint.domain), 0) + 1
                intervals += 1
        intervals_max = max(intervals_max, intervals)
        if number % _ENTRIES_AT_ONCE == 0:
            yield
    edges: dict[tuple[str, Domain], Edges] = {}
    for place, met in bounds.items():
        distinct = sorted(set(met))
        edges[place] = Edges(distinct[:: len(distinct) // _EDGES_MAX + 1], counts[place])
        yield
    return Cuts(edges, intervals_max)


class Edges:
    """The fine edges of a domain of one attribute, ascending. It knows the last code: blocks in a row share edges."""

    __slots__ = ("_code", "_edges", "_rank", "_value", "weight")

    def __init__(self, edges: Sequence[Any], weight: int) -> None:
        """`weight`: how many filters of the sample have an interval there."""
        # An array lies in one piece: to search a list of floats is to fetch each from elsewhere.
        self._edges = array("d", edges) if edges and all(type(each) is float for each in edges) else edges
        self.weight = weight
        self._value: Any = None
        self._code = self._rank = 0

    def __len__(self) -> int:
        return len(self._edges)

    def code(self, value: Any) -> tuple[int, int]:
        """(the value's code, how many edges are not above it)."""
        if value is not self._value:
            edges = self._edges
            rank = bisect_right(edges, value)
            self._code = 4 * rank if rank and edges[rank - 1] == value else 4 * rank + IN_GAP
            self._rank = rank
            self._value = value
        return self._code, self._rank


class Cells:
    """The constraints of one domain on one attribute.

    step: each how many-eth edge begins a cell. rows: a row for each cell. by_value: for each value of a finite set a
    row, or the numbers of the filters that have it. slot: where the event's code is put.
    """

    __slots__ = ("_crowds", "_matrix", "_toggles", "_touched", "by_value", "edges", "rows", "slot", "step")

    def __init__(self, edges: Edges, cells_max: int, slot: int, base: Row) -> None:
        self.edges = edges
        self.step = len(edges) // cells_max + 1
        self.slot = slot
        cells = len(edges) // self.step + 1
        self._matrix: Row = np.zeros((cells, len(base) + _PADDING), dtype=np.uint64)[:, : len(base)]
        self.rows = list(self._matrix)
        self._crowds = array("L", [0]) * (len(edges) + 1)
        self.by_value: dict[Value, Row | list[int]] = {}
        self._toggles = [0] * (cells + 1)
        self._touched = False

    def claim(self) -> Iterator[None]:
        """Write to every row, in short steps: memory comes with the first write, and the rows are far apart."""
        at_once = max(1, _CLAIMED_AT_ONCE // self.rows[0].nbytes)
        for begin in range(0, len(self.rows), at_once):
            self._matrix[begin : begin + at_once, 0] = 0
            yield

    def reach(self, constraint: Constraint) -> tuple[int, int, int, int]:
        """(lowest code and highest that an interval may have; first cell and last that meet it)."""
        low = first = 0
        high, last = _CODE_MAX, len(self.rows) - 1
        if constraint.low is not None:
            low, rank = self.edges.code(constraint.low)
            first = rank // self.step
            low += constraint.low_open and low % 4 == 0
        if constraint.high is not None:
            high, rank = self.edges.code(constraint.high)
            last = rank // self.step
            if constraint.high_open and high % 4 == 0:
                high -= 1
                last = high // 4 // self.step
        return low, high, first, last

    def add_interval(self, bit: int, first: int, last: int) -> None:
        """Note the filter with this bit of the word being written in the cells from first to last."""
        self._toggles[first] ^= bit
        self._toggles[last + 1] ^= bit
        self._touched = True

    def count_in_gap(self, code: int) -> int:
        """How many bounds are in the gap of a bound with this code, with this one; 0 if it is an edge."""
        if code % 4 != IN_GAP:
            return 0
        self._crowds[code // 4] += 1
        return self._crowds[code // 4]

    def add_value(self, number: int, value: Value, many_rows: bool) -> bool:
        """Note that the filter's finite set has the value; did the value get a row?"""
        words = len(self.rows[0])
        found = self.by_value.setdefault(value, [])
        if not isinstance(found, list):
            found[number // WORD_BITS] |= np.uint64(1 << number % WORD_BITS)
            return False
        found.append(number)
        if len(found) < max(_ROW_FROM, words * WORD_BITS // _ROW_FROM_OF_MANY if many_rows else 0):
            return False
        self.by_value[value] = row_of(found, words)
        return True

    def write(self, word: int, base: int) -> None:
        """Write the word: what was noted, and the base in every cell."""
        if not self._touched:
            self._matrix[:, word] |= np.uint64(base)
            return
        self._toggles[0] ^= base
        self._matrix[:, word] |= np.fromiter(accumulate(self._toggles[:-1], xor), np.uint64, len(self.rows))
        self._toggles = [0] * len(self._toggles)
        self._touched = False

    def fill(self, base: Row) -> None:
        """Put the words, those before the one being written, into every row."""
        self._matrix[:, : len(base)] = base

    def equal(self, value: Value, words: int) -> Row | None:
        """The filters whose finite set has the value; None if there are none."""
        found = self.by_value.get(value)
        if isinstance(found, list):
            return row_of(found, words)
        return None if found is None else found[:words]


class Column:
    """All constraints on one attribute.

    absent: the filters that have none, and the ones that want the attribute absent. base: those that have none, and
    the ones that want the attribute only to exist.
    """

    __slots__ = ("_absent", "_exists", "_named", "absent", "base", "domains")

    def __init__(self, words: int, size: int) -> None:
        self.absent: Row = np.zeros(words, dtype=np.uint64)
        full, rest = divmod(size, WORD_BITS)
        self.absent[:full] = np.uint64((1 << WORD_BITS) - 1)
        if rest:
            self.absent[full] = np.uint64((1 << rest) - 1)
        self.base = self.absent.copy()
        self.domains: dict[Domain, Cells] = {}
        self._named = self._exists = self._absent = 0

    def add_domain(self, domain: Domain, edges: Edges, cells_max: int, slot: int, words: int) -> Cells:
        """Make room for the constraints of a domain; `words` are in use, the one being written not among them."""
        cells = self.domains[domain] = Cells(edges, cells_max, slot, self.base)
        cells.fill(self.base[:words])
        return cells

    def by_type(self) -> dict[type, Cells]:
        """The cells that a value of this type meets."""
        return {kind: self.domains[domain] for kind, domain in DOMAINS.items() if domain in self.domains}

    def name(self, bit: int, constraint: Constraint) -> None:
        """Note that the filter with this bit of the word being written constrains the attribute so."""
        self._named |= bit
        if constraint.is_absence:
            self._absent |= bit
        elif constraint.domain is None:
            self._exists |= bit

    def write(self, word: int, everyone: int) -> None:
        """Write the word, of filters of which `everyone` is new."""
        unnamed = everyone & ~self._named
        base = unnamed | self._exists
        self.absent[word] |= np.uint64(unnamed | self._absent)
        self.base[word] |= np.uint64(base)
        for cells in self.domains.values():
            cells.write(word, base)
        self._named = self._exists = self._absent = 0

    def covering(self, wanted: Constraint, words: int) -> Row:
        """The filters that may allow all that the constraint allows; none that does is left out."""
        cells = None if wanted.domain is None else self.domains.get(wanted.domain)
        if wanted.is_absence:
            return self.absent[:words]
        if cells is None:
            return self.base[:words]
        if wanted.values is None:
            _, _, first, last = cells.reach(within(wanted))
            meeting_both: Row = cells.rows[first][:words] & cells.rows[last][:words]
            return meeting_both
        found: Row | None = None
        for value in wanted.values:
            row = cells.rows[cells.edges.code(value)[1] // cells.step][:words]
            equal = cells.equal(value, words)
            if equal is not None:
                row = row | equal
            found = row if found is None else found & row
        assert found is not None
        return found

    def not_covered(self, wanted: Constraint, words: int) -> Row:
        """Filters that allow more than the constraint; not all, but none that it covers."""
        found: Row = np.zeros(words, dtype=np.uint64)
        if wanted.domain is None:
            return found
        cells = self.domains.get(wanted.domain)
        if cells is not None and wanted.values is None:
            _, _, first, last = cells.reach(around(wanted))
            for row in (*cells.rows[:first], *cells.rows[last + 1 :]):
                found |= row[:words]
            return found
        if cells is not None:
            for value in wanted.values or ():
                equal = cells.equal(value, words)
                if equal is not None:
                    found |= equal
        np.bitwise_not(found, found)
        return found


def row_of(numbers: Sequence[int], words: int) -> Row:
    """The set of these distinct numbers."""
    row: Row = np.zeros(words, dtype=np.uint64)
    where = np.array(numbers, dtype=np.uint64)
    np.bitwise_or.at(row, where >> np.uint64(6), np.uint64(1) << (where & np.uint64(63)))
    return row
