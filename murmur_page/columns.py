"""The frames of a frozen page in columns: what moved between two brokers, frame by frame, compresses better than what
moved in a frame.

`m`, `a`, `d` and `o` of frames become lists of `[*key, column, …]`, a column being the numbers of all frames in order,
with runs of zeros written as one negative number. Nothing is lost; frozen.js has the way back.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_KEYS = {"m": 2, "a": 1, "d": 1, "o": 2}
"""Parts of a frame that are counts (absent: zero), and how many numbers of a row are its key."""


def in_columns(frames: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Frames as `Frame.plain` gives them, in columns; `rows` is what is left of each frame."""
    rest = [{what: each for what, each in frame.items() if what not in _KEYS} for frame in frames]
    packed: dict[str, Any] = {"rows": rest}
    for part, width in _KEYS.items():
        counts: dict[tuple[int, ...], dict[int, list[int]]] = {}
        for number, frame in enumerate(frames):
            for row in frame.get(part, ()):
                counts.setdefault(tuple(row[:width]), {})[number] = row[width:]
        packed[part] = [[*key, *_columns(by_frame, len(frames))] for key, by_frame in sorted(counts.items())]
    return packed


def _columns(by_frame: Mapping[int, list[int]], frames: int) -> list[list[int]]:
    nothing = [0] * len(next(iter(by_frame.values())))
    rows = (by_frame.get(number, nothing) for number in range(frames))
    return [_without_zeros(column) for column in zip(*rows, strict=True)]


def _without_zeros(column: Iterable[int]) -> list[int]:
    found: list[int] = []
    for value in column:
        if value:
            found.append(value)
        elif found and found[-1] < 0:
            found[-1] -= 1
        else:
            found.append(-1)
    return found
