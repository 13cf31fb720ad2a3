"""The matching index: which filters, or whose, does an event match; which filters cover which.

Theory of operation. Filters live in a few levels of bit sets (`pubsub.matching_level`), each several times
larger than the next, and a short list of newcomers that are asked one by one. When the list is full it
becomes a level together with all levels that are not much larger, so that a filter is built into a level only
a few times in its life and an event meets few levels. A removed filter is struck out of its level's bit set;
a level that is mostly struck out is built anew from what is left.
"""

from collections.abc import Iterator, Mapping
from typing import Generic, Protocol

from pubsub.filter import Filter
from pubsub.matching_level import Destination, Entry, Level
from pubsub.values import Value


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
_GROWTH = 4
_NEWCOMER = -1


class MatchingIndex(Generic[Destination]):
    """See `FilterIndex`."""

    def __init__(self) -> None:
        self._levels: list[Level[Destination]] = []
        self._newcomers: dict[int, Entry[Destination]] = {}
        self._barren: dict[int, Entry[Destination]] = {}
        self._places: dict[int, tuple[Level[Destination], int]] = {}
        self._ranks: dict[Destination, int] = {}
        self._uses: dict[Destination, int] = {}
        self._next_rank = 0

    def add(self, key: int, wanted: Filter, destination: Destination) -> None:
        if key in self._newcomers or key in self._places or key in self._barren:
            raise ValueError(f"the key {key} is in use")
        if destination not in self._ranks:
            self._ranks[destination] = self._next_rank
            self._uses[destination] = 0
            self._next_rank += 1
        self._uses[destination] += 1
        entry = Entry(key, wanted, destination)
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
            if level.alive.bit_count() * 2 < level.size:
                self._levels.remove(level)
                self._build(list(self._alive(level)))
        self._uses[entry.destination] -= 1
        if not self._uses[entry.destination]:
            del self._uses[entry.destination], self._ranks[entry.destination]

    def destinations(self, attributes: Mapping[str, Value], exclude: Destination | None = None) -> list[Destination]:
        self._settle()
        found: dict[Destination, None] = {}
        for level in self._levels:
            level.add_destinations(attributes, found, exclude)
        for _, wanted, destination in self._newcomers.values():
            if destination not in found and (destination != exclude or exclude is None) and wanted.matches(attributes):
                found[destination] = None
        return sorted(found, key=self._ranks.__getitem__) if len(found) > 1 else list(found)

    def matching(self, attributes: Mapping[str, Value]) -> list[int]:
        self._settle()
        keys = [entry.key for level in self._levels for entry in level.matching(attributes)]
        keys += [entry.key for entry in self._newcomers.values() if entry.filter.matches(attributes)]
        keys.sort()
        return keys

    def covering(self, wanted: Filter) -> list[int]:
        return sorted(entry.key for entry in self._covering(wanted))

    def covers_any(self, wanted: Filter) -> bool:
        return next(self._covering(wanted), None) is not None

    def covered_by(self, wanted: Filter) -> list[int]:
        keys = list(self._barren)
        if wanted.constraints is not None:
            self._settle()
            for candidates in (
                *(level.covered_by(wanted.constraints) for level in self._levels),
                self._newcomers.values(),
            ):
                keys += [entry.key for entry in candidates if wanted.covers(entry.filter)]
        return sorted(keys)

    def __len__(self) -> int:
        return len(self._newcomers) + len(self._places) + len(self._barren)

    def check_invariants(self) -> None:
        assert sum(level.alive.bit_count() for level in self._levels) == len(self._places)
        for key, (level, number) in self._places.items():
            assert level.entries[number].key == key
            assert level.alive >> number & 1
        assert self._uses.keys() == self._ranks.keys()
        assert sum(self._uses.values()) == len(self)

    def _covering(self, wanted: Filter) -> Iterator[Entry[Destination]]:
        if wanted.constraints is None:
            yield from self._everyone()
            return
        self._settle()
        for level in self._levels:
            for entry in level.covering(wanted.constraints):
                if entry.filter.covers(wanted):
                    yield entry
        for entry in self._newcomers.values():
            if entry.filter.covers(wanted):
                yield entry

    def _everyone(self) -> Iterator[Entry[Destination]]:
        for level in self._levels:
            yield from self._alive(level)
        yield from self._newcomers.values()
        yield from self._barren.values()

    def _settle(self) -> None:
        """Before a query: see that the newcomers, who are asked one by one, are few."""
        if len(self._newcomers) > _NEWCOMERS_MAX:
            newcomers = list(self._newcomers.values())
            self._newcomers.clear()
            self._build(newcomers)

    def _build(self, entries: list[Entry[Destination]]) -> None:
        while self._levels and self._levels[-1].alive.bit_count() < _GROWTH * len(entries):
            entries = [*self._alive(self._levels.pop()), *entries]
        if not entries:
            return
        level = Level(entries)
        self._levels.append(level)
        self._levels.sort(key=lambda each: -each.size)
        for number, entry in enumerate(entries):
            self._places[entry.key] = (level, number)

    @staticmethod
    def _alive(level: Level[Destination]) -> Iterator[Entry[Destination]]:
        for number, entry in enumerate(level.entries):
            if level.alive >> number & 1:
                yield entry
