"""The figures of a sweep: one measure against one parameter, a line for each value of the others.

A mark is the mean over seeds (and over parameters that have no line of their own), its bar reaches from the least to
the greatest. Numbers and times stand to scale, other values side by side without a line between them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spark_analysis.plots import BLUE, FULL_WIDTH, GREY, HALF_WIDTH, INK, ORANGE, RED, STYLE, picture

LINES_MAX = 8
_COLOURS = (BLUE, ORANGE, "#3f8f4f", "#8256a8", RED, "#1f9aa5", GREY, INK)
_MARKERS = "osD^vPX*"
_DURATION = re.compile(r"([\d.]+)\s*(us|ms|s|min|h)")
_UNIT_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "min": 6e4, "h": 3.6e6}
_TICKS_MAX = 9


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

    @property
    def logarithmic(self) -> bool:
        marks = sorted(self.places.values())
        return self.numeric and len(marks) > 2 and marks[0] > 0 and marks[-1] / marks[0] >= 30


def lines_of(table: pd.DataFrame, keys: Sequence[str], across: str) -> list[str]:
    """The parameters that get a line for each combination of their values, when `across` is the axis: all others, or
    the first ones of them as long as the lines can be told apart."""
    chosen: list[str] = []
    for key in keys:
        if key != across and table.groupby([*chosen, key], sort=False).ngroups <= LINES_MAX:
            chosen.append(key)
    return chosen


def sweep_figure(table: pd.DataFrame, keys: Sequence[str], measure: Measure) -> str | None:
    """The measure against each of the parameters that vary, one panel each; None if nothing was measured."""
    varied = [key for key in keys if table[key].nunique() > 1]
    drawn = table[table[measure.column].notna()]
    if drawn.empty or not varied:
        return None
    with mpl.rc_context(STYLE):
        columns = min(2, len(varied))
        rows = -(-len(varied) // columns)
        width = FULL_WIDTH if columns == 2 else HALF_WIDTH * 1.3
        figure = Figure(figsize=(width, 3.1 * rows), layout="constrained")
        panels = np.atleast_1d(figure.subplots(rows, columns, sharey=True)).ravel()
        for axes, key in zip(panels, varied, strict=False):
            _panel(axes, drawn, varied, key, measure)
        for axes in panels[len(varied) :]:
            axes.remove()
        return picture(figure)


def _panel(axes: Axes, table: pd.DataFrame, keys: Sequence[str], across: str, measure: Measure) -> None:
    scale = _scale(table[across])
    others = lines_of(table, keys, across)
    # Lines may coincide: those beneath have the larger marks, so that they can be seen.
    groups = [("", table)] if not others else list(table.groupby(others, sort=False))
    for number, (values, rows) in enumerate(groups):
        found = rows.groupby(across, sort=False)[measure.column].agg(["mean", "min", "max"]) / measure.unit
        places = np.array([scale.places[str(value)] for value in found.index])
        order = np.argsort(places)
        if not scale.numeric:
            places = places + 0.5 * ((number + 0.5) / len(groups) - 0.5)
        mean = found["mean"].to_numpy()
        bars = np.array([mean - found["min"], found["max"] - mean]).clip(min=0)
        axes.errorbar(
            places[order], mean[order], yerr=bars[:, order], color=_COLOURS[number], marker=_MARKERS[number],
            linestyle="-" if scale.numeric else "none", linewidth=1.4, elinewidth=0.9, capsize=2.5,
            markersize=4.2 + 1.5 * (len(groups) - 1 - number),
            label=", ".join(_named(others, values)) if others else None,
        )  # fmt: skip
    _horizontal(axes, scale, across)
    if measure.share:
        low, high = axes.get_ylim()
        axes.set_ylim(max(-1.0, low), min(101.0, high))
    else:
        axes.set_ylim(0, 1.08 * float(table[measure.column].max()) / measure.unit or 1)
    axes.yaxis.set_major_formatter(mpl.ticker.FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.set_ylabel(measure.axis)
    axes.yaxis.set_tick_params(labelleft=True)
    if others:
        axes.legend(
            frameon=False, loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=4 if len(others) == 1 else 2,
            title=", ".join(others), alignment="left", borderpad=0, columnspacing=1.4, handletextpad=0.4,
        )  # fmt: skip


def _named(others: Sequence[str], values: object) -> list[str]:
    listed = values if isinstance(values, tuple) else (values,)
    return [f"{value:g}" if isinstance(value, float) else str(value) for value in listed]


def _horizontal(axes: Axes, scale: _Scale, name: str) -> None:
    marks = sorted(scale.places.values())
    notes = [each for each in (scale.unit, "logarithmic" if scale.logarithmic else "") if each]
    axes.set_xlabel(f"{name} ({', '.join(notes)})" if notes else name)
    if not scale.numeric:
        axes.set_xlim(-0.5, len(marks) - 0.5)
        long = sum(map(len, scale.places)) > 45
        axes.set_xticks(marks, list(scale.places), rotation=20 if long else 0, ha="right" if long else "center")
        axes.grid(axis="x", visible=False)
        return
    if scale.logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(mpl.ticker.NullFormatter())
    if len(marks) <= _TICKS_MAX and (scale.logarithmic or _apart(marks)):
        axes.set_xticks(marks, [f"{mark:,.6g}" for mark in marks])


def _apart(marks: Sequence[float]) -> bool:
    """Do labels at all marks of a linear axis have room?"""
    gaps = np.diff(marks)
    return bool(len(gaps) == 0 or gaps.min() > (marks[-1] - marks[0]) / 12)


def _scale(values: pd.Series) -> _Scale:
    texts = [str(value) for value in values.drop_duplicates()]
    if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
        return _Scale({text: float(text) for text in texts}, numeric=True)
    times = [_DURATION.fullmatch(text.strip()) for text in texts]
    found = [time for time in times if time is not None]
    if len(found) == len(texts):
        return _Scale({time.string: float(time[1]) * _UNIT_MS[time[2]] for time in found}, numeric=True, unit="ms")
    return _Scale({text: float(number) for number, text in enumerate(texts)}, numeric=False)
