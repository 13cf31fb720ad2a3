"""Messages between Pastry nodes (kinds 40 to 59 and `routing.founding`), all of them datagrams.

A peer is written [name, identifier, incarnation], a range of identifiers [value, length]. All but the periodic probes
are control messages: a run has not settled while a node is joining.
"""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, TypeAlias

from murmur_pubsub.machine import NodeName
from murmur_pubsub.message import Like, message
from routing.founding import Outside


class PastryPeer(NamedTuple):
    """A node of the overlay; `incarnation` counts its restarts: after one it is a new node under an old name."""

    name: NodeName
    identifier: int
    incarnation: int = 0


PastryPeerFields: TypeAlias = Annotated[Sequence[Any], Like((str, int, int))]
RangeFields: TypeAlias = Annotated[Sequence[int], Like((int, int))]


@message(40, control=True)
class JoinRequest(NamedTuple):
    """On its way to the node closest to the joining one; `known` gathers peers on the way."""

    joining: PastryPeerFields
    known: Sequence[PastryPeerFields]


@message(41, control=True)
class JoinReply(NamedTuple):
    """To the joining node, from the closest one: the peers from which it makes its tables."""

    known: Sequence[PastryPeerFields]


@message(42, control=True)
class Hello(NamedTuple):
    """Are you there? The sender would take the receiver into its tables; `joined`: it is part of the overlay itself."""

    peer: PastryPeerFields
    joined: bool


@message(43, control=True)
class Welcome(NamedTuple):
    """Yes; `joined`: and part of the overlay. `sought`: the answer to a `Seek`, not to a `Hello`. `known`: the row of
    the answering node in which the asking one belongs, and its leaf set."""

    peer: PastryPeerFields
    joined: bool
    sought: bool
    known: Sequence[PastryPeerFields]


@message(44, control=True)
class Seek(NamedTuple):
    """On its way to the node closest to `key`, which answers the seeking one with a Welcome."""

    seeking: PastryPeerFields
    key: int


@message(45, control=True)
class Arrived(NamedTuple):
    """The node has joined: to all nodes in the destination, through the peers that stand for its parts."""

    peer: PastryPeerFields
    destination: RangeFields


@message(46, control=True)
class Introduced(NamedTuple):
    """You should know these."""

    known: Sequence[PastryPeerFields]


@message(47, control=True)
class RepairRequest(NamedTuple):
    """Asks which peer stands for this range. The answer is an `Introduced`, if the receiver knows."""

    destination: RangeFields


@message(48)
class Ping(NamedTuple):
    """Periodic probe. `length`: of the sender's range for which the receiver stands (0: for none). `row`: of the
    receiver's table, which the sender would like to see too (0: none). `leaf`: is the receiver a leaf of the sender?"""

    peer: PastryPeerFields
    length: int
    row: int
    leaf: bool


@message(49)
class Pong(NamedTuple):
    """Answer to a probe. `note` is the upper layer's, about the asking node or the range of that length; `known` as in
    `Welcome`."""

    peer: PastryPeerFields
    length: int
    note: int
    known: Sequence[PastryPeerFields]


PASTRY_MESSAGES: tuple[type, ...] = (
    JoinRequest, JoinReply, Hello, Welcome, Seek, Arrived, Introduced, RepairRequest, Ping, Pong, Outside,
)  # fmt: skip
