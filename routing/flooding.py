"""Flooding: every event goes to every broker. The template of a routing protocol and the oracle of all others.

Theory of operation: on an acyclic overlay a broker passes each event to all neighbours but the one it came
from, so every broker sees it exactly once, whatever was subscribed; brokers match for local subscribers only.
There are no routing messages and no tables to go wrong. (S0 of the multipath paper without its tables.)
"""

from collections.abc import Sequence

from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import Effect, Input, LinkDown, LinkUp, NodeContext, NodeName, Start
from routing.protocol import NoParameters, RoutingProtocol, RunsOn
from routing.router import Hop, Router


class Flooding(Router):
    """The flooding router of one broker."""

    def __init__(self, context: NodeContext, parameters: NoParameters) -> None:
        self._neighbours: dict[NodeName, Hop] = {}

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if type(input) is LinkUp:
            self._neighbours[input.peer] = Hop(input.peer)
        elif type(input) is LinkDown:
            self._neighbours.pop(input.peer, None)
        elif type(input) is not Start:
            raise TypeError(f"flooding takes no {input!r}")
        return ()

    def subscribe(self, wanted: Filter) -> Sequence[Effect]:
        return ()

    def unsubscribe(self, wanted: Filter) -> Sequence[Effect]:
        return ()

    def next_hops(self, event: Event, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        return [hop for peer, hop in self._neighbours.items() if peer != came_from]

    def check_invariants(self) -> None:
        assert all(hop.peer == peer for peer, hop in self._neighbours.items())


FLOODING = RoutingProtocol(name="flooding", make=Flooding, parameters=NoParameters, runs_on=RunsOn.ACYCLIC)
