"""The figures of a sweep: one measure against one parameter, a line for each value of the others.

A mark is the mean over seeds (and over parameters that have no line of their own), its bar reaches from the least to
the greatest. Numbers and times stand to scale, other values side by side without a line between them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from spark_analysis.charts import Axis, Panel, Readings, chart
from spark_analysis.look import BLUE, GREY, INK, ORANGE, RED

LINES_MAX = 8
_COLOURS = (BLUE, ORANGE, "#3f8f4f", "#8256a8", RED, "#1f9aa5", GREY, INK)
_DURATION = re.compile(r"([\d.]+)\s*(us|ms|s|min|h)")
_UNIT_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "min": 6e4, "h": 3.6e6}
_MARKS_MAX = 9
_MARK_ROOM = 1 / 12
"""Of an axis: marks that are nearer to each other than that would collide."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A column of the table as it is drawn: divided by `unit`; a share is never above 100 %."""

    column: str
    title: str
    axis: str
    unit: float = 1.0
    share: bool = False


@dataclass(frozen=True, slots=True)
class _Scale:
    """Where each value of a parameter stands on an axis; `numeric` if to scale, in `unit`."""

    places: dict[str, float]
    numeric: bool
    unit: str = ""

    def axis(self, name: str) -> Axis:
        """The axis of the parameter of that name, with a mark at each value that has room for one."""
        marks = sorted(self.places.values())
        words = f"{name} ({self.unit})" if self.unit else name
        if not self.numeric:
            return Axis(-0.5, len(marks) - 0.5, words, [(place, text) for text, place in self.places.items()])
        if len(marks) > 2 and marks[0] > 0 and marks[-1] / marks[0] >= 30:
            drawn = Axis.of_powers(marks[0] / 1.1, marks[-1] * 1.1, words)
        else:
            room = 0.04 * (marks[-1] - marks[0])
            drawn = Axis.of(marks[0] - room, marks[-1] + room, words)
        gaps = np.diff(drawn.places(marks))
        if len(marks) <= _MARKS_MAX and gaps.min() > _MARK_ROOM:
            return replace(drawn, marks=[(mark, f"{mark:,.6g}") for mark in marks])
        return drawn


def lines_of(table: pd.DataFrame, keys: Sequence[str], across: str) -> list[str]:
    """The parameters that get a line for each combination of their values, when `across` is the axis: all others, or
    the first ones of them as long as the lines can be told apart."""
    chosen: list[str] = []
    for key in keys:
        if key != across and table.groupby([*chosen, key], sort=False).ngroups <= LINES_MAX:
            chosen.append(key)
    return chosen


def sweep_figure(table: pd.DataFrame, keys: Sequence[str], measure: Measure) -> list[str]:
    """The measure against each of the parameters that vary, a chart each; none if nothing was measured."""
    varied = [key for key in keys if table[key].nunique() > 1]
    drawn = table[table[measure.column].notna()]
    if drawn.empty:
        return []
    return [_chart(drawn, varied, key, measure) for key in varied]


def _chart(table: pd.DataFrame, keys: Sequence[str], across: str, measure: Measure) -> str:
    scale = _scale(table[across])
    others = lines_of(table, keys, across)
    groups = [("", table)] if not others else list(table.groupby(others, sort=False))
    names = [", ".join(_named(others, values)) for values, _ in groups]
    key = list(zip(_COLOURS, names, strict=False)) if others else []
    found = table[measure.column] / measure.unit
    low = max(0.0, found.min() - 0.15 * (found.max() - found.min())) if measure.share else 0.0
    high = min(100.0, 1.08 * found.max()) if measure.share else 1.08 * found.max()
    words = measure.axis + (f"; by {', '.join(others)}:" if others else "")
    panel = Panel(scale.axis(across), Axis.of(low, high, words), 230, key)
    texts = list(dict.fromkeys(map(str, table[across])))
    series = []
    # Lines may coincide: those beneath have the larger marks, so that they can be seen.
    for number, (name, (_, rows)) in enumerate(zip(names, groups, strict=True)):
        spread = rows.groupby(across, sort=False)[measure.column].agg(["mean", "min", "max"]) / measure.unit
        spread.index = spread.index.map(str)
        places = np.array([scale.places[text] for text in spread.index])
        order = np.argsort(places)
        if not scale.numeric:
            places = places + 0.5 * ((number + 0.5) / len(groups) - 0.5)
        xs, spread = places[order], spread.iloc[order]
        wide = 6 + 1.8 * (len(groups) - 1 - number)
        panel.spans(xs, spread["min"], spread["max"], _COLOURS[number])
        panel.curve(xs, spread["mean"], _COLOURS[number], dots=wide, width=1.4 if scale.numeric else 0)
        said = {text: _said(*values) for text, *values in spread.itertuples()}
        series.append((f"{name}:" if name else "", [said.get(text, "") for text in texts]))
    at = [f"{across} {text}" for text in texts]
    return chart([panel], Readings([scale.places[text] for text in texts], at, series), f"{measure.title} by {across}")


def _said(mean: float, low: float, high: float) -> str:
    return f"{mean:,.4g}" + (f" ({low:,.4g} to {high:,.4g})" if low != high else "")


def _named(others: Sequence[str], values: object) -> list[str]:
    listed = values if isinstance(values, tuple) else (values,)
    return [f"{value:g}" if isinstance(value, float) else str(value) for value in listed]


def _scale(values: pd.Series) -> _Scale:
    texts = [str(value) for value in values.drop_duplicates()]
    if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
        return _Scale({text: float(text) for text in texts}, numeric=True)
    times = [_DURATION.fullmatch(text.strip()) for text in texts]
    found = [time for time in times if time is not None]
    if len(found) == len(texts):
        return _Scale({time.string: float(time[1]) * _UNIT_MS[time[2]] for time in found}, numeric=True, unit="ms")
    return _Scale({text: float(number) for number, text in enumerate(texts)}, numeric=False)
