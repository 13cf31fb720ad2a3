"""One level of the matching index: a fixed set of filters as bit sets; filters can be struck out.

Theory. For an event, the bit sets of its values (`murmur_pubsub.matching_cells`) are ANDed over its attributes, which
leaves the filters that match for certain and a few more to be asked one by one. A query only for destinations mostly
needs no more than the certain ones: the possible ones are ANDed when a destination is still missing. Filters that
require an attribute which the event lacks are told by counting, with bit sets as the digits of binary counters, how
many of its attributes each filter requires; the answer is kept, with the bit sets to walk over, for each combination of
attribute names that events have.
"""

from bisect import bisect_right
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from murmur_pubsub.filter import Constraint, Filter
from murmur_pubsub.matching_cells import AttributeSets, bits_of
from murmur_pubsub.values import Domain, Value

_CELLS_TOTAL = 5_120
"""The cells of all attributes together, shared out by how many filters constrain each: a bound on memory."""
_CELLS_MAX = 512
_CELLS_MIN = 4
_ENTRIES_AT_ONCE = 64
_STRUCK_MAX = 256
_PLANS_MAX = 256
_MANY_BITS = 8
"""Fewer entries are looked at one by one sooner than a byte, or the bit set of each destination."""
_FEW_DESTINATIONS = 32
_NONE_LEFT = [0]
_BITS_OF = tuple(tuple(bit for bit in range(8) if octet >> bit & 1) for octet in range(256))
_TYPES_OF_DOMAIN: dict[Domain, tuple[type, ...]] = {"number": (int, float), "string": (str,), "boolean": (bool,)}

Destination = TypeVar("Destination", bound=Hashable)


class IndexEntry(NamedTuple, Generic[Destination]):
    """A filter in an index, with its key and destination."""

    key: int
    filter: Filter
    destination: Destination


class _Plan(NamedTuple):
    """For one combination of attribute names: the filters that require no others, and what to walk over."""

    answerable: int
    steps: list[tuple[str, int, dict[type, tuple[list[Any], list[int], list[int], dict[Value, int | list[int]]]]]]


def numbers_of(bits: int, size: int) -> list[int]:
    """The numbers in a bit set, ascending."""
    if size > 64 and bits.bit_count() > _MANY_BITS:
        octets = bits.to_bytes((size + 7) // 8, "little")
        return [8 * place + within for place, octet in enumerate(octets) if octet for within in _BITS_OF[octet]]
    return few_numbers_of(bits)


def few_numbers_of(bits: int) -> list[int]:
    """The same, one by one."""
    numbers = []
    while bits:
        lowest = bits & -bits  # two's complement: only the lowest bit that is set is common to both
        numbers.append(lowest.bit_length() - 1)
        bits ^= lowest
    return numbers


class Level(Generic[Destination]):
    """A fixed set of entries, to be built before it is asked. No entry's filter may match nothing."""

    __slots__ = (
        "_alive",
        "_alive_count",
        "_attributes",
        "_everything",
        "_exact",
        "_owned",
        "_plans",
        "_required",
        "_struck",
        "entries",
        "size",
    )  # fmt: skip

    def __init__(self, entries: Sequence[IndexEntry[Destination]]) -> None:
        self.entries = entries
        self.size = len(entries)
        self._everything = self._alive = (1 << self.size) - 1
        self._alive_count = self.size
        self._struck: list[int] = []
        self._attributes: dict[str, AttributeSets] = {}
        self._plans: dict[tuple[str, ...], _Plan] = {}
        self._required: list[int] = []
        self._exact = False
        self._owned: dict[Destination, int] | None = None

    def build(self) -> Iterator[None]:
        """Take the steps, each of some hundred constraints, after which the level can be asked."""
        entries = self.entries
        constraints: dict[str, list[tuple[int, Constraint]]] = {}
        owned: dict[Destination, list[int]] = {}
        for number, entry in enumerate(entries):
            assert entry.filter.constraints is not None
            for name, constraint in entry.filter.constraints.items():
                constraints.setdefault(name, []).append((number, constraint))
            owned.setdefault(entry.destination, []).append(number)
            if number % _ENTRIES_AT_ONCE == 0:
                yield
        total = sum(map(len, constraints.values()))
        for name in list(constraints):
            each = constraints.pop(name)  # freed as it is used up: all at once takes milliseconds
            cells_max = max(_CELLS_MIN, min(_CELLS_MAX, _CELLS_TOTAL * len(each) // total))
            sets = self._attributes[name] = AttributeSets()
            yield from sets.build(each, self.size, self._everything, cells_max)
        yield
        self._required = self._count_required(self._attributes)
        # Without intervals no filter is ever in doubt.
        self._exact = all(
            cells.possible is cells.certain for sets in self._attributes.values() for cells in sets.domains.values()
        )
        # With many destinations a bit set for each would take too much memory: then entries are asked for theirs.
        if len(owned) <= _FEW_DESTINATIONS:
            self._owned = {destination: bits_of(numbers, self.size) for destination, numbers in owned.items()}

    def discard(self) -> Iterator[None]:
        """Let go of the bit sets, in short steps: there are thousands to be freed. The level can be asked no more."""
        self._plans.clear()
        while self._attributes:
            self._attributes.popitem()
            yield

    def __len__(self) -> int:
        return self._alive_count

    def numbered(self) -> Iterator[tuple[int, IndexEntry[Destination]]]:
        """The entries that are not struck out, with their numbers."""
        return ((number, self.entries[number]) for number in numbers_of(self.alive, self.size))

    @property
    def alive(self) -> int:
        """The bit set of the entries that are not struck out."""
        if self._struck:
            self._alive &= ~bits_of(self._struck, self.size)
            self._struck.clear()
        return self._alive

    def strike(self, number: int) -> None:
        """Take an entry out; the bit set follows at the next question, or when there are many of these."""
        self._struck.append(number)
        self._alive_count -= 1
        if len(self._struck) == _STRUCK_MAX:
            self._alive = self.alive

    def entry(self, number: int) -> IndexEntry[Destination]:
        """The entry of that number, which is not struck out."""
        return self.entries[number]

    def add_destinations(
        self,
        names: tuple[str, ...],
        attributes: Mapping[str, Value],
        found: dict[Destination, None],
        exclude: Destination | None,
    ) -> None:
        """Put the destinations of matching entries into `found`, which has some already."""
        certain, cells = self._walk(names, attributes)
        if not certain and cells == _NONE_LEFT:
            return
        if self._owned is None:
            self._ask_entries(numbers_of(certain, self.size), None, found, exclude)
            unsure = self._possible(names, cells) ^ certain
            self._ask_entries(numbers_of(unsure, self.size), attributes, found, exclude)
            return
        if certain.bit_count() > _MANY_BITS:
            for destination, owned in self._owned.items():
                if certain & owned and (exclude is None or destination != exclude):
                    found[destination] = None
        else:
            self._ask_entries(few_numbers_of(certain), None, found, exclude)
        if self._exact or (len(found) >= len(self._owned) - 1 and self._none_missing(found, exclude)):
            return
        unsure = self._possible(names, cells) ^ certain
        if unsure.bit_count() > _MANY_BITS:
            for destination, owned in self._owned.items():
                if destination not in found and (exclude is None or destination != exclude):
                    if unsure & owned and self._any_matches(unsure & owned, attributes):
                        found[destination] = None
        elif unsure:
            self._ask_entries(few_numbers_of(unsure), attributes, found, exclude)

    def _none_missing(self, found: Mapping[Destination, None], exclude: Destination | None) -> bool:
        """Are all destinations found, but `exclude`?"""
        assert self._owned is not None
        missing = self._owned.keys() - found.keys()
        return not missing or (exclude is not None and missing == {exclude})

    def _ask_entries(
        self,
        numbers: Sequence[int],
        attributes: Mapping[str, Value] | None,
        found: dict[Destination, None],
        exclude: Destination | None,
    ) -> None:
        """Add the destinations of these entries; given attributes, only of those that match an event with them."""
        for number in numbers:
            _, wanted, destination = self.entries[number]
            if destination not in found and (exclude is None or destination != exclude):
                if attributes is None or wanted.matches(attributes):
                    found[destination] = None

    def matching(self, names: tuple[str, ...], attributes: Mapping[str, Value]) -> list[int]:
        """The keys of the entries whose filter the event matches."""
        entries = self.entries
        certain, cells = self._walk(names, attributes)
        unsure = 0 if self._exact else self._possible(names, cells) ^ certain
        keys = [entries[number].key for number in numbers_of(certain, self.size)] if certain else []
        if unsure:
            for number in numbers_of(unsure, self.size):
                if entries[number].filter.matches(attributes):
                    keys.append(entries[number].key)
        return keys

    def covering(self, names: tuple[str, ...], wanted: Mapping[str, Constraint]) -> Iterator[IndexEntry[Destination]]:
        """Entries whose filter may cover the one with these constraints; none that does is left out."""
        candidates = self.alive & self._plan(names).answerable
        for name in names:
            if not candidates:
                return
            if name in self._attributes:
                candidates &= self._attributes[name].covering(wanted[name])
        for number in numbers_of(candidates, self.size):
            yield self.entries[number]

    def covered_by(self, names: tuple[str, ...], wanted: Mapping[str, Constraint]) -> Iterator[IndexEntry[Destination]]:
        """Entries whose filter may be covered by the one with these constraints; none that is is left out."""
        candidates = self.alive
        for name in names:
            if name not in self._attributes:
                return
            candidates &= self._attributes[name].constrained
        for name in names:
            if not candidates:
                return
            candidates &= self._attributes[name].covered(wanted[name])
        for number in numbers_of(candidates, self.size):
            yield self.entries[number]

    def _walk(self, names: tuple[str, ...], attributes: Mapping[str, Value]) -> tuple[int, list[int]]:
        """(entries that match for certain; the bit sets whose AND are those that possibly match)."""
        answerable, steps = self._plans.get(names) or self._plan(names)
        certain = (self.alive if self._struck else self._alive) & answerable
        cells = []
        for name, base, by_type in steps:
            value = attributes[name]
            sets = by_type.get(type(value))
            if sets is None:
                certain &= base
                cells.append(base)
            else:
                edges, possible, sure, by_value = sets
                cell = bisect_right(edges, value) if edges else 0
                if by_value and value in by_value:
                    equal = by_value[value]
                    if isinstance(equal, list):
                        equal = bits_of(equal, self.size)
                    # `sure` lies in `possible` and `equal` is in both, so that what is certain is possible too: their
                    # difference (`^`, in the callers) is what has to be evaluated.
                    certain &= sure[cell] | equal
                    cells.append(possible[cell] | equal)
                else:
                    certain &= sure[cell]
                    cells.append(possible[cell])
            if not certain:
                # Nothing can become certain any more. The possible ones are ANDed early: mostly none are left, and
                # their AND stands for all cells so far. In an exact level nothing is possible that is not certain.
                left = 0 if self._exact else self._possible(names, cells)
                cells = [left]
                if not left:
                    break
        return certain, cells

    def _possible(self, names: tuple[str, ...], cells: Sequence[int]) -> int:
        possible = self._alive & self._plans[names].answerable  # `_walk` has taken out what was struck
        for cell in cells:
            possible &= cell
            if not possible:
                break
        return possible

    def _plan(self, names: tuple[str, ...]) -> _Plan:
        plan = self._plans.get(names)
        if plan is None:
            if len(self._plans) >= _PLANS_MAX:
                self._plans.clear()
            steps = []
            for name in names:
                sets = self._attributes.get(name)
                if sets is not None:
                    by_type = {
                        kind: (cells.edges, cells.possible, cells.certain, cells.by_value)
                        for domain, cells in sets.domains.items()
                        for kind in _TYPES_OF_DOMAIN[domain]
                    }
                    steps.append((name, sets.base, by_type))
            unanswerable = 0
            for required, met in zip(self._required, self._count_required(names, len(self._required)), strict=True):
                # The event meets at most the attributes that a filter requires, so it lacks some of them just where the
                # two counts differ, in any digit. As many digits as `_required` has are therefore enough.
                unanswerable |= required ^ met
            plan = self._plans[names] = _Plan(self._everything & ~unanswerable, steps)
        return plan

    def _count_required(self, names: Collection[str], digits: int = 0) -> list[int]:
        """How many of the attributes each filter requires: bit n of digit k is bit k of the count of filter n."""
        counts = [0] * digits
        for name in names:
            sets = self._attributes.get(name)
            carry = 0 if sets is None else sets.required
            digit = 0
            while carry:
                if digit == len(counts):
                    counts.append(0)
                # One step of addition, for all filters at once: sum and carry of each bit.
                counts[digit], carry = counts[digit] ^ carry, counts[digit] & carry
                digit += 1
        return counts

    def _any_matches(self, bits: int, attributes: Mapping[str, Value]) -> bool:
        while bits:
            lowest = bits & -bits
            if self.entries[lowest.bit_length() - 1].filter.matches(attributes):
                return True
            bits ^= lowest
        return False
