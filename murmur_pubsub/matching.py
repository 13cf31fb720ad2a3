"""The matching index: which filters does an event match, or whose are they; which filters cover which.

Theory of operation. Filters live in a few levels of bit sets (`murmur_pubsub.matching_level`), each at least twice
as large as the next, and a short list of newcomers that are asked one by one. When the list is full it
becomes a level together with all levels that are not much larger, so that a filter is built into a level only
a few times in its life and an event meets few levels. A removed filter is struck out of its level's bit set;
a level less than a third of which is left is built anew from what is left.

Destinations are mostly wanted by many filters, and one that matches is enough. So an event meets the levels of
a few thousand filters first, and no further level once every destination is found; a large level has a part
of that size split off, with the filters of fewest constraints.
"""

from collections.abc import Iterator, Mapping
from typing import Generic, Protocol

from murmur_pubsub.filter import Filter
from murmur_pubsub.matching_level import Destination, IndexEntry, Level
from murmur_pubsub.values import Value


class FilterIndex(Protocol[Destination]):
    """Filters by key, each for a destination. All answers are in an order that depends on nothing but the calls."""

    def add(self, key: int, wanted: Filter, destination: Destination) -> None:
        """Add a filter; raises ValueError if the key is in use."""
        ...

    def remove(self, key: int) -> None:
        """Remove a filter; raises KeyError if there is none."""
        ...

    def destinations(self, attributes: Mapping[str, Value], exclude: Destination | None = None) -> list[Destination]:
        """The destinations, but `exclude`, with a filter that the event matches, as they first appeared."""
        ...

    def matching(self, attributes: Mapping[str, Value]) -> list[int]:
        """The keys of all filters that the event matches, ascending."""
        ...

    def covering(self, wanted: Filter) -> list[int]:
        """The keys of all filters that cover the given one, ascending."""
        ...

    def covers_any(self, wanted: Filter) -> bool:
        """Does at least one filter cover the given one?"""
        ...

    def covered_by(self, wanted: Filter) -> list[int]:
        """The keys of all filters that the given one covers, ascending."""
        ...

    def __len__(self) -> int: ...

    def check_invariants(self) -> None:
        """Raise AssertionError if the index contradicts itself."""
        ...


_NEWCOMERS_MAX = 24
_GROWTH = 2
"""A level at least this many times larger than what is built stays apart: a filter is then built in about log2."""
_MERGED_MAX = 16_384
"""Levels are merged up to this size, for the next query waits while it is done (0.3 s for this size)."""
_SCOUTS = 4_096
"""The size of the level that is split off a larger one, to be asked first."""
_SPLIT_FROM = 4 * _SCOUTS


class MatchingIndex(Generic[Destination]):
    """See `FilterIndex`."""

    def __init__(self) -> None:
        self._levels: list[Level[Destination]] = []
        self._newcomers: dict[int, IndexEntry[Destination]] = {}
        self._barren: dict[int, IndexEntry[Destination]] = {}
        self._places: dict[int, tuple[Level[Destination], int]] = {}
        self._ranks: dict[Destination, int] = {}
        self._uses: dict[Destination, int] = {}
        self._next_rank = 0
        self._copies: dict[Filter, int] = {}
        self._wasted = False

    def add(self, key: int, wanted: Filter, destination: Destination) -> None:
        if key in self._newcomers or key in self._places or key in self._barren:
            raise ValueError(f"the key {key} is in use")
        if destination not in self._ranks:
            self._ranks[destination] = self._next_rank
            self._uses[destination] = 0
            self._next_rank += 1
        self._uses[destination] += 1
        self._copies[wanted] = self._copies.get(wanted, 0) + 1
        entry = IndexEntry(key, wanted, destination)
        if wanted.matches_nothing:
            self._barren[key] = entry
        else:
            self._newcomers[key] = entry

    def remove(self, key: int) -> None:
        entry = self._newcomers.pop(key, None) or self._barren.pop(key, None)
        if entry is None:
            level, number = self._places.pop(key)
            entry = level.entries[number]
            level.strike(number)
            self._wasted = self._wasted or len(level) * 3 < level.size
        self._uses[entry.destination] -= 1
        if not self._uses[entry.destination]:
            del self._uses[entry.destination], self._ranks[entry.destination]
        if self._copies[entry.filter] == 1:
            del self._copies[entry.filter]
        else:
            self._copies[entry.filter] -= 1

    def destinations(self, attributes: Mapping[str, Value], exclude: Destination | None = None) -> list[Destination]:
        self._settle()
        names = tuple(attributes)
        found: dict[Destination, None] = {}
        all_of_them = len(self._ranks) - (exclude is not None and exclude in self._ranks)
        for level in self._levels:
            if len(found) == all_of_them:
                break
            level.add_destinations(names, attributes, found, exclude)
        if len(found) < all_of_them:
            for _, wanted, destination in self._newcomers.values():
                if destination not in found and (exclude is None or destination != exclude):
                    if wanted.matches(attributes):
                        found[destination] = None
        return sorted(found, key=self._ranks.__getitem__) if len(found) > 1 else list(found)

    def matching(self, attributes: Mapping[str, Value]) -> list[int]:
        self._settle()
        names = tuple(attributes)
        keys = [key for level in self._levels for key in level.matching(names, attributes)]
        keys += [entry.key for entry in self._newcomers.values() if entry.filter.matches(attributes)]
        keys.sort()
        return keys

    def covering(self, wanted: Filter) -> list[int]:
        return sorted(entry.key for entry in self._covering(wanted))

    def covers_any(self, wanted: Filter) -> bool:
        return wanted in self._copies or next(self._covering(wanted), None) is not None

    def covered_by(self, wanted: Filter) -> list[int]:
        keys = list(self._barren)
        if wanted.constraints is not None:
            self._settle()
            names = wanted.attributes
            for level in self._levels:
                candidates = level.covered_by(names, wanted.constraints)
                keys += [entry.key for entry in candidates if wanted.covers(entry.filter)]
            keys += [entry.key for entry in self._newcomers.values() if wanted.covers(entry.filter)]
        return sorted(keys)

    def __len__(self) -> int:
        return len(self._newcomers) + len(self._places) + len(self._barren)

    def check_invariants(self) -> None:
        assert sum(map(len, self._levels)) == len(self._places)
        for level in self._levels:
            assert level.alive.bit_count() == len(level)
        for key, (level, number) in self._places.items():
            assert level in self._levels
            assert level.entries[number].key == key
            assert level.alive >> number & 1
        assert self._uses.keys() == self._ranks.keys()
        assert sum(self._uses.values()) == sum(self._copies.values()) == len(self)
        for entry in self._everyone():
            assert entry.filter in self._copies

    def _covering(self, wanted: Filter) -> Iterator[IndexEntry[Destination]]:
        if wanted.constraints is None:
            yield from self._everyone()
            return
        self._settle()
        names = wanted.attributes
        for level in self._levels:
            for entry in level.covering(names, wanted.constraints):
                if entry.filter.covers(wanted):
                    yield entry
        for entry in self._newcomers.values():
            if entry.filter.covers(wanted):
                yield entry

    def _everyone(self) -> Iterator[IndexEntry[Destination]]:
        for level in self._levels:
            yield from level
        yield from self._newcomers.values()
        yield from self._barren.values()

    def _settle(self) -> None:
        """Before a query: see that the newcomers, which are evaluated one by one, are few, and no level a third
        alive."""
        if self._wasted:
            self._wasted = False
            for level in [each for each in self._levels if len(each) * 3 < each.size]:
                if level in self._levels:  # not gone into the one before
                    self._levels.remove(level)
                    self._build(list(level))
        if len(self._newcomers) > _NEWCOMERS_MAX:
            newcomers = list(self._newcomers.values())
            self._newcomers.clear()
            self._build(newcomers)

    def _build(self, entries: list[IndexEntry[Destination]]) -> None:
        """Make the entries a level, with those of all levels that are not much larger."""
        for level in sorted(self._levels, key=len):
            if len(level) >= _GROWTH * len(entries) or len(level) + len(entries) > _MERGED_MAX:
                break
            self._levels.remove(level)
            entries = [*level, *entries]
        if len(entries) >= _SPLIT_FROM:
            # The sort keeps the order of arrival among equals, so what is split off depends on the calls alone.
            entries.sort(key=_constraint_count)
            self._place(entries[:_SCOUTS])
            self._place(entries[_SCOUTS:])
        elif entries:
            self._place(entries)
        self._levels.sort(key=_turn)

    def _place(self, entries: list[IndexEntry[Destination]]) -> None:
        level = Level(entries)
        self._levels.append(level)
        for number, entry in enumerate(entries):
            self._places[entry.key] = (level, number)


def _constraint_count(entry: IndexEntry[Destination]) -> int:
    return len(entry.filter.attributes)


def _turn(level: Level[Destination]) -> tuple[bool, int]:
    """When a level is asked for destinations: those up to the scouts' size, largest first, then the larger ones."""
    large = level.size > _SCOUTS
    return large, level.size if large else -level.size
