"""Filters and events of the IRBR paper's experiments, with a wanted covering rate or a wanted matching rate.

An event has all attributes, each a random double in [0, 1); a filter constrains one of them, at random.

- Covering: a filter wants values from a random bound on. Two filters on the same attribute always cover each other one
  way or the other, so that the covering rate, the probability that of two random filters one covers the other, is that
  of the same attribute: with n attributes 1/n.
- Matching: a filter wants an interval of random width, between 0 and twice the matching rate, at a random place: an
  event matches it with a probability that is its width, in the mean the matching rate. There are `_ATTRIBUTES`
  attributes, so that few filters cover each other.

The text of the paper names neither its numbers of attributes nor its rates; these settings give wanted rates exactly.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from murmur_pubsub.errors import InputError
from murmur_pubsub.filter import Filter, interval

_ATTRIBUTES = 8


@dataclass(frozen=True, slots=True)
class Rates:
    """The one that is wanted; the other follows. Raises `InputError` for one that no settings reach."""

    covering: float | None = None
    matching: float | None = None

    def __post_init__(self) -> None:
        if (self.covering is None) == (self.matching is None):
            raise InputError("rates", str(self), "a covering rate or a matching rate")
        if self.covering is not None and not 0 < self.covering <= 1:
            raise InputError("covering rate", str(self.covering), "above 0, at most 1")
        if self.matching is not None and not 0 < self.matching <= 0.5:
            raise InputError("matching rate", str(self.matching), "above 0, at most 0.5")

    @property
    def attributes(self) -> int:
        """How many there are."""
        return _ATTRIBUTES if self.covering is None else round(1 / self.covering)


class Generator:
    """Draws filters and events, from the seed."""

    def __init__(self, rates: Rates, seed: int) -> None:
        self.rates = rates
        self._rng = random.Random(f"{seed}/irbr/{rates}")

    def filter(self) -> Filter:
        """One more filter."""
        rng = self._rng
        name = f"a{rng.randrange(self.rates.attributes)}"
        if self.rates.matching is None:
            return Filter.conjunction([(name, interval("number", rng.random()))])
        width = 2 * self.rates.matching * rng.random()
        low = (1 - width) * rng.random()
        return Filter.conjunction([(name, interval("number", low, high=low + width))])

    def event(self) -> dict[str, float]:
        """One more event."""
        return {f"a{number}": self._rng.random() for number in range(self.rates.attributes)}


def measured_rates(filters: Sequence[Filter], events: Sequence[dict[str, float]]) -> tuple[float, float]:
    """The covering rate of pairs of neighbouring filters, and the matching rate of all filters and events."""
    pairs = list(zip(filters[::2], filters[1::2], strict=False))
    covering = sum(first.covers(second) or second.covers(first) for first, second in pairs) / max(1, len(pairs))
    matching = sum(wanted.matches(event) for wanted in filters for event in events)
    return covering, matching / max(1, len(filters) * len(events))
