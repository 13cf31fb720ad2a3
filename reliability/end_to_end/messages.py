"""The messages of exactly once over any overlay. `Carried` alone goes by routing; all between the two ends are sent
straight. Those of durable subscriptions (`reliability.durable.messages`) are used too, without their `hop` and `route`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from murmur_pubsub.event import Event
from murmur_pubsub.message import Hops, message


@message(185)
class Carried(NamedTuple):
    """Broker to broker: an event on its way, as routing says. It is on the tick `tick` of the pubend.

    Three lists of one length: `clients`, for whom it is; `afters`, for each the tick after which it is the first for
    that client; `subscribers`, for each those of the client's subscribers that it matched.
    """

    event: Event
    pubend: int
    tick: int
    clients: list[str]
    afters: list[int]
    subscribers: list[list[int]]
    hops: Hops
    header: Sequence[int]


@message(200)
class Reminder(NamedTuple):
    """A publishers' broker to a broker of clients: of these clients each has not acknowledged a message of the pubend
    on its tick. Lists of one length. Without clients: somebody has not, and it does not know who is where."""

    to: str
    pubend: int
    clients: list[str]
    ticks: list[int]
