"""The frames of a frozen page in columns: what moved between two brokers, frame by frame, compresses better than what
moved in a frame.

`m`, `a`, `d` and `o` of frames become lists of `[*key, column, …]`, a column being the numbers of all frames in order,
with runs of zeros written as one negative number. What a broker received is written as what it is more, or less, than
was sent to it in the same frame, which is mostly nothing. Nothing is lost; frozen.js has the way back.
"""

from collections import Counter
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
            for row in _beside_links(frame) if part == "a" else frame.get(part, ()):
                counts.setdefault(tuple(row[:width]), {})[number] = row[width:]
        packed[part] = [[*key, *_columns(by_frame, len(frames))] for key, by_frame in sorted(counts.items())]
    return packed


def _beside_links(frame: Mapping[str, Any]) -> list[list[int]]:
    """The rows of `a`, with what was received less what `m` has as sent to that broker."""
    sent: Counter[int] = Counter()
    for _, receiver, events, others, _ in frame.get("m", ()):
        sent[receiver] += events + others
    own = {broker: counts for broker, *counts in frame.get("a", ())}
    rows = []
    for broker in {**dict.fromkeys(sent), **own}:
        received, *others = own.get(broker, (0, 0, 0))
        more = received - sent[broker]
        rows.append([broker, 2 * more if more >= 0 else -2 * more - 1, *others])  # no number is negative
    return rows


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
