"""Load balancing by moving identifiers (Vinifera IV-B5, after Karger and Ruhl).

A node's load is the number of events that it received as a rendezvous node; half of it is forgotten with each
comparison. When its successor's load is more than `beta` above its own, a node takes an identifier between the two of
them, so as to halve the successor's load: the successor's median. Where most of the successor's events have one value,
or none is remembered, no move could take half, and none is made. Each of the two then takes the average of both loads.

That alone is a slow diffusion. So the other case of Karger and Ruhl is here too: a node whose load is a quarter or less
of the heaviest contact's, which is more than `beta`, may leave its place and take half of that one's range. Many
contacts of one heavy node see that at once; each jumps with a small probability, and not to the same place. So
identifiers come to lie as densely as events do.

The text counts only events that a rendezvous node has no interest in. Then nothing moves where it matters: nodes at the
popular end of the ring want what comes there, and the few above them relay it all.
"""

import random
from collections import deque

from routing.smallworld.ring import RING_SIZE, clockwise

_REMEMBERED = 64
_LIGHT = 4
"""A node is light beside one that has so many times its load."""
_JUMPS = 0.15
"""The probability with which a light node jumps at a comparison. Some 15 contacts see the same heavy node."""


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
        """The value that half of the events were at or before, on the arc up to this node's identifier. It is `own` if
        less than a quarter of them were beyond that value: then most have one, and no place takes half of them."""
        distances = sorted((clockwise(value, own) for value in self._values), reverse=True)
        if not distances:
            return own
        half = distances[(len(distances) - 1) // 2]
        beyond = sum(distance < half for distance in distances)
        return own if 4 * beyond < len(distances) else (own - half) % RING_SIZE


def new_identifier(own: int, successor: int, median: int) -> int | None:
    """Where the node moves to, so as to take half of its successor's load; None if no place between them does."""
    return median if 0 < clockwise(own, median) < clockwise(own, successor) else None


def jumps(own: int, heaviest: int, beta: int, rng: random.Random) -> bool:
    """Does a node with that load leave its place for the range of the heaviest contact?"""
    return heaviest > beta and _LIGHT * own <= heaviest and rng.random() < _JUMPS


def place_within(identifier: int, median: int, rng: random.Random) -> int | None:
    """Where a node goes that is to take half of the events of the one with that identifier; None if no place does."""
    half = clockwise(median, identifier)
    return (median + rng.randrange(1 + half // 8)) % RING_SIZE if half else None
