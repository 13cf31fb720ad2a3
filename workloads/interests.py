"""Synthetic filters: which intervals they ask for, how wide they must be, and how many events they match.

All filters share one interval width. It is found by bisection over a sample of events and filters, which is
quick and comes near the wanted matching rate; the rate that counts is measured afterwards, on the bounds as they are
written into the filters, against every filter.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_FILTERS_SAMPLED = 2_000
_BISECTIONS = 30
DECIMALS = 6

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

    def tuned_width(self, events: Events, wanted: float) -> float:
        """The interval width at which the events match the wanted share of the first filters, or all there can be."""
        some = slice(0, _FILTERS_SAMPLED)
        low, high = 0.0, 2.0 * self.extent
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            reach = np.full_like(self.centres[some], middle / 2)
            matched = self._matches(events, some, self.centres[some] - reach, self.centres[some] + reach)
            if matched / len(events.numbers) / len(reach) < wanted:
                low = middle
            else:
                high = middle
        return high

    def bounds(self, width: float) -> tuple[Floats, Floats]:
        """The least and the greatest value of each interval, as filters are written."""
        lows, highs = [], []
        for centre in self.centres.ravel().tolist():
            lows.append(math.ceil(centre - width / 2) if self.whole else round(centre - width / 2, DECIMALS))
            highs.append(math.floor(centre + width / 2) if self.whole else round(centre + width / 2, DECIMALS))
        shape = self.centres.shape
        return np.array(lows, dtype=float).reshape(shape), np.array(highs, dtype=float).reshape(shape)

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


def category_name(category: int) -> str:
    """The value of the string attribute `category`."""
    return f"v{category}"
