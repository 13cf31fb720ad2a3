"""The routing table: for each range of identifiers outside this node's own, the peer that stands for it.

A cell is a range that shares some leading digits with this node's identifier and differs in the next one; the ranges of
one length are a row. Ranges are fixed, the peers that stand for them change (IRBR section 3): a peer belongs in exactly
one cell.
"""

from routing.pastry.identifiers import IdentifierRange, IdentifierSpace
from routing.pastry.messages import PastryPeer


class RoutingTable:
    """The table of the node with the identifier `own`."""

    def __init__(self, space: IdentifierSpace, own: int) -> None:
        self._space = space
        self._own = own
        self._rows: list[dict[IdentifierRange, PastryPeer]] = [{} for _ in range(space.digits + 1)]
        self._below: list[list[tuple[IdentifierRange, PastryPeer]] | None] = [None] * (space.digits + 1)

    def cell_of(self, identifier: int) -> IdentifierRange:
        """The cell in which a peer with this identifier belongs."""
        return self._space.range_of(identifier, self._space.shared(self._own, identifier) + 1)

    def get(self, cell: IdentifierRange) -> PastryPeer | None:
        """The peer that stands for the cell."""
        return self._rows[cell.length].get(cell)

    def row(self, length: int) -> dict[IdentifierRange, PastryPeer]:
        """The cells of this length that have a peer."""
        return self._rows[length]

    def cells(self, longer_than: int = 0) -> list[tuple[IdentifierRange, PastryPeer]]:
        """All cells of a greater length that have a peer, the shortest first: the parts, but for this node, of its
        own range of the given length."""
        found = self._below[longer_than]
        if found is None:
            rows = self._rows[longer_than + 1 :]
            found = self._below[longer_than] = [entry for row in rows for entry in sorted(row.items())]
        return found

    def put(self, peer: PastryPeer) -> IdentifierRange:
        """Let the peer stand for its cell."""
        cell = self.cell_of(peer.identifier)
        self._rows[cell.length][cell] = peer
        self._below = [None] * (self._space.digits + 1)
        return cell

    def remove(self, peer: PastryPeer) -> IdentifierRange | None:
        """Forget the peer; the cell it stood for."""
        cell = self.cell_of(peer.identifier)
        found = self._rows[cell.length].get(cell)
        if found is None or found.name != peer.name:
            return None
        del self._rows[cell.length][cell]
        self._below = [None] * (self._space.digits + 1)
        return cell
