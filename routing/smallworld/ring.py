"""The identifier ring, and what a node knows of it: to whom it sends what is meant for an identifier.

Theory of operation. The destination of a lookup for v is the node with the closest identifier at or above v, its
*rendezvous node* (Vinifera IV-B2). Routing is greedy: the next hop for v is the way to the known node closest above v,
where a node knows its contacts and, from their heartbeats, its contacts' neighbours. So the distance from v up to the
closest known node shrinks with each hop. It depends on v and on the hop's own tables alone, not on who asks: all ways
to a rendezvous node are one tree. A range is cut at the identifiers of known nodes (showering), each part going the way
of its values, and every part of it ends at one node.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

from murmur_pubsub.machine import NodeName

RING_SIZE = 1 << 32
"""Identifiers and hashed values are the integers below it."""
Interval = tuple[int, int]
"""Both ends belong to it; it never wraps around."""


def clockwise(start: int, end: int) -> int:
    """How far it is from the one up to the other."""
    return (end - start) % RING_SIZE


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The same values as disjoint intervals, ascending; neighbouring ones are joined."""
    joined: list[Interval] = []
    for low, high in sorted(intervals):
        if joined and low <= joined[-1][1] + 1:
            if high > joined[-1][1]:
                joined[-1] = (joined[-1][0], high)
        else:
            joined.append((low, high))
    return joined


def overlap(first: Sequence[Interval], second: Sequence[Interval]) -> int:
    """How many values are in both; each side disjoint and ascending."""
    shared = at = 0
    for low, high in first:
        while at < len(second) and second[at][1] < low:
            at += 1
        position = at
        while position < len(second) and second[position][0] <= high:
            shared += min(high, second[position][1]) - max(low, second[position][0]) + 1
            position += 1
    return shared


def value_count(intervals: Sequence[Interval]) -> int:
    """How many values are in them."""
    return sum(high - low + 1 for low, high in intervals)


class KnownRing:
    """The nodes that the node with the identifier `own` knows, in order. `ways`: each one's identifier, and by which
    contact it is reached."""

    __slots__ = ("_identifiers", "_ways")

    def __init__(self, own: int, ways: Mapping[int, NodeName]) -> None:
        known: dict[int, NodeName | None] = {**ways, own: None}
        self._identifiers = sorted(known)
        self._ways = [known[identifier] for identifier in self._identifiers]

    def next_hop(self, value: int) -> NodeName | None:
        """The way to the closest known node at or above the value; None if that is this node: it is the rendezvous."""
        at = bisect_left(self._identifiers, value)
        return self._ways[at if at < len(self._ways) else 0]

    def shower(self, low: int, high: int) -> list[tuple[int, int, NodeName | None]]:
        """The range cut into parts (low, high, next hop), ascending; None: this node is the parts' rendezvous."""
        identifiers, ways = self._identifiers, self._ways
        parts: list[tuple[int, int, NodeName | None]] = []
        at = bisect_left(identifiers, low)
        while low <= high:
            if at == len(identifiers):
                end, way = high, ways[0]
            else:
                end, way = min(high, identifiers[at]), ways[at]
            if parts and parts[-1][2] == way:
                parts[-1] = (parts[-1][0], end, way)
            else:
                parts.append((low, end, way))
            low = end + 1
            at += 1
        return parts
