"""The face that every routing protocol shows to the broker it is part of.

A router is a machine of its own: the broker hands it link changes, its timers and its messages through
`handle`, tells it which filters its local subscribers want, and asks `next_hops` where an event goes. It never
sees the broker, the reliability part or local subscribers. Every message class of routing has a `KIND` from
16 to 127.

Two more methods are optional: `is_duplicate(event)`, and `is_relay(header)`, which says that an event with this header
(none: one published here) only passes this broker and is not for its subscribers yet. A router with the attribute
`requires_structure` works on structured overlays, whose nodes have no links and talk by datagrams.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from pubsub.event import Event
from pubsub.filter import Filter
from pubsub.machine import Effect, Input, NodeName


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
