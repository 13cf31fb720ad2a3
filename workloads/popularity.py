"""Draws that several workloads share: Zipf popularity, and the times at which events are published."""

import random
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Literal

Arrival = Literal["poisson", "uniform"]


class Zipf:
    """Ranks from 0 with probability proportional to 1 / (rank + 1) ** exponent."""

    def __init__(self, ranks: int, exponent: float) -> None:
        self._sums = list(accumulate((rank + 1) ** -exponent for rank in range(ranks)))

    def draw(self, rng: random.Random) -> int:
        """One rank."""
        return bisect_right(self._sums, rng.random() * self._sums[-1], 0, len(self._sums) - 1)


def publishing_times(
    count: int, per_s: float | None, arrival: Arrival, rng: random.Random, first_us: float = 0.0
) -> Iterator[int]:
    """`count` times in microseconds at a mean rate; all 0 (as fast as the system takes them) without a rate.

    `first_us` is when uniform arrivals begin: publishers of one rate that share it out take turns by it.
    """
    now_us = 0.0
    for number in range(count):
        if per_s is None:
            yield 0
        elif arrival == "poisson":
            now_us += rng.expovariate(1.0) * 1e6 / per_s
            yield int(now_us)
        else:
            yield int(first_us + number * 1e6 / per_s)
