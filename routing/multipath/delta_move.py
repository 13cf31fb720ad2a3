"""Δ-moves: how master maps and tables follow one broker's move to another place in its neighbourhood (section 6).

The mover A leaves its neighbour N for the destination B. The tree falls into A's side and the rest; both stay as they
are, only the link between them is another one. So a broker knows its new place from three things: its own map, the
maps and ppaths of A and of B, and the path from N to B.

Touched are the brokers within Δ of A or of the path (the paper says of A; a broker that sees neither the old nor the
new link within Δ can still have an anchor on the way there, on the other arm of the path). The phases go over this
zone, hop by hop, and are confirmed back when they have reached its end.

While m_inprog spreads, some brokers use the old tree and some the new one. It begins at B, so that on the way to A by
the new tree no broker lags behind. A copy that was sent by the old tree is passed on by the old tree, which every
broker of the zone keeps until a while after the end. It is known by its header, which has no number as high as that of
the move though its sender belongs to the zone; so brokers go on saying the number of their last move. Every publication
reaches A over N, over B or over both; A drops what has come before, and no broker may bypass A in the meantime. A
itself sends by the old tree until m_inprog has been confirmed.

When brokers die. A phase goes round a broker that is away, to those behind it, and is taken once however often it
comes; A sends it again until it is confirmed. Before m_inprog has gone out the move can be given up: A does if B is
away, and for a dead A its neighbours do. From then on it is finished, by B if A is dead: B is told first, and A's own
side last, so nobody speaks of the new link before B does. Until then A itself, asked, says what was before. Whoever was
away is told of the new tree when it is back.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from murmur_pubsub.errors import WireError
from murmur_pubsub.machine import NodeName
from routing.multipath.messages import MovePhase, Path
from routing.multipath.move_states import MoveState, MoveStep
from routing.multipath.overlay_maps import MasterOverlayMap
from routing.multipath.primary_network import Statement
from routing.multipath.view import View

INIT, IN_PROGRESS, END, UNDONE = 1, 2, 3, 4
STEP_OF = {INIT: MoveStep.M_INIT, IN_PROGRESS: MoveStep.M_INPROG, END: MoveStep.M_END}
"""The step that a phase brings about."""
PHASE_OF = {
    MoveState.OUTSIDE: 0, MoveState.PREPARATION: 0, MoveState.INIT: INIT, MoveState.IN_PROGRESS: IN_PROGRESS,
    MoveState.END: END, MoveState.PAST: END,
}  # fmt: skip
"""The phase that was the last to come, in each state (0: none)."""
Ppaths = Mapping[NodeName, Path]


@dataclass(slots=True)
class Zone:
    """What a broker in the zone of a move knows of it."""

    move: int
    """The move's number."""
    mover: NodeName
    path: Path
    """From the neighbour that the mover leaves to its destination."""
    confirm_to: NodeName | None = None
    """The broker that waits for this one's confirmation of the phase, and so for all beyond."""
    announced: MovePhase | None = None
    """The phase as this broker passes it on."""
    changes: MovePhase | None = None
    """The same of m_inprog, once it has come."""
    awaited: dict[NodeName, None] = field(default_factory=dict)
    """The brokers whose confirmations are missing."""
    held: int | None = None
    """The record that must be stored before the next step is taken."""
    coming: MovePhase | None = None
    """At the destination, m_inprog, which is taken once the record is stored."""
    asked: int = 0
    """How often the mover has left the question unanswered whether it still moves."""
    gone: bool = False
    """The mover is away: nobody waits for it any more."""
    before: View | None = None
    """The view before the move, from m_inprog to the end of the grace."""
    peers_before: Path = ()
    """The primary links that this view is for."""
    members: frozenset[NodeName] = frozenset()
    """The brokers of the zone, as far as this broker knows them."""
    marking: bool = False
    """Does it send by the new tree, and say so?"""

    @property
    def heart(self) -> tuple[NodeName, ...]:
        """The mover, and the path from its old to its new neighbour."""
        return (self.mover, *self.path)


def relink(statements: Mapping[NodeName, Statement], mover: NodeName, path: Path) -> dict[NodeName, Statement]:
    """The statements of the mover, its old and its new neighbour after the move: those of them that become others.
    Raises `WireError` for a move of brokers that have said nothing of themselves, and for one that leads nowhere."""
    if not path or not {mover, path[0], path[-1]} <= statements.keys():
        raise WireError(f"a move of {mover!r:.40} along {path!r:.80}, of whom not all are known")
    neighbour, destination = path[0], path[-1]
    after = {
        mover: tuple(destination if peer == neighbour else peer for peer in statements[mover].peers),
        neighbour: tuple(peer for peer in statements[neighbour].peers if peer != mover),
        destination: tuple(dict.fromkeys((*statements[destination].peers, mover))),
    }
    return {
        broker: Statement(statements[broker].epoch, statements[broker].version + 1, peers)
        for broker, peers in after.items()
        if peers != statements[broker].peers
    }


def zone_members(heart: Sequence[NodeName], delta: int, adjacency: Mapping[NodeName, Path]) -> frozenset[NodeName]:
    """The brokers within Δ of the mover or of the path, as far as they are known."""
    return frozenset(broker for each in heart for broker in MasterOverlayMap(each, delta, adjacency).distances)


def way(adjacency: Mapping[NodeName, Path], start: NodeName, end: NodeName) -> Path:
    """The brokers after `start` on the way to `end` (none if no way is known)."""
    whole = MasterOverlayMap(start, len(adjacency), adjacency)  # no way is as long as that
    return whole.path(end) if end in whole else ()


def moved_ppaths(
    old: Ppaths,
    me: NodeName,
    delta: int,
    adjacency: Mapping[NodeName, Path],
    announced: MovePhase,
) -> dict[NodeName, Path]:
    """The ppaths of `me` to what is on the other side of the move; `adjacency` is that of after the move."""
    destination = announced.path[-1]
    mover_side = any(origin == me for origin, _ in announced.mover_ppaths)
    near, over, far_side = (
        (announced.mover, destination, announced.destination_ppaths)
        if mover_side
        else (destination, announced.mover, announced.mover_ppaths)
    )
    prefix = (*way(adjacency, me, near), over)
    if me != near and len(prefix) == 1:
        return {}  # this broker was away and has not heard yet what is around it
    return {origin: (*prefix, *ppath)[:delta] for origin, ppath in far_side if origin in old}


def ppaths_to_wire(ppaths: Ppaths, origins: Iterable[NodeName]) -> list[list[object]]:
    """[origin, ppath] of these origins."""
    return [[origin, list(ppaths[origin])] for origin in origins]
