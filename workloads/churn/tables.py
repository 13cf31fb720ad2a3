"""What the generator of churn knows of a trace."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ChurnTables:
    """Small statistics of a trace that was probed every `step_s`. Nodes are of a few classes, by how long they stay and
    how long they stay away; the tables by class have a number, or a row, for each.

    present: the share of each class among the nodes that belong at the begin. births: nodes of the class that a day
    adds, for one node that belongs at the begin. lasts: the share of a node's departures after which it never returns.
    ages: the first age, in steps, of each column of the next two. leaving, coming: by class and age, the probability
    that a node that is up is found down at a probe, or one that is down found up. leaving_hours, coming_hours: what
    multiplies it in each hour of the day; leaving_days, coming_days: on each day of the week. Hours and days are those
    of the trace's clock, which begins on a day 0 at hour 0.
    """

    step_s: int
    present: tuple[float, ...]
    births: tuple[float, ...]
    lasts: tuple[float, ...]
    ages: tuple[int, ...]
    leaving: tuple[tuple[float, ...], ...]
    coming: tuple[tuple[float, ...], ...]
    leaving_hours: tuple[float, ...]
    coming_hours: tuple[float, ...]
    leaving_days: tuple[float, ...]
    coming_days: tuple[float, ...]
