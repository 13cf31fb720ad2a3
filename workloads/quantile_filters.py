"""Filters over recorded events: one value of a category, popular by Zipf, and intervals of numeric attributes.

Each interval is cut from the sorted values that events of the filter's category have: it holds the share `width` of
them, somewhere between the least and the greatest. So intervals lie where the data lies, and widening nests them,
which makes the matching rate grow with the width and lets bisection find the wanted one.

Rates are counted over all pairs of an event and a filter of one category (others cannot match), or, where
those are more than `_PAIRS_MAX`, over a sample of the events.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from murmur_pubsub.errors import InputError
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.values import Domain, Value, domain_of
from workloads.plan import EventAttributes
from workloads.popularity import Zipf

_PAIRS_MAX = 5_000_000
_BISECTIONS = 16
_PLACE = "workload.category, workload.ranges"

Category = tuple[Domain | None, Value]
"""The domain goes with the value: to Python `True` and `1` are the same key, to filters they are not."""


@dataclass(frozen=True, slots=True)
class MeasuredRate:
    """The share of pairs of an event and a filter that match, and on how many events it was counted."""

    rate: float
    events: int


class QuantileFilters:
    """`count` filters drawn over the events of a survey; raises `InputError` if no event has what they ask for."""

    def __init__(
        self,
        survey: Sequence[EventAttributes],
        category: str,
        ranges: tuple[str, ...],
        exponent: float,
        count: int,
        seed: int,
    ) -> None:
        self._category = category
        self._ranges = ranges
        self._seed = seed
        self._survey = [event for event in survey if self._has_all(event)]
        if not self._survey:
            raise self._unusable(survey)
        rng = random.Random(f"{seed}/filters")
        names = list(dict.fromkeys(self._category_of(event) for event in self._survey))
        rng.shuffle(names)
        zipf = Zipf(len(names), exponent)
        drawn = [(zipf.draw(rng), [rng.random() for _ in ranges]) for _ in range(count)]
        self._names = names
        self._numbers = {name: number for number, name in enumerate(names)}
        self._chosen = np.array([chosen for chosen, _ in drawn])
        self._positions = np.array([positions for _, positions in drawn], dtype=float).reshape(count, len(ranges))
        self._values = self._sorted_values()
        self._filters_of = [np.flatnonzero(self._chosen == number) for number in range(len(names))]
        parse_filter(self.texts(1.0)[0], _PLACE)  # a name that no filter can say is found here

    def tuned_width(self, wanted: float) -> float:
        """The width at which the survey matches nearest to the wanted rate (1, the widest, if that is too little)."""
        low, high = 0.0, 1.0
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            if self.measured(self._survey, middle).rate < wanted:
                low = middle
            else:
                high = middle
        return min(low, high, key=lambda width: abs(self.measured(self._survey, width).rate - wanted))

    def measured(self, events: Sequence[EventAttributes], width: float) -> MeasuredRate:
        """How many of the filters the events match at that width."""
        by_category = self._by_category(events)
        pairs = sum(len(listed) * len(self._filters_of[number]) for number, listed in by_category.items())
        if pairs > _PAIRS_MAX:
            count = max(1, len(events) * _PAIRS_MAX // pairs)
            events = random.Random(f"{self._seed}/measured").sample(list(events), count)
            by_category = self._by_category(events)
        least, greatest = self._quantiles(width)
        matched = 0
        for number, listed in by_category.items():
            filters = self._filters_of[number]
            hits = np.ones((len(listed), len(filters)), dtype=bool)
            for at, name in enumerate(self._ranges):
                ordered = np.array(self._values[number][at], dtype=float)
                values = np.array([event[name] for event in listed], dtype=float)[:, None]
                hits &= (ordered[least[filters, at]] <= values) & (values <= ordered[greatest[filters, at]])
            matched += int(hits.sum())
        return MeasuredRate(matched / len(events) / len(self._chosen), len(events))

    def texts(self, width: float) -> list[str]:
        """Each filter as text; bounds are values of the data as they stand there."""
        least, greatest = self._quantiles(width)
        texts = []
        for number, lows, highs in zip(self._chosen.tolist(), least.tolist(), greatest.tolist(), strict=True):
            parts = [f"{self._category} = {_literal(self._names[number][1])}"]
            for at, name in enumerate(self._ranges):
                ordered = self._values[number][at]
                parts.append(f"{name} BETWEEN {ordered[lows[at]]!r} AND {ordered[highs[at]]!r}")
            texts.append(" AND ".join(parts))
        return texts

    def _quantiles(self, width: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where each interval (filters x ranges) begins and ends in the sorted values of its category."""
        sizes = np.array([len(values[0]) if values else 1 for values in self._values])
        last = (sizes[self._chosen] - 1)[:, None]
        begin = self._positions * (1 - width)
        return (begin * last).astype(np.int64), ((begin + width) * last).astype(np.int64)

    def _sorted_values(self) -> list[list[list[Value]]]:
        """For each category and range, the values that events of the category have, in order."""
        values: list[list[list[Value]]] = [[[] for _ in self._ranges] for _ in self._names]
        for event in self._survey:
            for listed, name in zip(values[self._numbers[self._category_of(event)]], self._ranges, strict=True):
                listed.append(event[name])
        for each in values:
            for listed in each:
                listed.sort(key=float)
        return values

    def _by_category(self, events: Sequence[EventAttributes]) -> dict[int, list[EventAttributes]]:
        found: dict[int, list[EventAttributes]] = {}
        for event in events:
            if self._has_all(event):
                number = self._numbers.get(self._category_of(event))
                if number is not None:
                    found.setdefault(number, []).append(event)
        return found

    def _category_of(self, event: EventAttributes) -> Category:
        value = event[self._category]
        return domain_of(value), value

    def _has_all(self, event: EventAttributes) -> bool:
        if self._category not in event:
            return False
        return all(name in event and domain_of(event[name]) == "number" for name in self._ranges)

    def _unusable(self, survey: Sequence[EventAttributes]) -> InputError:
        known: dict[str, Value] = {}
        for event in survey:
            known |= event
        if self._category not in known:
            return InputError("workload.category", repr(self._category), f"an attribute: {', '.join(known)}")
        numbers = ", ".join(name for name, value in known.items() if domain_of(value) == "number")
        for name in self._ranges:
            if name not in known or domain_of(known[name]) != "number":
                return InputError("workload.ranges", repr(name), f"numeric attributes: {numbers or 'there are none'}")
        return InputError(_PLACE, "no event that has them all", "attributes that occur together")


def _literal(value: Value) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)
