"""Charts as HTML with vector graphics in it: panels one below the other over one axis, and what to say under a pointer.

Shapes are drawn in a square of 1,000 by 1,000 that the browser stretches to the panel; strokes keep their width, and
text stands beside it as HTML, so a chart is as readable in 400 pixels as in 1,200. templates/figures.js shows the
reading that is nearest to the pointer, or steps through them by arrow keys. Without it the chart is the same, unread.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from spark_analysis.look import BLUE, GREY

_SIDE = 1_000
_POINTS_MAX = 500
"""Of a curve; more are not told apart on a screen."""
Values = npt.ArrayLike


@dataclass(frozen=True, slots=True)
class Axis:
    """From one value to another, with marks at some of them; `words`: what it counts, with its unit."""

    low: float
    high: float
    words: str
    marks: Sequence[tuple[float, str]]
    logarithmic: bool = False

    @classmethod
    def of(cls, low: float, high: float, words: str, marks: int = 5, whole: bool = False) -> "Axis":
        """A linear axis with about so many marks, at round numbers; `whole`: at no others than whole ones."""
        high = high if high > low else low + 1
        return cls(low, high, words, [(mark, _number(mark)) for mark in _round_marks(low, high, marks, whole)])

    @classmethod
    def of_powers(cls, low: float, high: float, words: str) -> "Axis":
        """A logarithmic axis with marks at 1, 2 and 5 of each power of ten, or at powers alone where they are many."""
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        parts = (1, 2, 5) if len(powers) <= 3 else (1, 3) if len(powers) <= 4 else (1,)
        marks = [part * 10.0**power for power in powers for part in parts]
        return cls(
            low, high, f"{words}, logarithmic", [(mark, _number(mark)) for mark in marks if low <= mark <= high], True
        )

    def places(self, values: Values) -> npt.NDArray[np.float64]:
        """Where the values are, from 0 to 1; what is beyond an end is at the end."""
        found = np.asarray(values, dtype=float)
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, found = math.log(low), math.log(high), np.log(np.maximum(found, self.low))
        return np.clip((found - low) / (high - low), 0.0, 1.0)


@dataclass(slots=True)
class Panel:
    """One plot of a chart: what is drawn goes by values on both axes."""

    x: Axis
    y: Axis
    height: int = 150
    """In pixels."""
    key: Sequence[tuple[str, str]] = ()
    """Colours and what they stand for."""
    _shapes: list[str] = field(default_factory=list)
    _notes: list[str] = field(default_factory=list)

    def curve(
        self, xs: Values, ys: Values, colour: str = BLUE, *, steps: bool = False, filled: bool = False,
        dots: float = 0.0, width: float = 1.6,
    ) -> None:  # fmt: skip
        """A line through the points; `steps`: each value holds until the next x; `dots`: how wide its points are."""
        across, up = self._at(xs, ys)
        points = [f"{x} {y}" for x, y in zip(across, up, strict=True)]
        if steps:
            points = [points[0], *(f"H{x}V{y}" for x, y in zip(across[1:], up[1:], strict=True))]
        path = f"M{points[0]}{'' if steps else 'L'}{' '.join(points[1:])}" if len(points) > 1 else f"M{points[0]}h0"
        if filled:
            shape = f"{path}V{_SIDE}H{across[0]}Z"
            self._shapes.append(f'<path d="{shape}" fill="{colour}" fill-opacity="0.16"/>')
        if width:
            self._stroke(path, colour, width)
        if dots:
            self.dots(xs, ys, colour, dots)

    def dots(self, xs: Values, ys: Values, colour: str, width: float) -> None:
        """A round dot at each point, so many pixels wide at any size of the panel."""
        places = zip(*self._at(xs, ys), strict=True)
        self._stroke("".join(f"M{x} {y}h0" for x, y in places), colour, width, ' stroke-linecap="round" class="dots"')

    def bars(
        self, lefts: Values, rights: Values, bottoms: Values, tops: Values, colour: str, opacity: str = "1"
    ) -> None:
        """Rectangles."""
        left, top = self._at(lefts, tops)
        right, bottom = self._at(rights, bottoms)
        path = "".join(f"M{a} {d}H{b}V{c}H{a}Z" for a, b, c, d in zip(left, right, top, bottom, strict=True))
        self._shapes.append(f'<path d="{path}" fill="{colour}" fill-opacity="{opacity}"/>')

    def spans(self, xs: Values, lows: Values, highs: Values, colour: str) -> None:
        """An upright line at each x, from a low to a high value."""
        across, low = self._at(xs, lows)
        _, high = self._at(xs, highs)
        path = "".join(f"M{x} {a}V{b}" for x, a, b in zip(across, low, high, strict=True))
        self._stroke(path, colour, 1.0)

    def lines(self, pairs: Sequence[tuple[tuple[float, float], tuple[float, float]]], colour: str) -> None:
        """A straight line between the two points of each pair."""
        path = ""
        for (x, y), (to_x, to_y) in pairs:
            across, up = self._at([x, to_x], [y, to_y])
            path += f"M{across[0]} {up[0]}L{across[1]} {up[1]}"
        self._stroke(path, colour, 1.0)

    def rules(self, xs: Values) -> None:
        """A dashed upright line at each x, through the whole panel."""
        across, _ = self._at(xs, np.full(np.shape(xs), self.y.low))
        self._stroke("".join(f"M{x} 0V{_SIDE}" for x in across), GREY, 0.9, ' stroke-dasharray="3 3"')

    def note(self, x: float, y: float, words: str, kind: str, colour: str = "") -> None:
        """Words at a point; `kind`, of the style sheet's "note-…", says on which side: "after", "before", "in", …"""
        left, top = self.x.places([x])[0], 1 - self.y.places([y])[0]
        style = f"left:{_percent(left)};top:{_percent(top)}" + (f";color:{colour}" if colour else "")
        self._notes.append(f'<span class="note-{kind}" style="{style}">{escape(words)}</span>')

    def html(self) -> str:
        """The panel as the chart has it, without its axis below."""
        grid = "".join(
            f"M0 {_whole(_SIDE * (1 - place))}H{_SIDE}" for place in self.y.places([mark for mark, _ in self.y.marks])
        )
        drawn = f'<path d="{grid}" class="grid"/>' if grid else ""
        marks = "".join(
            f'<span class="mark" style="top:{_percent(1 - self.y.places([mark])[0])}">{escape(words)}</span>'
            for mark, words in self.y.marks
        )
        key = "".join(f'<i style="background:{colour}"></i>{escape(words)} ' for colour, words in self.key)
        drawn += "".join(self._shapes)
        head = f'<div class="head"><span>{escape(self.y.words)}</span><span>{key}</span></div>'
        kind = "panel" if self.y.words else "panel bare"
        return (
            f'{head if self.y.words or key else ""}<div class="{kind}" style="height:{self.height}px">'
            f'<svg viewBox="0 0 {_SIDE} {_SIDE}" preserveAspectRatio="none" aria-hidden="true">{drawn}</svg>'
            f"{marks}{''.join(self._notes)}</div>"
        )

    def _at(self, xs: Values, ys: Values) -> tuple[list[int], list[int]]:
        across = [_whole(_SIDE * place) for place in self.x.places(xs)]
        return across, [_whole(_SIDE * (1 - place)) for place in self.y.places(ys)]

    def _stroke(self, path: str, colour: str, width: float, more: str = "") -> None:
        self._shapes.append(f'<path d="{path}" stroke="{colour}" stroke-width="{width:g}" class="line"{more}/>')


@dataclass(slots=True)
class Readings:
    """What is said at some places of a chart."""

    places: Values
    """On the x axis of the chart."""
    at: Sequence[str]
    """Where that is, in words."""
    series: Sequence[tuple[str, Sequence[str]]]
    """What was measured, and its value at each place; an empty one is not said."""
    heights: Values = ()
    """On the y axis of the only panel: then the nearest in both directions is read."""


def chart(panels: Sequence[Panel], readings: Readings, title: str) -> str:
    """The panels over the axis of the last one, as HTML; `title` says what it is to those who do not see it."""
    axis = panels[-1].x
    told: dict[str, Any] = {
        "x": _in_percent(axis.places(readings.places)), "at": list(readings.at),
        "series": [[name, list(values)] for name, values in readings.series],
    }  # fmt: skip
    cursor = "cursor"
    if np.size(readings.heights):
        cursor = "cursor ring"
        told["y"] = _in_percent(1 - panels[0].y.places(readings.heights))
    data = escape(json.dumps(told, separators=(",", ":"), ensure_ascii=False))
    marks = "".join(
        f'<span style="left:{_percent(axis.places([mark])[0])}">{escape(words)}</span>' for mark, words in axis.marks
    )
    below = f'<div class="below">{marks}</div>' if marks else ""
    words = f'<div class="words">{escape(axis.words)}</div>' if axis.words else ""
    return (
        f'<div class="chart" tabindex="0" role="group" aria-label="{escape(title)}; arrow keys read it"'
        f' data-readings="{data}"><div class="panels">{"".join(panel.html() for panel in panels)}'
        f'<div class="{cursor}" hidden></div></div>{below}{words}<div class="tip" role="status" hidden></div></div>'
    )


def thinned(length: int) -> npt.NDArray[np.int_]:
    """Which of so many points of a curve to draw: the first, the last, and evenly between them."""
    return np.unique(np.linspace(0, length - 1, min(length, _POINTS_MAX)).astype(int))


def _round_marks(low: float, high: float, marks: int, whole: bool) -> list[float]:
    rough = max((high - low) / marks, 1.0 if whole else 0.0)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(part * power for part in (1, 2, 5, 10) if part * power >= 0.999 * rough)
    first = math.ceil(low / step - 1e-9)
    return [round(number * step, 12) for number in range(first, math.floor(high / step + 1e-9) + 1)]


def _number(value: float) -> str:
    return f"{value:,.10g}"


def _whole(value: float) -> int:
    return round(float(value))


def _percent(place: float) -> str:
    return f"{100 * float(place):.4g}%"


def _in_percent(places: npt.NDArray[np.float64]) -> list[float]:
    return [round(100 * float(place), 2) for place in places]
