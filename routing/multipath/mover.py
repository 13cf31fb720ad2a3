"""What the mover does in a Δ-move: it takes the order, asks for permission, leads the phases and answers (section 6).

While it waits for anybody it asks again. It may begin to change the tree only for as long as the coordinator still
counts on it, so a broker that was stalled does not come between moves that were granted since.
"""

from murmur_pubsub.errors import InputError
from murmur_pubsub.machine import Answer, Effect, NodeName, Order, Record, Send, SetTimer
from routing.multipath.coordinator import check_move
from routing.multipath.delta_move import END, IN_PROGRESS, INIT, Zone, ppaths_to_wire
from routing.multipath.knowledge import Knowledge
from routing.multipath.messages import (
    MapAnswered,
    MapRequested,
    MoveAsked,
    MoveDoubted,
    MoveFinished,
    MoveGranted,
    MovePermission,
    MovePhase,
    MoveRuns,
    MoveSettled,
)
from routing.multipath.move_states import MoveState, MoveStep
from routing.multipath.moves import Moves
from routing.multipath.primary_network import PendingMove, network_from_wire, network_to_wire

MOVE_FINISHED, MOVE_REFUSED = 3, 4
"""Topics of journal rows: the move of that number is over; a move was not made (number, or 0). Peer: where to."""
_ASK_MAX = 10
"""So often the coordinator is asked in vain."""
_LEASE_GRACES = 4
"""Graces after the coordinator's last word in which the tree may still be changed; it waits for two more."""


class Mover:
    """The moves that this broker is ordered to make, one at a time. `now_us`: the time of the input at hand."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.now_us = 0
        self.moves = Moves(knowledge, self._all_confirmed)
        self._knowledge = knowledge
        self._order: Order | None = None
        self._asked = 0
        self._heard_us = 0
        """When the coordinator was last heard to count on the move."""
        self._announced: MovePhase | None = None
        self._own_side_told = False

    @property
    def waiting(self) -> bool:
        """Has it been ordered to move, and not answered yet?"""
        return self._order is not None

    def order(self, order: Order) -> list[Effect]:
        """This broker is to move from one neighbour (the first argument) to another broker (the second)."""
        knowledge = self._knowledge
        neighbour, destination = order.arguments
        try:
            check_move(knowledge.network.mom, neighbour, destination)
        except InputError as error:
            return _refused(order, str(error))
        if knowledge.network.pending is not None and self._order is None:
            return _refused(
                order, f"{knowledge.network.pending.destination} has not said yet whether it has moved there"
            )
        if self._order is not None:
            return _refused(order, f"{knowledge.name} has been told to go to {self._order.arguments[1]} already")
        if knowledge.office is None:
            return _refused(order, "no broker hosts the coordinator of moves")
        self._order = order
        self._asked = 0
        return [*self._ask(order), self._again()]

    def on_granted(self, granted: MoveGranted) -> list[Effect]:
        """The coordinator's answer. With a number the preparation phase begins."""
        order, zone, knowledge = self._order, self.moves.zone, self._knowledge
        self._asked, self._heard_us = 0, self.now_us
        if zone is not None and zone.mover != knowledge.name:
            zone = None  # it takes part in another move, which ends before this one begins
        if order is None or order.arguments[1] != granted.destination or (zone and zone.move != granted.number):
            return knowledge.to_coordinator(MoveFinished(granted.number)) if granted.number else []
        if not granted.number and not granted.refusal:
            return []  # others are in its way
        if zone is not None:
            return []  # as it knows
        neighbour, destination = order.arguments
        refusal = granted.refusal
        try:
            path = check_move(knowledge.network.mom, neighbour, destination)
        except InputError as error:
            refusal = str(error)
        if refusal:
            self._order = None
            finished = knowledge.to_coordinator(MoveFinished(granted.number)) if granted.number else []
            return [*finished, *_refused(order, refusal)]
        self.moves.begin(granted.number, path)
        return [Send(destination, MapRequested(granted.number))]

    def on_map(self, answer: MapAnswered) -> list[Effect]:
        """The destination's map has come: the initialization phase begins."""
        zone, moves = self.moves.zone, self.moves
        if zone is None or zone.move != answer.move or moves.state is not MoveState.PREPARATION:
            return []
        knowledge = self._knowledge
        if not answer.network:
            return self._undo(zone, f"{zone.path[-1]} has no room for another link")
        if {origin for origin, _ in answer.ppaths} != set(knowledge.mst.ppaths):
            return []  # one of the two has not heard of all brokers yet, or of one that has left: ask again
        statements = dict(knowledge.network.statements)
        statements.update(network_from_wire(answer.network))
        beyond = [origin for origin, ppath in knowledge.mst.ppaths.items() if ppath[:1] != zone.path[:1]]
        own_side = set(beyond)
        self._announced = MovePhase(
            zone.move, INIT, knowledge.name, zone.path,
            network_to_wire(statements, [*knowledge.network.mom.distances, *dict(network_from_wire(answer.network))]),
            ppaths_to_wire(knowledge.mst.ppaths, beyond),
            [[origin, ppath] for origin, ppath in answer.ppaths if origin not in own_side],
        )  # fmt: skip
        return self._begin(zone, INIT)

    def on_asked(self, source: NodeName, asked: MoveAsked) -> list[Effect]:
        """The coordinator counts on the move for as long as it is told that it runs."""
        self._heard_us = self.now_us
        return self.moves.on_asked(source, asked)

    def on_timer(self, what: str, move: int) -> list[Effect]:
        """It is time to ask again, or the move is over."""
        zone = self.moves.zone
        own = zone is not None and zone.mover == self._knowledge.name
        if what == "moved":
            if zone is None or not own or zone.move != move:
                return []
            if zone.awaited:  # a neighbour has come back since, and is told
                return [*self.moves.send_again(zone), self._soon(zone)]
            return self._finish(zone)
        order = self._order
        if order is None:
            return []
        if zone is None or not own:
            self._asked += 1
            if self._asked > _ASK_MAX:
                self._order = None
                return _refused(order, "the coordinator does not answer")
            return [*self._ask(order), self._again()]
        if self.moves.state is MoveState.PREPARATION:
            if self._lease_is_over:
                return self._undo(zone, f"{zone.path[-1]} does not answer, or knows of other brokers")
            return [Send(zone.path[-1], MapRequested(zone.move)), self._again()]
        if self.moves.state is MoveState.INIT and self._lease_is_over:
            return self._undo(zone, "its neighbourhood did not answer in time")
        return [*self.moves.send_again(zone), self._again()]

    def on_away(self, broker: NodeName) -> list[Effect]:
        """The broker cannot be reached: if the move was to lead there, and nothing is changed yet, it is given up."""
        zone = self.moves.zone
        if zone is not None and zone.mover == self._knowledge.name and zone.path[-1] == broker:
            if self.moves.state in (MoveState.PREPARATION, MoveState.INIT):
                return self._undo(zone, f"{broker} is away")
            if self._knowledge.network.pending is not None:
                # It may not have stored that the move is made. So this broker does, before anybody else hears of it.
                self._knowledge.network.pending = None
                stored = self._knowledge.network.record()
                zone.held = stored.token
                return [stored]
        return self.moves.on_away(broker)

    def on_stored(self, token: int) -> list[Effect]:
        """What waited for the record goes on."""
        zone = self.moves.zone
        if zone is None or zone.mover != self._knowledge.name or zone.held != token:
            return self.moves.on_stored(token)
        zone.held = None
        if self.moves.state is not MoveState.IN_PROGRESS:
            return self.moves.confirm_if_all(zone)
        away = self._knowledge.network.is_away(zone.path[-1])
        return [
            *self._say_new_tree(),
            *(self.moves.on_away(zone.path[-1]) if away else self.moves.confirm_if_all(zone)),
        ]

    def report(self) -> list[Effect]:
        """A coordinator that has come (back) is told of the move that runs; the destination tells of it, too."""
        zone = self.moves.zone
        if zone is None or self._knowledge.name not in (zone.mover, zone.path[-1]):
            return []
        return self._knowledge.to_coordinator(MoveRuns(zone.move, zone.mover, zone.path))

    # ------------------------------------------------------------------------------------------ after a restart
    def resolve(self) -> list[Effect]:
        """Ask the destination whether a move that was pending at the end of the last incarnation has been made."""
        pending = self._knowledge.network.pending
        if pending is None or self._order is not None:
            return []
        return [Send(pending.destination, MoveDoubted(pending.move))]

    def on_settled(self, settled: MoveSettled) -> tuple[NodeName, int] | None:
        """The destination has answered; if the move was made, that is a new neighbour."""
        network = self._knowledge.network
        pending = network.pending
        if pending is None or pending.move != settled.move or self._order is not None:
            return None
        network.pending = None
        if not settled.made:
            return None
        peers = [peer for peer in network.peers if peer not in (pending.neighbour, pending.destination)]
        network.left[pending.neighbour] = None
        network.changed |= {pending.neighbour: pending.move, pending.destination: pending.move}
        network.set_peers([*peers, pending.destination])
        return pending.destination, pending.move

    # --------------------------------------------------------------------------------------------- inside
    def _ask(self, order: Order) -> list[Effect]:
        name, epoch = self._knowledge.name, self._knowledge.network.epoch
        return self._knowledge.to_coordinator(MovePermission(name, epoch, *order.arguments))

    def _again(self) -> Effect:
        return SetTimer(("routing", "again"), 2 * self._knowledge.parameters.move_grace_us)

    @property
    def _lease_is_over(self) -> bool:
        return self.now_us - self._heard_us > _LEASE_GRACES * self._knowledge.parameters.move_grace_us

    def _begin(self, zone: Zone, phase: int) -> list[Effect]:
        """A phase goes out over the link that it is for, and to the mover's own side; m_inprog goes there only when the
        destination and all beyond it know of the new link."""
        assert self._announced is not None
        announced = self._announced._replace(phase=phase)
        if phase != IN_PROGRESS:
            announced = announced._replace(network=(), mover_ppaths=(), destination_ppaths=())
        effects = self.moves.enter(announced)
        self._own_side_told = phase != IN_PROGRESS
        gateway = zone.path[0] if phase == INIT else zone.path[-1]
        onward = [gateway, *self._own_side(zone)] if self._own_side_told else [gateway]
        return effects + self.moves.pass_on(zone, announced, onward)

    def _own_side(self, zone: Zone) -> list[NodeName]:
        return [peer for peer in self._knowledge.network.peers if peer not in (zone.path[0], zone.path[-1])]

    def _all_confirmed(self, zone: Zone) -> list[Effect]:
        """All have confirmed the phase."""
        if self.moves.state is MoveState.INIT:
            if self._lease_is_over:
                return self._undo(zone, "its neighbourhood did not answer in time")
            network = self._knowledge.network
            if network.pending is None:  # from here on it may be made though this broker dies
                network.pending = PendingMove(zone.move, zone.path[0], zone.path[-1])
                stored = network.record()
                zone.held = stored.token
                return [stored]
            return self._begin(zone, IN_PROGRESS)
        if self.moves.state is MoveState.IN_PROGRESS:
            if not self._own_side_told:
                assert zone.announced is not None
                self._own_side_told = True
                self._knowledge.network.pending = None
                stored = self._knowledge.network.record()
                own_side = self._own_side(zone)
                return [stored, *self._say_new_tree(), *self.moves.pass_on(zone, zone.announced, own_side)]
            zone.marking = True  # all in the zone know the new tree: publications may leave by it
            return self._begin(zone, END)
        return [self._soon(zone)]

    def _say_new_tree(self) -> list[Effect]:
        """One of its two ends is sure to remember the link that this broker's move makes: everybody may hear of it.
        From the phase all do, but for a neighbour that has come or gone here since."""
        network = self._knowledge.network
        before, network.unsaid = network.unsaid, {}
        changed = before and network.own.version > before[network.name].version + 1
        return [*self._knowledge.report(), *(network.tell_own() if changed else [])]

    def _soon(self, zone: Zone) -> Effect:
        return SetTimer(("routing", "moved", zone.move), 2 * self._knowledge.parameters.move_grace_us)

    def _finish(self, zone: Zone) -> list[Effect]:
        assert self._order is not None
        order, self._order, self._announced = self._order, None, None
        self.moves.end(MoveStep.FINISH)
        finished = self._knowledge.to_coordinator(MoveFinished(zone.move))
        return [*finished, Record(MOVE_FINISHED, zone.move, zone.path[-1]), Answer(order.number)]

    def _undo(self, zone: Zone, why: str) -> list[Effect]:
        """Nothing is changed yet: the zone is told, and all is as before."""
        assert self._order is not None
        order, self._order, self._announced = self._order, None, None
        effects: list[Effect] = []
        if self._knowledge.network.pending is not None:
            self._knowledge.network.pending = None
            effects.append(self._knowledge.network.record())
        if self.moves.state is MoveState.INIT:
            effects += self.moves.spread_undone(zone, None)
        self.moves.end(MoveStep.UNDONE)
        effects += self._knowledge.to_coordinator(MoveFinished(zone.move))
        return effects + _refused(order, why, zone.move)


def _refused(order: Order, why: str, move: int = 0) -> list[Effect]:
    return [Record(MOVE_REFUSED, move, order.arguments[1]), Answer(order.number, why)]
