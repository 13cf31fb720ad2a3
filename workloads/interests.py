"""Synthetic filters: which intervals they ask for, how wide they must be, and how many events they match.

All filters share one interval width, but for those that are drawn to be covered by another one: their intervals are
parts of its. The width is found by bisection over a sample of events and filters, which is quick and comes near the
wanted matching rate; the rate that counts is measured afterwards, on the bounds as they are written into the filters,
against every filter.
"""

import math
import operator
import random
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, repeat

from workloads.zipf import DECIMALS, category_name

_FILTERS_SAMPLED = 2_000
_BISECTIONS = 30
_LEAST_PART = 0.2

Row = tuple[float, ...]
"""A number for each predicate of a filter, or for each attribute of an event."""
Bounds = Sequence[Sequence[tuple[float, float]]]
"""The least and the greatest value of each interval of each filter."""


class Events:
    """A sample of events: `numbers` of each, and its category (0 without any).

    A set of them is a whole number with a bit for each. Those with a value in an interval lie side by side in the order
    of that value, so two such sets, kept for each attribute, say which they are.
    """

    def __init__(self, numbers: Sequence[Row], categories: Sequence[int]) -> None:
        self.count = len(numbers)
        self._values: list[list[float]] = []
        self._below: list[list[int]] = []
        for column in zip(*numbers, strict=True):
            order = sorted(range(self.count), key=column.__getitem__)
            self._values.append([column[at] for at in order])
            self._below.append(list(accumulate((1 << at for at in order), operator.or_, initial=0)))
        self._of_category: dict[int, int] = {}
        for at, category in enumerate(categories):
            self._of_category[category] = self._of_category.get(category, 0) | 1 << at

    def matched(self, attributes: Sequence[int], bounds: Iterable[tuple[float, float]], category: int | None) -> int:
        """How many have values within these bounds, and that category (None: any)."""
        found = (1 << self.count) - 1 if category is None else self._of_category.get(category, 0)
        for attribute, (low, high) in zip(attributes, bounds, strict=True):
            values, below = self._values[attribute], self._below[attribute]
            found &= below[bisect_right(values, high)] & ~below[bisect_left(values, low)]
        return found.bit_count()


@dataclass(frozen=True, slots=True)
class Interests:
    """Filters before they have a width. Of each, `attributes` says which attribute each predicate is on, and `centres`
    where its interval lies; `categories` holds one category a filter, or is None.
    Values run from 0 to `extent`, and are whole numbers if `whole`."""

    attributes: Sequence[tuple[int, ...]]
    centres: Sequence[Row]
    categories: Sequence[int] | None
    extent: float
    whole: bool
    parts: Sequence[Row]
    """How much of the width each interval has."""
    offsets: Sequence[Row]
    """How far the middle of each is from its centre, in widths."""

    def with_covered(self, share: float, rng: random.Random) -> "Interests":
        """The same, but that share of the filters each ask for parts of the intervals of an earlier one."""
        if not share:
            return self
        attributes, centres = list(self.attributes), list(self.centres)
        categories = None if self.categories is None else list(self.categories)
        parts, offsets = list(self.parts), list(self.offsets)
        for filter_ in range(1, len(centres)):
            if rng.random() >= share:
                continue
            other = rng.randrange(filter_)
            attributes[filter_], centres[filter_] = attributes[other], centres[other]
            if categories is not None:
                categories[filter_] = categories[other]
            smaller, moved = [], []
            for part, offset in zip(parts[other], offsets[other], strict=True):
                smaller.append(part * rng.uniform(_LEAST_PART, 1))
                moved.append(offset + (part - smaller[-1]) * rng.uniform(-0.5, 0.5))
            parts[filter_], offsets[filter_] = tuple(smaller), tuple(moved)
        return replace(
            self, attributes=attributes, centres=centres, categories=categories, parts=parts, offsets=offsets
        )

    def tuned_width(self, events: Events, wanted: float) -> float:
        """The interval width at which the events match the wanted share of the first filters, or all there can be."""
        some = min(_FILTERS_SAMPLED, len(self.centres))
        low, high = 0.0, 2.0 * self.extent
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            if self.matching_rate(events, self._intervals(middle, some)) < wanted:
                low = middle
            else:
                high = middle
        return high

    def bounds(self, width: float) -> Bounds:
        """The least and the greatest value of each interval, as filters are written."""
        intervals = self._intervals(width, len(self.centres))
        if self.whole:
            return [[(math.ceil(low), math.floor(high)) for low, high in each] for each in intervals]
        return [[(round(low, DECIMALS), round(high, DECIMALS)) for low, high in each] for each in intervals]

    def _intervals(self, width: float, count: int) -> Bounds:
        """Those of the first `count` filters."""
        half = width / 2
        return [
            [
                (centre + offset * width - part * half, centre + offset * width + part * half)
                for centre, part, offset in zip(*row, strict=True)
            ]
            for row in zip(self.centres[:count], self.parts[:count], self.offsets[:count], strict=True)
        ]

    def matching_rate(self, events: Events, bounds: Bounds) -> float:
        """The share that match, of all pairs of an event and one of the filters, the first ones, that have bounds."""
        wanted: Iterable[int | None] = repeat(None) if self.categories is None else self.categories
        matched = sum(map(events.matched, self.attributes, bounds, wanted))
        return matched / events.count / len(bounds)

    def texts(self, bounds: Bounds) -> list[str]:
        """Each filter as text."""
        texts = [
            " AND ".join(
                f"a{attribute} BETWEEN {low!r} AND {high!r}" for attribute, (low, high) in zip(*row, strict=True)
            )
            for row in zip(self.attributes, bounds, strict=True)
        ]
        if self.categories is None:
            return texts
        return [
            f"category = '{category_name(category)}' AND {text}"
            for category, text in zip(self.categories, texts, strict=True)
        ]
