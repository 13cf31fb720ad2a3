"""The Δ-move procedure at each broker of its zone: destination, former neighbour, bystander, and the mover's own part.

See `routing.multipath.delta_move` for what a move changes and why nothing is lost or sent twice, and
`routing.multipath.mover` for what the mover does besides.
"""

from collections.abc import Callable, Iterable, Sequence

from murmur_pubsub.errors import WireError
from murmur_pubsub.event import Event
from murmur_pubsub.machine import Effect, NodeName, Send, SetTimer
from murmur_pubsub.procedure import Procedure
from routing.multipath.delta_move import (
    END,
    IN_PROGRESS,
    INIT,
    PHASE_OF,
    STEP_OF,
    UNDONE,
    Zone,
    moved_ppaths,
    ppaths_to_wire,
    relink,
    zone_members,
)
from routing.multipath.knowledge import Knowledge
from routing.multipath.messages import (
    MapAnswered,
    MapRequested,
    MoveAsked,
    MoveConfirmed,
    MoveFinished,
    MovePhase,
    MoveRuns,
    TablesWanted,
)
from routing.multipath.move_states import MOVE_TRANSITIONS, MoveState, MoveStep
from routing.multipath.primary_network import network_from_wire, network_to_wire
from routing.multipath.view import View, WorkingView
from routing.multipath.watch import PATIENCE

_STALE_GRACES = 10
"""So many graces a broker waits for the next phase before it asks."""


class Moves:
    """Moves as they pass this broker: at most one at a time, which the coordinator sees to. `all_confirmed` is what the
    mover does then."""

    def __init__(self, knowledge: Knowledge, all_confirmed: Callable[[Zone], list[Effect]]) -> None:
        self._knowledge = knowledge
        self._all_confirmed = all_confirmed
        self.zone: Zone | None = None
        self._states = Procedure("Δ-move", knowledge.name, MOVE_TRANSITIONS, MoveState.OUTSIDE)
        self._over = 0
        """The latest move that has been finished here."""
        self.mark: tuple[int, ...] = ()
        """What copies say outside of moves: the same. A broker that has heard of the end late keeps the tree before
        that move for longer than others, and must not take theirs for copies by that tree."""
        self._undone = 0
        """The latest of which was heard that nobody need wait for the mover."""
        self._seen: set[tuple[int, int]] | None = None

    @property
    def state(self) -> MoveState:
        """How far the move is here."""
        return self._states.state

    # ------------------------------------------------------------------------------------------ publications
    def is_duplicate(self, event: Event) -> bool:
        """At the mover, while it moves: has this publication been here already, by the other tree?"""
        if self._seen is None:
            return False
        identity = (event.source, event.sequence)
        if identity in self._seen:
            return True
        self._seen.add(identity)
        return False

    def choose(self, came_from: NodeName | None, header: Sequence[int]) -> tuple[WorkingView, tuple[int, ...]]:
        """By which view a publication is passed on, and how that is marked."""
        zone = self.zone
        assert zone is not None
        mark = (zone.move,) if zone.marking else self.mark
        if zone.before is None:
            return self._knowledge.working(), mark
        sent_before = came_from in zone.members and max(header, default=0) < zone.move
        if zone.gone and came_from == zone.mover:
            sent_before = False  # it is there again, and knows the new tree only
        if sent_before or not zone.marking:
            return self._before(zone), self.mark
        return self._knowledge.working(), mark

    def bypasses_mover(self, peer: NodeName) -> bool:
        """Is there a mover on the way to the peer? One that is away is passed by, as any broker. When it is back, the
        bridges over it stay: nobody waits for it any more."""
        zone = self.zone
        if zone is None or zone.gone or self._knowledge.network.is_away(zone.mover):
            return False
        moms = [self._knowledge.view.mom] if zone.before is None else [self._knowledge.view.mom, zone.before.mom]
        return any(peer in mom and zone.mover in mom.path(peer)[:-1] for mom in moms)

    def _before(self, zone: Zone) -> WorkingView:
        assert zone.before is not None
        links = self._knowledge.links
        down = self._knowledge.network.down
        real = [*(peer for peer in zone.peers_before if peer not in down), *links.soft]
        return zone.before.working(self._knowledge.mst, real, links.candidates, self._knowledge.parameters.covering)

    # ----------------------------------------------------------------------------------------- the destination
    def on_map_requested(self, source: NodeName, requested: MapRequested) -> list[Effect]:
        """What the mover must know, or nothing when there is no room for another link."""
        knowledge = self._knowledge
        if len(knowledge.network.peers) >= knowledge.parameters.fanout:
            return [Send(source, MapAnswered(requested.move, (), ()))]
        network = network_to_wire(knowledge.network.statements, knowledge.network.mom.distances)
        ppaths = ppaths_to_wire(knowledge.mst.ppaths, knowledge.mst.ppaths)
        return [Send(source, MapAnswered(requested.move, network, ppaths))]

    def on_asked(self, source: NodeName, asked: MoveAsked) -> list[Effect]:
        """The coordinator wants to know whether the move still runs: it does for its mover, and for a destination that
        has still to tell the zone of it."""
        zone = self.zone
        if zone is None or zone.move != asked.move:
            return [Send(source, MoveFinished(asked.move))]
        idle = zone.coming is None and (self.state is MoveState.INIT or not zone.awaited)
        if zone.mover != self._knowledge.name and idle:
            return [Send(source, MoveFinished(asked.move))]
        return [Send(source, MoveRuns(zone.move, zone.mover, zone.path))]

    # ------------------------------------------------------------------------------------------ the mover's own
    def begin(self, move: int, path: tuple[NodeName, ...]) -> Zone:
        """The move of this broker is granted."""
        self.leave_former(move)
        self._seen = set()
        self.zone = Zone(move, self._knowledge.name, path)
        self.take(MoveStep.GRANTED)
        return self.zone

    def end(self, step: MoveStep) -> None:
        """The move of this broker is over."""
        assert self.zone is not None
        self.take(step)
        self._is_over(self.zone.move)
        self.zone = self._seen = None

    # ------------------------------------------------------------------------------- each broker of the zone
    def _is_over(self, move: int) -> None:
        self._over = max(self._over, move)
        self.mark = (self._over,)

    def take(self, step: MoveStep) -> None:
        """A step of the procedure."""
        assert self.zone is not None
        self._states.take(step, f"move {self.zone.move}")

    def on_phase(self, source: NodeName, announced: MovePhase) -> list[Effect]:
        """A phase reaches this broker: take it, pass it on, confirm it when all beyond have.

        It may have come before. Then one broker waits already, and others, which have gone round a broker that they
        took for gone, need not: if all waited, they might wait for each other."""
        knowledge = self._knowledge
        if announced.mover == knowledge.name or not announced.path:
            raise WireError(f"{source} leads a move of {announced.mover!r:.40} along {announced.path!r:.80}")
        if announced.phase == UNDONE:
            return self._on_undone(source, announced)
        if announced.phase not in STEP_OF:
            raise WireError(f"a move has no phase {announced.phase}")
        confirmed = [Send(source, MoveConfirmed(announced.move, announced.phase))]
        if announced.move <= self._over:
            return list(confirmed)
        if announced.phase == INIT and (announced.move <= self._undone or knowledge.network.is_away(announced.mover)):
            return list(confirmed)  # nobody would end it here
        self.leave_former(announced.move)
        unheard = self.zone is None or self.zone.before is None
        if announced.phase == END and unheard and self.state is not MoveState.PAST:
            return []  # it has not heard of the new tree: with the next request for confirmation that comes, too
        effects: list[Effect] = []
        if self.zone is None:
            self.zone = Zone(announced.move, announced.mover, tuple(announced.path))
            effects.append(self._ask_later(self.zone))
        zone = self.zone
        current = PHASE_OF[self.state]
        if announced.phase <= current:
            if zone.confirm_to is not None and knowledge.network.is_away(zone.confirm_to):
                zone.confirm_to = source
            if announced.phase < current or source != zone.confirm_to:
                return list(confirmed)
            return self.send_again(zone) if zone.awaited or zone.held is not None else list(confirmed)
        zone.confirm_to = source
        if announced.phase == IN_PROGRESS and knowledge.name == zone.path[-1]:
            return effects + self._store_first(zone, announced)
        return effects + self._take_up(zone, announced, source)

    def _store_first(self, zone: Zone, announced: MovePhase) -> list[Effect]:
        """At the destination: nobody hears of the new link from it before it is sure to remember it."""
        effects = self.enter(announced._replace(phase=INIT)) if self.state is MoveState.OUTSIDE else []
        if zone.held is None:
            stored = self._knowledge.network.record_made(zone.mover, zone.move)
            zone.held, zone.coming = stored.token, announced
            effects.append(stored)
        return effects

    def _take_up(self, zone: Zone, announced: MovePhase, source: NodeName) -> list[Effect]:
        """Take a phase, and pass it on."""
        effects = self.enter(announced)
        told_of = (origin for origin, _ in (*announced.mover_ppaths, *announced.destination_ppaths))
        if not self._knowledge.mst.ppaths.keys() >= set(told_of):
            effects.append(Send(source, TablesWanted()))  # it was away while its neighbours changed their minds
        return effects + self.pass_on(zone, announced, self._onward(zone, source))

    def on_stored(self, token: int) -> list[Effect]:
        """What waited for the record goes on."""
        zone = self.zone
        if zone is None or zone.held != token:
            return []
        zone.held = None
        announced, zone.coming = zone.coming, None
        assert announced is not None
        assert zone.confirm_to is not None
        return self._take_up(zone, announced, zone.confirm_to)

    def is_made(self, move: int, mover: NodeName) -> bool | None:
        """At the destination: has the mover become a neighbour? If not it will not be. None: it is about to."""
        if self.zone is not None and self.zone.coming is not None and self.zone.move == move:
            return None
        if mover in self._knowledge.network.peers:
            return True
        self._is_over(move)
        if self.zone is not None and self.zone.move == move and self.state is MoveState.INIT:
            self.take(MoveStep.UNDONE)
            self.zone = None
        return False

    def on_confirmed(self, source: NodeName, confirmed: MoveConfirmed) -> list[Effect]:
        """A broker and all beyond it have seen the phase."""
        zone = self.zone
        if zone is None or zone.announced is None or (zone.move, zone.announced.phase) != confirmed:
            return []
        if source not in zone.awaited:
            return []
        del zone.awaited[source]
        return self.confirm_if_all(zone)

    def on_away(self, broker: NodeName) -> list[Effect]:
        """The broker cannot be reached: those behind it are told in its place. If it is the mover, the move is undone
        where nothing is changed yet, and else brought to its end."""
        zone = self.zone
        if zone is None:
            return []
        if zone.mover == broker:
            return self._mover_gone(zone, None)
        if broker not in zone.awaited:
            return []
        del zone.awaited[broker]
        told = self._await_behind(zone, broker, zone.awaited)
        return [*self._sends(zone, told), *self.confirm_if_all(zone)]

    def on_back(self, peer: NodeName) -> list[Effect]:
        """A neighbour is there again: it may have forgotten the move, or have been passed by."""
        zone = self.zone
        if zone is None or zone.announced is None or peer == zone.mover or peer not in self._members(zone):
            return []
        if peer != zone.confirm_to:
            zone.awaited[peer] = None
        return self._sends(zone, [peer])

    def on_timer(self, what: str, move: int) -> list[Effect]:
        """A grace after the end is over: forget the old view, then the move, unless somebody still has to confirm."""
        zone = self.zone
        if zone is None or zone.move != move:
            return []
        grace_us = self._knowledge.parameters.move_grace_us
        if what == "stale":
            return self._ask_mover(zone)
        if what == "grace":
            self.take(MoveStep.GRACE_OVER)
            self._forget_old_tree(zone)
            return [SetTimer(("routing", "forget", move), grace_us)]
        if zone.mover == self._knowledge.name:
            return []
        if zone.awaited:
            return [*self.send_again(zone), SetTimer(("routing", "forget", move), grace_us)]
        self.take(MoveStep.FORGET)
        self._is_over(move)
        self.zone = None
        return []

    def on_finished(self, move: int) -> list[Effect]:
        """The mover has been asked, and knows of no such move: it is over, or was given up."""
        zone = self.zone
        if zone is None or zone.move != move or zone.mover == self._knowledge.name:
            return []
        parent = zone.confirm_to
        effects = self._mover_gone(zone, None)
        if self.zone is None and parent is not None:
            effects.append(Send(parent, TablesWanted()))  # it may have been made
        return effects

    def on_runs(self, move: int) -> list[Effect]:
        """It does know."""
        if self.zone is not None and self.zone.move == move:
            self.zone.asked = 0
        return []

    def _ask_later(self, zone: Zone) -> Effect:
        return SetTimer(("routing", "stale", zone.move), _STALE_GRACES * self._knowledge.parameters.move_grace_us)

    def _ask_mover(self, zone: Zone) -> list[Effect]:
        """Nothing has come for a long time: does the mover still move?"""
        if self.state not in (MoveState.INIT, MoveState.IN_PROGRESS):
            return []
        zone.asked += 1
        if zone.asked > PATIENCE:
            return [*self.send_again(zone), *self.on_finished(zone.move)]
        return [*self.send_again(zone), Send(zone.mover, MoveAsked(zone.move)), self._ask_later(zone)]

    def leave_former(self, move: int) -> None:
        """The former move of another broker is over, since this one is granted: its end, or a timer here, is late."""
        zone = self.zone
        if zone is not None and zone.move != move and zone.mover != self._knowledge.name:
            self.take(MoveStep.OTHER_MOVE)
            self._is_over(zone.move)
            self._forget_old_tree(zone)
            self.zone = None

    def pass_on(self, zone: Zone, announced: MovePhase, onward: Iterable[NodeName]) -> list[Effect]:
        """Send the phase to these neighbours, as far as the zone goes, and wait for their confirmations."""
        zone.announced = announced
        if announced.phase == IN_PROGRESS:
            zone.changes = zone.announced
        zone.awaited = self._reach(zone, onward)
        return [*(Send(peer, announced) for peer in zone.awaited), *self.confirm_if_all(zone)]

    def send_again(self, zone: Zone) -> list[Effect]:
        """The phase to all whose confirmations are missing."""
        return self._sends(zone, zone.awaited)

    def enter(self, announced: MovePhase) -> list[Effect]:
        """Take a phase here."""
        zone = self.zone
        assert zone is not None
        is_map = zone.mover == self._knowledge.name and announced.phase == INIT
        self.take(MoveStep.MAP if is_map else STEP_OF[announced.phase])
        if announced.phase == INIT:
            self._stop_bypassing()
            return []
        if announced.phase == IN_PROGRESS:
            return self._change_trees(zone, announced)
        return [SetTimer(("routing", "grace", zone.move), self._knowledge.parameters.move_grace_us)]

    def confirm_if_all(self, zone: Zone) -> list[Effect]:
        """Confirm the phase, if everybody beyond has, and all is stored that must be."""
        if zone.awaited or zone.held is not None:
            return []
        if zone.mover == self._knowledge.name:
            return self._all_confirmed(zone)
        effects: list[Effect] = []
        if zone.confirm_to is not None:
            effects.append(Send(zone.confirm_to, MoveConfirmed(zone.move, PHASE_OF[self.state])))
        if zone.gone and self.state is MoveState.IN_PROGRESS:
            effects += self._end_alone(zone)
        return effects

    # --------------------------------------------------------------------------------------------- inside
    def _onward(self, zone: Zone, source: NodeName) -> list[NodeName]:
        """The neighbours to pass a phase on to. A source that has gone round a neighbour tells all behind that one."""
        network = self._knowledge.network
        back = source
        if source != zone.mover and source in network.mom and network.mom.first_hop(source) in network.down:
            back = network.mom.first_hop(source)
        return [peer for peer in network.peers if peer not in (back, zone.mover)]

    def _reach(self, zone: Zone, onward: Iterable[NodeName]) -> dict[NodeName, None]:
        """Whom to tell to reach these neighbours and all behind them."""
        found: dict[NodeName, None] = {}
        members = self._members(zone)
        for peer in onward:
            if peer in self._knowledge.network.down:
                self._await_behind(zone, peer, found)
            elif peer in members:
                found[peer] = None
        return found

    def _members(self, zone: Zone) -> frozenset[NodeName]:
        knowledge = self._knowledge
        return zone_members(zone.heart, knowledge.parameters.delta, knowledge.network.adjacency())

    def _await_behind(self, zone: Zone, away: NodeName, awaited: dict[NodeName, None]) -> list[NodeName]:
        """Those behind a broker that is away are told, and waited for, in its place."""
        members = self._members(zone)
        behind = [peer for peer, _ in self._knowledge.network.bridges(away) if peer in members]
        told = [peer for peer in behind if peer not in (zone.mover, zone.confirm_to)]
        awaited.update(dict.fromkeys(told))
        return told

    def _sends(self, zone: Zone, to: Iterable[NodeName]) -> list[Effect]:
        told = [] if zone.announced is None else [zone.announced]
        if zone.changes is not None and zone.announced is not None and zone.announced.phase == END:
            told = [zone.changes, zone.announced]  # who was away may have missed both
        return [Send(peer, each) for peer in to for each in told]

    def _on_undone(self, source: NodeName, announced: MovePhase) -> list[Effect]:
        zone = self.zone
        self._undone = max(self._undone, announced.move)
        return [] if zone is None or zone.move != announced.move else self._mover_gone(zone, source)

    def _mover_gone(self, zone: Zone, source: NodeName | None) -> list[Effect]:
        """Nobody waits for the mover: it is away, or has given the move up."""
        if zone.gone or zone.mover == self._knowledge.name:
            return []
        zone.gone = True
        if zone.coming is not None:
            return []  # it is made as soon as that is stored
        effects = self.spread_undone(zone, source)
        if self.state is MoveState.INIT:
            self.take(MoveStep.UNDONE)
            self.zone = None
        elif self.state is MoveState.IN_PROGRESS and not zone.awaited and zone.held is None:
            effects += self._end_alone(zone)
        return effects

    def spread_undone(self, zone: Zone, source: NodeName | None) -> list[Effect]:
        """Pass on that nobody need wait for the mover."""
        undone = MovePhase(zone.move, UNDONE, zone.mover, zone.path, (), (), ())
        told = self._members(zone) - {source, zone.mover}
        return [Send(peer, undone) for peer, _ in self._knowledge.network.relays() if peer in told]

    def _end_alone(self, zone: Zone) -> list[Effect]:
        """The new tree is known, and no m_end will come, nor to those that have it from here."""
        self.take(MoveStep.UNDONE)
        return [
            *self.spread_undone(zone, zone.confirm_to),
            SetTimer(("routing", "grace", zone.move), self._knowledge.parameters.move_grace_us),
        ]

    def _forget_old_tree(self, zone: Zone) -> None:
        if zone.before is not None:
            zone.before.drop_working(self._knowledge.links.sent)
        zone.before = None
        self._knowledge.network.also = {}

    def _stop_bypassing(self) -> None:
        if self._knowledge.links.drop_where(self.bypasses_mover):
            self._knowledge.links_changed()

    def _change_trees(self, zone: Zone, announced: MovePhase) -> list[Effect]:
        """MOMtmp and MSTtmp: the map and the ppaths of after the move; those of before are kept beside them."""
        knowledge = self._knowledge
        network = knowledge.network
        for broker, statement in network_from_wire(announced.network).items():
            network.learn(broker, statement)
        zone.before = View(network.mom, dict(knowledge.mst.ppaths))
        zone.peers_before = tuple(network.peers)
        adjacency = network.adjacency()
        zone.members = zone_members(zone.heart, knowledge.parameters.delta, adjacency)
        effects: list[Effect] = []
        moved = relink(network.statements, zone.mover, zone.path)
        if zone.mover == knowledge.name:
            network.unsaid = {broker: network.statements[broker] for broker in moved}
        for broker, statement in moved.items():
            if broker != knowledge.name:
                network.learn(broker, statement)
        knowledge.map_changed()
        if knowledge.name in moved:
            effects = self._move_own_edge(zone, announced, moved[knowledge.name].peers)
        ppaths = moved_ppaths(
            zone.before.ppaths, knowledge.name, knowledge.parameters.delta, network.adjacency(), announced
        )
        knowledge.mst.ppaths.update(ppaths)
        knowledge.mst.moved.update(dict.fromkeys(ppaths, zone.move))
        zone.marking = zone.mover != knowledge.name
        self._stop_bypassing()
        return effects

    def _move_own_edge(self, zone: Zone, announced: MovePhase, peers: Sequence[NodeName]) -> list[Effect]:
        """This broker is an end of the link that goes or of the one that comes."""
        knowledge = self._knowledge
        network = knowledge.network
        # The phase itself tells the zone, unless a neighbour has come or gone here that the mover knew nothing of.
        known = network_from_wire(announced.network).get(knowledge.name)
        tell = known is None or known.age < network.own.age
        network.also = {peer: None for peer in zone.peers_before if peer not in peers}
        network.left |= network.also
        changed = set(peers) ^ set(zone.peers_before)
        network.changed |= {peer: zone.move for peer in (*peers, *zone.peers_before) if peer in changed}
        network.set_peers(peers)
        new = [peer for peer in peers if peer not in zone.peers_before]
        asked = [effect for peer in new for effect in network.taken_by_move(peer)]
        effects = [*knowledge.peers_changed(), *asked]
        if zone.mover != knowledge.name:  # the mover remembers that the move is pending until all but its own side know
            effects.append(network.record())
        return effects + (network.tell_own() if tell else [])

    def check_invariants(self) -> None:
        assert (self.zone is None) == (self.state is MoveState.OUTSIDE)
        if self.zone is not None:
            _ = self._knowledge.view  # worked out first: it ends soft links that the map of now has no use for
            assert not any(map(self.bypasses_mover, self._knowledge.links.soft))
            assert self.zone.before is None or self.state in (MoveState.IN_PROGRESS, MoveState.END)
