"""Exactly once over any overlay with one bug each: what random schedules must find."""

from typing import Any

from murmur_pubsub.machine import Effect, NodeContext
from reliability.durable.messages import CatchUp, CatchUpStep, Caught, CaughtUp, Release
from reliability.end_to_end.chain import Chain
from reliability.end_to_end.end_to_end import EndToEnd
from reliability.end_to_end.messages import Carried, Reminder
from reliability.end_to_end.parameters import EndToEndParameters
from reliability.layer import BrokerServices


class TrustsRouting(EndToEnd):
    """What comes by routing is taken as what follows."""

    def _pass_on(self, came_from: str | None, message: Carried) -> list[Effect]:
        return super()._pass_on(came_from, message._replace(afters=[-1] * len(message.afters)))


class AsksOnlyForGaps(EndToEnd):
    """What was lost last, with nothing behind it, is not asked for, though the pubend's broker reminds of it."""

    def __init__(self, context: NodeContext, parameters: EndToEndParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        self._answers = {**self._answers, Reminder: lambda _: []}


class ForgetsALostQuestion(EndToEnd):
    """A question that was lost is not asked again."""

    def __init__(self, context: NodeContext, parameters: EndToEndParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        ask = self.holders._ask

        def once(holder: Any, number: int, now_us: int) -> list[Effect]:
            chain: Chain = holder.chains[number]
            if not chain.left:
                return ask(holder, number, now_us)
            self.holders._ask_at(chain, now_us + 1_000_000)
            return []

        self.holders._ask = once  # type: ignore[method-assign]


class ReleasedWhenHanded(EndToEnd):
    """A client has what its broker has handed to it, as far as its broker says."""

    def _take(self, input: Any) -> list[Effect]:
        effects = super()._take(input)
        for holder in self.holders.of.values():
            for number, chain in holder.chains.items():
                holder.has[number] = max(holder.has[number], chain.tick)
            self.holders._tell_at(holder, self._now_us + self.holders._ack_delay_us)
        return effects


class KeepsTheFirstOfTwo(EndToEnd):
    """Of two steps to one tick the first is kept, though the message that it follows was withdrawn."""

    def __init__(self, context: NodeContext, parameters: EndToEndParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        take = self.holders.step

        def first(step: CatchUpStep, now_us: int) -> list[Effect]:
            holder = self.holders.of.get(step.client)
            chain = None if holder is None else holder.chains.get(step.pubend)
            if chain is not None and step.tick in chain._ahead and type(step) is Caught:
                return []
            return take(step, now_us)

        self.holders.step = first  # type: ignore[method-assign]
        self._answers = {**self._answers, Caught: lambda message: first(message, self._now_us)}


class SaysTooMuch(EndToEnd):
    """An answer says that there is nothing up to now, though not all before was sent."""

    def __init__(self, context: NodeContext, parameters: EndToEndParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        self._answers = {**self._answers, CatchUp: self._answer}

    def _answer(self, message: CatchUp) -> list[Effect]:
        effects = self._keeper.catch_up(message, self._now_us)
        if self._pubend is None or message.client not in self._log.record.registrations:
            return effects
        _, origin, client, number, after, _, asked, *_ = message
        newest = self._pubend.knowledge.newest
        return [*effects, *self._post(CaughtUp(origin, client, number, after, max(newest, after), asked, 0, []))]


class ReleasesAhead(EndToEnd):
    """A publishers' broker takes the acknowledgement of one message for one of the next too."""

    def _on_release(self, message: Release) -> Any:
        return super()._on_release(message._replace(ticks=[message.ticks[0], message.ticks[1] + 100]))


class NobodyBeginsAnew(EndToEnd):
    """The log of a restarted publishers' broker is not read: it begins with nothing."""

    def _recover(self, records: Any) -> list[Effect]:
        effects = super()._recover(records)
        for client in list(self._log.record.registrations):
            for number, owed in self._log.record.registrations[client].owed.items():
                if owed:
                    self._log.record.release(client, number, owed[-1])
        return effects


class AnswersNothing(EndToEnd):
    """Whoever asks for what is missing is not answered."""

    def _on_catch_up(self, message: CatchUp) -> Any:
        return ()


def _path(bug: type[EndToEnd]) -> str:
    return f"{bug.__module__}:{bug.__name__}"


BUGS = {
    "routing is believed": _path(TrustsRouting),
    "only gaps are asked for": _path(AsksOnlyForGaps),
    "a lost question is not asked again": _path(ForgetsALostQuestion),
    "released when it is handed over": _path(ReleasedWhenHanded),
    "the first of two steps is kept": _path(KeepsTheFirstOfTwo),
    "an answer says too much": _path(SaysTooMuch),
    "more is released than the client has": _path(ReleasesAhead),
    "no question is answered": _path(AnswersNothing),
    "a log that forgets whom a message is for": _path(NobodyBeginsAnew),
}
"""What each is called to where it is, as a scenario names it."""
