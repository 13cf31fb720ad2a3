"""What clients with durable subscriptions, their brokers and the publishers' brokers tell each other.

Lists of ticks are flat: [pubend, tick, pubend, tick, …]. A message between brokers is for the broker `to`, and each
broker on the way passes it on; `route` is as in `reliability.gryphon.messages`, `hop` numbers it between two neighbours
(`reliability.durable.hops`). Where a link breaks it is lost, and who sent it asks again.
"""

from collections.abc import Sequence
from typing import NamedTuple

from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.message import Hops, Way, message


@message(161, control=True, way=Way.TO_BROKER)
class Resume(NamedTuple):
    """Client to its broker: all that it subscribes to, subscriber by subscriber, and the last tick that it has of each
    pubend. A greater `revision` takes the place of a smaller one."""

    revision: int
    subscribers: list[int]
    filters: Sequence[Filter]
    ticks: list[int]


@message(162, control=True, way=Way.TO_CLIENT)
class Recorded(NamedTuple):
    """Broker to client: every publishers' broker has recorded what the client subscribes to."""

    revision: int


@message(163, control=True, way=Way.TO_CLIENT)
class ResumedAt(NamedTuple):
    """Broker to client: of that pubend the client has `asked` for what follows a tick, and gets what follows `tick`."""

    pubend: int
    asked: int
    tick: int


@message(164, way=Way.TO_CLIENT)
class DurableHanded(NamedTuple):
    """Broker to client: as `reliability.gryphon.messages.Handed`, with the tick of the message."""

    session: int
    number: int
    event: Event
    hops: Hops
    subscribers: list[int]
    pubend: int
    tick: int


@message(176, way=Way.TO_CLIENT)
class DurableGivenUp(NamedTuple):
    """Broker to client: as `DurableHanded`, in place of what was given up to that tick; `events` is as in `GivenUp`."""

    session: int
    number: int
    pubend: int
    tick: int
    events: list[int]


@message(165)
class Enlist(NamedTuple):
    """A client's broker to a publishers' broker: record what the client subscribes to, and that it has everything up to
    these ticks."""

    to: str
    origin: str
    client: str
    revision: int
    subscribers: list[int]
    filters: Sequence[Filter]
    ticks: list[int]
    asked: int
    hop: int
    route: list[str]


@message(166)
class Enlisted(NamedTuple):
    """The answer: that is recorded, and what follows these ticks is kept for the client. `ends`: of these pubends
    nothing is kept for it yet, up to ticks that may be later. `revision` -1: of a client that asked to be caught up
    nothing is on record, since a disk was lost."""

    to: str
    client: str
    revision: int
    ticks: list[int]
    ends: list[int]
    asked: int
    hop: int
    route: list[str]


@message(167)
class CatchUp(NamedTuple):
    """A client's broker to a publishers' broker: send the next messages that matched, `most` of them. The client was
    handed all up to the tick `after`, and has acknowledged all up to `has`."""

    to: str
    origin: str
    client: str
    pubend: int
    after: int
    has: int
    most: int
    asked: int
    hop: int
    route: list[str]


@message(168)
class Caught(NamedTuple):
    """The answer, message by message: of those after the tick `after` this one is the first for the client."""

    to: str
    client: str
    pubend: int
    after: int
    tick: int
    event: Event
    hops: Hops
    subscribers: list[int]
    asked: int
    hop: int
    route: list[str]


@message(169)
class CaughtUp(NamedTuple):
    """The end of the answer: after the tick `after`, up to `tick`, there is nothing for the client."""

    to: str
    client: str
    pubend: int
    after: int
    tick: int
    asked: int
    hop: int
    route: list[str]


@message(170)
class Release(NamedTuple):
    """A client's broker to a publishers' broker: the client has everything up to these ticks."""

    to: str
    origin: str
    client: str
    ticks: list[int]
    asked: int
    hop: int
    route: list[str]


@message(171)
class Released(NamedTuple):
    """The answer: that was heard."""

    to: str
    client: str
    ticks: list[int]
    asked: int
    hop: int
    route: list[str]


@message(172)
class HopHeard(NamedTuple):
    """A broker to its neighbour: the messages of these hops have come. `hops`: [first, last, first, last, …]."""

    hops: list[int]


@message(173)
class GivenUp(NamedTuple):
    """A step of an answer: of what follows the tick `after`, the publishers' broker has given up all up to `tick`.
    `events`: [publisher, first number, last number, …] of what the client had not acknowledged by then."""

    to: str
    client: str
    pubend: int
    after: int
    tick: int
    events: list[int]
    asked: int
    hop: int
    route: list[str]


@message(174, way=Way.TO_CLIENT)
class Decided(NamedTuple):
    """Broker to publisher's client: as `reliability.gryphon.messages.Accepted`, but for the refused numbers: those are
    not in the log, and will not be."""

    publisher: int
    sequence: int
    refused: list[int]


BetweenDurables = Enlist | Enlisted | CatchUp | Caught | CaughtUp | GivenUp | Release | Released
CatchUpStep = Caught | CaughtUp | GivenUp
ToClient = Recorded | ResumedAt | DurableHanded | DurableGivenUp


def pairs(ticks: list[int]) -> dict[int, int]:
    """Pubend to tick, of a flat list."""
    return dict(zip(ticks[::2], ticks[1::2], strict=False))


def flat(ticks: dict[int, int]) -> list[int]:
    """The list again."""
    return [each for pair in ticks.items() for each in pair]
