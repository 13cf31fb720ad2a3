"""Derives the generator's tables from a trace: `murmur churn FILE --fit` prints them for `skype.py`.

Each node's time is cut into spells, up or down by turns. A spell is at risk at each of its probes, and ends at one.
Ends are counted against probes at risk by class, age, hour and day; base and factors are fitted by turns until each
expects as many ends as there were. What the window hides is left out, not guessed:

- A spell that was under way at the begin has no known age. It is counted from the oldest column's age on only.
- A node that is away for long is seen late. So a node seen first in the window's first half is taken to have been there
  before it; births are counted in the second half. Departures that nothing follows are counted in the first half, as in
  the second their nodes may yet come back.
- A gap that lasts to the end of the window counts if it is shorter than `_MARGIN_S`. Its node may come back.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from murmur_pubsub.errors import InputError
from workloads.churn.sessions import DAY_S, Availability, ChurnSession
from workloads.churn.tables import ChurnTables

_DAYS_MIN = 10
_STEP_S_MIN = 1_800
_MARGIN_S = 5 * DAY_S
_AGES = (1, 2, 3, 4, 6, 9, 13, 18, 25, 36, 60, 192)
_SESSION_CLASSES, _GAP_CLASSES = 4, 4
_ROUNDS = 10
_PRIOR_ENDS = 4.0
"""A class's rate at an age is drawn towards what all classes show at that age, as if by so many more ends."""


@dataclass(frozen=True, slots=True)
class _Spell:
    up: bool
    begin_s: int
    end_s: int
    begin_seen: bool
    end_seen: bool


def fit(trace: Availability) -> ChurnTables:
    """The tables of what is seen through the trace's window; raises `InputError` if that is too little."""
    trace = trace.seen
    days = (trace.end_s - trace.begin_s) / DAY_S
    firsts = np.array([held[0][0] for held in trace.sessions.values()])
    there = firsts < _middle_s(trace)
    step_s = _step_s(trace)
    spells = [list(_spells(held, trace)) for held in trace.sessions.values()]
    classes = _classes(spells)
    count = _SESSION_CLASSES * _GAP_CLASSES
    at_risk, ends = _counted(spells, classes, step_s)
    if days < _DAYS_MIN or not there.any() or not ends[0].any() or not ends[1].any():
        found = f"{days:.1f} days, {len(trace.sessions)} nodes"
        raise InputError("churn to fit", found, f"at least {_DAYS_MIN} days in which nodes come and go")
    (leaving, leaving_hours, leaving_days), (coming, coming_hours, coming_days) = (
        _rates(at_risk[state], ends[state]) for state in (1, 0)
    )
    born_days = (trace.end_s - _middle_s(trace)) / DAY_S
    present = np.bincount(classes[there], minlength=count)
    born = np.bincount(classes[~there], minlength=count)
    return ChurnTables(
        step_s=step_s,
        present=_rounded(present / present.sum()),
        births=_rounded(born / born_days / present.sum()),
        lasts=_rounded(_lasts(trace, classes, count)),
        ages=_AGES,
        leaving=tuple(_rounded(row) for row in leaving),
        coming=tuple(_rounded(row) for row in coming),
        leaving_hours=_rounded(leaving_hours),
        coming_hours=_rounded(coming_hours),
        leaving_days=_rounded(leaving_days),
        coming_days=_rounded(coming_days),
    )


def _middle_s(trace: Availability) -> int:
    return (trace.begin_s + trace.end_s) // 2


def _step_s(trace: Availability) -> int:
    """The time between two probes; half an hour where the trace knows moments more exactly."""
    moments = sorted({time_s for time_s, _, _ in trace.changes()})
    return max([_STEP_S_MIN, *([int(np.median(np.diff(moments)))] if len(moments) > 1 else [])])


def _spells(held: Sequence[ChurnSession], trace: Availability) -> Iterator[_Spell]:
    """A node's spells while it belongs to the system, in order."""
    if trace.begin_s < held[0][0] < _middle_s(trace):
        yield _Spell(False, trace.begin_s, held[0][0], False, True)
    for place, (up_s, down_s) in enumerate(held):
        if place:
            yield _Spell(False, held[place - 1][1], up_s, True, True)
        yield _Spell(True, up_s, down_s, up_s > trace.begin_s, down_s < trace.end_s)
    if trace.end_s - _MARGIN_S < held[-1][1] < trace.end_s:
        yield _Spell(False, held[-1][1], trace.end_s, True, False)


def _classes(spells: list[list[_Spell]]) -> np.ndarray:
    """Each node's class: a quarter by its time up for each departure, of those a quarter by its time down for each
    arrival. Nodes of which little is known are drawn to the middle."""
    scales = []
    for up in (True, False):
        times = np.array([sum(each.end_s - each.begin_s for each in held if each.up is up) for held in spells])
        ends = np.array([sum(each.end_seen for each in held if each.up is up) for held in spells])
        scales.append((times + times.sum() / max(1, ends.sum())) / (ends + 1))
    classes = np.zeros(len(spells), dtype=np.int64)
    by_session = _ranked(scales[0], _SESSION_CLASSES)
    for group in range(_SESSION_CLASSES):
        members = np.flatnonzero(by_session == group)
        classes[members] = group * _GAP_CLASSES + _ranked(scales[1][members], _GAP_CLASSES)
    return classes


def _ranked(values: np.ndarray, groups: int) -> np.ndarray:
    """The group of each value: equally many in each, lowest first."""
    return np.argsort(np.argsort(values, kind="stable"), kind="stable") * groups // len(values)


def _counted(spells: list[list[_Spell]], classes: np.ndarray, step_s: int) -> tuple[np.ndarray, np.ndarray]:
    """Probes at risk, and ends, by state, class, age, hour and day."""
    shape = (2, _SESSION_CLASSES * _GAP_CLASSES, len(_AGES), 24, 7)
    at_risk, ends = np.zeros(shape), np.zeros(shape)
    first_ages = np.array(_AGES)
    for held, of_class in zip(spells, classes, strict=True):
        for spell in held:
            length = max(1, round((spell.end_s - spell.begin_s) / step_s))
            ages = np.arange(1 if spell.begin_seen else _AGES[-1], length + 1)
            if not len(ages):
                continue
            times_s = spell.begin_s + ages * step_s
            hours, days = times_s // 3_600 % 24, times_s // DAY_S % 7
            columns = np.searchsorted(first_ages, ages, "right") - 1
            of_node = int(spell.up), of_class
            np.add.at(at_risk[of_node], (columns, hours, days), 1)
            if spell.end_seen:
                ends[of_node][columns[-1], hours[-1], days[-1]] += 1
    return at_risk, ends


def _rates(at_risk: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The base by class and age, and the factors of hours and days; arrays by class, age, hour and day."""
    hours, days = np.ones(24), np.ones(7)
    base = np.zeros(at_risk.shape[:2])
    for _ in range(_ROUNDS):
        exposed = np.einsum("cahd,h,d->ca", at_risk, hours, days)
        ended = ends.sum(axis=(2, 3))
        by_age = (ended.sum(axis=0) + 1) / (exposed.sum(axis=0) + exposed.sum() / ended.sum())
        by_class = (ended.sum(axis=1) + 1) / ((exposed * by_age).sum(axis=1) + 1)
        prior = by_class[:, None] * by_age
        base = (ended + _PRIOR_ENDS) / (exposed + _PRIOR_ENDS / prior)
        hours = (ends.sum(axis=(0, 1, 3)) + 1) / (np.einsum("cahd,ca,d->h", at_risk, base, days) + 1)
        days = (ends.sum(axis=(0, 1, 2)) + 1) / (np.einsum("cahd,ca,h->d", at_risk, base, hours) + 1)
    return base, hours, days


def _lasts(trace: Availability, classes: np.ndarray, count: int) -> np.ndarray:
    """The share of departures that are the last of their node, by class, of those in the window's first half."""
    until_s = _middle_s(trace)
    departures, lasts = np.zeros(count), np.zeros(count)
    for held, of_class in zip(trace.sessions.values(), classes, strict=True):
        departures[of_class] += sum(down_s < until_s for _, down_s in held)
        lasts[of_class] += held[-1][1] < until_s
    found: np.ndarray = (lasts + lasts.sum() / max(1, departures.sum())) / (departures + 1)
    return found


def _rounded(values: np.ndarray) -> tuple[float, ...]:
    return tuple(float(f"{value:.3g}") for value in values.tolist())
