"""Best effort with a place to lay hands on what it does: what most saboteurs are made of."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from murmur_pubsub.client import ClientMachine, Notification
from murmur_pubsub.event import Event
from murmur_pubsub.machine import Effect, Input, Machine, NodeContext, Publish, Received, Send
from murmuration.registry import declared_as
from reliability.best_effort import BestEffort, Forwarded
from reliability.layer import BrokerServices
from routing.protocol import NoParameters


class Tampering(BestEffort):
    """Best effort; what follows from each event goes through `tamper` first. `name`: of the broker."""

    def __init__(self, context: NodeContext, parameters: NoParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        self.name = context.name

    def publish(self, event: Event, now_us: int) -> Sequence[Effect]:
        return self.tamper(list(super().publish(event, now_us)), event, now_us)

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        effects = super().handle(input, now_us)
        if type(input) is Received:
            return self.tamper(list(effects), forwarded(input).event, now_us)
        return effects

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        """What is done in place of these effects."""
        raise NotImplementedError


class TamperingClient(ClientMachine):
    """A client that changes what it publishes, or what it is told: `declared` names it."""

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if type(input) is Publish:
            return self.tell(input.event, now_us)
        if type(input) is Received and type(input.message) is Notification:
            return self.hear(input.message, now_us)
        return super().handle(input, now_us)

    def tell(self, event: Event, now_us: int) -> Sequence[Effect]:
        """What is done to publish the event."""
        return super().handle(Publish(event), now_us)

    def hear(self, told: Notification, now_us: int) -> Sequence[Effect]:
        """What is done with a notification."""
        return super().handle(Received(self.broker, told), now_us)


def declared(client: type[ClientMachine] | None = None, **changes: Any) -> Callable[[type[Machine]], Any]:
    """Class decorator: in place of the class stands its declaration, by its dotted path, with these changes."""

    def declare(part: type[Machine]) -> Any:
        path = f"{part.__module__}:{part.__qualname__}"
        if client is not None:
            changes["client"] = lambda broker, parameters: client(broker)
        return dataclasses.replace(declared_as(path, part), name=path, **changes)

    return declare


def notification(effect: Effect) -> Notification:
    """What the effect tells a client."""
    assert type(effect) is Send
    assert isinstance(effect.message, Notification)
    return effect.message


def forwarded(effect: Send | Received) -> Forwarded:
    """What the effect tells another broker, or the input this one."""
    assert isinstance(effect.message, Forwarded)
    return effect.message


def is_told(effect: Effect) -> bool:
    """Does it tell a client of an event?"""
    return type(effect) is Send and type(effect.message) is Notification


def is_passed_on(effect: Effect) -> bool:
    """Does it send an event to another broker?"""
    return type(effect) is Send and type(effect.message) is Forwarded


def with_event(effect: Effect, event: Event) -> Effect:
    """A `Send` of an event, with this one in its place."""
    assert type(effect) is Send
    message: Any = effect.message
    return Send(effect.to, message._replace(event=event))


def without(effects: Sequence[Effect], gone: Callable[[Effect], bool]) -> list[Effect]:
    """The effects but for those."""
    return [each for each in effects if not gone(each)]
