"""Load balancing by moving identifiers (Vinifera IV-B5, after Karger and Ruhl).

A node's load is the number of events that it received as a rendezvous node without interest in them; half of it is
forgotten with each comparison. When its successor's load is more than `beta` above its own, a node takes an identifier
between the two of them, so as to halve the successor's load: the successor's median. If the median is the successor's
own identifier, because most of its events have one value or none is remembered, no move could take half, and none is
made. Each of the two then takes the average of both loads for its own.
"""

from collections import deque

from routing.smallworld.ring import clockwise

_REMEMBERED = 64


class Load:
    """A node's load, and where in its range the events were."""

    def __init__(self) -> None:
        self.events = 0
        self._values: deque[int] = deque(maxlen=_REMEMBERED)

    def add(self, value: int) -> None:
        """One more event, with that hashed value."""
        self.events += 1
        self._values.append(value)

    def forget_half(self) -> None:
        """Some time has passed."""
        self.events //= 2

    def become(self, events: int) -> None:
        """The load has been divided with a neighbour; `events` is this node's part."""
        self.events = events
        self._values.clear()

    def median(self, own: int) -> int:
        """The value that half of the events were at or before, on the arc up to this node's identifier (`own`, if no
        event is remembered)."""
        if not self._values:
            return own
        ordered = sorted(self._values, key=lambda value: -clockwise(value, own))
        return ordered[(len(ordered) - 1) // 2]


def new_identifier(own: int, successor: int, median: int) -> int | None:
    """Where the node moves to, so as to take half of its successor's load; None if no place between them does."""
    return median if 0 < clockwise(own, median) < clockwise(own, successor) else None
