"""A protocol of one's own: flooding on any overlay, where every broker passes an event on the first time only."""

from collections.abc import Sequence

from murmur_pubsub.event import Event
from murmur_pubsub.machine import Effect, Input, NodeContext, Received
from reliability.best_effort import BestEffort, Forwarded
from reliability.layer import BrokerServices
from reliability.protocol import ReliabilityProtocol
from routing.flooding import Flooding
from routing.protocol import NoParameters, RoutingProtocol, RunsOn


class EveryLink(Flooding):
    """Flooding that does not ask for a tree."""


class FirstTimeOnly(BestEffort):
    """Best effort that knows the events it has seen, so that none goes round in circles."""

    def __init__(self, context: NodeContext, parameters: NoParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        self._seen: set[tuple[int, int]] = set()

    def publish(self, event: Event, now_us: int) -> Sequence[Effect]:
        self._seen.add(event.id)
        return super().publish(event, now_us)

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if type(input) is Received:
            message = input.message
            assert isinstance(message, Forwarded)
            if message.event.id in self._seen:
                return ()
            self._seen.add(message.event.id)
        return super().handle(input, now_us)


EVERY_LINK = RoutingProtocol(name="every_link", make=EveryLink, parameters=NoParameters, runs_on=RunsOn.LINKS)
FIRST_TIME_ONLY = ReliabilityProtocol(name="first_time_only", make=FirstTimeOnly, parameters=NoParameters)
