"""A set of filters that says which of them cover a filter, and which a filter covers.

Many filters allow just one value of one attribute, such as `author = 17`. No two of these cover each other, so that an
index of them would be built in vain. They are kept by their values; all others are in an index.
"""

import itertools
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from murmur_pubsub.filter import Constraint, Filter, point_of
from murmur_pubsub.matching import MatchingIndex
from murmur_pubsub.values import DOMAINS, Domain, Value

_Line = tuple[str, Domain]
"""An attribute, and the domain of the values."""


class FilterSet:
    """A set of filters that answers covering queries."""

    def __init__(self) -> None:
        self._keys: dict[Filter, int] = {}
        self._filters: dict[int, Filter] = {}
        self._points: dict[_Line, _Points] = {}
        self._index = MatchingIndex[None]()
        self._indexed = 0
        """How many are in the index; most often none."""
        self._next_key = 0

    @classmethod
    def of(cls, filters: Iterable[Filter]) -> "FilterSet":
        """Of these filters those that no other covers."""
        made = cls()
        for wanted in filters:
            made.put(wanted)
        return made

    def __contains__(self, wanted: Filter) -> bool:
        return wanted in self._keys

    def __iter__(self) -> Iterator[Filter]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, wanted: Filter) -> None:
        key = self._keys[wanted] = self._next_key
        self._next_key += 1
        self._filters[key] = wanted
        point = wanted.point
        if point is None:
            self._index.add(key, wanted, None)
            self._indexed += 1
        else:
            line, value = point
            if line not in self._points:
                self._points[line] = _Points()
            self._points[line].add(value, key)

    def put(self, wanted: Filter) -> bool:
        """Add the filter in place of those it covers; False if one of the set covers it already."""
        if self.covers(wanted):
            return False
        for covered in self.covered_by(wanted):
            self.remove(covered)
        self.add(wanted)
        return True

    def remove(self, wanted: Filter) -> None:
        key = self._keys.pop(wanted)
        del self._filters[key]
        point = wanted.point
        if point is None:
            self._index.remove(key)
            self._indexed -= 1
        else:
            line, value = point
            self._points[line].remove(value)
            if not self._points[line].keys:
                del self._points[line]

    def covers(self, wanted: Filter) -> bool:
        """Does one of them cover the filter?"""
        if wanted in self._keys:
            return True
        if self._points and wanted.point is None:
            if wanted.constraints is None:
                return True
            points = itertools.starmap(point_of, wanted.constraints.items())
            if any(point is not None and self._has(*point) for point in points):
                return True
        return self._indexed > 0 and self._index.covers_any(wanted)

    def matches_any(self, attributes: Mapping[str, Value]) -> bool:
        """Does an event match one of them?"""
        if self._points and any(self._has((name, DOMAINS[type(value)]), value) for name, value in attributes.items()):
            return True
        return self._indexed > 0 and bool(self._index.destinations(attributes))

    def covered_by(self, wanted: Filter) -> list[Filter]:
        """Those that the filter covers (itself among them, if it is in the set), in the order in which they came."""
        keys = self._index.covered_by(wanted) if self._indexed else []
        if wanted.point is not None:
            if wanted in self._keys:
                keys = sorted([*keys, self._keys[wanted]])
        elif self._points and wanted.constraints is not None and len(wanted.constraints) < 2:
            keys = sorted([*keys, *self._points_within(wanted.constraints)])
        return [self._filters[key] for key in keys]

    def _has(self, line: _Line, value: Value) -> bool:
        points = self._points.get(line)
        return points is not None and value in points.keys

    def _points_within(self, constraints: Mapping[str, Constraint]) -> Iterator[int]:
        """The keys of those that a filter of these constraints, at most one, covers."""
        for (name, domain), points in self._points.items():
            if not constraints:
                yield from points.keys.values()
            elif name in constraints:
                constraint = constraints[name]
                if constraint.domain == domain:
                    yield from points.within(constraint)
                elif constraint.domain is None and not constraint.is_absence:
                    yield from points.keys.values()


class _Points:
    """Filters that allow one value each, of one attribute and domain."""

    __slots__ = ("keys", "ordered")

    def __init__(self) -> None:
        self.keys: dict[Value, int] = {}
        """By value."""
        self.ordered: list[Any] = []
        """The values."""

    def add(self, value: Value, key: int) -> None:
        self.keys[value] = key
        insort(self.ordered, value)

    def remove(self, value: Value) -> None:
        del self.keys[value]
        del self.ordered[bisect_left(self.ordered, value)]

    def within(self, constraint: Constraint) -> Iterator[int]:
        """The keys of those whose value a constraint of this domain allows."""
        if constraint.values is not None:
            values: Iterable[Value] = constraint.values
            return (self.keys[value] for value in values if value in self.keys)
        first = 0 if constraint.low is None else bisect_left(self.ordered, constraint.low)
        end = len(self.ordered) if constraint.high is None else bisect_right(self.ordered, constraint.high)
        return (self.keys[value] for value in self.ordered[first:end] if constraint.contains(value))
