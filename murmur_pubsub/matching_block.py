"""A block of the matching index: many filters, written 64 at a time and never built anew; filters can be struck out.

Theory. The rows of an event's values (`murmur_pubsub.matching_columns`) are ANDed over its attributes, which leaves few
candidates. Each filter keeps the codes of its intervals' ends side by side, so that one comparison of small arrays
decides nearly all candidates; the rest are evaluated. HEM and OEM (Computer Networks 2024) match so too. Rows of
filters that match for certain, as small levels have them, would double the memory that each event reads.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

import numpy as np
import numpy.typing as npt

from murmur_pubsub.filter import NOTHING, Constraint, Filter
from murmur_pubsub.matching_columns import IN_GAP, WORD_BITS, Cells, Column, Cuts, Edges, Row
from murmur_pubsub.matching_level import Destination, IndexEntry
from murmur_pubsub.values import Domain, Value

_CELLS_MAX = 512
_CELLS_MIN = 2
_CELL_BITS = 1 << 27
_CELLS_TOTAL = 1_280
_CELLS_TOTAL_MAX = 5_120
"""Cells of all attributes together, shared out by how many intervals each has: more in blocks of fewer filters."""
_VALUE_ROWS = 1_024
"""With so many rows for values of finite sets, no more are given to values that few filters ask for."""
_CODED_MAX = 16
"""A filter with more intervals is evaluated where the first so many leave it possible."""
_GAP_MAX = 2_048
"""A block whose edges leave more bounds than this in one gap takes no more filters."""
_ANSWERABLE_MAX = 256
_FEW_WORDS = 1_024
"""With so many words of candidates or fewer, codes decide sooner than rows what may be covered."""
_WORDS_AT_ONCE = 4_096
"""So many words of filters are asked for destinations before it is seen whether any is missing still."""
_Numbers = npt.NDArray[np.intp]


@dataclass(slots=True)
class _Answerable:
    """For one combination of attribute names the filters that require no others, as far as there were `size` filters.

    lacking: the columns of other attributes. steps: for each attribute its cells by the type of a value, and its base.
    """

    lacking: list[Column]
    row: Row
    steps: list[tuple[str, dict[type, Cells], Row]]
    size: int = 0


class Block(Generic[Destination]):
    """Up to `capacity` filters, each with its key and destination. No filter may match nothing."""

    def __init__(self, capacity: int, cuts: Cuts) -> None:
        self.capacity = capacity
        self.cuts = cuts
        self.size = 0
        self.crowded = False
        self.closed = False
        self._alive_count = 0
        self._words = capacity // WORD_BITS
        self._alive: Row = np.zeros(self._words, dtype=np.uint64)
        self._filters: list[Filter] = []
        self._keys: npt.NDArray[np.int64] = np.zeros(capacity, dtype=np.int64)
        self._owners: npt.NDArray[np.int32] = np.zeros(capacity, dtype=np.int32)
        self._destinations: list[Destination] = []
        self._owner_of: dict[Destination, int] = {}
        self._columns: dict[str, Column] = {}
        self._met: npt.NDArray[np.uint16] = np.zeros(
            16, dtype=np.uint16
        )  # the event's codes by slot; slot 0 is no slot's
        self._slots = 1
        self._value_rows = 0
        self._coded = max(1, min(cuts.intervals_max, _CODED_MAX))
        # For each filter the slots, lowest codes and widths of its intervals; zeros, which anything meets, behind them.
        self._codes: npt.NDArray[np.uint16] = np.zeros((capacity, 3 * self._coded), dtype=np.uint16)
        self._uncoded: npt.NDArray[np.bool_] = np.zeros(capacity, dtype=np.bool_)
        self._answerable: dict[tuple[str, ...], _Answerable] = {}
        self._first_alive = 0
        cells_total = max(_CELLS_TOTAL, min(_CELLS_TOTAL_MAX, _CELL_BITS // capacity))
        weight = sum(edges.weight for edges in cuts.edges.values())
        for (name, domain), edges in cuts.edges.items():
            cells_max = max(_CELLS_MIN, min(_CELLS_MAX, cells_total * edges.weight // weight))
            self._add_domain(self._columns.get(name) or self._column(name), domain, edges, cells_max)

    def __len__(self) -> int:
        return self._alive_count

    @property
    def room(self) -> int:
        """How many entries the next `append` may have."""
        return 0 if self.closed or self.crowded or self.size == self.capacity else WORD_BITS - self.size % WORD_BITS

    @property
    def used_words(self) -> int:
        """Words of a row that have filters."""
        return -(-self.size // WORD_BITS)

    def claim(self) -> Iterator[None]:
        """Have the memory of all rows begun, in short steps."""
        for column in self._columns.values():
            for cells in column.domains.values():
                yield from cells.claim()

    def append(self, entries: Sequence[IndexEntry[Destination]]) -> None:
        """Take the entries, at most `room`, under the numbers from `size` on."""
        assert len(entries) <= self.room
        begin = self.size
        coded = []
        for number, (key, wanted, destination) in enumerate(entries, begin):
            owner = self._owner_of.setdefault(destination, len(self._owner_of))
            if owner == len(self._destinations):
                self._destinations.append(destination)
            self._keys[number] = key
            self._owners[number] = owner
            coded.append(self._note(number, wanted))
            self._filters.append(wanted)
        word = begin // WORD_BITS
        everyone = ((1 << len(entries)) - 1) << begin % WORD_BITS
        for column in self._columns.values():
            column.write(word, everyone)
        self._alive[word] |= np.uint64(everyone)
        self._codes[begin : begin + len(entries)] = coded
        self.size += len(entries)
        self._alive_count += len(entries)

    def _note(self, number: int, wanted: Filter) -> list[int]:
        """Note the filter in its columns; its row of codes."""
        bit = 1 << number % WORD_BITS
        slots: list[int] = []
        lows: list[int] = []
        widths: list[int] = []
        assert wanted.constraints is not None
        for name, constraint in wanted.constraints.items():
            column = self._columns.get(name) or self._column(name)
            column.name(bit, constraint)
            if constraint.domain is None:
                continue
            cells = column.domains.get(constraint.domain) or self._add_domain(
                column, constraint.domain, Edges((), 0), 1
            )
            if constraint.values is not None:
                for value in constraint.values:
                    self._value_rows += cells.add_value(number, value, self._value_rows >= _VALUE_ROWS)
                continue
            low, high, first, last = cells.reach(constraint)
            cells.add_interval(bit, first, last)
            self.crowded = self.crowded or max(cells.count_in_gap(low), cells.count_in_gap(high)) >= _GAP_MAX
            if constraint.excluded or constraint.suffix or len(slots) == self._coded:
                self._uncoded[number] = True
            else:
                slots.append(cells.slot)
                lows.append(low)
                widths.append(high - low)
        rest = [0] * (self._coded - len(slots))
        return [*slots, *rest, *lows, *rest, *widths, *rest]

    def _column(self, name: str) -> Column:
        column = self._columns[name] = Column(self._words, self.size)
        self._answerable.clear()
        return column

    def _add_domain(self, column: Column, domain: Domain, edges: Edges, cells_max: int) -> Cells:
        cells = column.add_domain(domain, edges, cells_max, self._slots, self.used_words)
        self._answerable.clear()
        self._slots += 1
        if self._slots > len(self._met):
            self._met = np.zeros(2 * len(self._met), dtype=np.uint16)
        return cells

    def strike(self, number: int) -> None:
        """Take an entry out."""
        self._alive[number // WORD_BITS] &= ~np.uint64(1 << number % WORD_BITS)
        self._filters[number] = NOTHING
        self._alive_count -= 1

    def entry(self, number: int) -> IndexEntry[Destination]:
        """The entry of that number, which is not struck out."""
        return IndexEntry(int(self._keys[number]), self._filters[number], self._destinations[int(self._owners[number])])

    def first(self, count: int) -> list[tuple[int, IndexEntry[Destination]]]:
        """Up to so many entries with their numbers, the oldest; who moves them away strikes them out."""
        while self._first_alive < self.used_words and not self._alive[self._first_alive]:
            self._first_alive += 1
        word = self._first_alive
        numbers = _numbers_of(self._alive[word : word + 1]) + word * WORD_BITS
        return [(number, self.entry(number)) for number in numbers[:count].tolist()]

    def discard(self) -> Iterator[None]:
        """Let go of the memory, in short steps. The block can be asked no more."""
        self._answerable.clear()
        while self._columns:
            self._columns.popitem()
            yield
        del self._codes, self._filters[len(self._filters) // 2 :]
        yield
        self._filters.clear()

    def numbered(self) -> Iterator[tuple[int, IndexEntry[Destination]]]:
        """The entries that are not struck out, with their numbers."""
        return ((number, self.entry(number)) for number in _numbers_of(self._alive[: self.used_words]).tolist())

    def add_destinations(
        self,
        names: tuple[str, ...],
        attributes: Mapping[str, Value],
        found: dict[Destination, None],
        exclude: Destination | None,
    ) -> None:
        """Put the destinations of matching entries into `found`, which has some already."""
        able = self._able(names)
        rows = self._rows(names, attributes)
        for begin in range(0, len(able), _WORDS_AT_ONCE):
            self._add_destinations(
                *self._matches(able, rows, begin, begin + _WORDS_AT_ONCE), attributes, found, exclude
            )
            # As long as too few are found, they are not compared with those that there are.
            if len(found) >= len(self._destinations) - 1 and found.keys() | {exclude} >= self._owner_of.keys():
                break

    def _add_destinations(
        self,
        sure: _Numbers,
        unsure: _Numbers,
        attributes: Mapping[str, Value],
        found: dict[Destination, None],
        exclude: Destination | None,
    ) -> None:
        for owner in np.flatnonzero(np.bincount(self._owners.take(sure))).tolist():
            destination = self._destinations[owner]
            if exclude is None or destination != exclude:
                found[destination] = None
        for number in unsure.tolist():
            destination = self._destinations[int(self._owners[number])]
            if destination not in found and (exclude is None or destination != exclude):
                if self._filters[number].matches(attributes):
                    found[destination] = None

    def matching(self, names: tuple[str, ...], attributes: Mapping[str, Value]) -> npt.NDArray[np.int64]:
        """The keys of the entries whose filter the event matches."""
        able = self._able(names)
        sure, unsure = self._matches(able, self._rows(names, attributes), 0, len(able))
        filters = self._filters
        evaluated = [number for number in unsure.tolist() if filters[number].matches(attributes)]
        return self._keys.take(np.concatenate((sure, evaluated)) if evaluated else sure)

    def covering(self, names: tuple[str, ...], wanted: Mapping[str, Constraint]) -> Iterator[IndexEntry[Destination]]:
        """Entries whose filter may cover the one with these constraints; none that does is left out."""
        candidates = self._able(names)
        for name in names:
            column = self._columns.get(name)
            if column is not None:
                candidates &= column.covering(wanted[name], len(candidates))
        for number in _numbers_of(candidates).tolist():
            yield self.entry(number)

    def covered_by(self, names: tuple[str, ...], wanted: Mapping[str, Constraint]) -> Iterator[IndexEntry[Destination]]:
        """Entries whose filter may be covered by the one with these constraints; none that is is left out."""
        words = self.used_words
        candidates = self._alive[:words].copy()
        for name in names:
            column = self._columns.get(name)
            if column is None:
                return
            absent = column.absent[:words]
            candidates &= absent & ~column.base[:words] if wanted[name].is_absence else ~absent
        for name in names:
            if np.count_nonzero(candidates) <= _FEW_WORDS:
                break
            candidates &= ~self._columns[name].not_covered(wanted[name], words)
        for number in self._perhaps_within(_numbers_of(candidates), wanted).tolist():
            yield self.entry(number)

    def _perhaps_within(self, numbers: _Numbers, wanted: Mapping[str, Constraint]) -> _Numbers:
        """Those of which no interval has a code beyond the interval wanted of its attribute."""
        rows = np.ascontiguousarray(self._codes.take(numbers, axis=0).T)
        slots, lows, widths = rows.reshape(3, self._coded, len(numbers))
        highs = lows + widths
        within = np.ones(len(numbers), dtype=np.bool_)
        for name, constraint in wanted.items():
            cells = None if constraint.domain is None else self._columns[name].domains.get(constraint.domain)
            if cells is not None and constraint.values is None:
                low, high, _, _ = cells.reach(constraint)
                beyond = (slots == cells.slot) & ((lows < low) | (highs > high))
                within &= ~np.logical_or.reduce(beyond)
        return numbers[within]

    def _rows(self, names: tuple[str, ...], attributes: Mapping[str, Value]) -> list[Row]:
        """The rows of the event's values; their codes are noted."""
        words = self.used_words
        rows = []
        for name, by_type, base in self._answerable[names].steps:
            value = attributes[name]
            cells = by_type.get(type(value))
            if cells is None:
                row = base
            else:
                code, rank = cells.edges.code(value)
                self._met[cells.slot] = code
                row = cells.rows[rank // cells.step]
                if cells.by_value:
                    equal = cells.equal(value, words)
                    if equal is not None:
                        row = row[:words] | equal
            rows.append(row)
        return rows

    def _matches(self, able: Row, rows: Sequence[Row], begin: int, end: int) -> tuple[_Numbers, _Numbers]:
        """(numbers of entries that match, of entries to be evaluated) from one word to another, each ascending; takes
        out of `able`, those that the event may match, what it does not."""
        candidates = able[begin:end]
        end = begin + len(candidates)
        for row in rows:
            np.bitwise_and(candidates, row[begin:end], candidates)
        numbers = _numbers_of(candidates)
        if not len(numbers):
            return numbers, numbers
        numbers += begin * WORD_BITS
        codes = np.ascontiguousarray(self._codes.take(numbers, axis=0).T)
        slots, lows, widths = codes.reshape(3, self._coded, len(numbers))
        met = self._met.take(slots)
        beyond = met - lows  # wraps around below an interval, to more than any width
        within = np.logical_and.reduce(beyond <= widths)
        at_end = ((beyond == 0) | (beyond == widths)) & (met & np.uint16(IN_GAP)).astype(np.bool_)
        doubtful = np.logical_or.reduce(at_end) | self._uncoded.take(numbers)
        return numbers[within & ~doubtful], numbers[within & doubtful]

    def _able(self, names: tuple[str, ...]) -> Row:
        """A set of its own of the entries, not struck out, that require no other attributes."""
        words = self.used_words
        answerable = self._answerable.get(names)
        if answerable is None:
            if len(self._answerable) >= _ANSWERABLE_MAX:
                self._answerable.clear()
            lacking = [column for name, column in self._columns.items() if name not in names]
            row: Row = np.zeros(self._words if lacking else 0, dtype=np.uint64)
            met = [(name, self._columns[name]) for name in names if name in self._columns]
            steps = [(name, column.by_type(), column.base) for name, column in met]
            answerable = self._answerable[names] = _Answerable(lacking, row, steps)
        if not answerable.lacking:
            return self._alive[:words].copy()
        able = answerable.row[:words]
        if answerable.size < self.size:
            begin = answerable.size // WORD_BITS
            able[begin:] = answerable.lacking[0].absent[begin:words]
            for column in answerable.lacking[1:]:
                able[begin:] &= column.absent[begin:words]
            answerable.size = self.size
        return self._alive[:words] & able


def ascending(keys: list[int], of_blocks: list[npt.NDArray[np.int64]]) -> list[int]:
    """The keys and those that blocks found, ascending."""
    return np.sort(np.concatenate((*of_blocks, np.array(keys, dtype=np.int64)))).tolist()  # type: ignore[no-any-return]


def _numbers_of(row: Row) -> _Numbers:
    """The numbers in a set, ascending."""
    # Words without a bit, or bytes if most words have one, are dropped before bits are unpacked to a byte each.
    octets = row.astype("<u8", copy=False).view(np.uint8)
    where, shift = np.flatnonzero(row != 0), 6
    if len(where) * 4 < len(row):
        octets = octets.reshape(-1, 8).take(where, axis=0).ravel()
    else:
        where, shift = np.flatnonzero(octets != 0), 3
        octets = octets.take(where)
    bits = np.flatnonzero(np.unpackbits(octets, bitorder="little").view(np.bool_))
    return (where.take(bits >> shift) << shift) + (bits & (1 << shift) - 1)
