"""Best effort: an event is passed on at once and forgotten. The template of a reliability protocol.

Theory of operation: an event published here, or arriving in a `Forwarded`, is handed to local subscribers and
to the next hops that routing names. What a link or a crash loses stays lost; nothing is ever sent twice.
"""

from collections.abc import Sequence
from typing import NamedTuple

from murmur_pubsub.event import Event
from murmur_pubsub.machine import Effect, Input, LinkDown, LinkUp, NodeContext, NodeName, Received, Send, Start
from murmur_pubsub.message import Hops, message
from reliability.layer import BrokerServices, Reliability
from reliability.protocol import ReliabilityProtocol
from routing.protocol import NoParameters


@message(128)
class Forwarded(NamedTuple):
    """Broker to broker: an event on its way. `hops` counts broker to broker links passed, this one included."""

    event: Event
    hops: Hops
    header: Sequence[int]


class BestEffort(Reliability):
    """The best-effort part of one broker."""

    message_types: tuple[type, ...] = (Forwarded,)

    def __init__(self, context: NodeContext, parameters: NoParameters, services: BrokerServices) -> None:
        self._services = services

    def publish(self, event: Event, now_us: int) -> Sequence[Effect]:
        return self._pass_on(event, 0, None, ())

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if type(input) is Received:
            message = input.message
            assert isinstance(message, Forwarded)
            event, hops, header = message
            return self._pass_on(event, hops, input.source, header)
        if type(input) in (Start, LinkUp, LinkDown):
            return ()
        raise TypeError(f"best effort takes no {input!r}")

    def _pass_on(self, event: Event, hops: int, came_from: NodeName | None, header: Sequence[int]) -> list[Effect]:
        effects = [] if self._services.is_relay(event, header) else self._services.notify(event, hops)
        message: Forwarded | None = None
        for peer, onward in self._services.next_hops(event, came_from, header):
            if message is None or message.header != onward:
                message = Forwarded(event, hops + 1, onward)  # one object for many peers is encoded once
            effects.append(Send(peer, message))
        return effects


BEST_EFFORT = ReliabilityProtocol(name="best_effort", make=BestEffort, parameters=NoParameters)
