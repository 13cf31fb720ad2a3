"""Opportunistic multipath forwarding at one broker (Kazemzadeh and Jacobsen, "Opportunistic Multipath Forwarding in
Content-Based Publish/Subscribe Overlays", Middleware 2012).

Theory of operation. Links between brokers are the primary network, a tree. Every broker knows the tree within Δ hops
(master overlay map) and for every subscription an anchor, a broker up to Δ hops on the way to the subscriber (master
subscription table). Beside its primary links it has soft links to brokers of this neighbourhood, chosen by what they
would have saved. A publication goes over whichever links the strategy picks; the broker that receives it is answerable
for everything that lies behind it as seen from the sender. That holds for any set of links, so links come and go
without a word to any broker but the two at their ends. Soft links are datagrams to brokers by name.

The tree itself changes by joins and departures of edge brokers and by Δ-moves (`routing.multipath.delta_move`). A
broker that is away stays in it: soft links to those behind it bridge it, as many in a row as Δ reaches over.
"""

from collections.abc import Callable, Sequence, Set
from typing import Any

from murmur_pubsub.event import Event
from murmur_pubsub.faults import NewLinks
from murmur_pubsub.filter import Filter
from murmur_pubsub.fingerprint import Fact, state_of
from murmur_pubsub.machine import (
    Answer,
    Effect,
    Input,
    LinkDown,
    LinkUp,
    NodeContext,
    NodeName,
    Order,
    Received,
    Record,
    Send,
    SetTimer,
    Start,
    Stored,
    TimerFired,
    Truncate,
)
from murmur_pubsub.measure import Measure
from murmur_pubsub.promise import Survival
from routing.multipath import messages as wire
from routing.multipath.desk import CoordinatorDesk
from routing.multipath.knowledge import Knowledge
from routing.multipath.load import UplinkMeter
from routing.multipath.membership import JOIN_REFUSED, Membership
from routing.multipath.mover import MOVE_FINISHED, MOVE_REFUSED, Mover
from routing.multipath.parameters import MultipathParameters
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
NO_WAY = 6
"""Topic of a journal row: a publication was not sent on to all that want it. Value: the `routing.multipath.view.NoWay`,
peer: the broker that it came from."""
ORDERS = {"move": ("from", "to"), "depart": (), "coordinator": ()}
"""Move from a neighbour to another broker, leave the overlay for good, or host the coordinator of moves."""
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
    orders = ORDERS
    persists = True

    def __init__(self, context: NodeContext, parameters: MultipathParameters) -> None:
        self.parameters = parameters
        self.knowledge = Knowledge(context.name, context.incarnation, self.parameters)
        self.spread = SubscriptionSpread(self.knowledge)
        self.mover = Mover(self.knowledge)
        self.moves = self.mover.moves
        self.desk = CoordinatorDesk(self.knowledge)
        self.membership = Membership(self.knowledge, self.spread, self.mover, self.desk)
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
        self._remarks: list[Record] = []
        self._hops: dict[NodeName, Hop] = {}
        self._handlers: dict[type, Callable[[NodeName, Any, int], Sequence[Effect]]] = {
            wire.Neighbours: lambda source, message, _: self.membership.on_neighbours(source, message),
            wire.OriginSubscriptions: lambda source, message, _: self.spread.on_table(source, message),
            wire.SubscriptionChanged: lambda source, message, _: self.spread.on_change(source, message),
            wire.TableTaken: lambda source, message, _: self.spread.on_taken(source, message),
            wire.Departed: lambda source, message, _: self.membership.on_departed(source, message),
            wire.LoadExchange: self._on_load,
            wire.SoftLinkRequest: self._on_soft_link_request,
            wire.SoftLinkAccepted: self._on_soft_link_accepted,
            wire.BrokerAway: lambda source, message, _: self.membership.on_broker_away(source, message),
            wire.WordTaken: lambda source, message, _: self.membership.on_word_taken(source, message),
            wire.JoinRefused: lambda source, message, _: self.membership.on_join_refused(source, message),
            wire.JoinDoubted: lambda source, _, __: self.membership.joining.on_doubted(source),
            wire.JoinSettled: lambda source, message, _: self.membership.joining.on_settled(source, message),
            wire.TablesWanted: lambda source, message, _: self.membership.on_tables_wanted(source, message),
            wire.LinkClaimed: lambda source, message, _: self.membership.on_link_claimed(source, message),
            wire.TablesTold: lambda source, message, _: self.membership.on_tables_told(source, message),
            wire.MoveDoubted: lambda source, message, _: self.membership.on_move_doubted(source, message),
            wire.MoveSettled: lambda source, message, _: self.membership.on_move_settled(source, message),
            wire.CoordinatorNamed: lambda source, message, _: self._on_coordinator_named(source, message),
            wire.MovePermission: lambda source, message, _: self.desk.on_permission(message),
            wire.MoveFinished: lambda _, message, __: [
                *self.desk.on_finished(message),
                *self.moves.on_finished(message.move),
            ],
            wire.MoveRuns: lambda _, message, __: [*self.desk.on_runs(message), *self.moves.on_runs(message.move)],
            wire.MoveGranted: lambda source, message, _: self.mover.on_granted(message),
            wire.MoveAsked: lambda source, message, _: self.mover.on_asked(source, message),
            wire.MapAnswered: lambda source, message, _: self.mover.on_map(message),
            wire.MapRequested: lambda source, message, _: self.moves.on_map_requested(source, message),
            wire.MovePhase: lambda source, message, _: self.moves.on_phase(source, message),
            wire.MoveConfirmed: lambda source, message, _: self.moves.on_confirmed(source, message),
        }

    # ------------------------------------------------------------------------------------------ the router's face
    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        self.mover.now_us = now_us
        effects = self._take(input, now_us)
        if self.desk.coordinator is not None:
            effects = self._keep_own(effects, now_us)
        if self.membership.must_watch:
            self.membership.watching = True
            effects = [*effects, SetTimer(("routing", "watch"), self.parameters.watch_us)]
        return [*effects, *self.spread.retell_later()] if self.spread.has_untaken else effects

    def _take(self, input: Input, now_us: int) -> Sequence[Effect]:
        if type(input) is Received:
            return self._handlers[type(input.message)](input.source, input.message, now_us)
        if type(input) is TimerFired:
            return self._on_timer(input.key, now_us)
        if type(input) is LinkUp:
            return self.membership.on_link_up(input.peer)
        if type(input) is LinkDown:
            return self.membership.on_link_down(input.peer)
        if type(input) is Stored:
            return [Truncate(input.token), *self.mover.on_stored(input.token)]  # each record says all
        if type(input) is Order:
            return self._on_order(input)
        if type(input) is Start:
            return self._on_start(input.records)
        raise TypeError(f"multipath forwarding takes no {input!r}")

    def _keep_own(self, effects: Sequence[Effect], now_us: int) -> list[Effect]:
        """What the coordinator and its host say to each other is not sent."""
        kept: list[Effect] = []
        for effect in effects:
            if type(effect) is Send and effect.to == self._name:
                kept += self.handle(Received(self._name, effect.message), now_us)
            else:
                kept.append(effect)
        return kept

    @property
    def waiting(self) -> bool:
        """An order is answered in the end: a move when it is made or refused, a departure when the neighbour knows."""
        return self.mover.waiting or self.membership.leaving

    @property
    def settling(self) -> bool:
        """Where no link tells of a broker's end and beginning, or leads to nobody: until all is told, its side may hear
        nothing."""
        membership = self.membership
        return bool(membership.unsure) or membership.is_unknown or self.spread.has_untaken or membership.is_astray

    def take_remarks(self) -> Sequence[Record]:
        remarks, self._remarks = self._remarks, []
        return remarks

    def subscribe(self, wanted: Filter) -> Sequence[Effect]:
        return [*self.spread.change_own(wanted, True), *self.spread.retell_later()]

    def unsubscribe(self, wanted: Filter) -> Sequence[Effect]:
        return [*self.spread.change_own(wanted, False), *self.spread.retell_later()]

    def is_duplicate(self, event: Event) -> bool:
        """Has this publication been here before? Only a broker in the middle of a Δ-move asks itself."""
        return self.moves.is_duplicate(event)

    def next_hops(self, event: Event, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        moves = self.moves
        if moves.zone is None:
            working, mark = self.knowledge.working(), moves.mark
        else:
            working, mark = moves.choose(came_from, header)
        compute = self._compute
        if self._hybrid and (self._meters[0].above_threshold or self._meters[1].above_threshold):
            compute = compute_forwarding_s1
        forward = working.forward(event, came_from, compute)
        if working.dropped:
            self._remarks += [Record(NO_WAY, why, came_from, event) for why in dict.fromkeys(working.dropped)]
            working.dropped.clear()
        if not forward:
            return ()
        brokers, known = working.wom.brokers, self._hops
        hops = []
        while forward:
            lowest = forward & -forward
            forward ^= lowest
            peer = brokers[lowest.bit_length() - 1]
            hop = known.get(peer)
            if hop is None or hop.header != mark:
                hop = known[peer] = Hop(peer, mark)
            hops.append(hop)
        self._output += len(hops)
        if self._hybrid:
            self._meters[0].add(len(hops))
            self._meters[1].add(len(hops) * (len(event.blob) + _MESSAGE_OVERHEAD_BYTES))
        return hops

    def fingerprint(self) -> Set[Fact]:
        network, links, membership = self.knowledge.network, self.knowledge.links, self.membership
        move = self.moves.state.name.lower().replace("_", " ")
        return {
            state_of(
                f"membership, move {move}",
                one_away=len(network.down) == 1,
                more_away=len(network.down) > 1,
                beyond_away=any(network.is_away(broker) for broker in network.statements if broker not in network.down),
                bridging=network.down and links.soft,
                unsure=membership.unsure,
                departed=membership.departed,
            ),
            state_of(
                f"links, move {move}",
                no_link=network.unlinked,
                left_behind=network.left,
                disowned=network.disowned_by,
                in_doubt=network.pending,
                ordered=self.waiting,
                alone=not network.peers,
            ),
            state_of("soft links", soft=links.soft, opening=links.opening, candidates=links.candidates),
            state_of("coordinator", here=self.desk.coordinator, known=self.knowledge.office),
        }

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
    def _on_start(self, records: Sequence[bytes]) -> Sequence[Effect]:
        effects: list[Effect] = [*self.desk.on_start()]
        if self.knowledge.network.restore(records):
            effects += [self.knowledge.network.record(), *self.knowledge.peers_changed(), *self.membership.come_back()]
        if self.parameters.strategy == "S0":
            return effects
        effects += [
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
        if what == "watch":
            return self.membership.watch()
        if what == "retell":
            return self.spread.retell()
        if what == "desk":
            return self.desk.on_timer()
        if what in ("again", "moved"):
            return self.mover.on_timer(what, key[2] if len(key) > 2 else 0)
        return self.moves.on_timer(what, key[2])

    def _end_round(self) -> list[Effect]:
        knowledge = self.knowledge
        network, links = knowledge.network, knowledge.links
        view = knowledge.view
        knowledge.working().take_counts(links.sent)
        result = links.end_round(view.mom, network.peers, knowledge.loads, knowledge.protected(), self._may_link)
        if result.changed:
            knowledge.links_changed()
        effects: list[Effect] = [
            Send(peer, wire.SoftLinkRequest(network.epoch)) for peer in [*links.soft, *result.promoted]
        ]
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

    # ------------------------------------------------------------------------------------------ orders
    def _on_order(self, order: Order) -> Sequence[Effect]:
        found, wanted = len(order.arguments), len(ORDERS[order.verb])
        if found != wanted:
            return (Answer(order.number, f"{order.verb} with {found} arguments, not {wanted}"),)
        if self.membership.departed:
            return (Answer(order.number, f"{self._name} has left the overlay"),)
        if order.verb == "move":
            return self.mover.order(order)
        if order.verb == "depart":
            return self.membership.depart(order)
        self.desk.take_office()
        return [*self.desk.name_to_all(None), *self.desk.open(), Answer(order.number)]

    def _on_coordinator_named(self, source: NodeName, named: wire.CoordinatorNamed) -> Sequence[Effect]:
        if not self.desk.is_news(named):
            lacks = source == named.name  # the coordinator itself asks for what it has not been told
            return [*self.knowledge.report(), *self.mover.report()] if lacks else ()
        return [*self.desk.name_to_all(source), *self.desk.open(), *self.knowledge.report(), *self.mover.report()]

    # ------------------------------------------------------------------------------------------ soft links, load
    def _on_soft_link_request(self, source: NodeName, request: wire.SoftLinkRequest, now_us: int) -> Sequence[Effect]:
        if source not in self.knowledge.network.mom:
            return self.membership.on_stranger(source)  # what comes from there could not be passed on
        answer = Send(source, wire.SoftLinkAccepted(self.knowledge.network.epoch))
        return [answer, *self.membership.meet(source, request.epoch)]

    def _on_soft_link_accepted(
        self, source: NodeName, accepted: wire.SoftLinkAccepted, now_us: int
    ) -> Sequence[Effect]:
        if self.knowledge.links.accepted(source):
            self.knowledge.links_changed()
        return self.membership.meet(source, accepted.epoch)

    def _on_load(self, source: NodeName, told: wire.LoadExchange, now_us: int) -> Sequence[Effect]:
        self.knowledge.loads.take(source, told, self.knowledge.network.mom, now_us)
        return ()


def survives(parameters: MultipathParameters, traits: OverlayTraits) -> Survival:
    """Brokers that are away are bridged by soft links, which reach over Δ hops."""
    return Survival(brokers_away=parameters.delta - 1 if parameters.strategy != "S0" else 0)


def _check(parameters: MultipathParameters, traits: OverlayTraits) -> None:
    parameters.check_overlay(traits.degree, traits.has_datagrams)


MULTIPATH = RoutingProtocol(
    name="multipath",
    make=MultipathRouter,
    parameters=MultipathParameters,
    runs_on=RunsOn.ACYCLIC,
    keeps_order=False,
    new_links=NewLinks.JOINS,
    survives=survives,
    orders=ORDERS,
    gives_up={"depart": ""},
    measures=(
        Measure(SOFT_LINKS, "soft links", "level"),
        Measure(CANDIDATES, "candidate links", "level"),
        Measure(NO_WAY, "publications not sent on to all", "rows"),
        Measure(MOVE_FINISHED, "moves finished", "rows"),
        Measure(MOVE_REFUSED, "moves not made", "rows"),
        Measure(JOIN_REFUSED, "joins refused", "rows"),
    ),
    tried={
        "delta": (2, 3),
        "fanout": (8,),
        "round": ("200 ms", "1 s"),
        "cool_down_rounds": (0, 1),
        "load_exchange": ("100 ms",),
        "uplink_messages_per_s": (30,),
        "meter": ("200 ms",),
        "watch": ("200 ms",),
        "coordinator": ("b0",),
    },
    check=_check,
)
