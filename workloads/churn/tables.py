"""What the generator of churn knows of a trace."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ChurnTables:
    """Tables of evenly spaced quantiles (lowest first), but for the two profiles of 24 hours.

    session_scales, gap_scales: mean logarithm of a node's lengths, in seconds. session_scatter, gap_scatter: what a
    single logarithm adds to it. correlation: between a node's two scales, as normal numbers. births: a node's first
    moment, as a share of the window; lives: its last, as a share of what is left of the window then. up_at_birth: the
    share up at the begin, of those whose life began with the window. arrivals, departures: how many come and go in
    each hour of the day, relative to the mean.
    """

    session_scales: tuple[float, ...]
    gap_scales: tuple[float, ...]
    session_scatter: tuple[float, ...]
    gap_scatter: tuple[float, ...]
    correlation: float
    births: tuple[float, ...]
    lives: tuple[float, ...]
    up_at_birth: float
    arrivals: tuple[float, ...]
    departures: tuple[float, ...]
