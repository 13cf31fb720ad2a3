"""Churn without a trace: nodes that come and go as the Skype superpeers did.

The model. A node belongs to the system from its birth to its end, which may reach beyond the window; within its life it
alternates between sessions and gaps. Its sessions' lengths have a scale of its own, its gaps' too (nodes differ more
than one node's sessions do), and the two are correlated: both come from fitted tables by one pair of normal numbers.
Around a node's scale single lengths scatter, again by a fitted table. Lengths are counted on a clock that runs
faster in the hours in which more nodes come (for gaps) or go (for sessions), which gives the population its day.

`fit` derives the tables from a trace: `murmur churn FILE --fit` prints them as they stand in `SKYPE`.
"""

import bisect
import math
import random
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from murmur_pubsub.errors import InputError
from workloads.churn.sessions import Availability, ChurnSession
from workloads.churn.skype import SKYPE
from workloads.churn.tables import ChurnTables

_DAY_S = 86_400
_NORMAL = NormalDist()
_PROFILE_POWER = 2.0


@dataclass(frozen=True, slots=True)
class GeneratedChurn:
    """This number of nodes over this number of days; `scale` stretches sessions and gaps (2: half as much churn)."""

    nodes: int = 2_000
    days: float = 25.0
    scale: float = 1.0
    tables: ChurnTables = SKYPE

    def __post_init__(self) -> None:
        if self.nodes < 1 or self.days <= 0 or self.scale <= 0:
            found = f"{self.nodes} nodes, {self.days} days, scale {self.scale}"
            raise InputError("generated churn", found, "numbers above zero")


def generate(wanted: GeneratedChurn, seed: int) -> Availability:
    """The sessions of nodes `n0`, `n1`, …"""
    end_s = int(wanted.days * _DAY_S)
    arriving, leaving = (_DayClock(profile) for profile in (wanted.tables.arrivals, wanted.tables.departures))
    sessions = {}
    for number in range(wanted.nodes):
        rng = random.Random(f"{seed}/churn/{number}")
        sessions[f"n{number}"] = _Node(wanted, rng, arriving, leaving).sessions(end_s)
    return Availability(sessions, 0, end_s, {"generated": wanted.nodes, "seed": seed})


class _DayClock:
    """A clock that runs at another pace in each hour of the day, and keeps time over whole days."""

    def __init__(self, profile: tuple[float, ...]) -> None:
        paces = np.array(profile) ** _PROFILE_POWER
        paces /= paces.mean()
        self._at_hour: list[float] = [0.0, *np.cumsum(paces * 3_600).tolist()]
        self._paces: list[float] = paces.tolist()

    def reading(self, time_s: float) -> float:
        days, within = divmod(time_s, _DAY_S)
        hour = int(within // 3_600)
        return days * _DAY_S + self._at_hour[hour] + (within - 3_600 * hour) * self._paces[hour]

    def time_s(self, reading: float) -> float:
        days, within = divmod(reading, _DAY_S)
        hour = min(23, bisect.bisect_right(self._at_hour, within) - 1)
        return days * _DAY_S + 3_600 * hour + (within - self._at_hour[hour]) / self._paces[hour]


class _Node:
    """Draws one node's life."""

    def __init__(self, wanted: GeneratedChurn, rng: random.Random, arriving: _DayClock, leaving: _DayClock) -> None:
        tables = wanted.tables
        first, other = rng.gauss(0, 1), rng.gauss(0, 1)
        second = tables.correlation * first + math.sqrt(1 - tables.correlation**2) * other
        self._session_scale = _from_table(tables.session_scales, _NORMAL.cdf(first)) + math.log(wanted.scale)
        self._gap_scale = _from_table(tables.gap_scales, _NORMAL.cdf(second)) + math.log(wanted.scale)
        self._rng = rng
        self._wanted = wanted
        self._arriving, self._leaving = arriving, leaving

    def sessions(self, end_s: int) -> tuple[ChurnSession, ...]:
        rng, tables = self._rng, self._wanted.tables
        born_s = _from_table(tables.births, rng.random()) * end_s
        dies_s = born_s + _from_table(tables.lives, rng.random()) * (end_s - born_s)
        if dies_s >= 0.999 * end_s:
            dies_s = math.inf
        held: list[ChurnSession] = []
        # A node born with the window was there before it: it is met in the middle of a session or a gap.
        now_s, up = (-rng.random() * _DAY_S, rng.random() < tables.up_at_birth) if born_s < 3_600 else (born_s, True)
        while now_s < min(end_s, dies_s):
            clock = self._leaving if up else self._arriving
            length_s = self._length(up)
            next_s = max(now_s + 60, clock.time_s(clock.reading(now_s) + length_s))
            if up and next_s > 0:
                begin, end = max(0, int(now_s)), min(end_s, int(min(next_s, dies_s)))
                if end > begin and (not held or begin > held[-1][1]):
                    held.append((begin, end))
            now_s, up = next_s, not up
        return tuple(held)

    def _length(self, up: bool) -> float:
        tables = self._wanted.tables
        scale, scatter = (self._session_scale, tables.session_scatter) if up else (self._gap_scale, tables.gap_scatter)
        return math.exp(scale + _from_table(scatter, self._rng.random()))


def _from_table(table: tuple[float, ...], share: float) -> float:
    """The value that the share of all does not exceed, between the table's evenly spaced quantiles."""
    position = share * (len(table) - 1)
    lower = min(int(position), len(table) - 2)
    return table[lower] + (position - lower) * (table[lower + 1] - table[lower])
