"""A linear scan in C: what an index has to be faster than. Each filter's predicates lie side by side, and the first
that does not hold for the event ends the filter. Texts are numbered before, in their order, so that the scan compares
numbers alone."""

import ctypes
import math
import shutil
import subprocess
import tempfile
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from murmur_pubsub.filter import Constraint, Filter
from murmur_pubsub.values import Value

_SOURCE = """
typedef struct { double low, high; long attribute; } predicate;

static int is_barred(const predicate *barred, long k, long end, const double *event) {
    for (; k < end; k++) {
        double value = event[barred[k].attribute];
        if (!(value < barred[k].low || value > barred[k].high)) return 1;
    }
    return 0;
}

long scan(const predicate *asked, const int *ends, const predicate *barred, const int *barred_ends,
          int *matched, long filters, const double *event) {
    long found = 0, k = 0;
    for (long filter = 0; filter < filters; filter++) {
        long end = ends[filter];
        while (k < end && event[asked[k].attribute] >= asked[k].low && event[asked[k].attribute] <= asked[k].high) k++;
        if (k == end && (!barred_ends
                         || !is_barred(barred, filter ? barred_ends[filter - 1] : 0, barred_ends[filter], event)))
            matched[found++] = (int)filter;
        k = end;
    }
    return found;
}
"""
_PREDICATE = np.dtype([("low", np.float64), ("high", np.float64), ("attribute", np.int64)])
_Predicate = tuple[float, float, int]
_Attributes = Mapping[str, Value]


def packed_scan(filters: Sequence[Filter], events: Sequence[_Attributes]) -> Callable[[_Attributes], list[int]] | None:
    """The numbers of the filters that one of these events matches; None where there is no C compiler.

    An attribute has numbers or texts. Filters may have intervals, single values and excluded ones.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "scan.c"), Path(folder, "scan.so")
        source.write_text(_SOURCE, encoding="utf-8")
        subprocess.run([compiler, "-O3", "-march=native", "-shared", "-fPIC", source, "-o", library], check=True)
        scan = ctypes.CDLL(str(library)).scan
    scan.restype = ctypes.c_long
    names = sorted({name for wanted in filters for name in wanted.attributes})
    texts = [sorted({str(event[name]) for event in events if type(event.get(name)) is str}) for name in names]
    ranks: dict[Value | None, float] = {None: math.nan}  # an absent attribute holds for nothing
    by_name = [
        (name, ranks | {text: float(rank) for rank, text in enumerate(own)})
        for name, own in zip(names, texts, strict=True)
    ]
    asked, ends = _packed(filters, names, lambda wanted, place: [(*_interval(wanted, texts[place]), place)])
    barred, barred_ends = _packed(
        filters, names, lambda wanted, place: [(*_place(value, texts[place]), place) for value in wanted.excluded]
    )
    matched = np.empty(len(filters), dtype=np.int32)
    given: list[ctypes.c_void_p | None] = [
        each.ctypes.data_as(ctypes.c_void_p) for each in (asked, ends, barred, barred_ends, matched)
    ]
    if not len(barred):
        given[3] = None

    def match(event: _Attributes) -> list[int]:
        values = np.array([ranks.get(value := event.get(name), value) for name, ranks in by_name], dtype=np.float64)
        found = scan(*given, ctypes.c_long(len(filters)), values.ctypes.data_as(ctypes.c_void_p))
        return matched[:found].tolist()  # type: ignore[no-any-return]

    return match


def _packed(
    filters: Sequence[Filter], names: Sequence[str], rows: Callable[[Constraint, int], list[_Predicate]]
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int32]]:
    """(what `rows` makes of each constraint and the number of its attribute, where each filter's end)."""
    numbers = {name: number for number, name in enumerate(names)}
    packed: list[_Predicate] = []
    ends = np.zeros(len(filters), dtype=np.int32)
    for number, wanted in enumerate(filters):
        for name, constraint in (wanted.constraints or {}).items():
            packed += rows(constraint, numbers[name])
        ends[number] = len(packed)
    return np.array(packed, dtype=_PREDICATE), ends


def _interval(wanted: Constraint, texts: Sequence[str]) -> tuple[float, float]:
    """The lowest and highest number of the constraint's values."""
    if wanted.values is not None:
        (value,) = wanted.values
        return _place(value, texts)
    low: Any = wanted.low
    high: Any = wanted.high
    if wanted.domain == "string":
        end = len(texts) if high is None else bisect_left(texts, high)
        return 0 if low is None else bisect_left(texts, low), end - 1
    least, most = -math.inf if low is None else float(low), math.inf if high is None else float(high)
    return (
        math.nextafter(least, math.inf) if wanted.low_open else least,
        math.nextafter(most, -math.inf) if wanted.high_open else most,
    )


def _place(value: Value, texts: Sequence[str]) -> tuple[float, float]:
    """The lowest and highest number of the value; none is between them if no event has the text."""
    if not isinstance(value, str):
        return float(value), float(value)
    place = bisect_left(texts, value)
    known = place < len(texts) and texts[place] == value
    return (place, place) if known else (place, place - 1)
