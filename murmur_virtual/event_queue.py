"""The queue of a virtual run: entries in order of time, and of insertion for equal times.

Entries are gathered in buckets of about a millisecond; a bucket is sorted when its time comes, which costs less
than keeping one large heap in order (docs/decisions/0004; measured by benchmarks/engine.py).
"""

import heapq
from bisect import insort
from typing import Any

QueueEntry = tuple[int, int, Any, int, Any, Any]
"""(time_us, number, node, kind, payload, source); the number is unique, so nothing behind it is compared."""

_BUCKET_SHIFT = 10


class EventQueue:
    """`push` entries, `pop` the earliest. Pushing before the time of the last popped entry is an error."""

    __slots__ = ("_buckets", "_current", "_current_key", "_keys", "_position", "_pushed")

    def __init__(self) -> None:
        self._buckets: dict[int, list[QueueEntry]] = {}
        self._keys: list[int] = []
        self._current: list[QueueEntry] = []
        self._current_key = -1
        self._position = 0
        self._pushed = 0

    def push(self, time_us: int, node: Any, kind: int, payload: Any, source: Any) -> int:
        """Add an entry; returns its number."""
        self._pushed = number = self._pushed + 1
        key = time_us >> _BUCKET_SHIFT
        # Keys are popped in ascending order and made only above the current one, so every bucket that waits lies wholly
        # after the current one: it may stay unsorted until then.
        bucket = self._buckets.get(key)
        if bucket is not None:
            bucket.append((time_us, number, node, kind, payload, source))
        elif key > self._current_key:
            self._buckets[key] = [(time_us, number, node, kind, payload, source)]
            heapq.heappush(self._keys, key)
        else:
            # Also where an entry was put back and the time is before its bucket. What was popped stands before
            # `_position`, and is no later than what is pushed now; the entry must not get in between.
            insort(self._current, (time_us, number, node, kind, payload, source), self._position)
        return number

    def pop(self) -> QueueEntry | None:
        """Take the earliest entry; None if there is none."""
        position = self._position
        if position == len(self._current):
            if not self._keys:
                return None
            self._current_key = heapq.heappop(self._keys)
            self._current = self._buckets.pop(self._current_key)
            # By time, then number: numbers are unique, so the order is total and never compares a payload.
            self._current.sort()
            position = 0
        self._position = position + 1
        return self._current[position]

    @property
    def number(self) -> int:
        """The number of the entry popped last."""
        return self._current[self._position - 1][1]

    @property
    def pushed(self) -> int:
        """The number of the entry pushed last."""
        return self._pushed

    def unpop(self) -> None:
        """Put the entry popped last back; nothing may have been pushed since."""
        self._position -= 1

    def peek_us(self) -> int | None:
        """The time of the earliest entry; None if there is none."""
        if self._position < len(self._current):
            return self._current[self._position][0]
        if not self._keys:
            return None
        return min(self._buckets[self._keys[0]])[0]  # not sorted yet, but all other buckets are later
