"""The peers that a Pastry node knows: its routing table and its leaf set, and where a message goes by them.

A peer is known as long as it stands for a cell or is a leaf. Nothing here sends anything: what follows from a peer that
comes or goes is decided in `routing.pastry.node`.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from murmur_pubsub.machine import NodeName
from routing.pastry.identifiers import IdentifierRange, IdentifierSpace
from routing.pastry.leaf_set import LeafSet
from routing.pastry.messages import PastryPeer
from routing.pastry.routing_table import RoutingTable


class TakenIn(NamedTuple):
    """What has become of a peer that is there."""

    filled: IdentifierRange | None
    """The cell for which it stands from now on."""
    is_leaf: bool
    """Is it a leaf, and was none?"""


class KnownPeers:
    """Those of the node with the identifier `own`."""

    def __init__(self, space: IdentifierSpace, own: int, leaf_set: int) -> None:
        self._space = space
        self._own = own
        self.table = RoutingTable(space, own)
        self.leaves = LeafSet(space, own, leaf_set)
        self._peers: dict[NodeName, PastryPeer] = {}

    def __len__(self) -> int:
        return len(self._peers)

    def __iter__(self) -> Iterator[PastryPeer]:
        return iter(self._peers.values())

    def __contains__(self, name: NodeName) -> bool:
        return name in self._peers

    @property
    def names(self) -> Collection[NodeName]:
        """Of all, those known for longest first."""
        return self._peers.keys()

    def get(self, name: NodeName) -> PastryPeer | None:
        """The peer of that name."""
        return self._peers.get(name)

    # ---------------------------------------------------------------------------------- coming and going
    def take_in(self, peer: PastryPeer) -> TakenIn:
        """The peer is there: let it stand for its cell if no other does, and be a leaf if it is close enough."""
        filled = None
        if self.table.get(self.table.cell_of(peer.identifier)) is None:
            filled = self.table.put(peer)
            self._peers[peer.name] = peer
        return TakenIn(filled, self._take_leaf(peer))

    def _take_leaf(self, peer: PastryPeer) -> bool:
        before = list(self.leaves)
        if not self.leaves.add(peer):
            return False
        self._peers[peer.name] = peer
        for former in before:
            if former.name not in self.leaves and self.stands_for(former) is None:
                del self._peers[former.name]
        return True

    def replace(self, peer: PastryPeer) -> None:
        """Let the peer stand for its cell in place of the one that does."""
        current = self.table.get(self.table.cell_of(peer.identifier))
        if current is not None and current.name != peer.name:
            self.table.put(peer)
            self._peers[peer.name] = peer
            if current.name not in self.leaves:
                del self._peers[current.name]

    def remove(self, peer: PastryPeer) -> tuple[IdentifierRange | None, bool]:
        """The peer is gone: the cell for which it stood, and whether it was a leaf. The nearest that are left are
        leaves."""
        self._peers.pop(peer.name, None)
        was_leaf = self.leaves.remove(peer.name)
        if was_leaf:
            for other in self._peers.values():
                self.leaves.add(other)
        return self.table.remove(peer), was_leaf

    # ------------------------------------------------------------------------------------------- questions
    def stands_for(self, peer: PastryPeer) -> IdentifierRange | None:
        """The cell for which the peer stands."""
        cell = self.table.cell_of(peer.identifier)
        stands = self.table.get(cell)
        return cell if stands is not None and stands.name == peer.name else None

    def within(self, wide: IdentifierRange) -> list[PastryPeer]:
        """Those in the range."""
        return [peer for peer in self._peers.values() if self._space.contains(wide, peer.identifier)]

    def next_hop(self, key: int, besides: NodeName | None = None) -> PastryPeer | None:
        """The peer to which a message for the identifier goes; None if this node is the closest to it. The node
        `besides` is passed by: it looks for others near that identifier."""
        # Each hop but the last shares more digits with the key, or as many and is nearer. The last one is by leaf sets,
        # to the closest of all, whose own leaf set spans the key. So no message goes in a circle.
        if self.leaves.spans(key, len(self._peers), besides):
            return self.leaves.closest(key, besides)
        if key == self._own:
            return None
        stands = self.table.get(self.table.cell_of(key))
        if stands is not None and stands.name != besides:
            return stands
        shared, distance = self._space.shared, self._space.distance
        here = shared(self._own, key)
        best, least = None, (distance(self._own, key), self._own)
        for peer in self._peers.values():
            away = (distance(peer.identifier, key), peer.identifier)
            if away < least and shared(peer.identifier, key) >= here and peer.name != besides:
                best, least = peer, away
        return best

    def towards(self, cell: IdentifierRange) -> PastryPeer | None:
        """The peer to which a message for a range goes of which this node shares all digits but the last: a peer that
        stands for it or is in it, else a peer closer to its middle identifier among those that share as many digits
        (IRBR 5.5). None: as far as this node knows, the range is empty."""
        stands = self.table.get(cell)
        if stands is not None:
            return stands
        middle = self._space.middle(cell)
        around = self._space.range_of(self._own, cell.length - 1)
        best, least = None, abs(self._own - middle)
        for peer in self._peers.values():
            if self._space.contains(cell, peer.identifier):
                return peer
            away = abs(peer.identifier - middle)
            if away < least and self._space.contains(around, peer.identifier):
                best, least = peer, away
        return best

    def useful_to(self, peer: PastryPeer, row: int = 0, is_its_leaf: bool = False) -> list[PastryPeer]:
        """What a peer may like to know: the row in which it belongs, another that it asks for, and the leaves if it is
        near. `is_its_leaf`: it takes this node for one; if it is not near, the nodes between the two it does not know.
        """
        shared = self._space.shared(self._own, peer.identifier)
        known = self._rows_for(peer, [shared + 1, row] if 0 <= row <= shared else [shared + 1])
        if not is_its_leaf or self._is_near(peer):
            return known
        around = LeafSet(self._space, peer.identifier, self.leaves.size)
        for each in self._peers.values():
            if each.name != peer.name:
                around.add(each)
        return list(dict.fromkeys((*known, *around)))

    def in_the_longest_row(self) -> dict[PastryPeer, IdentifierRange]:
        """The peers that share the greatest number of digits with this node, and their cells; then other leaves, each
        with the range of its own identifier."""
        cells = self.table.cells()
        found = {peer: cell for cell, peer in cells if cell.length == cells[-1][0].length}
        for leaf in self.leaves:
            found.setdefault(leaf, self._space.range_of(leaf.identifier, self._space.digits))
        return found

    def row_to_ask_for(self, turn: int) -> dict[NodeName, int]:
        """Row by row in turn, a peer that has the same row: what is missing from it that peer may know."""
        shared = {peer.name: self._space.shared(self._own, peer.identifier) for peer in self}
        deepest = max(shared.values(), default=0)
        if not deepest:
            return {}
        row = 1 + turn % deepest
        known = [name for name, digits in shared.items() if digits >= row]
        return {known[turn // deepest % len(known)]: row}

    def in_common_with(self, peer: PastryPeer) -> list[PastryPeer]:
        """What two nodes that meet should both know: all rows that they share, and the leaves if they are near."""
        return self._rows_for(peer, range(1, self._space.shared(self._own, peer.identifier) + 2))

    def _rows_for(self, peer: PastryPeer, rows: Iterable[int]) -> list[PastryPeer]:
        known = {each.name: each for length in rows for each in self.table.row(length).values()}
        if self._is_near(peer):
            known |= {each.name: each for each in self.leaves}
        known.pop(peer.name, None)
        return list(known.values())

    def _is_near(self, peer: PastryPeer) -> bool:
        return peer.name in self.leaves or self.leaves.wants(peer.identifier)

    def check_invariants(self) -> None:
        """Raise AssertionError if table and leaf set contradict each other."""
        standing = {peer.name: peer for _, peer in self.table.cells()}
        assert self._peers == {**standing, **{leaf.name: leaf for leaf in self.leaves}}
        for cell, peer in self.table.cells():
            assert self._space.contains(cell, peer.identifier)
            assert not self._space.contains(cell, self._own)
