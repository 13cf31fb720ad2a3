"""Synthetic filters: which intervals they ask for, how wide they must be, and how many events they match.

All filters share one interval width, but for those that are drawn to be covered by another one: their intervals are
parts of its. The width is found by bisection over a sample of events and filters, which is quick and comes near the
wanted matching rate; the rate that counts is measured afterwards, on the bounds as they are written into the filters,
against every filter.
"""

import math
import random
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from workloads.zipf import DECIMALS, category_name

_FILTERS_SAMPLED = 2_000
_BISECTIONS = 30
_LEAST_PART = 0.2

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Events:
    """A sample of events: `numbers` is events x attributes, `categories` the category of each (0 without any)."""

    numbers: Floats
    categories: Ints


@dataclass(frozen=True, slots=True)
class Interests:
    """Filters before they have a width. `attributes` (filters x predicates) says which attribute each predicate is on
    and `centres` where its interval lies; `categories` holds one category a filter, or is None.
    Values run from 0 to `extent`, and are whole numbers if `whole`."""

    attributes: Ints
    centres: Floats
    categories: Ints | None
    extent: float
    whole: bool
    parts: Floats
    """How much of the width each interval has (filters x predicates)."""
    offsets: Floats
    """How far the middle of each is from its centre, in widths."""

    def with_covered(self, share: float, rng: random.Random) -> "Interests":
        """The same, but that share of the filters each ask for parts of the intervals of an earlier one."""
        if not share:
            return self
        attributes, centres = self.attributes.copy(), self.centres.copy()
        categories = None if self.categories is None else self.categories.copy()
        parts, offsets = self.parts.copy(), self.offsets.copy()
        for filter_ in range(1, len(centres)):
            if rng.random() >= share:
                continue
            other = rng.randrange(filter_)
            attributes[filter_], centres[filter_] = attributes[other], centres[other]
            if categories is not None:
                categories[filter_] = categories[other]
            for at, part in enumerate(parts[other].tolist()):
                smaller = part * rng.uniform(_LEAST_PART, 1)
                parts[filter_, at] = smaller
                offsets[filter_, at] = offsets[other, at] + (part - smaller) * rng.uniform(-0.5, 0.5)
        return replace(
            self, attributes=attributes, centres=centres, categories=categories, parts=parts, offsets=offsets
        )

    def tuned_width(self, events: Events, wanted: float) -> float:
        """The interval width at which the events match the wanted share of the first filters, or all there can be."""
        some = slice(0, _FILTERS_SAMPLED)
        low, high = 0.0, 2.0 * self.extent
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            lows, highs = self._intervals(middle, some)
            matched = self._matches(events, some, lows, highs)
            if matched / len(events.numbers) / len(lows) < wanted:
                low = middle
            else:
                high = middle
        return high

    def bounds(self, width: float) -> tuple[Floats, Floats]:
        """The least and the greatest value of each interval, as filters are written."""
        lows, highs = (ends.ravel().tolist() for ends in self._intervals(width, slice(None)))
        least = [math.ceil(low) if self.whole else round(low, DECIMALS) for low in lows]
        greatest = [math.floor(high) if self.whole else round(high, DECIMALS) for high in highs]
        shape = self.centres.shape
        return np.array(least, dtype=float).reshape(shape), np.array(greatest, dtype=float).reshape(shape)

    def _intervals(self, width: float, some: slice) -> tuple[Floats, Floats]:
        middles = self.centres[some] + self.offsets[some] * width
        reaches = self.parts[some] * (width / 2)
        return middles - reaches, middles + reaches

    def matching_rate(self, events: Events, low: Floats, high: Floats) -> float:
        """The share of pairs of an event and a filter that match."""
        matched = 0
        for begin in range(0, len(low), _FILTERS_SAMPLED):
            some = slice(begin, begin + _FILTERS_SAMPLED)
            matched += self._matches(events, some, low[some], high[some])
        return matched / len(events.numbers) / len(low)

    def texts(self, low: Floats, high: Floats) -> list[str]:
        """Each filter as text."""
        bounds = (low.astype(int), high.astype(int)) if self.whole else (low, high)
        rows = zip(self.attributes.tolist(), bounds[0].tolist(), bounds[1].tolist(), strict=True)
        texts = [
            " AND ".join(
                f"a{attribute} BETWEEN {least!r} AND {greatest!r}"
                for attribute, least, greatest in zip(*row, strict=True)
            )
            for row in rows
        ]
        if self.categories is None:
            return texts
        return [
            f"category = '{category_name(category)}' AND {text}"
            for category, text in zip(self.categories.tolist(), texts, strict=True)
        ]

    def _matches(self, events: Events, some: slice, low: Floats, high: Floats) -> int:
        attributes = self.attributes[some]
        matched = np.ones((len(events.numbers), len(attributes)), dtype=bool)
        for predicate in range(attributes.shape[1]):
            values = events.numbers[:, attributes[:, predicate]]
            matched &= (low[:, predicate] <= values) & (values <= high[:, predicate])
        if self.categories is not None:
            matched &= events.categories[:, None] == self.categories[some]
        return int(matched.sum())
