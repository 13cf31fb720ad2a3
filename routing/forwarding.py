"""Subscription forwarding with covering on an acyclic overlay (strategy S0 of the multipath paper, section 2).

Theory of operation. A filter travels from its subscriber's broker to all others along the tree; every broker
remembers from which neighbour it came, and an event follows those tracks back: it goes to each neighbour,
other than the one it came from, that sent a filter which it matches.

Covering keeps tables small. For each neighbour N a broker keeps `forwarded[N]`, the filters it has sent to N
and not withdrawn. A filter that one of them covers is not sent: N already sends everything it could match.
When a filter is sent, those it covers are dropped from `forwarded[N]`, and N, seeing the filter arrive, drops
the same ones from what it received: so in a settled network forwarded[N] here equals received[here] at N,
and no filter in it covers another. When a forwarded filter is withdrawn, the filters it alone had covered are
sent first and the withdrawal after them, so that on a link that keeps order no event is missed in between.

A neighbour whose link goes down takes its filters with it, as if it had withdrawn each; when a link comes up,
everything the neighbour should know is sent to it.
"""

from collections.abc import Sequence
from typing import NamedTuple

from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import Effect, Input, LinkDown, LinkUp, NodeContext, NodeName, Received, Send, Start
from murmur_pubsub.matching import MatchingIndex
from murmur_pubsub.message import message
from routing.filter_set import FilterSet
from routing.protocol import NoParameters, RoutingProtocol, RunsOn
from routing.router import Hop, Router


@message(16, control=True)
class FilterForwarded(NamedTuple):
    """Broker to broker: send me what matches this filter."""

    filter: Filter


@message(17, control=True)
class FilterWithdrawn(NamedTuple):
    """Broker to broker: I no longer need what only this filter matched."""

    filter: Filter


class SubscriptionForwarding(Router):
    """The subscription-forwarding router of one broker."""

    message_types: tuple[type, ...] = (FilterForwarded, FilterWithdrawn)

    def __init__(self, context: NodeContext, parameters: NoParameters) -> None:
        self._hops: dict[NodeName, Hop] = {}
        self._received: dict[NodeName, dict[Filter, int]] = {}
        self._entries: dict[int, tuple[NodeName, Filter]] = {}
        self._index = MatchingIndex[NodeName]()
        self._next_key = 0
        self._local = FilterSet()
        self._forwarded: dict[NodeName, FilterSet] = {}

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if type(input) is Received:
            message = input.message
            if input.source not in self._hops:
                return ()  # sent before its link broke here; the neighbour tells everything again when it is back
            if type(message) is FilterForwarded:
                return self._on_forwarded(input.source, message.filter)
            if type(message) is FilterWithdrawn:
                return self._on_withdrawn(input.source, message.filter)
        elif type(input) is LinkUp:
            return self._on_link_up(input.peer)
        elif type(input) is LinkDown:
            return self._on_link_down(input.peer)
        elif type(input) is Start:
            return ()
        raise TypeError(f"subscription forwarding takes no {input!r}")

    def subscribe(self, wanted: Filter) -> Sequence[Effect]:
        self._local.add(wanted)
        return self._spread(wanted, None)

    def unsubscribe(self, wanted: Filter) -> Sequence[Effect]:
        self._local.remove(wanted)
        return self._withdraw(wanted, None)

    def next_hops(self, event: Event, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        hops = self._hops
        return [hops[peer] for peer in self._index.destinations(event.attributes, came_from)]

    def _on_forwarded(self, source: NodeName, wanted: Filter) -> Sequence[Effect]:
        received = self._received[source]
        if wanted in received:
            return ()
        for key in self._index.covered_by(wanted):
            owner, covered = self._entries[key]
            if owner == source:
                self._drop_entry(source, covered)
        key = received[wanted] = self._next_key
        self._next_key += 1
        self._entries[key] = (source, wanted)
        self._index.add(key, wanted, source)
        return self._spread(wanted, source)

    def _on_withdrawn(self, source: NodeName, wanted: Filter) -> Sequence[Effect]:
        if wanted not in self._received[source]:
            return ()
        self._drop_entry(source, wanted)
        return self._withdraw(wanted, source)

    def _on_link_up(self, peer: NodeName) -> Sequence[Effect]:
        self._hops[peer] = Hop(peer)
        self._received[peer] = {}
        self._forwarded[peer] = FilterSet()
        wanted = dict.fromkeys(self._local)
        for received in self._received.values():
            wanted.update(dict.fromkeys(received))
        effects: list[Effect] = []
        for each in wanted:
            self._send_if_new(peer, each, effects)
        return effects

    def _on_link_down(self, peer: NodeName) -> Sequence[Effect]:
        del self._hops[peer], self._forwarded[peer]
        effects: list[Effect] = []
        for wanted in list(self._received[peer]):
            self._drop_entry(peer, wanted)
            effects += self._withdraw(wanted, peer)
        del self._received[peer]
        return effects

    def _drop_entry(self, source: NodeName, wanted: Filter) -> None:
        key = self._received[source].pop(wanted)
        del self._entries[key]
        self._index.remove(key)

    def _spread(self, wanted: Filter, source: NodeName | None) -> Sequence[Effect]:
        effects: list[Effect] = []
        for peer in self._forwarded:
            if peer != source:
                self._send_if_new(peer, wanted, effects)
        return effects

    def _send_if_new(self, peer: NodeName, wanted: Filter, effects: list[Effect]) -> None:
        if self._forwarded[peer].put(wanted):
            effects.append(Send(peer, FilterForwarded(wanted)))

    def _withdraw(self, wanted: Filter, source: NodeName | None) -> Sequence[Effect]:
        effects: list[Effect] = []
        covered: list[tuple[NodeName | None, Filter]] | None = None
        for peer, forwarded in self._forwarded.items():
            if peer == source or wanted not in forwarded:
                continue
            if covered is None:
                covered = [(None, each) for each in self._local.covered_by(wanted)]
                covered += [self._entries[key] for key in self._index.covered_by(wanted)]
            exposed = [each for owner, each in covered if owner != peer]
            if wanted in exposed:
                continue  # exactly this is still wanted behind other links
            forwarded.remove(wanted)
            uncovered = FilterSet()
            for each in exposed:
                uncovered.put(each)
            for each in uncovered:
                self._send_if_new(peer, each, effects)
            effects.append(Send(peer, FilterWithdrawn(wanted)))
        return effects

    def table_size(self) -> int:
        """How many filters of neighbours are in the routing table."""
        return len(self._entries)

    def check_invariants(self) -> None:
        assert len(self._index) == len(self._entries) == sum(map(len, self._received.values()))
        assert self._hops.keys() == self._received.keys() == self._forwarded.keys()
        for peer, forwarded in self._forwarded.items():
            wanted = dict.fromkeys(self._local)
            wanted |= dict.fromkeys(each for owner, each in self._entries.values() if owner != peer)
            for each in forwarded:
                assert each in wanted, f"{peer} was sent a filter that no subscriber here wants"
                assert forwarded.covered_by(each) == [each], f"{peer} was sent filters that cover each other"
            for each in wanted:
                assert forwarded.covers(each), f"{peer} lacks a filter that is wanted here"


FORWARDING = RoutingProtocol(
    name="forwarding", make=SubscriptionForwarding, parameters=NoParameters, runs_on=RunsOn.ACYCLIC
)
