"""Statistics of availability that allow for the window in which nodes are seen.

A session that began before the window is left out of the lengths (longer ones are likelier to be caught by the edge),
and one that outlasts it counts as at least that long (Kaplan and Meier's estimator). Gaps are times between two
sessions of one node; what lies before its first and after its last says nothing about gaps.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from workloads.churn.sessions import DAY_S, Availability

_HOUR_S = 3_600
_WEEKS_FROM_S = 9 * DAY_S
_SAMPLE_S = 1_800
AVAILABILITY_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True, slots=True)
class Statistics:
    """Lengths in hours, rates a node and hour. `session_quantiles`, `gap_quantiles`: see `AVAILABILITY_QUANTILES` (NaN
    where the window is too short to know). `swing`: the hour of day's mean population, highest less lowest, against
    the mean; `week_swing`: the same of the days of the week. `week_correlation`: of the population with itself seven
    days later. Weeks are known from nine days on; `arrivals`: a day, in the first and in the last seven days."""

    nodes: int
    days: float
    sessions: int
    population_mean: float
    population_peak: int
    population_deviation: float
    swing: float
    week_swing: float
    week_correlation: float
    arrivals: tuple[float, float]
    departures_per_hour: float
    availability_mean: float
    availability_quantiles: tuple[float, ...]
    session_quantiles: tuple[float, ...]
    gap_quantiles: tuple[float, ...]
    short_sessions: float
    sessions_per_node: tuple[float, ...]

    def rows(self) -> list[tuple[str, float]]:
        """Names and numbers, in the order in which they are printed."""
        listed: list[tuple[str, float]] = [
            ("nodes seen", self.nodes),
            ("days", self.days),
            ("sessions", self.sessions),
            ("population, mean", self.population_mean),
            ("population, peak", self.population_peak),
            ("population, deviation", self.population_deviation),
            ("swing over the day, of the mean", self.swing),
            ("swing over the week, of the mean", self.week_swing),
            ("correlation with 7 days later", self.week_correlation),
            ("arrivals a day, first week", self.arrivals[0]),
            ("arrivals a day, last week", self.arrivals[1]),
            ("departures an hour", self.departures_per_hour),
            ("availability, mean", self.availability_mean),
        ]
        for name, values in (
            ("availability", self.availability_quantiles),
            ("session, hours", self.session_quantiles),
            ("gap, hours", self.gap_quantiles),
            ("sessions a node", self.sessions_per_node),
        ):
            listed += [
                (f"{name}, p{100 * share:.0f}", value)
                for share, value in zip(AVAILABILITY_QUANTILES, values, strict=True)
            ]
        listed.append(("sessions under 2,000 s, share", self.short_sessions))
        return listed


def describe(trace: Availability) -> Statistics:
    """The statistics of the nodes that are seen through the trace's window."""
    trace = trace.seen
    length_s = trace.end_s - trace.begin_s
    times = np.arange(trace.begin_s, trace.end_s, _SAMPLE_S)
    population = trace.population(times.tolist())
    lengths, gaps = session_lengths(trace), gap_lengths(trace)
    up = [sum(down_s - up_s for up_s, down_s in held) / length_s for held in trace.sessions.values()]
    counts = [len(held) for held in trace.sessions.values()]
    departures = sum(down_s < trace.end_s for held in trace.sessions.values() for _, down_s in held)
    profile = hourly_profile(trace)
    return Statistics(
        nodes=len(trace.sessions),
        days=length_s / 86_400,
        sessions=sum(counts),
        population_mean=float(population.mean()),
        population_peak=int(population.max()),
        population_deviation=float(population.std()),
        swing=float((profile.max() - profile.min()) / population.mean()),
        week_swing=week_swing(trace),
        week_correlation=week_correlation(trace),
        arrivals=arrivals(trace),
        departures_per_hour=departures / (length_s / _HOUR_S),
        availability_mean=float(np.mean(up)),
        availability_quantiles=tuple(np.quantile(up, AVAILABILITY_QUANTILES).tolist()),
        session_quantiles=survival_quantiles(lengths, AVAILABILITY_QUANTILES),
        gap_quantiles=survival_quantiles(gaps, AVAILABILITY_QUANTILES),
        short_sessions=float(np.mean([length < 2_000 for length, ended in lengths if ended])),
        sessions_per_node=tuple(np.quantile(counts, AVAILABILITY_QUANTILES).tolist()),
    )


def session_lengths(trace: Availability) -> list[tuple[int, bool]]:
    """(seconds, whether its end was seen) of each session whose begin was seen."""
    return [
        (down_s - up_s, down_s < trace.end_s)
        for held in trace.sessions.values()
        for up_s, down_s in held
        if up_s > trace.begin_s
    ]


def gap_lengths(trace: Availability) -> list[tuple[int, bool]]:
    """(seconds, True) of each gap between two sessions of one node."""
    return [
        (later[0] - earlier[1], True) for held in trace.sessions.values() for earlier, later in itertools.pairwise(held)
    ]


def hourly_profile(trace: Availability) -> np.ndarray:
    """The mean population at each hour of the day, by the trace's clock: 24 numbers."""
    times = np.arange(trace.begin_s, trace.end_s, 600)
    population = trace.population(times.tolist())
    return np.array([population[times // _HOUR_S % 24 == hour].mean() for hour in range(24)])


def week_swing(trace: Availability) -> float:
    """The mean population of the days of the week, by the trace's clock, highest less lowest, against the mean of
    all; NaN where the window is too short."""
    times = np.arange(trace.begin_s, trace.end_s, _HOUR_S)
    if trace.end_s - trace.begin_s < _WEEKS_FROM_S:
        return float("nan")
    population = trace.population(times.tolist())
    days = [population[times // DAY_S % 7 == day].mean() for day in range(7)]
    return float((max(days) - min(days)) / population.mean())


def week_correlation(trace: Availability) -> float:
    """Of the hourly population with that of seven days later; NaN where the window is too short."""
    if trace.end_s - trace.begin_s < _WEEKS_FROM_S:
        return float("nan")
    times = np.arange(trace.begin_s, trace.end_s - 7 * DAY_S, _HOUR_S)
    now, later = (trace.population((times + shift).tolist()) for shift in (0, 7 * DAY_S))
    return float(np.corrcoef(now, later)[0, 1]) if now.std() and later.std() else float("nan")


def arrivals(trace: Availability) -> tuple[float, float]:
    """Sessions that begin a day, in the window's first seven days and in its last."""
    begins = np.array([up_s for held in trace.sessions.values() for up_s, _ in held if up_s > trace.begin_s])
    length_s = min(7 * DAY_S, trace.end_s - trace.begin_s)
    days = length_s / DAY_S
    first = np.count_nonzero(begins < trace.begin_s + length_s)
    last = np.count_nonzero(begins >= trace.end_s - length_s)
    return first / days, last / days


def survival_quantiles(lengths: Sequence[tuple[int, bool]], shares: Sequence[float]) -> tuple[float, ...]:
    """Hours that the given share of the lengths does not exceed, by Kaplan and Meier; NaN where that is not known."""
    if not lengths:
        return tuple(float("nan") for _ in shares)
    values = np.array([length for length, _ in lengths])
    ended = np.array([seen for _, seen in lengths])
    distinct, first = np.unique(np.sort(values), return_index=True)
    at_risk = len(values) - first
    events = np.array([np.count_nonzero(ended & (values == value)) for value in distinct])
    survival = np.cumprod(1 - events / at_risk)
    found = []
    for share in shares:
        reached = np.flatnonzero(survival <= 1 - share)
        found.append(float(distinct[reached[0]]) / _HOUR_S if len(reached) else float("nan"))
    return tuple(found)


def side_by_side(described: Mapping[str, Statistics]) -> list[tuple[str, ...]]:
    """The statistics as rows of text, a column for each name."""
    columns = [dict(statistics.rows()) for statistics in described.values()]
    return [(name, *(_text(column[name]) for column in columns)) for name in columns[0]]


def _text(value: float) -> str:
    if value != value:
        return "beyond the window"
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 100 else f"{value:.2f}"
