"""Saboteurs of the promise itself: it forgives what they do, is no promise, or is not kept."""

from collections.abc import Sequence
from typing import NamedTuple

from murmur_pubsub.event import Event
from murmur_pubsub.machine import Effect, Input, Received, Send
from murmur_pubsub.message import message
from murmur_pubsub.promise import Promise, Survival
from murmuration.zoo.entry import CHAIN, RING, Saboteur, dotted, struck
from murmuration.zoo.tampering import Tampering, declared, forwarded, is_passed_on, is_told, without
from murmuration.zoo.templates import EveryLink, FirstTimeOnly
from reliability.best_effort import BestEffort, Forwarded
from routing.flooding import Flooding
from routing.forwarding import SubscriptionForwarding
from routing.protocol import RunsOn

_BEHIND = "c3, c4, c5, c6, c7"
_ALL = f"c2, {_BEHIND}"


@declared(guarantee=Promise("at_most_once"))
class Nothing(Tampering):
    """Promises little and tells no client of anything."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        return ()


@declared(guarantee=Promise("at_most_once"))
class OnePerCent(Tampering):
    """Promises little, and passes on one event in a hundred."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        return effects if event.sequence % 100 == 7 else ()


@declared(guarantee=Promise("at_most_once"))
class LittleButTwice(Tampering):
    """Promises that nothing comes twice, and delivers twice."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        return [*effects, *effects] if self.name == "b2" and struck(event) else effects


@declared(guarantee=Promise("at_least_once"))
class ManyTimes(Tampering):
    """Promises to deliver at least once, and delivers ten times."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        return [*effects, *[each for each in effects if is_told(each)] * 9]


@declared(guarantee=Promise("at_least_once"))
class AtLeastOnce(Tampering):
    """Promises that nothing is missing, and loses some events."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        return () if self.name == "b2" and struck(event) else effects


@declared(guarantee=Promise("exactly_once"))
class ExactlyOnce(BestEffort):
    """Promises what best effort cannot keep when a broker dies."""


@declared(guarantee=Promise("exactly_once"))
class OnceOrTwice(Tampering):
    """Promises that each event comes once, and some come twice."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        return [*effects, *effects] if self.name == "b2" and struck(event) else effects


@declared(guarantee="exactly_once")
class NoPromise(BestEffort):
    """Names its promise by a word."""


class OldWord(Tampering):
    """Says what it promises where it is not looked for: it is held to best effort."""

    promise = Promise("at_most_once")

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        return () if struck(event) else effects


class SurvivingAnything(FirstTimeOnly):
    """Two ways are not used where one is enough: a death on it costs events that another path could have carried."""

    def tamper(self, effects: list[Effect], event: Event) -> Sequence[Effect]:
        return without(effects, lambda each: self.name == "b0" and type(each) is Send and each.to == "b4")


@declared(runs_on=RunsOn.LINKS, survives=lambda parameters, traits: Survival(any_path=True))
class AnyPath(Flooding):
    """Floods every link, and promises that any failure is survived that leaves a path."""


@declared(survives=lambda parameters, traits: Survival(brokers_away=1))
class OneAway(SubscriptionForwarding):
    """Promises that a broker away in a row costs nothing."""


@declared(survives=lambda parameters, traits: "everything")
class Nonsense(SubscriptionForwarding):
    """Says that it survives something, and not what."""


@message(131, control=True)
class Urgent(NamedTuple):
    """An event that calls itself a control message."""

    event: Event
    hops: int


class AsControl(BestEffort):
    """Sends events as control messages, which the link model does not harm, so that a lossy link loses none."""

    message_types = (*BestEffort.message_types, Urgent)

    def publish(self, event: Event, now_us: int) -> Sequence[Effect]:
        return self._urgent(super().publish(event, now_us))

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if type(input) is not Received:
            return super().handle(input, now_us)
        urgent = input.message
        assert isinstance(urgent, Urgent)
        return self._urgent(super().handle(Received(input.source, Forwarded(urgent.event, urgent.hops, ())), now_us))

    def _urgent(self, effects: Sequence[Effect]) -> list[Effect]:
        return [
            Send(each.to, Urgent(forwarded(each).event, forwarded(each).hops))
            if type(each) is Send and is_passed_on(each)
            else each
            for each in effects
        ]


_ON_RING = (dotted(EveryLink), dotted(FirstTimeOnly))
_KILL = {"faults": [{"at": "1 s", "kill": "b2", "for": "500 ms"}]}
PROMISE_SABOTEURS = (
    Saboteur(
        "nothing",
        "promises at most once, and delivers nothing",
        "nothing_delivered",
        "none of .* was made",
        Nothing,
        verdict="unknown",
    ),
    Saboteur(
        "one per cent",
        "promises at most once, and delivers one event in a hundred",
        "expectation",
        "delivery rate",
        OnePerCent,
        keys={"expect": {"delivery_rate": 0.5}},
    ),
    Saboteur(
        "little but twice",
        "promises at most once, and delivers twice",
        "duplicate",
        _BEHIND,
        LittleButTwice,
    ),
    Saboteur(
        "ten times",
        "promises at least once, and delivers ten times",
        "expectation",
        "unexplained findings",
        ManyTimes,
        keys={"expect": {"unexplained": 0}},
    ),
    Saboteur("at least once", "promises at least once, and loses events", "missing", _BEHIND, AtLeastOnce),
    Saboteur("once or twice", "promises exactly once, and delivers twice", "duplicate", _BEHIND, OnceOrTwice),
    Saboteur(
        "exactly once",
        "promises exactly once, and loses what a dead broker had",
        "missing",
        "c4, c5, c6, c7",
        ExactlyOnce,
        keys=_KILL,
    ),
    Saboteur(
        "old word",
        "says in a place of its own that it may lose, and loses",
        "refused",
        "broker.reliability.*the class attribute .*, which nobody reads",
        OldWord,
        verdict="refused",
    ),
    Saboteur(
        "no promise",
        "names its promise by a word",
        "refused",
        "broker.reliability.*a murmur_pubsub.promise.Promise",
        NoPromise,
        verdict="refused",
    ),
    Saboteur(
        "misspelt delivery",
        "promises deliveries that there is no word for",
        "refused",
        "delivery.*exactly-once.*exactly_once",
        "murmuration.zoo.misspelt:DELIVERY",
        verdict="refused",
    ),
    Saboteur(
        "misspelt order",
        "promises an order that there is no word for",
        "refused",
        "order.*causal.*publisher, total, none",
        "murmuration.zoo.misspelt:ORDER",
        verdict="refused",
    ),
    Saboteur(
        "survives nonsense",
        "does not say what it survives",
        "refused",
        "broker.routing",
        routing=Nonsense,
        verdict="refused",
    ),
    Saboteur(
        "any path",
        "promises to survive what leaves a path, and uses one way only",
        "missing",
        f"{_BEHIND}, c8, c9",
        SurvivingAnything,
        AnyPath,
        keys={**RING, "faults": [{"at": "1 s", "kill": "b1"}]},
        instead=_ON_RING,
    ),
    Saboteur(
        "one away",
        "promises to survive the absence of one broker, and does not",
        "missing",
        "c4, c5, c6, c7",
        routing=OneAway,
        keys={"faults": [{"at": "1 s", "kill": "b2"}], "workload": {**CHAIN["workload"], "seconds": 6}},
    ),
    Saboteur(
        "as control",
        "sends events so that no link loses them",
        "faults_failed",
        "1 faults did not take effect",
        AsControl,
        keys={"faults": [{"at": "0 s", "link": ["b1", "b2"], "loss": 0.5}]},
    ),
)
