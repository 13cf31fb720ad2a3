"""A linear scan in C: what an index has to be faster than. Each filter's intervals lie side by side, and the first that
does not hold the event's value ends the filter."""

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from murmur_pubsub.filter import Filter
from murmur_pubsub.values import Value

_SOURCE = """
typedef struct { double low, high; long attribute; } interval;

long scan(const interval *intervals, long filters, long each, const double *event, int *matched) {
    long found = 0;
    for (long filter = 0; filter < filters; filter++, intervals += each) {
        long k = 0;
        while (k < each && event[intervals[k].attribute] >= intervals[k].low
                        && event[intervals[k].attribute] <= intervals[k].high) k++;
        if (k == each) matched[found++] = (int)filter;
    }
    return found;
}
"""
_INTERVAL = np.dtype([("low", np.float64), ("high", np.float64), ("attribute", np.int64)])


def packed_scan(filters: Sequence[Filter], names: Sequence[str]) -> Callable[[Mapping[str, Value]], list[int]] | None:
    """The numbers of the closed intervals' filters that an event matches; None where there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "scan.c"), Path(folder, "scan.so")
        source.write_text(_SOURCE, encoding="utf-8")
        subprocess.run([compiler, "-O3", "-march=native", "-shared", "-fPIC", source, "-o", library], check=True)
        scan = ctypes.CDLL(str(library)).scan
    scan.restype = ctypes.c_long
    number_of = {name: number for number, name in enumerate(names)}
    rows = [
        [(each.low, each.high, number_of[name]) for name, each in (wanted.constraints or {}).items()]
        for wanted in filters
    ]
    each = len(rows[0])
    packed = np.array([interval for row in rows for interval in row], dtype=_INTERVAL)
    assert len(packed) == each * len(filters)
    matched = np.empty(len(filters), dtype=np.int32)

    def match(event: Mapping[str, Value]) -> list[int]:
        values = np.array([event[name] for name in names], dtype=np.float64)
        found = scan(
            packed.ctypes.data_as(ctypes.c_void_p), ctypes.c_long(len(filters)), ctypes.c_long(each),
            values.ctypes.data_as(ctypes.c_void_p), matched.ctypes.data_as(ctypes.c_void_p),
        )  # fmt: skip
        return matched[:found].tolist()  # type: ignore[no-any-return]

    return match
