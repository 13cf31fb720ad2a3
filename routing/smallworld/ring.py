"""The identifier ring, and what a node knows of it: the next hop for each identifier.

Theory of operation. The destination of a lookup for v is the node with the closest identifier at or above v, its
*rendezvous node* (Vinifera IV-B2). Routing is greedy: the next hop for v is the contact closest at or above v. So the
distance from v up to the closest known node shrinks with each hop. The next hop depends on v and on the tables of the
node alone, not on the node that asks: all paths to a rendezvous node are one tree. A range is cut at the identifiers of
contacts (the paper calls it showering). Each part goes to the next hop of its values, and ends at one node.
"""

from bisect import bisect_left
from collections.abc import Mapping

from murmur_pubsub.machine import NodeName

RING_SIZE = 1 << 32
"""Identifiers and hashed values are the integers below it."""


def clockwise(start: int, end: int) -> int:
    """How far it is from the one up to the other."""
    return (end - start) % RING_SIZE


class KnownRing:
    """The nodes that the node with the identifier `own` routes over, in order of their identifiers."""

    __slots__ = ("_hops", "_identifiers")

    def __init__(self, own: int, contacts: Mapping[int, NodeName]) -> None:
        known: dict[int, NodeName | None] = {**contacts, own: None}
        self._identifiers = sorted(known)
        self._hops = [known[identifier] for identifier in self._identifiers]

    def next_hop(self, value: int) -> NodeName | None:
        """The contact closest at or above the value; None if this node is closer: it is the rendezvous node."""
        place = bisect_left(self._identifiers, value)
        return self._hops[place if place < len(self._hops) else 0]

    def split_range(self, low: int, high: int) -> list[tuple[int, int, NodeName | None]]:
        """The range cut into parts (low, high, next hop), ascending; None: this node is the parts' rendezvous node."""
        identifiers, hops = self._identifiers, self._hops
        parts: list[tuple[int, int, NodeName | None]] = []
        place = bisect_left(identifiers, low)
        while low <= high:
            if place == len(identifiers):  # beyond the last node the ring goes on with the first
                end, hop = high, hops[0]
            else:
                end, hop = min(high, identifiers[place]), hops[place]
            if parts and parts[-1][2] == hop:
                parts[-1] = (parts[-1][0], end, hop)
            else:
                parts.append((low, end, hop))
            low = end + 1
            place += 1
        return parts
