"""What some rows of a journal add up to for a picture: what crossed between two nodes, and what is told row by row."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from murmur_page.frame import Pair
from murmur_pubsub.journal import NONE, DropReason, RowKind

TOLD = (
    RowKind.START, RowKind.STOP, RowKind.LINK_UP, RowKind.LINK_DOWN, RowKind.PHASE, RowKind.FAULT, RowKind.ANSWER,
    RowKind.PAUSE, RowKind.SETTLED,
)  # fmt: skip
"""Kinds that are looked at row by row: there are few of them."""
CROSSINGS: Mapping[int, str] = {
    RowKind.SEND: "sent",
    RowKind.DUPLICATE: "sent",
    RowKind.RECEIVE: "received",
    RowKind.DROP: "lost",
}
"""What a row of a kind counts as, between the node and its peer."""
NEVER_SENT = DropReason.UNREACHABLE


@dataclass(slots=True)
class Crossing:
    """Messages from one node to another. `carried`: those sent that carried an event. `unsent`: those lost of which no
    row says that they were sent."""

    sent: int = 0
    carried: int = 0
    received: int = 0
    lost: int = 0
    unsent: int = 0


class Handled(NamedTuple):
    """An event that was published, or delivered: its number, when, and at which node."""

    event: int
    time_us: int
    node: int


@dataclass(slots=True)
class Counted:
    """`told`: rows of a kind in `TOLD`. `measured`: node, topic and value of the protocol's own rows."""

    told: Sequence[tuple[int, ...]] = ()
    crossings: dict[Pair, Crossing] = field(default_factory=dict)
    published: Sequence[Handled] = ()
    delivered: Sequence[Handled] = ()
    measured: Sequence[tuple[int, int, int]] = ()
    lag_us: int = 0


def counted(rows: Iterable[tuple[int, ...]]) -> Counted:
    """Of rows with the fields of `murmur_pubsub.journal_format.ROW`; `counted_rows` has the same of arrays."""
    told: list[tuple[int, ...]] = []
    published: list[Handled] = []
    delivered: list[Handled] = []
    measured: list[tuple[int, int, int]] = []
    found = Counted(told, {}, published, delivered, measured)
    for row in rows:
        time_us, sequence, value, node, source, peer, size, _, kind = row
        if kind in CROSSINGS:
            if peer != NONE:
                _count(found.crossings, kind, (peer, node) if kind == RowKind.RECEIVE else (node, peer), source, value)
        elif kind == RowKind.DELIVER or kind == RowKind.PUBLISH:
            (delivered if kind == RowKind.DELIVER else published).append(
                Handled(source << 40 | sequence, time_us, node)
            )
        elif kind == RowKind.PROTOCOL:
            measured.append((node, size, value))
        elif kind == RowKind.LAG:
            found.lag_us = max(found.lag_us, value)
        elif kind in TOLD:
            told.append(row)
    return found


def _count(crossings: dict[Pair, Crossing], kind: int, pair: Pair, source: int, value: int) -> None:
    crossing = crossings.get(pair)
    if crossing is None:
        crossing = crossings[pair] = Crossing()
    if kind == RowKind.RECEIVE:
        crossing.received += 1
    elif kind == RowKind.DROP:
        crossing.lost += 1
        crossing.unsent += value == NEVER_SENT
    else:
        crossing.sent += 1
        crossing.carried += source != NONE
