"""Messages of epidemic recovery (kinds 130 to 140).

On the wire a pattern is its signature (footnote 4: "a hash signature of the pattern is actually enough"), an event is
its identifier, two numbers, and what was lost is grouped by what the entries share, the sequence numbers last. Requests
and recovered events are datagrams, the paper's unicast channel: they pass beside the tree, even to a neighbour.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from murmur_pubsub.errors import WireError
from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import NodeName
from murmur_pubsub.message import Hops, message


def signature(pattern: Filter) -> int:
    """What stands for the pattern in tags and gossip: 63 bits of a hash of its normal form."""
    return int.from_bytes(blake2b(str(pattern).encode(), digest_size=8).digest(), "big") >> 1


@message(130, control=True)
class PatternsForwarded(NamedTuple):
    """Dispatcher to neighbour: a dispatcher on my side has subscribed these patterns."""

    patterns: Sequence[Filter]


@message(131, control=True)
class PatternsWithdrawn(NamedTuple):
    """Dispatcher to neighbour: no dispatcher on my side holds these any more."""

    patterns: Sequence[Filter]


@message(132)
class TaggedEvent(NamedTuple):
    """Dispatcher to neighbour: an event on its way. `hops` and `header` as in `best_effort.Forwarded`; `source` and
    `incarnation`: the dispatcher where it was published; `numbers`: pattern, sequence number, pattern, …; `route`: the
    dispatchers it has passed, the source first (empty if it is not walked back)."""

    event: Event
    hops: Hops
    header: Sequence[int]
    source: NodeName
    incarnation: int
    numbers: Sequence[int]
    route: Sequence[str]


@message(133)
class PushDigest(NamedTuple):
    """Positive digest: the initiator has these events that match the pattern. `ids`: publisher, sequence, …"""

    initiator: NodeName
    pattern: int
    ids: Sequence[int]


@message(134)
class SubscriberPull(NamedTuple):
    """Negative digest towards subscribers: the initiator lacks these events of the pattern. `missing`: lists of source,
    incarnation, numbers…"""

    initiator: NodeName
    pattern: int
    missing: Sequence[Any]


@message(135)
class PublisherPull(NamedTuple):
    """Negative digest towards the publisher. `missing`: lists of incarnation, pattern, numbers…; `route`: the
    dispatchers still to visit, the source last."""

    initiator: NodeName
    source: NodeName
    missing: Sequence[Any]
    route: Sequence[str]


@message(136)
class RandomPull(NamedTuple):
    """The same digest as in `SubscriberPull`, to neighbours drawn at random."""

    initiator: NodeName
    pattern: int
    missing: Sequence[Any]


@message(137, datagram=True)
class EventsRequested(NamedTuple):
    """To a push's initiator: send me these events. `ids`: publisher, sequence, …"""

    ids: Sequence[int]


@message(138, datagram=True)
class EventRecovered(NamedTuple):
    """To a dispatcher that lacks it: an event from the cache. The other fields as in `TaggedEvent`, `hops` with this
    one."""

    event: Event
    hops: Hops
    source: NodeName
    incarnation: int
    numbers: Sequence[int]


@message(139)
class RoutedDigest(NamedTuple):
    """As `PushDigest`, over a routing that may know a covering pattern only; `header`: what the routing at the next hop
    must know."""

    initiator: NodeName
    pattern: Filter
    ids: Sequence[int]
    header: Sequence[int]


@message(140, control=True)
class LinkMade(NamedTuple):
    """Dispatcher to neighbour: a link has come up on my side. Push wakes, here and at all others on the tree."""


EPIDEMIC_MESSAGES: tuple[type, ...] = (
    PatternsForwarded, PatternsWithdrawn, TaggedEvent, PushDigest, SubscriberPull, PublisherPull, RandomPull,
    EventsRequested, EventRecovered, RoutedDigest, LinkMade,
)  # fmt: skip

_INTEGER, _TEXT = {int}, {str}


def check_pairs(numbers: Sequence[int]) -> None:
    """Raise `WireError` unless these are integers, an even number of them."""
    if len(numbers) % 2 or (numbers and set(map(type, numbers)) != _INTEGER):
        raise WireError(f"pairs of integers were expected, not {numbers!r:.60}")


def check_names(names: Sequence[str]) -> None:
    """Raise `WireError` unless these are texts."""
    if names and set(map(type, names)) != _TEXT:
        raise WireError(f"names of dispatchers were expected, not {names!r:.60}")


def check_missing(missing: Sequence[Any], first: type) -> None:
    """Raise `WireError` unless these are lists of a `first` and integers."""
    for group in missing:
        if type(group) is not list or len(group) < 2 or type(group[0]) is not first:
            raise WireError(f"a group of lost events was expected, not {group!r:.60}")
        if set(map(type, group[1:])) != _INTEGER:
            raise WireError(f"sequence numbers were expected, not {group!r:.60}")
