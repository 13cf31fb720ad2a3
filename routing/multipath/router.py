"""Opportunistic multipath forwarding at one broker (Kazemzadeh and Jacobsen, "Opportunistic Multipath Forwarding in
Content-Based Publish/Subscribe Overlays", Middleware 2012).

Theory of operation. Links between brokers are the primary network, a tree. Every broker knows the tree within Δ hops
(master overlay map) and for every subscription an anchor, a broker up to Δ hops on the way to the subscriber (master
subscription table). Beside its primary links it has soft links to brokers of this neighbourhood, chosen by what they
would have saved. A publication goes over whichever links the strategy picks; the broker that receives it is answerable
for everything that lies behind it as seen from the sender. That holds for any set of links, so links come and go
without a word to any broker but the two at their ends. Soft links are datagrams to brokers by name.

The tree itself changes by joins and departures of edge brokers and by Δ-moves (`routing.multipath.delta_move`).
"""

from collections.abc import Callable, Sequence
from typing import Any

from murmur_pubsub.errors import InputError
from murmur_pubsub.event import Event
from murmur_pubsub.faults import NewLinks
from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import (
    Effect,
    Input,
    LinkDown,
    LinkUp,
    NodeContext,
    NodeName,
    Received,
    Record,
    Send,
    SetTimer,
    Start,
    TimerFired,
)
from murmur_pubsub.promise import Survival
from routing.multipath import messages as wire
from routing.multipath.coordinator import Coordinator
from routing.multipath.knowledge import Knowledge
from routing.multipath.load import UplinkMeter
from routing.multipath.moves import Moves
from routing.multipath.parameters import MultipathParameters
from routing.multipath.primary_network import Statement
from routing.multipath.strategies import (
    PathComputation,
    compute_forwarding_s0,
    compute_forwarding_s1,
    compute_forwarding_s2,
)
from routing.multipath.subscription_spread import SubscriptionSpread
from routing.protocol import OverlayTraits, RoutingProtocol, RunsOn
from routing.router import Hop, Router

SOFT_LINKS, CANDIDATES = 1, 2
"""Topics of journal rows: how many soft links, and how many candidates, the broker has after a round."""
_MESSAGE_OVERHEAD_BYTES = 32
_COMPUTATIONS: dict[str, PathComputation] = {
    "S0": compute_forwarding_s0,
    "S1": compute_forwarding_s1,
    "S2": compute_forwarding_s2,
    "SH": compute_forwarding_s2,
}


class MultipathRouter(Router):
    """The multipath router of one broker."""

    message_types: tuple[type, ...] = wire.MESSAGES

    def __init__(self, context: NodeContext, parameters: MultipathParameters) -> None:
        self.parameters = parameters
        self.knowledge = Knowledge(context.name, context.incarnation, self.parameters)
        self.spread = SubscriptionSpread(self.knowledge)
        self.moves = Moves(self.knowledge)
        self.coordinator = Coordinator(self.parameters.delta) if self.parameters.coordinator == context.name else None
        self._name = context.name
        self._compute = _COMPUTATIONS[self.parameters.strategy]
        bytes_per_s, messages_per_s = self.parameters.uplink_bytes_per_s, self.parameters.uplink_messages_per_s
        self._meters = (
            UplinkMeter(messages_per_s, self.parameters.uplink_threshold, self.parameters.meter_us),
            UplinkMeter(bytes_per_s, self.parameters.uplink_threshold, self.parameters.meter_us),
        )
        self._hybrid = self.parameters.strategy == "SH" and (messages_per_s, bytes_per_s) != (None, None)
        self._output = 0
        self._last_rate = 0
        self._probed: dict[NodeName, None] = {}
        self._linked: dict[NodeName, None] = {}
        self._hops: dict[NodeName, Hop] = {}
        self._handlers: dict[type, Callable[[NodeName, Any, int], Sequence[Effect]]] = {
            wire.Neighbours: self._on_neighbours,
            wire.OriginSubscriptions: lambda source, message, _: self.spread.on_table(source, message),
            wire.SubscriptionChanged: lambda source, message, _: self.spread.on_change(source, message),
            wire.Departed: self._on_departed,
            wire.LoadExchange: self._on_load,
            wire.SoftLinkRequest: self._on_soft_link_request,
            wire.SoftLinkAccepted: self._on_soft_link_accepted,
            wire.BrokerAway: self._on_broker_away,
            wire.MoveOrdered: lambda source, message, _: self.moves.order(message),
            wire.MovePermission: self._on_move_permission,
            wire.MoveGranted: lambda source, message, _: self.moves.on_granted(message),
            wire.MapRequested: lambda source, message, _: self.moves.on_map_requested(source, message),
            wire.MapAnswered: lambda source, message, _: self.moves.on_map(message),
            wire.MovePhase: lambda source, message, _: self.moves.on_phase(source, message),
            wire.MoveConfirmed: lambda source, message, _: self.moves.on_confirmed(source, message),
            wire.MoveFinished: self._on_move_finished,
        }

    # ------------------------------------------------------------------------------------------ the router's face
    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if type(input) is Received:
            return self._handlers[type(input.message)](input.source, input.message, now_us)
        if type(input) is TimerFired:
            return self._on_timer(input.key, now_us)
        if type(input) is LinkUp:
            return self._on_link_up(input.peer)
        if type(input) is LinkDown:
            return self._on_unreachable(input.peer)
        if type(input) is Start:
            return self._on_start()
        raise TypeError(f"multipath forwarding takes no {input!r}")

    def subscribe(self, wanted: Filter) -> Sequence[Effect]:
        return self.spread.change_own(wanted, True)

    def unsubscribe(self, wanted: Filter) -> Sequence[Effect]:
        return self.spread.change_own(wanted, False)

    def is_duplicate(self, event: Event) -> bool:
        """Has this publication been here before? Only a broker in the middle of a Δ-move asks itself."""
        return self.moves.is_duplicate(event)

    def next_hops(self, event: Event, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        mark: tuple[int, ...] = ()
        if self.moves.zone is None:
            working = self.knowledge.working()
        else:
            working, mark = self.moves.choose(came_from, header)
        compute = self._compute
        if self._hybrid and (self._meters[0].above_threshold or self._meters[1].above_threshold):
            compute = compute_forwarding_s1
        forward = working.forward(event, came_from, compute)
        if not forward:
            return ()
        brokers, known = working.wom.brokers, self._hops
        hops = []
        while forward:
            lowest = forward & -forward
            forward ^= lowest
            peer = brokers[lowest.bit_length() - 1]
            if mark:
                hops.append(Hop(peer, mark))
            else:
                hop = known.get(peer)
                if hop is None:
                    hop = known[peer] = Hop(peer)
                hops.append(hop)
        self._output += len(hops)
        if self._hybrid:
            self._meters[0].add(len(hops))
            self._meters[1].add(len(hops) * (len(event.blob) + _MESSAGE_OVERHEAD_BYTES))
        return hops

    def check_invariants(self) -> None:
        knowledge = self.knowledge
        knowledge.network.check_invariants()
        knowledge.mst.check_invariants()
        knowledge.links.check_invariants(len(knowledge.network.peers), len(knowledge.protected()))
        self.moves.check_invariants()
        for origin, ppath in knowledge.mst.ppaths.items():
            assert len(ppath) <= self.parameters.delta
            assert bool(ppath) == (origin != self._name)

    # ------------------------------------------------------------------------------------------ timers
    def _on_start(self) -> Sequence[Effect]:
        if self.parameters.strategy == "S0":
            return ()
        effects: list[Effect] = [
            SetTimer(("routing", "round"), self.parameters.round_us),
            SetTimer(("routing", "load"), self.parameters.load_exchange_us),
        ]
        if self._hybrid:
            effects.append(SetTimer(("routing", "meter"), self.parameters.meter_us))
        return effects

    def _on_timer(self, key: Sequence[Any], now_us: int) -> Sequence[Effect]:
        what = key[1]
        if what == "round":
            return [SetTimer(("routing", "round"), self.parameters.round_us), *self._end_round()]
        if what == "load":
            return [SetTimer(("routing", "load"), self.parameters.load_exchange_us), *self._exchange_load(now_us)]
        if what == "meter":
            for meter in self._meters:
                meter.turn()
            return [SetTimer(("routing", "meter"), self.parameters.meter_us)]
        return self.moves.on_timer(what, key[2])

    def _end_round(self) -> list[Effect]:
        knowledge = self.knowledge
        network, links = knowledge.network, knowledge.links
        effects: list[Effect] = []
        for peer in list(self._probed):
            effects += self._on_unreachable(peer)
        view = knowledge.view
        knowledge.working().take_counts(links.sent)
        result = links.end_round(view.mom, network.peers, knowledge.loads, knowledge.protected(), self._may_link)
        if result.changed:
            knowledge.links_changed()
        # A primary link that a move has made is none of the runtime's, which would tell of its end: probe it.
        self._probed = {peer: None for peer in network.peers if peer not in self._linked}
        for peer in [*links.soft, *result.promoted, *self._probed]:
            effects.append(Send(peer, wire.SoftLinkRequest(network.epoch)))
        effects.append(Record(SOFT_LINKS, len(links.soft)))
        effects.append(Record(CANDIDATES, len(links.candidates)))
        return effects

    def _may_link(self, peer: NodeName) -> bool:
        return not self.knowledge.network.is_away(peer) and not self.moves.bypasses_mover(peer)

    def _exchange_load(self, now_us: int) -> list[Effect]:
        rate = self._output * 1_000_000 // self.parameters.load_exchange_us
        self._output = 0
        knowledge = self.knowledge
        if not rate and not self._last_rate and not any(knowledge.loads.rates.values()):
            return []  # nothing moves in the neighbourhood, and every broker knows
        self._last_rate = rate
        mom = knowledge.view.mom
        return [
            Send(peer, knowledge.loads.exchange(peer, rate, mom, now_us))
            for peer in knowledge.network.peers
            if peer not in knowledge.network.down
        ]

    # ------------------------------------------------------------------------------------------ primary network
    def _on_link_up(self, peer: NodeName) -> Sequence[Effect]:
        network = self.knowledge.network
        if peer in network.mom and peer not in network.peers:
            return ()  # a link that a move has left behind: both are in the tree already
        self._linked[peer] = None
        return self._on_reachable(peer)

    def _on_reachable(self, peer: NodeName) -> list[Effect]:
        """A neighbour joins, or comes back."""
        knowledge = self.knowledge
        network = knowledge.network
        effects: list[Effect] = []
        if peer not in network.peers:
            effects += knowledge.new_peers([*network.peers, peer])
        elif peer in network.down:
            del network.down[peer]
            knowledge.links_changed()
            effects += network.witness(peer, away=False)
        return effects + network.tell_all(peer) + self.spread.tell_all(peer)

    def _on_unreachable(self, peer: NodeName) -> list[Effect]:
        """A neighbour is away: it stays in the map, and is bridged by soft links to those behind it."""
        knowledge = self.knowledge
        network = knowledge.network
        if peer not in network.peers or peer in network.down:
            return []
        network.down[peer] = None
        effects = network.witness(peer, away=True)
        if self.parameters.strategy != "S0":
            for behind, _ in network.bridges(peer):
                if knowledge.links.bridge(behind):
                    effects.append(Send(behind, wire.SoftLinkRequest(network.epoch)))
            knowledge.links.trim(len(network.peers), knowledge.protected())
        knowledge.links_changed()
        return effects + self.moves.no_longer_awaited(peer)

    def _on_neighbours(self, source: NodeName, stated: wire.Neighbours, now_us: int) -> Sequence[Effect]:
        statement = Statement(stated.epoch, stated.version, tuple(stated.peers))
        if stated.hops == 0:
            if self.coordinator is not None:
                self.coordinator.learn(stated.broker, statement)
            return ()
        if not self.knowledge.network.learn(stated.broker, statement):
            return ()
        self.knowledge.map_changed()
        return self.knowledge.network.spread_statement(stated.broker, stated.hops, source)

    def _on_broker_away(self, source: NodeName, word: wire.BrokerAway, now_us: int) -> Sequence[Effect]:
        network = self.knowledge.network
        if not network.heard_away(word):
            return ()
        if word.away and self.knowledge.links.drop(word.broker):
            self.knowledge.links_changed()
        return network.spread_away(word, source)

    def _on_departed(self, source: NodeName, departed: wire.Departed, now_us: int) -> Sequence[Effect]:
        """A broker has left; if it is this one, it is told to leave. Raises `InputError` if it is no edge broker."""
        knowledge = self.knowledge
        network = knowledge.network
        if departed.broker == self._name:
            if len(network.peers) > 1:
                allowed = "an edge broker; Δ-moves make it one"
                raise InputError(f"departure of {self._name}", f"{len(network.peers)} primary neighbours", allowed)
            return [Send(peer, wire.Departed(self._name, network.epoch)) for peer in network.peers]
        effects = self.spread.depart(departed.broker, departed.epoch, source)
        if departed.broker in network.peers and source == departed.broker:
            self._linked.pop(source, None)
            effects += knowledge.new_peers([peer for peer in network.peers if peer != source])
        if self.coordinator is not None:
            self.coordinator.forget(departed.broker)
        return effects

    # ------------------------------------------------------------------------------------------ soft links, load
    def _on_soft_link_request(self, source: NodeName, request: wire.SoftLinkRequest, now_us: int) -> Sequence[Effect]:
        if source not in self.knowledge.network.mom:
            return ()  # nothing could be passed on that comes from there: its direction is not known
        return (Send(source, wire.SoftLinkAccepted(self.knowledge.network.epoch)),)

    def _on_soft_link_accepted(
        self, source: NodeName, accepted: wire.SoftLinkAccepted, now_us: int
    ) -> Sequence[Effect]:
        self._probed.pop(source, None)
        if self.knowledge.links.accepted(source):
            self.knowledge.links_changed()
        if source in self.knowledge.network.down and source not in self._linked:
            return self._on_reachable(source)
        return ()

    def _on_load(self, source: NodeName, told: wire.LoadExchange, now_us: int) -> Sequence[Effect]:
        self.knowledge.loads.take(source, told, self.knowledge.network.mom, now_us)
        return ()

    # ------------------------------------------------------------------------------------------ moves
    def _on_move_permission(self, source: NodeName, wanted: wire.MovePermission, now_us: int) -> Sequence[Effect]:
        return self._grants([] if self.coordinator is None else self.coordinator.ask(wanted))

    def _on_move_finished(self, source: NodeName, finished: wire.MoveFinished, now_us: int) -> Sequence[Effect]:
        return self._grants([] if self.coordinator is None else self.coordinator.finish(finished.move))

    def _grants(self, granted: Sequence[tuple[NodeName, int]]) -> Sequence[Effect]:
        return [Send(mover, wire.MoveGranted(number)) for mover, number in granted]


def _survives(parameters: MultipathParameters, traits: OverlayTraits) -> Survival:
    """A broker that is away is bridged by soft links: by two hops, so Δ must be at least two."""
    return Survival(brokers_away=1 if traits.has_datagrams and parameters.delta >= 2 else 0)


def _check(parameters: MultipathParameters, traits: OverlayTraits) -> None:
    parameters.check_degree(traits.degree)


MULTIPATH = RoutingProtocol(
    name="multipath",
    make=MultipathRouter,
    parameters=MultipathParameters,
    runs_on=RunsOn.ACYCLIC,
    keeps_order=False,
    new_links=NewLinks.JOINS,
    survives=_survives,
    check=_check,
)
