"""Δ-moves: how master maps and tables follow one broker's move to another place in its neighbourhood (section 6).

The mover A leaves its neighbour N for the destination B. The tree falls into A's side and the rest; both stay as they
are, only the link between them is another one. So a broker knows its new place from three things: its own map, the
maps and ppaths of A and of B, and the path from N to B.

Touched are the brokers within Δ of A or of the path (the paper says of A; a broker that sees neither the old nor the
new link within Δ can still have an anchor on the way there, on the other arm of the path). The phases go over this
zone, hop by hop, and are confirmed back when they have reached its end.

While m_inprog spreads, some brokers use the old tree and some the new one. It begins at B, so that on the way to A by
the new tree no broker lags behind. A copy that was sent by the old tree is passed on by the old tree, which every
broker of the zone keeps until a while after the end; it is known by its header, which lacks the number of the move
though its sender belongs to the zone. So every publication reaches A over N, over B or over both; A drops what has come
before, and no broker may bypass A in the meantime. A itself sends by the old tree until m_inprog has been confirmed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from murmur_pubsub.machine import NodeName
from routing.multipath.messages import MovePhase, Path
from routing.multipath.overlay_maps import MasterOverlayMap
from routing.multipath.primary_network import Statement
from routing.multipath.view import View

INIT, IN_PROGRESS, END = 1, 2, 3
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
    """The broker that waits for this one's confirmation of the phase."""
    awaited: dict[NodeName, None] = field(default_factory=dict)
    """The brokers whose confirmations are missing."""
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
    """The statements of the mover, its old and its new neighbour after the move."""
    neighbour, destination = path[0], path[-1]
    before = statements[mover]
    peers = tuple(destination if peer == neighbour else peer for peer in before.peers)
    left, joined = statements[neighbour], statements[destination]
    return {
        mover: Statement(before.epoch, before.version + 1, peers),
        neighbour: Statement(left.epoch, left.version + 1, tuple(peer for peer in left.peers if peer != mover)),
        destination: Statement(joined.epoch, joined.version + 1, (*joined.peers, mover)),
    }


def zone_members(heart: Sequence[NodeName], delta: int, adjacency: Mapping[NodeName, Path]) -> frozenset[NodeName]:
    """The brokers within Δ of the mover or of the path, as far as they are known."""
    return frozenset(broker for each in heart for broker in MasterOverlayMap(each, delta, adjacency).distances)


def way(adjacency: Mapping[NodeName, Path], start: NodeName, end: NodeName) -> Path:
    """The brokers after `start` on the way to `end`."""
    return MasterOverlayMap(start, len(adjacency) + 1, adjacency).path(end)


def moved_ppaths(
    old: Ppaths,
    me: NodeName,
    delta: int,
    adjacency: Mapping[NodeName, Path],
    announced: MovePhase,
    mover_side: bool,
) -> dict[NodeName, Path]:
    """The ppaths of `me` after the move; `adjacency` is that of after the move."""
    new = dict(old)
    destination = announced.path[-1]
    if mover_side:
        prefix = (*way(adjacency, me, announced.mover), destination)
        far_side = announced.destination_ppaths
    else:
        prefix = (*way(adjacency, me, destination), announced.mover)
        far_side = announced.mover_ppaths
    for origin, ppath in far_side:
        if origin in new:
            new[origin] = (*prefix, *ppath)[:delta]
    return new


def ppaths_to_wire(ppaths: Ppaths, origins: Iterable[NodeName]) -> list[list[object]]:
    """[origin, ppath] of these origins."""
    return [[origin, list(ppaths[origin])] for origin in origins]
