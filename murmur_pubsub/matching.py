"""The matching index: which filters does an event match, or whose are they; which filters cover which.

Theory of operation. Filters live in levels and blocks of bit sets and a short list of newcomers
(`murmur_pubsub.matching_homes`); an event, or a filter for the sake of covering, is put to one after the other.
Destinations are mostly wanted by many filters, and one that matches is enough. So an event meets the levels first,
which keep the filters of fewest constraints, and no further level or block once every destination is found.
"""

import operator
from collections.abc import Iterator, Mapping
from typing import Generic, Protocol

from murmur_pubsub.filter import Filter
from murmur_pubsub.matching_homes import Homes
from murmur_pubsub.matching_level import Destination, IndexEntry
from murmur_pubsub.values import Value


class FilterIndex(Protocol[Destination]):
    """Filters by key, a whole number of at most 64 bits, each for a destination.

    All answers are in an order that depends on nothing but the calls.
    """

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


_RELATED_MOST = 1_024
"""Of how many filters it is kept to whom they are related."""
_KEY = operator.attrgetter("key")


class MatchingIndex(Generic[Destination]):
    """See `FilterIndex`."""

    def __init__(self) -> None:
        self._related: dict[Filter, list[Destination]] = {}
        self._homes: Homes[Destination] = Homes()
        self._barren: dict[int, IndexEntry[Destination]] = {}
        self._ranks: dict[Destination, int] = {}
        self._uses: dict[Destination, int] = {}
        self._next_rank = 0

    def add(self, key: int, wanted: Filter, destination: Destination) -> None:
        if key in self._homes or key in self._barren:
            raise ValueError(f"the key {key} is in use")
        self._related.clear()
        if destination not in self._ranks:
            self._ranks[destination] = self._next_rank
            self._uses[destination] = 0
            self._next_rank += 1
        self._uses[destination] += 1
        entry = IndexEntry(key, wanted, destination)
        if wanted.matches_nothing:
            self._barren[key] = entry
        else:
            self._homes.add(entry)

    def remove(self, key: int) -> None:
        entry = self._barren.pop(key, None) or self._homes.pop(key)
        self._related.clear()
        self._uses[entry.destination] -= 1
        if not self._uses[entry.destination]:
            del self._uses[entry.destination], self._ranks[entry.destination]

    def destinations(self, attributes: Mapping[str, Value], exclude: Destination | None = None) -> list[Destination]:
        homes = self._homes
        if not homes.calm:
            homes.before_question()
        names = tuple(attributes)
        found: dict[Destination, None] = {}
        all_of_them = len(self._ranks) - (exclude is not None and exclude in self._ranks)
        if not all_of_them:
            return []
        for asked, home in enumerate(homes.in_turn, 1):
            home.add_destinations(names, attributes, found, exclude)
            if len(found) == all_of_them:
                homes.note_completed(asked)
                break
        else:
            for _, wanted, destination in homes.newcomers.values():
                if destination not in found and (exclude is None or destination != exclude):
                    if wanted.matches(attributes):
                        found[destination] = None
        return sorted(found, key=self._ranks.__getitem__) if len(found) > 1 else list(found)

    def matching(self, attributes: Mapping[str, Value]) -> list[int]:
        if not self._homes.calm:
            self._homes.before_question()
        names = tuple(attributes)
        keys: list[int] = []
        of_blocks = []
        for home in self._homes.in_turn:
            found = home.matching(names, attributes)
            if isinstance(found, list):
                keys += found
            else:
                of_blocks.append(found)
        keys += [entry.key for entry in self._homes.newcomers.values() if entry.filter.matches(attributes)]
        if of_blocks:
            from murmur_pubsub.matching_block import ascending

            return ascending(keys, of_blocks)
        keys.sort()
        return keys

    def covering(self, wanted: Filter) -> list[int]:
        return sorted(entry.key for entry in self._covering(wanted))

    def covers_any(self, wanted: Filter) -> bool:
        return next(self._covering(wanted), None) is not None

    def covered_by(self, wanted: Filter) -> list[int]:
        return sorted(entry.key for entry in self._covered_by(wanted))

    def related(self, wanted: Filter) -> list[Destination]:
        """The destinations with a filter that covers the given one, and then those with one that it covers. Gossip asks
        this of the same filters again and again, so it is kept until a filter comes or goes; the list is not to be
        changed."""
        found = self._related.get(wanted)
        if found is None:
            if len(self._related) == _RELATED_MOST:
                self._related.clear()
            entries = [*sorted(self._covering(wanted), key=_KEY), *sorted(self._covered_by(wanted), key=_KEY)]
            found = self._related[wanted] = list(dict.fromkeys(entry.destination for entry in entries))
        return found

    def __len__(self) -> int:
        return len(self._homes) + len(self._barren)

    def check_invariants(self) -> None:
        self._homes.check_invariants()
        assert self._uses.keys() == self._ranks.keys()
        assert sum(self._uses.values()) == len(self)

    def _covering(self, wanted: Filter) -> Iterator[IndexEntry[Destination]]:
        if wanted.constraints is None:
            yield from self._homes
            yield from self._barren.values()
            return
        if not self._homes.calm:
            self._homes.before_question()
        names = wanted.attributes
        for home in self._homes.in_turn:
            for entry in home.covering(names, wanted.constraints):
                if entry.filter.covers(wanted):
                    yield entry
        for entry in self._homes.newcomers.values():
            if entry.filter.covers(wanted):
                yield entry

    def _covered_by(self, wanted: Filter) -> list[IndexEntry[Destination]]:
        found = list(self._barren.values())
        if wanted.constraints is not None:
            if not self._homes.calm:
                self._homes.before_question()
            names = wanted.attributes
            for home in self._homes.in_turn:
                candidates = home.covered_by(names, wanted.constraints)
                found += [entry for entry in candidates if wanted.covers(entry.filter)]
            found += [entry for entry in self._homes.newcomers.values() if wanted.covers(entry.filter)]
        return found
