"""Durable subscriptions with one bug each: what random schedules must find."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from murmur_pubsub.machine import Effect, NodeContext, NodeName
from reliability.durable.catching_up import CatchUpStream
from reliability.durable.client import DurableClient
from reliability.durable.durable import DURABLE, Durable
from reliability.durable.messages import Release, Resume, pairs
from reliability.durable.parameters import DurableParameters
from reliability.layer import BrokerServices


class ASeam(Durable):
    """A client is live as soon as it was caught up once, however far the consolidated stream has come meanwhile."""

    def __init__(self, context: NodeContext, parameters: DurableParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        take = self._holders._take

        def with_a_seam(holder: Any, number: int, stream: CatchUpStream, now_us: int) -> list[Effect]:
            effects = take(holder, number, stream, now_us)
            if stream.at_end and not stream.live:
                stream.go_live()
            return effects

        self._holders._take = with_a_seam  # type: ignore[method-assign]


class ReleasedTooEarly(Durable):
    """What was handed over counts as what the client has."""

    def _hand(self, number: int, tick: int, message: Any, until: int, effects: list[Effect]) -> bool:
        handed = super()._hand(number, tick, message, until, effects)
        for holder in self._holders.of.values():
            if holder.is_live(number, tick):
                holder.has[number] = tick
        return handed


class ForgottenByALog(Durable):
    """After a restart the log does not say whom its messages are for."""

    def _recover(self, records: Sequence[bytes]) -> Sequence[Effect]:
        effects = super()._recover(records)
        for registration in self._log.record.registrations.values():
            for number, owed in registration.owed.items():
                if owed:
                    self._log.record.release(self._client_of(registration), number, owed[-1])
        return effects

    def _client_of(self, registration: object) -> NodeName:
        return next(name for name, each in self._log.record.registrations.items() if each is registration)


class NoRepetition(Durable):
    """What was asked for and not answered is not asked for again."""

    def __init__(self, context: NodeContext, parameters: DurableParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        self._broker_timers["durable"] = list


class _NewAtEachBroker(DurableClient):
    """A client begins anew with each link."""

    def _resume(self) -> Any:
        send = super()._resume()
        assert isinstance(send.message, Resume)
        return send._replace(message=send.message._replace(ticks=[]))

    def _given(self, message: Any) -> list[Effect]:
        self._ticks.pop(getattr(message, "pubend", -1), None)
        return super()._given(message)


class GenerousRelease(Durable):
    """A publishers' broker takes what a client has for more than it is: a message too much."""

    def _on_release(self, source: NodeName, message: Release) -> Sequence[Effect]:
        for pubend in message.ticks[::2]:
            registration = self._log.record.registrations.get(message.client)
            owed = () if registration is None else registration.owed.get(pubend, ())
            later = [tick for tick in owed if tick > pairs(message.ticks)[pubend]]
            self._log.record.release(message.client, pubend, later[0] if later else -1)
        return super()._on_release(source, message)


class ShortLease(Durable):
    """What waits for a client is given up after a quarter of its lease."""

    def __init__(self, context: NodeContext, parameters: DurableParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        if self._leased_us is not None:
            self._leased_us = self._keeper._lease_us = self._leased_us // 4


class SilentGivingUp(Durable):
    """What a lease gave up counts as what the client has, so that nobody tells it."""

    def _give_up(self) -> list[Effect]:
        effects = super()._give_up()
        for name, registration in self._log.record.registrations.items():
            for number, lost in list(registration.lost.items()):
                self._log.record.release(name, number, lost.tick)
        return effects


class DropsTooMuch(Durable):
    """The log keeps a quarter of what it is to keep."""

    def __init__(self, context: NodeContext, parameters: DurableParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        if self._log._most is not None:
            self._log._most //= 4


class ForgetsRefusals(Durable):
    """What a broker has refused it then takes for accepted."""

    def __init__(self, context: NodeContext, parameters: DurableParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        self._publishing._refusals = {-1: []}  # type: ignore[attr-defined]
        self._publishing._refused_of = lambda source: []  # type: ignore[attr-defined]


NEW_AT_EACH_BROKER = replace(DURABLE, client=_NewAtEachBroker)


def _path(bug: Callable[..., Durable]) -> str:
    return f"{bug.__module__}:{bug.__name__}"


BUGS = {
    "a seam between the streams": _path(ASeam),
    "released when it is handed over": _path(ReleasedTooEarly),
    "a log that forgets whom a message is for": _path(ForgottenByALog),
    "nothing is asked for again": _path(NoRepetition),
    "a client that begins anew": f"{__name__}:NEW_AT_EACH_BROKER",
    "more is released than the client has": _path(GenerousRelease),
    "a lease that runs out too soon": _path(ShortLease),
    "nobody is told what was given up": _path(SilentGivingUp),
    "more is given up than the log is full of": _path(DropsTooMuch),
    "nobody is told what was refused": _path(ForgetsRefusals),
}
