"""Messages of multipath forwarding (kinds 18 to 39, and 159, 160).

`epoch` counts the incarnations of the broker a message is about, `version` what changed in this incarnation: of two
statements about one broker the greater (epoch, version) holds. All but the periodic ones are control messages.
"""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, TypeAlias

from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import NodeName
from murmur_pubsub.message import Like, message

LoadFields: TypeAlias = Annotated[Sequence[Any], Like((str, int, int))]
StatementFields: TypeAlias = Annotated[Sequence[Any], Like((str, int, int, Sequence[str]))]
PathFields: TypeAlias = Annotated[Sequence[Any], Like((str, Sequence[str]))]


@message(18, control=True)
class MoveDoubted(NamedTuple):
    """From a mover that was restarted in the middle to its destination: has the move been made?"""

    move: int


@message(19, control=True)
class MoveSettled(NamedTuple):
    """The answer; if it is no, the move will never be made."""

    move: int
    made: bool


@message(20, control=True)
class CoordinatorNamed(NamedTuple):
    """The broker hosts the coordinator. Of two such messages the greater (term, epoch, name) holds: an order begins a
    term, and a restart of the broker an epoch."""

    name: str
    term: int
    epoch: int


@message(21, control=True)
class MoveAsked(NamedTuple):
    """From the coordinator to the mover, or to the destination of a mover that is silent: does the move still run?"""

    move: int


@message(22, control=True)
class MoveRuns(NamedTuple):
    """To the coordinator: yes, `mover` moves along `path` (as in `MovePhase`)."""

    move: int
    mover: str
    path: Sequence[str]


@message(23, control=True)
class JoinRefused(NamedTuple):
    """To a broker that would join: no room beside `degree` primary neighbours."""

    degree: int


@message(198, control=True)
class JoinDoubted(NamedTuple):
    """To a broker that has just become a neighbour: has the sender joined there? All its others are away, and it cannot
    tell whether they will be neighbours again, or their links were taken away."""


@message(199, control=True)
class JoinSettled(NamedTuple):
    """The answer: `joined`, and so the receiver has none of those neighbours any more."""

    joined: bool


@message(24, control=True)
class Neighbours(NamedTuple):
    """The primary neighbours of `broker`, `hops` away from the receiver (0: a report to the coordinator)."""

    broker: str
    epoch: int
    version: int
    hops: int
    peers: Sequence[str]


@message(25, control=True)
class OriginSubscriptions(NamedTuple):
    """All filters that subscribers of `origin` hold. `ppath`: the way to the origin from the receiver, the sender
    first, up to Δ brokers: the last is the receiver's anchor."""

    origin: str
    epoch: int
    version: int
    ppath: Sequence[str]
    moved: int
    """The last Δ-move that changed this way, as the sender knows (0: none)."""
    filters: Sequence[Filter]


@message(26, control=True)
class SubscriptionChanged(NamedTuple):
    """The origin's subscribers hold the filter from now on, or (not `held`) no more."""

    origin: str
    epoch: int
    version: int
    ppath: Sequence[str]
    held: bool
    filter: Filter


@message(111, control=True)
class TableTaken(NamedTuple):
    """To a broker without a link to the sender, which has told of the origin's subscriptions: this is what is known
    here."""

    origin: str
    epoch: int
    version: int


@message(27, control=True)
class Departed(NamedTuple):
    """The broker, a leaf of the primary network until now, has left for good."""

    broker: str
    epoch: int


@message(28)
class LoadExchange(NamedTuple):
    """To a primary neighbour: [broker, output in messages a second, round-trip time in µs of the primary link towards
    the sender's side] of the sender's part of the neighbourhood. `sent_us` comes back as `echo_us` in the answer after
    `held_us`, which gives the round-trip time."""

    sent_us: int
    echo_us: int
    held_us: int
    loads: Sequence[LoadFields]


@message(29)
class SoftLinkRequest(NamedTuple):
    """Open a soft link to the receiver, or (each round) see whether it still stands."""

    epoch: int


@message(30)
class SoftLinkAccepted(NamedTuple):
    """The answer: send me publications directly."""

    epoch: int


@message(31, control=True)
class BrokerAway(NamedTuple):
    """The broker cannot be reached over the primary link from `witness`, or can again; spread through the
    neighbourhood of the witness, which numbers what it says. `life`: the epoch of the broker that was meant."""

    broker: str
    witness: str
    epoch: int
    version: int
    hops: int
    away: bool
    life: int


@message(197, control=True)
class WordTaken(NamedTuple):
    """The answer to `BrokerAway` where no link leads: what the witness said of the broker has come."""

    broker: str
    witness: str
    epoch: int
    version: int


@message(32, control=True)
class TablesWanted(NamedTuple):
    """Tell me all that you know: there are brokers that I have never heard of, or yours have not come."""


@message(159, control=True)
class TablesTold(NamedTuple):
    """To a broker without a link to the sender: that was all that this incarnation of the sender has to tell."""

    epoch: int


@message(160, control=True)
class LinkClaimed(NamedTuple):
    """Between two brokers that do not agree whether they are neighbours: `held`, the sender takes the receiver for one.
    `move`: the last Δ-move that changed that, as far as it knows (0: none)."""

    move: int
    held: bool


@message(33, control=True)
class MovePermission(NamedTuple):
    """To the coordinator: may `mover` leave `neighbour` for `destination`? `epoch`: its own."""

    mover: str
    epoch: int
    neighbour: str
    destination: str


@message(34, control=True)
class MoveGranted(NamedTuple):
    """From the coordinator: go ahead (number 0: not now)."""

    number: int
    destination: str
    refusal: str
    """Why never (empty, with number 0: the move has to wait for others)."""


@message(35, control=True)
class MapRequested(NamedTuple):
    """From the mover to its destination: send your map."""

    move: int


@message(36, control=True)
class MapAnswered(NamedTuple):
    """The destination's primary network, [broker, epoch, version, peers] each, and [origin, ppath] each."""

    move: int
    network: Sequence[StatementFields]
    ppaths: Sequence[PathFields]


@message(37, control=True)
class MovePhase(NamedTuple):
    """One phase of a move on its way through the neighbourhood: 1 m_init, 2 m_inprog, 3 m_end,
    4: the mover has given it up, or is gone.

    `path` leads from the neighbour left to the destination. Phase 2 brings `network` and the ppaths at the mover of
    origins beyond it, and at the destination of all others, as in `MapAnswered`.
    """

    move: int
    phase: int
    mover: str
    path: Sequence[str]
    network: Sequence[StatementFields]
    mover_ppaths: Sequence[PathFields]
    destination_ppaths: Sequence[PathFields]


@message(38, control=True)
class MoveConfirmed(NamedTuple):
    """All brokers to which the receiver passed the phase on have seen it."""

    move: int
    phase: int


@message(39, control=True)
class MoveFinished(NamedTuple):
    """To the coordinator: the next one may begin."""

    move: int


MESSAGES: tuple[type, ...] = (
    MoveDoubted, MoveSettled, CoordinatorNamed, MoveAsked, MoveRuns, JoinRefused, JoinDoubted, JoinSettled, Neighbours,
    OriginSubscriptions, SubscriptionChanged, TableTaken, Departed, LoadExchange, SoftLinkRequest, SoftLinkAccepted,
    BrokerAway, WordTaken, TablesWanted, TablesTold, LinkClaimed, MovePermission, MoveGranted, MapRequested,
    MapAnswered, MovePhase, MoveConfirmed, MoveFinished,
)  # fmt: skip
Path = tuple[NodeName, ...]
