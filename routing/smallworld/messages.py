"""Messages of the gossip overlay and of subscription installation (kinds 85 to 109), all of them datagrams.

A peer is written [name, incarnation, identifier, profile, age]. Periodic ones are no control messages: a run has
settled while they go on.
"""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, TypeAlias

from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import NodeName
from murmur_pubsub.message import Like, message


class GossipPeer(NamedTuple):
    """A node of the overlay. `incarnation` counts its restarts; `profile`: what it has subscribed to, packed."""

    name: NodeName
    incarnation: int
    identifier: int
    profile: bytes


GossipPeerFields: TypeAlias = Annotated[Sequence[Any], Like((str, int, int, bytes, int))]


@message(85)
class Shuffle(NamedTuple):
    """Peer sampling: some of my view; `answer`: in return for yours."""

    peers: Sequence[GossipPeerFields]
    answer: bool


@message(86)
class Exchange(NamedTuple):
    """Topology management: myself and my whole routing table; `answer`: in return for yours."""

    me: GossipPeerFields
    table: Sequence[GossipPeerFields]
    answer: bool


@message(87)
class Beat(NamedTuple):
    """Heartbeat, of who has a link to you. `reach`: the identifiers of my neighbours. `load`: events that I relayed as
    a rendezvous node without interest; half of them had hashed values up to `median`. `version`: of what I have
    installed at you (0: nothing); `held`: of what you have installed at me."""

    identifier: int
    incarnation: int
    reach: Sequence[int]
    load: int
    median: int
    version: int
    held: int


@message(88)
class BeatAnswer(NamedTuple):
    """I am here too; `links`: with a link to you."""

    identifier: int
    incarnation: int
    reach: Sequence[int]
    load: int
    median: int
    version: int
    held: int
    links: bool


@message(89, control=True)
class GossipJoinRequest(NamedTuple):
    """On its way to the rendezvous node of the joining node's identifier."""

    me: GossipPeerFields


@message(90, control=True)
class GossipWelcome(NamedTuple):
    """To the joining node: whom it may want as neighbours, the sender first."""

    peers: Sequence[GossipPeerFields]


@message(91, control=True)
class Install(NamedTuple):
    """Lookup of ranges: all that the sender wants events for by way of the receiver, in place of what it wanted before;
    with `since` it is what it wants besides what it wanted at that version. `boxes`: attribute, low, high and the
    number of a filter in turn; the filter is what must hold besides."""

    incarnation: int
    version: int
    since: int
    boxes: Sequence[Any]
    filters: Sequence[Filter]


OVERLAY_MESSAGES: tuple[type, ...] = (Shuffle, Exchange, Beat, BeatAnswer, GossipJoinRequest, GossipWelcome)
