"""The judge's own evaluation of filters: every filter against a batch of events, in columns.

It shares nothing with the brokers' matching but the parsed constraints. For each attribute the distinct
values of the batch are sorted once, and the events are put in the order of their values. The events that a
constraint allows are then slices of that order, found by bisection: an equality costs what it finds and
nothing for the events it does not want, so thousands of filters `author = N` cost one look-up each. A
conjunction starts from its narrowest slices and asks the other attributes only about those events.

Values are compared as Python compares them, never as floats: 2**53 + 1 is not 2**53, and a string ending in
NUL is not the string without it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from murmur_pubsub.filter import Constraint, Filter
from murmur_pubsub.values import Domain, Value, domain_of

Rows = npt.NDArray[np.int64]
Condition = tuple[tuple[str, Constraint], ...] | None
"""A filter as (attribute, constraint) pairs; None matches nothing. Plain data: it may cross a process."""
_Ranges = list[tuple[int, int]]


def condition_of(wanted: Filter) -> Condition:
    """The filter's constraints as plain data."""
    return None if wanted.constraints is None else tuple(wanted.constraints.items())


class _Column:
    """One attribute over a batch of events. A code numbers a distinct value, domain by domain, ascending."""

    def __init__(self, rows: list[int], values: list[Value], events: int) -> None:
        by_domain: dict[Domain, set[Any]] = {}
        domains = [domain_of(value) for value in values]
        for value, domain in zip(values, domains, strict=True):
            if domain is not None:
                by_domain.setdefault(domain, set()).add(value)
        self._sorted: dict[Domain, list[Any]] = {domain: sorted(by_domain[domain]) for domain in sorted(by_domain)}
        self._first: dict[Domain, int] = {}
        code_of: dict[tuple[Domain | None, Value], int] = {}
        for domain, distinct in self._sorted.items():
            self._first[domain] = len(code_of)
            for value in distinct:
                code_of[domain, value] = len(code_of)
        self.codes = np.full(events, -1, np.int64)
        self.codes[rows] = [code_of.get(pair, -1) for pair in zip(domains, values, strict=True)]
        self._distinct = len(code_of)
        # Events in the order of their codes: those of code c are _order[_starts[c] : _starts[c + 1]]. Events without
        # the attribute have -1 and stand before _starts[0], so that no range of codes reaches them.
        self._order = np.argsort(self.codes, kind="stable")
        self._starts = np.searchsorted(self.codes[self._order], np.arange(self._distinct + 1)).tolist()
        self.absent = np.ones(events, bool)
        self.absent[rows] = False

    def ranges(self, constraint: Constraint) -> _Ranges:
        """The half-open ranges of codes that the constraint allows."""
        domain = constraint.domain
        if domain is None:
            return [(0, self._distinct)]
        distinct = self._sorted.get(domain)
        if distinct is None:
            return []
        first = self._first[domain]
        if constraint.values is not None:
            return [(first + place, first + place + 1) for place in _places(distinct, constraint.values)]
        low, high = 0, len(distinct)
        if constraint.low is not None:
            low = (bisect_right if constraint.low_open else bisect_left)(distinct, constraint.low)
        if constraint.high is not None:
            high = (bisect_left if constraint.high_open else bisect_right)(distinct, constraint.high)
        if constraint.suffix:
            ending = (place for place in range(low, high) if distinct[place].endswith(constraint.suffix))
            without = set(constraint.excluded)
            return [(first + place, first + place + 1) for place in ending if distinct[place] not in without]
        ranges: _Ranges = []
        for place in sorted(_places(distinct, constraint.excluded)):
            if low <= place < high:
                ranges.append((first + low, first + place))
                low = place + 1
        ranges.append((first + low, first + high))
        return [(begin, end) for begin, end in ranges if begin < end]

    def count(self, ranges: _Ranges) -> int:
        """How many events have codes in the ranges."""
        return sum(self._starts[end] - self._starts[begin] for begin, end in ranges)

    def rows(self, ranges: _Ranges) -> Rows:
        """Which events have codes in the ranges."""
        slices = [self._order[self._starts[begin] : self._starts[end]] for begin, end in ranges]
        return slices[0] if len(slices) == 1 else np.concatenate(slices) if slices else np.empty(0, np.int64)

    def among(self, rows: Rows, ranges: _Ranges) -> Rows:
        """Which of the given events have codes in the ranges."""
        codes = self.codes[rows]
        if len(ranges) == 1:
            begin, end = ranges[0]
            return rows[(codes >= begin) & (codes < end)]
        allowed = np.zeros(self._distinct + 1, bool)  # the last one is where code -1, an absent value, leads
        for begin, end in ranges:
            allowed[begin:end] = True
        return rows[allowed[codes]]


def _places(distinct: list[Any], values: Sequence[Value]) -> list[int]:
    places = [(bisect_left(distinct, value), value) for value in values]
    return [place for place, value in places if place < len(distinct) and distinct[place] == value]


class EventColumns:
    """A batch of events, one column for each attribute that occurs in it."""

    def __init__(self, events: Sequence[Mapping[str, Value]]) -> None:
        self._events = len(events)
        gathered: dict[str, tuple[list[int], list[Value]]] = {}
        for row, attributes in enumerate(events):
            for name, value in attributes.items():
                rows_and_values = gathered.get(name)
                if rows_and_values is None:
                    rows_and_values = gathered[name] = ([], [])
                rows_and_values[0].append(row)
                rows_and_values[1].append(value)
        self._columns = {name: _Column(rows, values, self._events) for name, (rows, values) in gathered.items()}

    def matching(self, condition: Condition) -> Rows:
        """The numbers of the events in the batch that match, in no particular order."""
        if condition is None:
            return np.empty(0, np.int64)
        asked: list[tuple[int, _Column, _Ranges]] = []
        lacked: list[_Column] = []
        for name, constraint in condition:
            column = self._columns.get(name)
            if constraint.is_absence:
                lacked += [column] if column is not None else []
                continue
            ranges = [] if column is None else column.ranges(constraint)
            if column is None or not ranges:
                return np.empty(0, np.int64)
            asked.append((column.count(ranges), column, ranges))
        # A conjunction is the same in any order; the rarest condition leaves the fewest events to look at.
        asked.sort(key=lambda each: each[0])
        rows = asked[0][1].rows(asked[0][2]) if asked else np.arange(self._events)
        for _, column, ranges in asked[1:]:
            if not len(rows):
                break
            rows = column.among(rows, ranges)
        for column in lacked:
            rows = rows[column.absent[rows]]
        return rows

    def match_all(self, conditions: Sequence[Condition]) -> tuple[Rows, Rows]:
        """(event numbers, condition numbers) of all pairs that match, as two arrays of the same length."""
        found = [self.matching(condition) for condition in conditions]
        counts = [len(rows) for rows in found]
        numbers = np.repeat(np.arange(len(conditions)), counts)
        return (np.concatenate(found) if found else np.empty(0, np.int64)), numbers
