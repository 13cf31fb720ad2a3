"""Messages of identifier range based routing (kinds 60 to 69), all of them control messages.

A range is written [value, length]. `destination` is the range whose nodes are to get the message (the paper's dp): a
node in it passes it on within, any other towards its middle identifier. The paper's message `redirect` is thus any
message met outside its destination, and unwrapping it is arriving there.
"""

from collections.abc import Sequence
from typing import NamedTuple

from murmur_pubsub.filter import Filter
from murmur_pubsub.message import message
from routing.pastry.messages import PastryPeerFields, RangeFields


@message(60, control=True)
class RangeSubscription(NamedTuple):
    """Nodes of the range `subscriber` are interested in what matches the filter: the node `origin` is."""

    origin: int
    number: int
    """Of the origin's operations: of two that overtake each other the later one holds."""
    subscriber: RangeFields
    filter: Filter
    destination: RangeFields


@message(61, control=True)
class Cancellation(NamedTuple):
    """Nodes of the range `subscriber` are no longer interested in what only the cancelled filters matched: the node
    `origin` is not (or has found the range empty); the added ones, which those had covered, hold from now on. `known`:
    what the sender knows the receivers' own range to hold of filters that the cancelled ones cover: for those it has
    cared."""

    origin: int
    number: int
    subscriber: RangeFields
    cancelled: Sequence[Filter]
    added: Sequence[Filter]
    known: Sequence[Filter]
    destination: RangeFields


@message(62, control=True)
class Transfer(NamedTuple):
    """To a node that has come to stand for a range: entries of the sender's filter table that hold there too, the
    range of each and its filter."""

    ranges: Sequence[RangeFields]
    filters: Sequence[Filter]
    destination: RangeFields


@message(63, control=True)
class SummaryRequest(NamedTuple):
    """What does your range of this length want? Your answer to a probe was not what is known here."""

    length: int


@message(64, control=True)
class Summary(NamedTuple):
    """The filters wanted in the sender's range of this length, without those that others of them cover."""

    length: int
    filters: Sequence[Filter]


IRBR_MESSAGES: tuple[type, ...] = (RangeSubscription, Cancellation, Transfer, SummaryRequest, Summary)


# ------------------------------------------------------------------------------- with the members of ranges
# `routing.irbr.members` has these in place of those above. A member of a range is a node in it whose own subscribers
# want exactly that filter; ["", 0, 0] where none is known.
@message(65, control=True)
class MemberSubscription(NamedTuple):
    """`RangeSubscription`, from that member."""

    origin: int
    number: int
    subscriber: RangeFields
    filter: Filter
    destination: RangeFields
    member: PastryPeerFields


@message(66, control=True)
class MemberCancellation(NamedTuple):
    """`Cancellation`, with a member for each of the added filters."""

    origin: int
    number: int
    subscriber: RangeFields
    cancelled: Sequence[Filter]
    added: Sequence[Filter]
    known: Sequence[Filter]
    destination: RangeFields
    members: Sequence[PastryPeerFields]


@message(67, control=True)
class MemberTransfer(NamedTuple):
    """`Transfer`, with a member for each entry."""

    ranges: Sequence[RangeFields]
    filters: Sequence[Filter]
    destination: RangeFields
    members: Sequence[PastryPeerFields]


@message(68, control=True)
class MemberSummary(NamedTuple):
    """`Summary`, with a member for each filter."""

    length: int
    filters: Sequence[Filter]
    members: Sequence[PastryPeerFields]


MEMBER_MESSAGES: tuple[type, ...] = (
    MemberSubscription, MemberCancellation, MemberTransfer, SummaryRequest, MemberSummary,
)  # fmt: skip
