"""Churn without a trace: nodes that come and go as the Skype superpeers did.

The model. Time goes by the steps in which the trace was probed. At each step a node that is up leaves, and one that is
down comes, with a probability that its class and the age of its state give, times a factor of the hour of the day and
one of the day of the week. After some of its departures a node never returns, and as the days pass others are born.
Both go on as they do in the trace, which loses more nodes than it gains.

The nodes that belong at the begin are drawn from the equilibrium of their class. They are then followed for a week
before the window, in which nobody is born or lost, so that the window's first hour finds them as a later one would.

`fit` derives the tables from a trace: `murmur churn FILE --fit` prints them as they stand in `SKYPE`.
"""

import math
import random
from dataclasses import dataclass

import numpy as np

from murmur_pubsub.errors import InputError
from workloads.churn.sessions import DAY_S, Availability, ChurnSession
from workloads.churn.skype import SKYPE
from workloads.churn.tables import ChurnTables

_BEFORE_S = 7 * DAY_S
_NODES_AT_ONCE = 1_000
"""So many nodes' draws are held in memory at once."""
_DRAWS = 2**32
_NODES_MAX, _DAYS_MAX = 10_000_000, 36_600
"""A hundred years: all draws of a thousand nodes are in memory at once."""


@dataclass(frozen=True, slots=True)
class GeneratedChurn:
    """This number of nodes over this number of days; `scale` stretches sessions and gaps (2: half as much churn).
    begin_s: where the window begins by the tables' clock of hours and days."""

    nodes: int = 2_000
    days: float = 25.0
    scale: float = 1.0
    begin_s: int = 0
    tables: ChurnTables = SKYPE

    def __post_init__(self) -> None:
        if not (1 <= self.nodes <= _NODES_MAX and 0 < self.days <= _DAYS_MAX and 0 < self.scale < math.inf):
            found = f"{self.nodes} nodes, {self.days:g} days, scale {self.scale:g}"
            allowed = f"numbers above zero, at most {_NODES_MAX:,} nodes and {_DAYS_MAX:,} days"
            raise InputError("generated churn", found, allowed)


def generate(wanted: GeneratedChurn, seed: int) -> Availability:
    """The sessions of nodes `n0`, `n1`, …"""
    end_s = wanted.begin_s + max(1, int(wanted.days * DAY_S))
    chances = _Chances(wanted)
    sessions: dict[str, tuple[ChurnSession, ...]] = {}
    for first in range(0, wanted.nodes, _NODES_AT_ONCE):
        numbers = range(first, min(wanted.nodes, first + _NODES_AT_ONCE))
        held = _Nodes(wanted, chances, numbers, seed).sessions(end_s)
        sessions |= {f"n{number}": tuple(each) for number, each in zip(numbers, held, strict=True)}
    return Availability(sessions, wanted.begin_s, end_s, {"generated": wanted.nodes, "seed": seed})


class _Chances:
    """The tables as arrays; the first index of each is the state: 0 down, 1 up."""

    def __init__(self, wanted: GeneratedChurn) -> None:
        tables = wanted.tables
        columns = np.searchsorted(tables.ages, np.arange(1, tables.ages[-1] + 1), "right") - 1
        by_age = np.array([tables.coming, tables.leaving])[:, :, columns]
        self._scale = wanted.scale
        self._by_age = 1 - (1 - by_age) ** (1 / wanted.scale)
        self._oldest = by_age.shape[2] - 1
        self._hours = np.array([tables.coming_hours, tables.leaving_hours])
        self._days = np.array([tables.coming_days, tables.leaving_days])
        # How often an age is reached, by class: of the state down, then of the state up.
        reached = np.cumprod(1 - by_age, axis=2)
        reached = np.concatenate([np.ones_like(reached[:, :, :1]), reached[:, :, :-1]], axis=2)
        reached[:, :, -1] /= by_age[:, :, -1]  # All ages from there on.
        self._reached = reached.transpose(1, 0, 2).reshape(len(tables.present), -1).cumsum(axis=1)

    def at(self, time_s: int, up: np.ndarray, classes: np.ndarray, ages: np.ndarray) -> np.ndarray:
        """That these nodes' states end at this time; ages in steps."""
        columns = np.minimum(ages / self._scale, self._oldest).astype(np.int64)
        factors = self._hours[:, time_s // 3_600 % 24] * self._days[:, time_s // DAY_S % 7]
        found: np.ndarray = self._by_age[up, classes, columns] * factors[up]
        return found

    def equilibrium(self, of_class: int, share: float) -> tuple[int, int]:
        """State and age of a node of the class that is met at any time, by a share of all such nodes."""
        reached = self._reached[of_class]
        place = min(int(np.searchsorted(reached, share * reached[-1], "right")), len(reached) - 1)
        state, age = divmod(place, self._oldest + 1)
        return state, int(age * self._scale)


class _Nodes:
    """Some of the nodes, followed together step by step; each draws from a source of its own."""

    def __init__(self, wanted: GeneratedChurn, chances: _Chances, numbers: range, seed: int) -> None:
        self._wanted, self._chances = wanted, chances
        self._sources = [random.Random(f"{seed}/churn/{number}") for number in numbers]
        self._classes, self._up, self._ages = np.zeros((3, len(numbers)), dtype=np.int64)
        self._born_s = np.full(len(numbers), -np.inf)
        tables = wanted.tables
        born = sum(tables.births) * wanted.days
        for place, rng in enumerate(self._sources):
            there, share = rng.random() * (1 + born) < 1, rng.random()
            weights = tables.present if there else tables.births
            (of_class,) = rng.choices(range(len(weights)), weights)
            self._classes[place] = of_class
            if there:
                self._up[place], self._ages[place] = chances.equilibrium(of_class, share)
            else:
                self._born_s[place] = wanted.begin_s + share * wanted.days * DAY_S

    def sessions(self, end_s: int) -> list[list[ChurnSession]]:
        begin_s, step_s = self._wanted.begin_s, self._wanted.tables.step_s
        before = -(-_BEFORE_S // step_s)
        steps = before + -(-(end_s - begin_s) // step_s)
        draws = np.stack([np.frombuffer(rng.randbytes(4 * steps), "<u4") for rng in self._sources], axis=1)
        lasts = np.array(self._wanted.tables.lasts)[self._classes]
        here, up, ages = np.isneginf(self._born_s), self._up, self._ages
        held: list[list[ChurnSession]] = [[] for _ in self._sources]
        since_s = [begin_s] * len(held)
        for step in range(steps):
            time_s = begin_s + (step - before) * step_s
            chance = self._chances.at(time_s, up, self._classes, ages) * _DRAWS
            changing = here & (draws[step] < chance)
            if time_s > begin_s:
                # Below the chance all draws are as likely, so the same draw says which departures are the last.
                here &= ~(changing & (up == 1) & (draws[step] < chance * lasts))
                born = (self._born_s > time_s - step_s) & (self._born_s <= time_s)
                here |= born
                changing |= born
            ages = np.where(changing, 0, ages + 1)
            up = up ^ changing
            for place in np.flatnonzero(changing).tolist():
                if up[place]:
                    since_s[place] = max(begin_s, time_s)
                elif time_s > begin_s:
                    held[place].append((since_s[place], time_s))
        for place in np.flatnonzero(up).tolist():
            held[place].append((since_s[place], end_s))
        return held
