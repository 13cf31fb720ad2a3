"""Brokers with a fault each, for tests of the judge: a judge that never finds anything proves nothing.

Routers and reliability parts that scenarios name by dotted path (`tests.saboteurs:Losing`), as a user's own
protocols would be. Each does right by most events and wrong by a few, the same ones in every run.
"""

from collections.abc import Mapping, Sequence

from pubsub.event import Event
from pubsub.machine import Effect, Input, NodeContext, NodeName, Received, Send
from pubsub.values import Value
from reliability.best_effort import BestEffort
from routing.forwarding import SubscriptionForwarding
from routing.router import Hop

ONE_IN = 100


class Losing(BestEffort):
    """Loses one event in a hundred instead of passing it on."""

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if type(input) is Received and input.message.event.sequence % ONE_IN == 7:
            return ()
        return super().handle(input, now_us)


class Doubling(BestEffort):
    """Sends one event in a hundred twice."""

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        effects = super().handle(input, now_us)
        if type(input) is Received and input.message.event.sequence % ONE_IN == 7:
            return [each for effect in effects for each in (effect, effect)]
        return effects


class Swapping(BestEffort):
    """Keeps one event in a hundred back until the publisher's next has gone ahead."""

    def __init__(self, context: NodeContext, services: object) -> None:
        super().__init__(context, services)  # type: ignore[arg-type]
        self._kept: dict[int, list[Effect]] = {}

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        effects = list(super().handle(input, now_us))
        if type(input) is not Received:
            return effects
        event = input.message.event
        if event.sequence % ONE_IN == 7:
            self._kept[event.source] = effects
            return []
        return effects + self._kept.pop(event.source, [])


class Mismatching(SubscriptionForwarding):
    """Takes every value of one attribute for a little less than it is, and routes by that."""

    def next_hops(self, event: Event, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        wrong: Mapping[str, Value] = {
            name: value - 0.02 if name == "a0" and isinstance(value, float) else value
            for name, value in event.attributes.items()
        }
        return super().next_hops(Event(event.source, event.sequence, event.time_us, wrong), came_from, header)


class Generous(BestEffort):
    """Notifies the clients it has, now and then, of an event that nobody of theirs asked for."""

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        effects = list(super().handle(input, now_us))
        if type(input) is Received and input.message.event.sequence % ONE_IN == 7:
            notified = [each for each in effects if isinstance(each, Send) and hasattr(each.message, "subscribers")]
            effects += [
                each._replace(message=each.message._replace(subscribers=[subscriber + 1]))
                for each in notified
                for subscriber in each.message.subscribers
                if subscriber + 1 not in each.message.subscribers
                and (subscriber + 1) % 10  # ten subscribers a client: stay with the same one
            ]
        return effects
