"""The face that every routing protocol shows to the broker it is part of.

A router is a machine of its own: the broker hands it link changes, its timers and its messages through
`handle`, tells it which filters its local subscribers want, and asks `next_hops` where an event goes. It never
sees the broker, the reliability part or local subscribers. Every message class of routing has a `KIND` from
16 to 127.

Two more methods are optional: `is_duplicate(event)`, and `is_relay(event, header)`, asked once
whenever the event comes by, which says that with this header (none: it is published here) it only passes this broker
and is not for its subscribers: not yet, or no more. A router with the attribute
`requires_structure` works on structured overlays, whose nodes have no links and talk by datagrams. One with
`keeps_order = False` may let events of one publisher overtake each other; a class method
`survives(parameters, has_datagrams)` says which failures its deliveries survive (`murmur_pubsub.promise`).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import Effect, Input, NodeName


class Hop(NamedTuple):
    """One neighbour that gets the event, and what the router there must know with it (plain numbers)."""

    peer: NodeName
    header: tuple[int, ...] = ()


class Router(Protocol):
    """A routing protocol at one broker. `requires_tree`: it works on acyclic overlays only."""

    requires_tree: bool

    @property
    def message_types(self) -> Sequence[type]: ...

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        """Take `Start`, `LinkUp` or `LinkDown` of a broker, `Received` of a message of its own, or its timer."""
        ...

    def subscribe(self, wanted: Filter) -> Sequence[Effect]:
        """The first local subscriber with exactly this filter has come."""
        ...

    def unsubscribe(self, wanted: Filter) -> Sequence[Effect]:
        """The last local subscriber with exactly this filter has gone."""
        ...

    def next_hops(self, event: Event, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        """Where the event goes from here; `came_from` is None for an event published at this broker."""
        ...

    def check_invariants(self) -> None:
        """Raise AssertionError if the state contradicts itself."""
        ...


class GossipRouter(Router, Protocol):
    """What a router without a tree of links offers besides to a reliability that gossips about patterns (filters)
    towards their subscribers. Covering hides filters, so patterns are taken widely: what is known here may stand for
    what it covers. A router that has this face says so: `carries_gossip = True`.
    """

    def patterns_of(self, event: Event) -> Sequence[Filter]:
        """The filters wanted at other nodes, as far as this one has been told, that the event matches."""
        ...

    def towards(self, pattern: Filter, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        """Where a message about the pattern goes from here: to all whose filters, as known here, cover the pattern or
        are covered by it. `header`: that of the hop by which it came; none at its initiator. It never goes round."""
        ...


class StreamRouter(Router, Protocol):
    """What a router offers besides to a reliability that keeps a stream of knowledge for each root (a broker where
    events enter) along the root's tree. A branch is a neighbouring node of that tree: one broker, or several of which
    any will do. A router that has this face says so: `carries_streams = True`.

    brokers: all of the overlay, in an order that everybody shares. branches: all around this broker. version: of the
    filters wanted here. marks: asked for what subscribers' brokers shall be told with the next announcement of filters
    in effect here. observer: called with (root, version, marks) when filters of this broker are in effect at a root,
    and answers with effects. stands_alone: no other broker stands in for this one.
    """

    brokers: Sequence[NodeName]
    branches: Sequence[str]
    stands_alone: bool
    marks: Callable[[], list[int]]
    observer: Callable[[NodeName, int, Sequence[int]], Sequence[Effect]] | None

    @property
    def version(self) -> int: ...

    def branch_of(self, broker: NodeName) -> str | None:
        """The branch that the broker lies behind (None: this broker, and those that stand in for it)."""
        ...

    def stamp(self, branch: str) -> int:
        """What an event published here has to carry down the branch."""
        ...

    def wanted(self, event: Event, root: NodeName, stamp: int, came_by: str | None) -> Sequence[str]:
        """The branches, other than `came_by`, that an event of the root with that stamp may be wanted behind."""
        ...

    def way(self, branch: str, turn: int) -> NodeName | None:
        """Whom to send to, to reach the branch; those of equal role take turns. None: there is no link."""
        ...

    def linked(self, branch: str) -> Sequence[NodeName]:
        """All of the branch that there is a link to."""
        ...

    def detour(self) -> NodeName | None:
        """A broker that stands in for this one where it has no way of its own."""
        ...
