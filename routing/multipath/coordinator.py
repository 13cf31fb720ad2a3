"""The coordinator of Δ-moves: grants them one after the other where their neighbourhoods overlap (section 6).

Brokers report their primary neighbours to it, so that it knows the whole tree. A move touches the brokers within Δ of
the mover and of its path; two moves are kept apart if no broker could be touched by both. Moves that wait are
granted in the order of asking, once none before them is in their way.

A mover may die, so the coordinator asks from time to time whether a move still runs. If the mover is silent it asks the
destination, which brings a move to its end without the mover. It may die itself: each broker that hears of a
coordinator that has come (back) reports its neighbours and its move, and only then are new ones granted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from murmur_pubsub.errors import InputError
from murmur_pubsub.machine import NodeName
from routing.multipath.messages import MoveGranted, MovePermission, MoveRuns
from routing.multipath.overlay_maps import MasterOverlayMap
from routing.multipath.primary_network import Statement


def check_move(mom: MasterOverlayMap, neighbour: NodeName, destination: NodeName) -> tuple[NodeName, ...]:
    """The path from the neighbour to the destination of a move of the map's centre; raises `InputError` for a move
    that is none: from no neighbour, to nowhere in the neighbourhood, or to the mover's own side of the link."""
    place = f"Δ-move of {mom.centre}"
    if neighbour not in mom.adjacency[mom.centre]:
        allowed = ", ".join(mom.adjacency[mom.centre]) or "none: it has no primary neighbours"
        raise InputError(place, f"to leave {neighbour}", f"a primary neighbour ({allowed})")
    behind = [broker for broker in mom.brokers if broker != neighbour and mom.first_hop(broker) == neighbour]
    if destination not in behind:
        raise InputError(
            place, f"to go to {destination}",
            f"a broker within {mom.delta} hops behind {neighbour} ({', '.join(behind) or 'there is none'})",
        )  # fmt: skip
    return mom.path(destination)


_PATIENCE = 3
"""So often a broker is asked in vain before it is taken for dead."""
_REPORT_MAX = 10
"""So often it is asked in vain for its primary neighbours before moves no longer wait for them."""
_EPOCHS, _MOVES = 1 << 12, 1 << 20
"""Numbers of moves grow from term to term, and from epoch to epoch of a term."""


@dataclass(slots=True)
class ActiveMove:
    """A move that has been granted. Its heart is the mover and the path, as in `routing.multipath.delta_move`."""

    heart: tuple[NodeName, ...]
    wanted: MovePermission | None = None
    """What it was granted for (None: by another coordinator)."""
    unanswered: int = 0
    """How often nobody has said that it still runs: first the mover is asked, then the destination."""


class Coordinator:
    """Grants moves. `active`: those that run, by number. `ready`: it may grant; one that has taken over from another,
    or has come back, first hears what runs."""

    def __init__(self, delta: int, term: int, epoch: int, ready: bool) -> None:
        self.ready = ready
        self.active: dict[int, ActiveMove] = {}
        self._delta = delta
        self._statements: dict[NodeName, Statement] = {}
        self._waiting: list[MovePermission] = []
        self._asked: dict[NodeName, int] = {}
        """How often brokers were asked for their report, which was lost."""
        self._last = (term * _EPOCHS + epoch) * _MOVES

    @property
    def waiting(self) -> Sequence[MovePermission]:
        """Moves that have been asked for and must wait, in order."""
        return self._waiting

    def learn(self, broker: NodeName, statement: Statement) -> None:
        """A broker reports its primary neighbours."""
        known = self._statements.get(broker)
        self._asked.pop(broker, None)
        if known is None or known.age < statement.age:
            self._statements[broker] = statement

    def forget(self, broker: NodeName) -> None:
        """The broker has left."""
        self._statements.pop(broker, None)

    def ask(self, wanted: MovePermission) -> list[tuple[NodeName, MoveGranted]]:
        """A broker asks for a move, maybe not for the first time; the answers that follow, by broker."""
        for number, move in self.active.items():
            if move.wanted == wanted:
                return [(wanted.mover, MoveGranted(number, wanted.destination, ""))]
        # What an earlier incarnation of the mover has asked for is forgotten with it.
        self._waiting = [each for each in self._waiting if each.mover != wanted.mover or each == wanted]
        if wanted not in self._waiting:
            self._waiting.append(wanted)
        answers = self.grant()
        if wanted in self._waiting:
            answers.append((wanted.mover, MoveGranted(0, wanted.destination, "")))
        return answers

    def look_for(self) -> list[NodeName]:
        """Whom to ask for a report, since a move waits for it."""
        missing = {broker: None for each in self._waiting for broker in self._unheard_of(self._around(each.mover))}
        for broker in missing:
            self._asked[broker] = self._asked.get(broker, 0) + 1
        return list(missing)

    def _around(self, mover: NodeName) -> MasterOverlayMap:
        adjacency = {broker: statement.peers for broker, statement in self._statements.items()}
        return MasterOverlayMap(mover, self._delta, adjacency)

    def _unheard_of(self, mom: MasterOverlayMap) -> list[NodeName]:
        """Those in a map that have reported nothing, but for those that were asked so often that they must be dead."""
        missing = [broker for broker in mom.distances if broker not in self._statements]
        return [broker for broker in missing if self._asked.get(broker, 0) < _REPORT_MAX]

    def hear(self, runs: MoveRuns) -> None:
        """Somebody says that the move runs: to one that has taken over it may be news."""
        heart = (runs.mover, *runs.path)
        self.active.setdefault(runs.move, ActiveMove(heart)).unanswered = 0
        self._last = max(self._last, runs.move)

    def finish(self, number: int) -> list[tuple[NodeName, MoveGranted]]:
        """A move is over; the grants that follow."""
        self.active.pop(number, None)
        return self.grant()

    def look_around(self) -> list[tuple[NodeName, int]]:
        """Whom to ask whether which move still runs. One of which neither mover nor destination knows is over."""
        asked = []
        for number, move in list(self.active.items()):
            if move.unanswered == 2 * _PATIENCE:
                del self.active[number]
                continue
            asked.append((move.heart[0] if move.unanswered < _PATIENCE else move.heart[-1], number))
            move.unanswered += 1
        return asked

    def grant(self) -> list[tuple[NodeName, MoveGranted]]:
        """The moves that nothing is in the way of, and those that are none any more."""
        if not self.ready:
            return []
        answers = []
        held: list[tuple[NodeName, ...]] = [move.heart for move in self.active.values()]
        waiting = []
        adjacency = {broker: statement.peers for broker, statement in self._statements.items()}
        for wanted in self._waiting:
            mom = self._around(wanted.mover)
            if self._unheard_of(mom):
                waiting.append(wanted)
                continue
            try:
                heart = (wanted.mover, *check_move(mom, wanted.neighbour, wanted.destination))
            except InputError as error:
                answers.append((wanted.mover, MoveGranted(0, wanted.destination, str(error))))
                continue
            if any(self._overlap(heart, other, adjacency) for other in held):
                waiting.append(wanted)
            else:
                self._last += 1
                self.active[self._last] = ActiveMove(heart, wanted)
                answers.append((wanted.mover, MoveGranted(self._last, wanted.destination, "")))
            held.append(heart)  # a broker that asks later does not overtake one that waits
        self._waiting = waiting
        return answers

    def _overlap(
        self, first: Sequence[NodeName], second: Sequence[NodeName], adjacency: Mapping[NodeName, Sequence[NodeName]]
    ) -> bool:
        """Could a broker be within Δ of both?"""
        wide = {broker for heart in first for broker in MasterOverlayMap(heart, 2 * self._delta, adjacency).distances}
        return any(broker in wide for broker in second)
