"""Derives the generator's tables from a trace: `murmur churn FILE --fit` prints them for `skype.py`."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from workloads.churn.generator import GeneratedChurn, generate
from workloads.churn.sessions import Availability
from workloads.churn.tables import ChurnTables

_POINTS = 21
_ROUNDS, _SEEDS, _STEP = 12, 4, 0.5
_BORN_WITH_WINDOW_S = 2 * 86_400
"""A node first seen so early is taken to have been there before."""


def fit(trace: Availability) -> ChurnTables:
    """The tables of what is seen through the trace's window, the scales shifted until as many sessions are generated as
    the trace has, and as large a population: active nodes count for more than others in both."""
    trace = trace.seen
    tables = _first_fit(trace)
    days, nodes = (trace.end_s - trace.begin_s) / 86_400, len(trace.sessions)
    wanted_sessions, wanted_up_s = _totals(trace)
    for _ in range(_ROUNDS):
        made = [_totals(generate(GeneratedChurn(nodes, days, tables=tables), seed)) for seed in range(_SEEDS)]
        more = math.log(wanted_sessions / (sum(sessions for sessions, _ in made) / _SEEDS))
        larger = math.log(wanted_up_s / (sum(up_s for _, up_s in made) / _SEEDS))
        tables = replace(
            tables,
            session_scales=_shifted(tables.session_scales, _STEP * (larger - more)),
            gap_scales=_shifted(tables.gap_scales, _STEP * (-larger - more)),
        )
    return tables


def _totals(trace: Availability) -> tuple[int, int]:
    """Sessions, and seconds that nodes are up."""
    held = [session for sessions in trace.sessions.values() for session in sessions]
    return len(held), sum(down_s - up_s for up_s, down_s in held)


def _shifted(table: tuple[float, ...], by: float) -> tuple[float, ...]:
    return tuple(round(value + by, 3) for value in table)


def _first_fit(trace: Availability) -> ChurnTables:
    length_s = trace.end_s - trace.begin_s
    ups = [np.log([down_s - up_s for up_s, down_s in held]) for held in trace.sessions.values()]
    gaps = [
        np.log([later[0] - earlier[1] for earlier, later in itertools.pairwise(held)])
        for held in trace.sessions.values()
    ]
    births, lives = [], []
    for held in trace.sessions.values():
        born_s = held[0][0] - trace.begin_s
        born_s = 0 if born_s < _BORN_WITH_WINDOW_S else born_s
        births.append(born_s / length_s)
        dies_s = held[-1][1] - trace.begin_s
        dies_s = length_s if length_s - dies_s < _BORN_WITH_WINDOW_S else dies_s
        lives.append((dies_s - born_s) / (length_s - born_s))
    old = [held for held in trace.sessions.values() if held[0][0] - trace.begin_s < _BORN_WITH_WINDOW_S]
    session_scatter, gap_scatter = _scatter(ups), _scatter(gaps)
    session_scales = _scales(ups, float(np.std(session_scatter)))
    gap_scales = _scales(gaps, float(np.std(gap_scatter)))
    both = [
        (session, gap) for session, gap in zip(session_scales, gap_scales, strict=True) if session is not None and gap
    ]
    return ChurnTables(
        session_scales=_table([scale for scale in session_scales if scale is not None]),
        gap_scales=_table([scale for scale in gap_scales if scale is not None]),
        session_scatter=_table(session_scatter),
        gap_scatter=_table(gap_scatter),
        correlation=_rank_correlation([(session, gap) for session, gap in both]),
        births=_table(births),
        lives=_table(lives),
        up_at_birth=round(sum(held[0][0] <= trace.begin_s for held in old) / len(old), 3),
        arrivals=_hours([up_s for held in trace.sessions.values() for up_s, _ in held if up_s > trace.begin_s]),
        departures=_hours([down_s for held in trace.sessions.values() for _, down_s in held if down_s < trace.end_s]),
    )


def _scatter(lengths: Sequence[np.ndarray]) -> list[float]:
    """How the logarithms of single lengths lie around their node's mean; few of them hide some of it."""
    scatter: list[float] = []
    for each in lengths:
        if len(each) >= 5:
            scatter += ((each - each.mean()) * np.sqrt(len(each) / (len(each) - 1))).tolist()
    return scatter


def _scales(lengths: Sequence[np.ndarray], scatter: float) -> list[float | None]:
    """Each node's mean logarithm (None: it has no length), drawn in by what chance adds to a mean of few."""
    means = np.array([each.mean() for each in lengths if len(each)])
    counts = np.array([len(each) for each in lengths if len(each)])
    between = max(1e-9, float(np.var(means) - np.mean(scatter**2 / counts)))
    drawn_in = means.mean() + (means - means.mean()) * np.sqrt(between / (between + scatter**2 / counts))
    ordered = iter(drawn_in.tolist())
    return [next(ordered) if len(each) else None for each in lengths]


def _table(values: list[float]) -> tuple[float, ...]:
    return tuple(round(value, 3) for value in np.quantile(values, np.linspace(0, 1, _POINTS)).tolist())


def _hours(times_s: list[int]) -> tuple[float, ...]:
    counts = np.bincount(np.array(times_s) // 3_600 % 24, minlength=24)
    return tuple(round(float(value), 3) for value in counts / counts.mean())


def _rank_correlation(pairs: list[tuple[float, float]]) -> float:
    """The correlation of the two as normal numbers, from their ranks."""
    normal = NormalDist()
    columns = []
    for side in (0, 1):
        ranks = np.argsort(np.argsort([pair[side] for pair in pairs]))
        columns.append([normal.inv_cdf((rank + 0.5) / len(pairs)) for rank in ranks])
    return round(float(np.corrcoef(columns[0], columns[1])[0, 1]), 3)
