"""The one message of exactly once over any overlay that goes by routing. Those between the two ends are those of
durable subscriptions (`reliability.durable.messages`), sent straight to their brokers: their `hop` and `route` are not
used."""

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
