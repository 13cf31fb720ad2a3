"""Honest protocols that saboteurs of rings are made of."""

from collections.abc import Sequence

from murmur_pubsub.event import Event
from murmur_pubsub.machine import Effect, Input, NodeContext, Received
from murmuration.zoo.tampering import declared
from reliability.best_effort import BestEffort, Forwarded
from reliability.layer import BrokerServices
from routing.flooding import Flooding
from routing.protocol import NoParameters, RunsOn


@declared(runs_on=RunsOn.LINKS)
class EveryLink(Flooding):
    """Flooding that does not ask for a tree."""


class FirstTimeOnly(BestEffort):
    """Passes an event on the first time that it comes by; what follows from it goes through `tamper`."""

    def __init__(self, context: NodeContext, parameters: NoParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        self.name = context.name
        self._seen: set[tuple[int, int]] = set()

    def publish(self, event: Event, now_us: int) -> Sequence[Effect]:
        self._seen.add(event.id)
        return self.tamper(list(super().publish(event, now_us)), event)

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if type(input) is not Received:
            return super().handle(input, now_us)
        message = input.message
        assert isinstance(message, Forwarded)
        event = message.event
        if event.id in self._seen:
            return ()
        self._seen.add(event.id)
        return self.tamper(list(super().handle(input, now_us)), event)

    def tamper(self, effects: list[Effect], event: Event) -> Sequence[Effect]:
        """What is done in place of these effects: an honest broker does them."""
        return effects
