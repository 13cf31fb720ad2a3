"""A protocol of one's own: flooding on any overlay, where every broker passes an event on the first time only."""

from collections.abc import Sequence

from murmur_pubsub.event import Event
from murmur_pubsub.machine import Effect, Input, NodeContext, Received
from reliability.best_effort import BestEffort
from reliability.layer import BrokerServices
from routing.flooding import Flooding


class EveryLink(Flooding):
    """Flooding that does not ask for a tree."""

    requires_tree = False


class FirstTimeOnly(BestEffort):
    """Best effort that knows the events it has seen, so that none goes round in circles."""

    def __init__(self, context: NodeContext, services: BrokerServices) -> None:
        super().__init__(context, services)
        self._seen: set[tuple[int, int]] = set()

    def publish(self, event: Event, now_us: int) -> Sequence[Effect]:
        self._seen.add(event.id)
        return super().publish(event, now_us)

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if type(input) is Received:
            if input.message.event.id in self._seen:
                return ()
            self._seen.add(input.message.event.id)
        return super().handle(input, now_us)
