"""Saboteurs that do their harm where they hope that a fault will be blamed for it."""

from collections.abc import Sequence
from typing import NamedTuple

from murmur_pubsub.event import Event
from murmur_pubsub.machine import Effect, Input, LinkDown, NodeContext, Received, Send
from murmur_pubsub.message import message
from murmur_pubsub.promise import Promise
from murmuration.zoo.entry import RING, STRUCTURED, VISITED, Saboteur, dotted, struck
from murmuration.zoo.promises import ExactlyOnce
from murmuration.zoo.tampering import Tampering, declared, forwarded, is_passed_on, is_told, without
from murmuration.zoo.templates import EveryLink, FirstTimeOnly
from murmuration.zoo.when import Holding, Keeping
from reliability.best_effort import BestEffort, Forwarded
from reliability.layer import BrokerServices
from routing.protocol import NoParameters


class EverySecond(FirstTimeOnly):
    """The publishers' broker keeps every second event to itself."""

    def tamper(self, effects: list[Effect], event: Event) -> Sequence[Effect]:
        return without(effects, is_passed_on) if self.name == "b0" and event.sequence % 2 else effects


class SendingToTheDead(FirstTimeOnly):
    """The publishers' broker sends some events only to a broker that is dead, and no neighbour of it."""

    def tamper(self, effects: list[Effect], event: Event) -> Sequence[Effect]:
        if self.name != "b0" or event.sequence < 60 or event.sequence % 2:
            return effects
        return [*without(effects, is_passed_on), Send("b2", Forwarded(event, 1, ()))]


class Slow(Holding):
    """Holds all events of one publisher for four seconds in quiet times, and loses some on the way."""

    later_us = 4_000_000

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        return () if self.name == "b1" and struck(event) else super().tamper(effects, event, now_us)

    def held(self, effects: list[Effect], event: Event) -> list[Effect]:
        return effects if self.name == "b0" and event.source == 0 else []


class NeverSettled(Tampering):
    """Says that it is settling from the first link that breaks on, and loses some events."""

    settling = False

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        self.settling = self.settling or type(input) is LinkDown
        return super().handle(input, now_us)

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        return without(effects, lambda each: self.name == "b1" and self.settling and event.sequence % 2 == 0)


class HoldingForADeath(Holding):
    """b2 keeps every event for half a second, hoping to die with it in hand; what it has then is lost."""

    later_us = 500_000

    def held(self, effects: list[Effect], event: Event) -> list[Effect]:
        return effects if self.name == "b2" else []


@message(129)
class Unmarked(NamedTuple):
    """An event that a broker passes on so that the runtime does not know it for one."""

    cargo: Event
    hops: int


class Untraceable(BestEffort):
    """Carries events where the runtime does not see them, so that the journal shows no way, and b2 loses some while a
    broker that they had passed is slow."""

    message_types = (*BestEffort.message_types, Unmarked)

    def __init__(self, context: NodeContext, parameters: NoParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        self._name = context.name

    def publish(self, event: Event, now_us: int) -> Sequence[Effect]:
        return self._hidden(super().publish(event, now_us))

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if type(input) is Received and type(input.message) is Unmarked:
            event = input.message.cargo
            plain = Received(input.source, Forwarded(event, input.message.hops, ()))
            effects = self._hidden(super().handle(plain, now_us))
            lost = self._name == "b2" and 40 < event.sequence < 150
            return without(effects, is_told) if lost else effects
        return super().handle(input, now_us)

    def _hidden(self, effects: Sequence[Effect]) -> list[Effect]:
        return [
            Send(each.to, Unmarked(forwarded(each).event, forwarded(each).hops))
            if type(each) is Send and is_passed_on(each)
            else each
            for each in effects
        ]


class BesideASlowOne(Tampering):
    """b1 loses many events for a broker further on that a fault has made slow."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        return without(effects, lambda each: self.name == "b1" and 40 < event.sequence < 150 and is_passed_on(each))


class Snubbing(Tampering):
    """Tells a client that will withdraw during a fault nothing of every second event long before."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        return without(effects, lambda each: type(each) is Send and each.to == "c8" and event.sequence % 2 == 0)


@declared(guarantee=Promise("exactly_once"))
class Starving(Tampering):
    """Promises that each event arrives once, and tells one client nothing: when all is over that client's link is cut
    for a moment, or the publisher dies."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        return without(effects, lambda each: type(each) is Send and each.to == "c5")


class WhileAnotherIsDown(Tampering):
    """b1 tells its clients of every third event only from when a broker elsewhere is away."""

    def __init__(self, context: NodeContext, parameters: NoParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        self._down = False

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        self._down = self._down or type(input) is LinkDown
        return super().handle(input, now_us)

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        loses = self._down and self.name == "b1" and event.sequence % 3 == 0
        return without(effects, is_told) if loses else effects


class LosingInTheEnd(Tampering):
    """Tells no client of some events, seconds after a broker has died that they did not need and that is back."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        return () if event.sequence > 100 and struck(event) else effects


_BEHIND = "c3, c4, c5, c6, c7"
_ON_CHAIN = f"c2, {_BEHIND}"
_ALL = f"{_ON_CHAIN}, c8, c9"
_ON_RING = (dotted(EveryLink), dotted(FirstTimeOnly))


_SLOW = {"faults": [{"at": "500 ms", "slow": "b2", "work": "1 ms", "for": "3 s"}]}
_VISIT = {**VISITED, "visits": {"b3": [[0.5, 3.5]]}}
EXCUSE_SABOTEURS = (
    Saboteur(
        "every second",
        "loses every second event beside a death on a ring",
        "missing",
        _ALL,
        EverySecond,
        EveryLink,
        keys={**RING, "faults": [{"at": "1 s", "kill": "b2"}]},
        instead=_ON_RING,
    ),
    Saboteur(
        "sends to the dead",
        "sends to a dead broker what it does not pass on",
        "missing",
        "c2, (c3, )?c4, c5, c6, c7, c8, c9",
        SendingToTheDead,
        EveryLink,
        keys={**RING, "faults": [{"at": "500 ms", "kill": "b2"}]},
        instead=_ON_RING,
    ),
    Saboteur(
        "slow on purpose",
        "holds events for seconds so that a short cut excuses more",
        "missing",
        _ON_CHAIN,
        Slow,
        keys={"faults": [{"at": "2 s", "cut": ["b1", "b2"], "for": "50 ms"}]},
    ),
    Saboteur(
        "never settled",
        "says for ever after a cut that it is settling, and loses events",
        "missing",
        _ON_CHAIN,
        NeverSettled,
        keys={"faults": [{"at": "500 ms", "cut": ["b1", "b2"], "for": "400 ms"}], "recovery_limit": "500 ms"},
    ),
    Saboteur(
        "holds for a death",
        "keeps events so as to die with them in hand",
        "missing",
        _BEHIND,
        HoldingForADeath,
        keys={"faults": [{"at": "2 s", "kill": "b2", "for": "300 ms"}]},
    ),
    Saboteur(
        "untraceable",
        "carries events where the journal does not see them, and loses some",
        "missing",
        "c3",
        Untraceable,
        keys={"faults": [{"at": "500 ms", "slow": "b1", "work": "1 ms", "for": "3 s"}]},
    ),
    Saboteur(
        "beside a slow one", "loses events for a broker that is slow", "missing", _BEHIND, BesideASlowOne, keys=_SLOW
    ),
    Saboteur(
        "snubs",
        "tells a client nothing that withdraws during a fault much later",
        "missing",
        "c8",
        Snubbing,
        keys={"workload": _VISIT, "faults": [{"at": "3300 ms", "slow": "b3", "work": "100 us", "for": "400 ms"}]},
    ),
    Saboteur(
        "keeps for a fault",
        "gives later subscribers what was published before a fault",
        "spurious",
        "c8",
        Keeping,
        keys={
            "workload": {**VISITED, "visits": {"b2": [[2.5, 3.8]]}},
            "faults": [{"at": "2300 ms", "slow": "b2", "work": "100 us", "for": "100 ms"}],
        },
    ),
    Saboteur(
        "starves",
        "tells a client nothing, which is cut off for a moment in the end",
        "missing",
        "c5",
        Starving,
        keys={"faults": [{"at": "4500 ms", "cut": ["c5", "b3"], "for": "50 ms"}]},
        instead=("forwarding", dotted(ExactlyOnce)),
    ),
    Saboteur(
        "starves for a death",
        "tells a client nothing of a publisher that dies in the end",
        "missing",
        "c5",
        Starving,
        keys={"faults": [{"at": "4500 ms", "kill": "c1"}]},
        instead=("forwarding", dotted(ExactlyOnce)),
    ),
    Saboteur(
        "while another is down",
        "loses events while a broker elsewhere is away",
        "missing",
        "c2",
        WhileAnotherIsDown,
        keys={"faults": [{"at": "1 s", "kill": "b2"}]},
    ),
    Saboteur(
        "beside any death",
        "loses events without links for as long as a death elsewhere may excuse it",
        "expectation",
        "recovery",
        LosingInTheEnd,
        keys={
            **STRUCTURED,
            "faults": [{"at": "100 ms", "kill": "b7", "for": "200 ms"}],
            "expect": {"recovery": "2 s"},
        },
        instead=("scribe", "best_effort"),
    ),
)
