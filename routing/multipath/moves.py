"""The Δ-move procedure at one broker, in whichever part it has: mover, destination, bystander (section 6).

See `routing.multipath.delta_move` for what a move changes and why nothing is lost or sent twice.
"""

from collections.abc import Sequence

from murmur_pubsub.errors import WireError
from murmur_pubsub.event import Event
from murmur_pubsub.machine import Effect, NodeName, Record, Send, SetTimer
from murmur_pubsub.procedure import Procedure
from routing.multipath.coordinator import check_move
from routing.multipath.delta_move import (
    END,
    IN_PROGRESS,
    INIT,
    Zone,
    moved_ppaths,
    ppaths_to_wire,
    relink,
    way,
    zone_members,
)
from routing.multipath.knowledge import Knowledge
from routing.multipath.messages import (
    MapAnswered,
    MapRequested,
    MoveConfirmed,
    MoveFinished,
    MoveGranted,
    MoveOrdered,
    MovePermission,
    MovePhase,
    Path,
)
from routing.multipath.move_states import MOVE_TRANSITIONS, MoveState, MoveStep
from routing.multipath.primary_network import network_from_wire, network_to_wire
from routing.multipath.view import View, WorkingView

MOVE_FINISHED, MOVE_REFUSED = 3, 4
"""Topics of journal rows: the move of that number is over; a move was not granted, or not accepted (number, or 0)."""
_STEP_OF = {INIT: MoveStep.M_INIT, IN_PROGRESS: MoveStep.M_INPROG, END: MoveStep.M_END}
"""The step that a phase brings about."""
_PHASE_OF = {MoveState.INIT: INIT, MoveState.IN_PROGRESS: IN_PROGRESS, MoveState.END: END, MoveState.PAST: END}
"""The phase that was the last to come, in each state."""


class Moves:
    """Moves as they pass this broker: at most one at a time, which the coordinator sees to."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge
        self.zone: Zone | None = None
        self._states = Procedure("Δ-move", knowledge.name, MOVE_TRANSITIONS, MoveState.OUTSIDE)
        self._ordered: MoveOrdered | None = None
        self._path: Path = ()
        self._announced: MovePhase | None = None
        self._seen: set[tuple[int, int]] | None = None

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
        mark = (zone.move,) if zone.marking else ()
        if zone.before is None:
            return self._knowledge.working(), mark
        sent_before = came_from in zone.members and zone.move not in header
        if sent_before or not zone.marking:
            return self._before(zone), ()
        return self._knowledge.working(), mark

    def bypasses_mover(self, peer: NodeName) -> bool:
        """Is there a mover on the way to the peer?"""
        zone = self.zone
        if zone is None:
            return False
        moms = [self._knowledge.view.mom] if zone.before is None else [self._knowledge.view.mom, zone.before.mom]
        return any(peer in mom and zone.mover in mom.path(peer)[:-1] for mom in moms)

    def _before(self, zone: Zone) -> WorkingView:
        assert zone.before is not None
        links = self._knowledge.links
        real = [*zone.peers_before, *links.soft]
        return zone.before.working(self._knowledge.mst, real, links.candidates, self._knowledge.parameters.covering)

    # ------------------------------------------------------------------------------------------ the mover
    def order(self, ordered: MoveOrdered) -> list[Effect]:
        """This broker is to move. Raises `InputError` if it cannot be."""
        knowledge = self._knowledge
        check_move(knowledge.network.mom, ordered.neighbour, ordered.destination)
        if knowledge.parameters.coordinator is None or self._ordered is not None:
            return [Record(MOVE_REFUSED, 0, ordered.destination)]
        self._ordered = ordered
        permission = MovePermission(knowledge.name, ordered.neighbour, ordered.destination)
        return [Send(knowledge.parameters.coordinator, permission)]

    def on_granted(self, granted: MoveGranted) -> list[Effect]:
        """The preparation phase begins."""
        if self._ordered is None:
            return []
        if not granted.number:
            refused, self._ordered = self._ordered, None
            return [Record(MOVE_REFUSED, 0, refused.destination)]
        knowledge = self._knowledge
        self._path = check_move(knowledge.network.mom, self._ordered.neighbour, self._ordered.destination)
        self._leave_former(granted.number)
        self._seen = set()
        self.zone = Zone(granted.number, knowledge.name, self._path)
        self._take(MoveStep.GRANTED)
        return [Send(self._ordered.destination, MapRequested(granted.number))]

    def on_map_requested(self, source: NodeName, requested: MapRequested) -> list[Effect]:
        """At the destination: what the mover must know, or nothing when there is no room for another link."""
        knowledge = self._knowledge
        if len(knowledge.network.peers) >= knowledge.parameters.fanout:
            return [Send(source, MapAnswered(requested.move, (), ()))]
        network = network_to_wire(knowledge.network.statements, knowledge.network.mom.distances)
        ppaths = ppaths_to_wire(knowledge.mst.ppaths, knowledge.mst.ppaths)
        return [Send(source, MapAnswered(requested.move, network, ppaths))]

    def on_map(self, answer: MapAnswered) -> list[Effect]:
        """At the mover: the initialization phase begins."""
        zone = self.zone
        if zone is None or zone.move != answer.move or self._states.state is not MoveState.PREPARATION:
            return []
        knowledge = self._knowledge
        if not answer.network:
            return self._finish(zone, MoveStep.NO_ROOM, MOVE_REFUSED)
        statements = dict(knowledge.network.statements)
        statements.update(network_from_wire(answer.network))
        beyond = [origin for origin, ppath in knowledge.mst.ppaths.items() if ppath[:1] != self._path[:1]]
        own_side = set(beyond)
        self._announced = MovePhase(
            zone.move, INIT, knowledge.parameters.delta - 1, knowledge.name, self._path,
            network_to_wire(statements, [*knowledge.network.mom.distances, *dict(network_from_wire(answer.network))]),
            ppaths_to_wire(knowledge.mst.ppaths, beyond),
            [[origin, ppath] for origin, ppath in answer.ppaths if origin not in own_side],
        )  # fmt: skip
        return self._begin(INIT)

    def _begin(self, phase: int) -> list[Effect]:
        """At the mover: a phase goes out, over the link that it is for and to the mover's own side."""
        zone = self.zone
        assert zone is not None
        assert self._announced is not None
        announced = self._announced._replace(phase=phase)
        if phase != IN_PROGRESS:
            announced = announced._replace(network=(), mover_ppaths=(), destination_ppaths=())
        effects = self._enter(announced)
        gateway = self._path[0] if phase == INIT else self._path[-1]
        own_side = [peer for peer in self._knowledge.network.peers if peer not in (self._path[0], self._path[-1])]
        return effects + self._pass_on(zone, announced, [gateway, *own_side], announced.left)

    def _next_phase(self, zone: Zone) -> list[Effect]:
        """At the mover: all have confirmed the phase."""
        if self._states.state is MoveState.INIT:
            return self._begin(IN_PROGRESS)
        if self._states.state is MoveState.IN_PROGRESS:
            zone.marking = True  # all in the zone know the new tree: publications may leave by it
            return self._begin(END)
        return [SetTimer(("routing", "moved", zone.move), 2 * self._knowledge.parameters.move_grace_us)]

    def _finish(self, zone: Zone, step: MoveStep, topic: int) -> list[Effect]:
        assert self._knowledge.parameters.coordinator is not None
        assert self._ordered is not None
        destination = self._ordered.destination
        self._take(step)
        self.zone = self._ordered = self._announced = self._seen = None
        return [
            Send(self._knowledge.parameters.coordinator, MoveFinished(zone.move)),
            Record(topic, zone.move, destination),
        ]

    # ------------------------------------------------------------------------------- each broker of the zone
    def _take(self, step: MoveStep) -> None:
        assert self.zone is not None
        self._states.take(step, f"move {self.zone.move}")

    def on_phase(self, source: NodeName, announced: MovePhase) -> list[Effect]:
        """A phase reaches this broker: take it, pass it on, confirm it when all beyond have."""
        if announced.phase not in _STEP_OF:
            raise WireError(f"a move has no phase {announced.phase}")
        knowledge = self._knowledge
        self._leave_former(announced.move)
        if self.zone is None:
            self.zone = Zone(announced.move, announced.mover, tuple(announced.path))
        zone = self.zone
        zone.confirm_to = source
        effects = self._enter(announced)
        left = knowledge.parameters.delta - 1 if knowledge.name in zone.heart else announced.left - 1
        onward = [peer for peer in knowledge.network.peers if peer not in (source, zone.mover)]
        if left < 0:
            onward = []
        return effects + self._pass_on(zone, announced, onward, left)

    def on_confirmed(self, source: NodeName, confirmed: MoveConfirmed) -> list[Effect]:
        """A neighbour and all beyond it have seen the phase."""
        zone = self.zone
        if zone is None or (zone.move, _PHASE_OF.get(self._states.state)) != (confirmed.move, confirmed.phase):
            return []
        return self.no_longer_awaited(source)

    def no_longer_awaited(self, peer: NodeName) -> list[Effect]:
        """The peer has confirmed, or cannot: when it comes back, its neighbours tell it what it has missed."""
        zone = self.zone
        if zone is None or peer not in zone.awaited:
            return []
        del zone.awaited[peer]
        return self._confirm_if_all(zone)

    def on_timer(self, what: str, move: int) -> list[Effect]:
        """The grace after the end is over: forget the old view, then the move."""
        zone = self.zone
        if zone is None or zone.move != move:
            return []
        if what == "moved":
            return self._finish(zone, MoveStep.FINISH, MOVE_FINISHED)
        if what == "grace":
            self._take(MoveStep.GRACE_OVER)
            self._forget_old_tree(zone)
            return [SetTimer(("routing", "forget", move), self._knowledge.parameters.move_grace_us)]
        if zone.mover != self._knowledge.name:
            self._take(MoveStep.FORGET)
            self.zone = None
        return []

    def _leave_former(self, move: int) -> None:
        """The former move of another broker is over, since this one is granted: its end, or a timer here, is late."""
        zone = self.zone
        if zone is not None and zone.move != move and zone.mover != self._knowledge.name:
            self._take(MoveStep.OTHER_MOVE)
            self._forget_old_tree(zone)
            self.zone = None

    def _forget_old_tree(self, zone: Zone) -> None:
        if zone.before is not None:
            zone.before.drop_working(self._knowledge.links.sent)
        zone.before = None
        self._knowledge.network.also = {}

    def _pass_on(self, zone: Zone, announced: MovePhase, onward: list[NodeName], left: int) -> list[Effect]:
        down = self._knowledge.network.down
        zone.awaited = {peer: None for peer in onward if peer not in down}
        message = announced._replace(left=left)
        return [Send(peer, message) for peer in zone.awaited] + self._confirm_if_all(zone)

    def _confirm_if_all(self, zone: Zone) -> list[Effect]:
        if zone.awaited:
            return []
        if zone.mover == self._knowledge.name:
            return self._next_phase(zone)
        assert zone.confirm_to is not None
        return [Send(zone.confirm_to, MoveConfirmed(zone.move, _PHASE_OF[self._states.state]))]

    def _enter(self, announced: MovePhase) -> list[Effect]:
        """Take a phase here."""
        zone = self.zone
        assert zone is not None
        own = zone.mover == self._knowledge.name
        self._take(MoveStep.MAP if own and announced.phase == INIT else _STEP_OF[announced.phase])
        if announced.phase == INIT:
            self._stop_bypassing()
            return []
        if announced.phase == IN_PROGRESS:
            return self._change_trees(zone, announced)
        return [SetTimer(("routing", "grace", zone.move), self._knowledge.parameters.move_grace_us)]

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
        mover_side = zone.mover in (knowledge.name, *way(adjacency, knowledge.name, zone.path[0]))
        effects: list[Effect] = []
        moved = relink(network.statements, zone.mover, zone.path)
        for broker, statement in moved.items():
            if broker != knowledge.name:
                network.learn(broker, statement)
        knowledge.map_changed()
        if knowledge.name in moved:
            # The phase itself tells the zone, unless a neighbour has come or gone here that the mover knew nothing of.
            known = network_from_wire(announced.network).get(knowledge.name)
            tell = known is None or known.age < network.own.age
            network.also = {peer: None for peer in zone.peers_before if peer not in moved[knowledge.name].peers}
            effects = knowledge.new_peers(list(moved[knowledge.name].peers), tell)
        ppaths = moved_ppaths(
            zone.before.ppaths, knowledge.name, knowledge.parameters.delta, network.adjacency(), announced, mover_side
        )
        knowledge.mst.ppaths.update(ppaths)
        zone.marking = zone.mover != knowledge.name
        self._stop_bypassing()
        return effects

    def check_invariants(self) -> None:
        state = self._states.state
        assert (self.zone is None) == (state is MoveState.OUTSIDE)
        if self.zone is not None:
            assert not any(self.bypasses_mover(peer) for peer in self._knowledge.links.soft)
            assert self.zone.before is None or state in (MoveState.IN_PROGRESS, MoveState.END)
