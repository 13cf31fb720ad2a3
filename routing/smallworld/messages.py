"""Messages of the gossip overlay and of subscription installation (kinds 85 to 109), all of them datagrams.

A peer is written [name, incarnation, identifier, profile, revision, age]. Periodic ones are no control messages: a run
has settled while they go on.
"""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, TypeAlias

from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import NodeName
from murmur_pubsub.message import Like, message
from routing.founding import Outside


class GossipPeer(NamedTuple):
    """A node of the overlay."""

    name: NodeName
    incarnation: int
    """Counts its restarts."""
    identifier: int
    profile: bytes
    """What it has subscribed to, packed (`routing.smallworld.profile`)."""
    revision: int = 0
    """Of the profile, in this incarnation. A heartbeat says nothing of it, so the one that was heard of last may know
    an older profile."""

    def with_later_profile(self, other: "GossipPeer") -> "GossipPeer":
        """The same peer with the later of two profiles."""
        if other.incarnation != self.incarnation or other.revision <= self.revision:
            return self
        return self._replace(profile=other.profile, revision=other.revision)


GossipPeerFields: TypeAlias = Annotated[Sequence[Any], Like((str, int, int, bytes, int, int))]


@message(85)
class Shuffle(NamedTuple):
    """Peer sampling: some peers of the sender's view."""

    peers: Sequence[GossipPeerFields]
    answer: bool
    """In return for some of the receiver's?"""


@message(86)
class Exchange(NamedTuple):
    """Topology management: the sender and its whole routing table."""

    me: GossipPeerFields
    table: Sequence[GossipPeerFields]
    answer: bool
    """In return for the receiver's, or to a new neighbour that should not answer?"""


@message(87)
class Beat(NamedTuple):
    """Heartbeat of a node that has a link to the receiver."""

    identifier: int
    incarnation: int
    number: int
    """Grows with what the sender says in heartbeats and answers, so that one that was overtaken is known."""
    reach: Sequence[int]
    """The identifiers of the sender's neighbours."""
    load: int
    """Events that the sender relayed as a rendezvous node without interest in them."""
    median: int
    """Half of those events had hashed values up to this one."""
    version: int
    """Of what the sender has installed at the receiver; 0: nothing."""
    held: int
    """Of what the receiver has installed at the sender; 0: nothing."""


@message(88)
class BeatAnswer(NamedTuple):
    """The answer to a heartbeat, which says the same of the other side."""

    identifier: int
    incarnation: int
    number: int
    reach: Sequence[int]
    load: int
    median: int
    version: int
    held: int
    links: bool
    """Has the sender a link to the receiver?"""


@message(89, control=True)
class GossipJoinRequest(NamedTuple):
    """On its way to the rendezvous node of the joining node's identifier."""

    me: GossipPeerFields


@message(90, control=True)
class GossipWelcome(NamedTuple):
    """To the joining node: peers that it may want as neighbours, the sender first."""

    peers: Sequence[GossipPeerFields]


@message(91, control=True)
class Install(NamedTuple):
    """Lookup of ranges: all that the sender wants by way of the receiver, in place of what it wanted before."""

    incarnation: int
    version: int
    since: int
    """If this is not 0: what the sender wants besides what it wanted at that version."""
    regions: Sequence[Any]
    """Attribute, low, high and the number of a filter in turn."""
    filters: Sequence[Filter]
    """What must hold besides."""


OVERLAY_MESSAGES: tuple[type, ...] = (Shuffle, Exchange, Beat, BeatAnswer, GossipJoinRequest, GossipWelcome, Outside)
