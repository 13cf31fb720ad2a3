"""What the gossip overlay hands up to the layer above: its changes, in the order in which they happened."""

from typing import NamedTuple

from murmur_pubsub.machine import NodeName


class RingChanged(NamedTuple):
    """Another peer is this node's predecessor or successor."""


class RingPeerAnswered(NamedTuple):
    """The predecessor or successor has answered its first heartbeat: routing may use it from now on."""


class GossipPeerMoved(NamedTuple):
    """The peer has taken another identifier."""

    peer: NodeName
    former: int
    """The one that it had before."""


class GossipPeerFailed(NamedTuple):
    """The peer is gone, or back as a new incarnation without what it knew."""

    peer: NodeName


class IdentifierGivenUp(NamedTuple):
    """This node has taken another identifier: a peer had the same."""


class RangeTaken(NamedTuple):
    """This node stands for the range of its new identifier from now on."""


GossipChange = IdentifierGivenUp | RangeTaken | RingChanged | RingPeerAnswered | GossipPeerMoved | GossipPeerFailed
"""What the layer above must hear at once; see `GossipOverlay.take_changes`. Other changes can wait for its next
round."""
