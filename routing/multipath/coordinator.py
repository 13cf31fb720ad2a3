"""The coordinator of Δ-moves: grants them one after the other where their neighbourhoods overlap (section 6).

Brokers report their primary neighbours to it, so that it knows the whole tree. A move touches the brokers within Δ of
the mover and of its path; two moves are kept apart if no broker could be touched by both. Moves that wait are
granted in the order of asking, once none before them is in their way.
"""

from collections.abc import Mapping, Sequence

from murmur_pubsub.errors import InputError
from murmur_pubsub.machine import NodeName
from routing.multipath.messages import MovePermission
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


class Coordinator:
    """Grants moves. `active`: the brokers at the heart of each move that runs (the mover and its path)."""

    def __init__(self, delta: int) -> None:
        self._delta = delta
        self._statements: dict[NodeName, Statement] = {}
        self._waiting: list[MovePermission] = []
        self.active: dict[int, tuple[NodeName, ...]] = {}
        self._last = 0

    @property
    def waiting(self) -> Sequence[MovePermission]:
        """Moves that have been asked for and must wait, in order."""
        return self._waiting

    def learn(self, broker: NodeName, statement: Statement) -> None:
        """A broker reports its primary neighbours."""
        known = self._statements.get(broker)
        if known is None or known.age < statement.age:
            self._statements[broker] = statement

    def forget(self, broker: NodeName) -> None:
        """The broker has left."""
        self._statements.pop(broker, None)

    def ask(self, wanted: MovePermission) -> list[tuple[NodeName, int]]:
        """A broker asks for a move; the grants that follow: (mover, number), number 0 for a refusal."""
        self._waiting.append(wanted)
        return self._grant()

    def finish(self, number: int) -> list[tuple[NodeName, int]]:
        """A move is over; the grants that follow."""
        self.active.pop(number, None)
        return self._grant()

    def _grant(self) -> list[tuple[NodeName, int]]:
        granted = []
        held: list[tuple[NodeName, ...]] = list(self.active.values())
        waiting = []
        adjacency = {broker: statement.peers for broker, statement in self._statements.items()}
        for wanted in self._waiting:
            mom = MasterOverlayMap(wanted.mover, self._delta, adjacency)
            try:
                heart = (wanted.mover, *check_move(mom, wanted.neighbour, wanted.destination))
            except InputError:
                granted.append((wanted.mover, 0))
                continue
            if any(self._overlap(heart, other, adjacency) for other in held):
                waiting.append(wanted)
            else:
                self._last += 1
                self.active[self._last] = heart
                granted.append((wanted.mover, self._last))
            held.append(heart)  # a broker that asks later does not overtake one that waits
        self._waiting = waiting
        return granted

    def _overlap(
        self, first: Sequence[NodeName], second: Sequence[NodeName], adjacency: Mapping[NodeName, Sequence[NodeName]]
    ) -> bool:
        """Could a broker be within Δ of both?"""
        wide = {broker for heart in first for broker in MasterOverlayMap(heart, 2 * self._delta, adjacency).distances}
        return any(broker in wide for broker in second)
