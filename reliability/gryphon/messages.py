"""What brokers tell each other about streams, and brokers and clients about messages.

A pubend is known by its number, a tick is a millisecond of its time. `route` is empty between neighbours. By a detour a
message carries the whole path: the brokers from the one that it comes from to the one that it is for.
"""

from typing import NamedTuple

from murmur_pubsub.event import Event
from murmur_pubsub.message import Hops, Way, message


@message(150)
class Data(NamedTuple):
    """Knowledge: D at `tick`, S from `start` to before it. `answer`: it is only for those that asked, and answers the
    nack of that time (0: it is for all)."""

    pubend: int
    start: int
    tick: int
    event: Event
    hops: Hops
    stamp: int
    answer: int
    route: list[str]


@message(151)
class Silence(NamedTuple):
    """Knowledge: S (or F) from `first` to `last`."""

    pubend: int
    first: int
    last: int
    answer: int
    route: list[str]


@message(152)
class Nack(NamedTuple):
    """Curiosity: C from `first` to `last`; please send. `asked`: by the sender's clock, in milliseconds from 1 on."""

    pubend: int
    first: int
    last: int
    asked: int
    route: list[str]


@message(153)
class Acks(NamedTuple):
    """Curiosity: A up to a tick for each pubend: [pubend, tick, pubend, tick, …]. They are not needed here again."""

    upto: list[int]
    route: list[str]


@message(154)
class AckExpected(NamedTuple):
    """The pubend has sent something at `tick` that is not acknowledged yet: acknowledge it or ask for it."""

    pubend: int
    tick: int
    route: list[str]


@message(175)
class MembersAcks(NamedTuple):
    """The same of a broker that knows of some that have joined cells (`joined`), and has taken them into account."""

    upto: list[int]
    joined: list[str]
    route: list[str]


BetweenBrokers = Data | Silence | Nack | Acks | MembersAcks | AckExpected


@message(155, way=Way.TO_BROKER)
class Submission(NamedTuple):
    """Publisher's client to its broker: a new event, and the oldest of that publisher still to be accepted."""

    event: Event
    oldest: int


@message(156, way=Way.TO_CLIENT)
class Accepted(NamedTuple):
    """Broker to publisher's client: the publisher's events up to this sequence number are in the log."""

    publisher: int
    sequence: int


@message(157, way=Way.TO_CLIENT)
class Handed(NamedTuple):
    """Broker to subscriber's client: the `number`th message of the session, for these subscribers."""

    session: int
    number: int
    event: Event
    hops: Hops
    subscribers: list[int]


@message(158, way=Way.TO_BROKER)
class HandedBack(NamedTuple):
    """Subscriber's client to broker: everything of the session up to that number was delivered."""

    session: int
    number: int
