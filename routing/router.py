"""The face that every routing protocol shows to the broker it is part of.

A router is a machine of its own: the broker hands it link changes, its timers and its messages through
`handle`, tells it which filters its local subscribers want, and asks `next_hops` where an event goes. It never
sees the broker, the reliability part or local subscribers. Every message class of routing has a `KIND` from
16 to 127, and the first element of its timers' keys is "routing".
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import Effect, Machine, NodeName, Record


class Hop(NamedTuple):
    """One neighbour that gets the event, and what the router there must know with it (plain numbers)."""

    peer: NodeName
    header: tuple[int, ...] = ()


class Router(Machine):
    """A routing protocol at one broker. Its `handle` takes `Start`, `LinkUp` or `LinkDown` of a broker, `Received` of a
    message of its own, its timer, an `Order` that it declares, or, if it `persists`, `Stored`."""

    persists = False
    """Does it use `Persist`? Then its last record says all that it has stored. A broker has one log: a reliability
    protocol that uses it too says so (`reliability.layer.Reliability.persists`)."""

    @abstractmethod
    def subscribe(self, wanted: Filter) -> Sequence[Effect]:
        """The first local subscriber with exactly this filter has come."""

    @abstractmethod
    def unsubscribe(self, wanted: Filter) -> Sequence[Effect]:
        """The last local subscriber with exactly this filter has gone."""

    @abstractmethod
    def next_hops(self, event: Event, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        """Where the event goes from here; `came_from` is None for an event published at this broker."""

    def take_remarks(self) -> Sequence[Record]:
        """What `next_hops` wants journaled since this was last asked, such as an event that it could not pass on."""
        return ()

    def is_duplicate(self, event: Event) -> bool:
        """Has the event been here before? Only a routing that changes its tree under traffic has to know."""
        return False

    def is_relay(self, event: Event, header: Sequence[int]) -> bool:
        """Does the event, with this header (none: it is published here), only pass this broker, so that it is not for
        its subscribers: not yet, or no more? Asked once whenever the event comes by."""
        return False


class GossipRouter(Router):
    """What a router without a tree of links offers besides to a reliability that gossips about patterns (filters)
    towards their subscribers. Covering hides filters, so patterns are taken widely: what is known here may stand for
    what it covers."""

    @abstractmethod
    def patterns_of(self, event: Event) -> Sequence[Filter]:
        """The filters wanted at other nodes, as far as this one has been told, that the event matches."""

    @abstractmethod
    def towards(self, pattern: Filter, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        """Where a message about the pattern goes from here: to all whose filters, as known here, cover the pattern or
        are covered by it. `header`: that of the hop by which it came; none at its initiator. It never goes round."""


class StreamObserver(Protocol):
    """What a reliability that keeps streams gives the router below it."""

    def marks(self) -> list[int]:
        """What subscribers' brokers shall be told with the next announcement of filters in effect here, a root."""
        ...

    def on_in_effect(self, root: NodeName, version: int, marks: Sequence[int]) -> Sequence[Effect]:
        """The filters of this broker are in effect at a root, which has announced these marks."""
        ...

    def on_ways_changed(self) -> Sequence[Effect]:
        """Links came or went, or brokers were forgotten or have returned: what `way` and `given_up` say may differ."""
        ...

    def on_forgotten(self) -> Sequence[Effect]:
        """This broker was forgotten by an order, though it is there: roots had dropped its filters, and nothing was
        promised here meanwhile."""
        return ()

    def on_tree_changed(self) -> Sequence[Effect]:
        """Brokers joined the overlay or departed: `branches`, `branch_of` and `takes_part` may say something else."""
        ...


class StreamRouter(Router):
    """What a router offers besides to a reliability that keeps a stream of knowledge for each root (a broker where
    events enter) along the root's tree. A branch is a neighbouring node of that tree: one broker, or several of which
    any will do."""

    me: NodeName
    """This broker."""
    brokers: Sequence[NodeName]
    """All of the overlay, in an order that every broker shares."""
    roots: Sequence[NodeName]
    """Those where events enter."""
    branches: Sequence[str]
    """All around this broker."""
    stands_alone: bool
    """No other broker stands in for this one."""

    @property
    @abstractmethod
    def takes_part(self) -> bool:
        """Is this broker a part of the overlay? Else it has no branches: it has not joined yet, or has departed."""

    @property
    @abstractmethod
    def has_left(self) -> bool:
        """Has it departed, for good?"""

    @property
    @abstractmethod
    def joined(self) -> Sequence[NodeName]:
        """The brokers that are known to have joined while the overlay was there."""

    @abstractmethod
    def knows_enough(self, joined: Sequence[NodeName]) -> bool:
        """Does a broker that knows that these have joined know of all that have, as far as is known here, and have not
        departed? Else it does not speak for all that are behind it."""

    @property
    @abstractmethod
    def given_up(self) -> Mapping[str, None]:
        """The branches from which an operator has said that nobody will return."""

    @abstractmethod
    def is_forgotten(self, broker: NodeName) -> bool:
        """Has an operator said that the broker will not return?"""

    @abstractmethod
    def incarnation_of(self, root: NodeName) -> int:
        """The latest incarnation of the root that was heard of."""

    @abstractmethod
    def connect(self, observer: StreamObserver) -> None:
        """The observer is asked and told from now on."""

    @property
    @abstractmethod
    def version(self) -> int:
        """Of the filters wanted here."""

    @abstractmethod
    def branch_of(self, broker: NodeName) -> str | None:
        """The branch that the broker lies behind (None: this broker, and those that stand in for it)."""

    @abstractmethod
    def stamp(self, branch: str) -> int:
        """What an event published here has to carry down the branch."""

    @abstractmethod
    def wanted(self, event: Event, root: NodeName, stamp: int, came_by: str | None) -> Sequence[str]:
        """The branches, other than `came_by`, that an event of the root with that stamp may be wanted behind."""

    @abstractmethod
    def way(self, branch: str, turn: int) -> Sequence[NodeName]:
        """The brokers to pass to reach the branch, of whose brokers those of equal role take turns; the last is the one
        that is reached. Empty: there is no way."""

    @abstractmethod
    def ways(self, branch: str) -> Sequence[Sequence[NodeName]]:
        """The same to each broker of the branch that can be reached."""

    @abstractmethod
    def path(self, broker: NodeName) -> Sequence[NodeName]:
        """The same to a broker of this cell or a neighbouring one."""
