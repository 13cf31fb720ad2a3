"""The leaf set: the nodes next to this one on the ring, half of them on each side (Pastry section 2).

It decides which node is numerically closest to an identifier, and its correctness is what makes routing end at the
right node: if an identifier lies within the span of the leaf set, no unknown node can be closer.
"""

from collections.abc import Iterator

from murmur_pubsub.machine import NodeName
from routing.pastry.identifiers import IdentifierSpace
from routing.pastry.messages import PastryPeer


class LeafSet:
    """The leaf set of the node with the identifier `own`. In a small overlay a peer is a leaf on both sides."""

    def __init__(self, space: IdentifierSpace, own: int, size: int) -> None:
        self._space = space
        self._own = own
        self.size = size
        self._half = size // 2
        self._members: dict[NodeName, PastryPeer] = {}
        self._smaller: list[PastryPeer] = []
        self._larger: list[PastryPeer] = []
        self._reach_up = self._reach_down = space.size
        """A node closer than that on the side would be a leaf."""

    def __iter__(self) -> Iterator[PastryPeer]:
        return iter(self._members.values())

    def __contains__(self, name: NodeName) -> bool:
        return name in self._members

    def __len__(self) -> int:
        return len(self._members)

    @property
    def full(self) -> bool:
        """Are there as many leaves on each side as there should be?"""
        return len(self._smaller) == len(self._larger) == self._half

    @property
    def ends(self) -> list[PastryPeer]:
        """The farthest member on each side."""
        return list(dict.fromkeys(side[-1] for side in (self._smaller, self._larger) if side))

    def wants(self, identifier: int) -> bool:
        """Would a node with this identifier, not yet a member, become one?"""
        above = (identifier - self._own) % self._space.size
        return above < self._reach_up or self._space.size - above < self._reach_down

    def add(self, peer: PastryPeer) -> bool:
        """Take the peer in, if it is close enough; True if it is a new member."""
        if peer.name in self._members or not self.wants(peer.identifier):
            return False
        self._arrange([*self._members.values(), peer])
        return True

    def remove(self, name: NodeName) -> bool:
        """Forget the peer; True if it was a member."""
        if self._members.pop(name, None) is None:
            return False
        self._arrange(list(self._members.values()))
        return True

    def spans(self, key: int, peers_known: int, besides: NodeName | None = None) -> bool:
        """Is the key among the leaves `besides` that one, so that the closest other node to it is one of them or this
        one? `peers_known`: how many peers this node knows in all: if the leaf set is not full and holds them all, it
        holds the overlay."""
        if not self.full:
            return len(self._members) == peers_known
        up, down = self._reach_up, self._reach_down
        if besides in self._members:
            # Behind the last leaf of a side may be nodes that this one does not know: what looks for others than that
            # leaf may be nearer to them.
            up = max((self._away(peer.identifier, True) for peer in self._larger if peer.name != besides), default=0)
            down = max(
                (self._away(peer.identifier, False) for peer in self._smaller if peer.name != besides), default=0
            )
        above = self._away(key, True)
        return above <= up or self._space.size - above <= down

    def closest(self, key: int, besides: NodeName | None = None) -> PastryPeer | None:
        """The member closest to the key, or None if this node is closer than all; of two equally close the lower."""
        best: PastryPeer | None = None
        least = (self._space.distance(self._own, key), self._own)
        for peer in self._members.values():
            distance = (self._space.distance(peer.identifier, key), peer.identifier)
            if distance < least and peer.name != besides:
                best, least = peer, distance
        return best

    def _arrange(self, peers: list[PastryPeer]) -> None:
        self._smaller = sorted(peers, key=lambda peer: self._away(peer.identifier, False))[: self._half]
        self._larger = sorted(peers, key=lambda peer: self._away(peer.identifier, True))[: self._half]
        self._members = {peer.name: peer for peer in (*self._larger, *self._smaller)}
        full = len(self._larger) == self._half
        self._reach_up = self._away(self._larger[-1].identifier, True) if full else self._space.size
        self._reach_down = self._away(self._smaller[-1].identifier, False) if full else self._space.size

    def _away(self, identifier: int, up: bool) -> int:
        return (identifier - self._own if up else self._own - identifier) % self._space.size
