"""What a Pastry node hands up to the layer above: changes of the overlay, in the order in which they happened."""

from typing import NamedTuple

from routing.pastry.identifiers import IdentifierRange
from routing.pastry.messages import PastryPeer


class Joined(NamedTuple):
    """This node is part of the overlay from now on; a `CellFilled` for each of its cells follows."""


class CellFilled(NamedTuple):
    """The peer stands for a range for which no peer stood. `failed_since_us`: when its predecessor, found to
    have failed just now, was last heard. None: there was none, or the peer is a new node."""

    cell: IdentifierRange
    peer: PastryPeer
    failed_since_us: int | None


class PeerFailed(NamedTuple):
    """The peer is gone, or back as a new node without what it knew. `cell`: the range it stood for."""

    peer: PastryPeer
    cell: IdentifierRange | None


class PeerReturned(NamedTuple):
    """A peer that was taken for failed has spoken: it was only out of reach."""

    peer: PastryPeer


class LeavesChanged(NamedTuple):
    """The leaf set is another one."""


class RoundEnded(NamedTuple):
    """All that did not answer this round of probes have been found."""


class Answered(NamedTuple):
    """The peer has answered a probe with this note of the upper layer; `length`: of the range it stands for, or 0."""

    peer: PastryPeer
    length: int
    note: int


OverlayChange = Joined | CellFilled | PeerFailed | PeerReturned | LeavesChanged | RoundEnded | Answered
"""What the layer above has to know; see `routing.pastry.node.Pastry.take_changes`."""
