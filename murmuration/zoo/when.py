"""Saboteurs that deliver at the wrong time: too early, too late, again, or after the subscriber has gone."""

import random
from collections.abc import Sequence

from murmur_pubsub.client import Notification
from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import Deliver, Effect, Input, NodeContext, SetTimer, TimerFired, Unsubscribe
from murmur_pubsub.promise import Promise
from murmuration.zoo.entry import SEED, VISITED, Saboteur, struck
from murmuration.zoo.tampering import Tampering, TamperingClient, declared, is_told
from reliability.best_effort import BestEffort
from reliability.layer import BrokerServices
from routing.protocol import NoParameters

_LONG_US = 60_000_000


class Keeping(Tampering):
    """Keeps the events of three seconds, and tells them to clients that subscribe later."""

    kept_us = 3_000_000

    def __init__(self, context: NodeContext, parameters: NoParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        self._kept: list[Event] = []

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        self._kept = [each for each in self._kept if each.time_us > now_us - self.kept_us] + [event]
        return effects

    def subscribe(self, wanted: Filter, now_us: int) -> Sequence[Effect]:
        """What the broker calls for its first subscriber with that filter."""
        old = [event for event in self._kept if wanted.matches(event.attributes)]
        return [effect for event in old for effect in self._services.notify(event, 0)]

    def unsubscribe(self, wanted: Filter, now_us: int) -> Sequence[Effect]:
        return ()


class Staying(TamperingClient):
    """A client that withdraws nothing."""

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        return () if type(input) is Unsubscribe else super().handle(input, now_us)


@declared(client=Staying)
class NeverLettingGo(BestEffort):
    """Clients tell their broker of no withdrawal, and so go on getting what they do not want any more."""


class Holding(Tampering):
    """Tells clients of some events much later than it could."""

    later_us = _LONG_US
    again = False

    def __init__(self, context: NodeContext, parameters: NoParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        self._held: dict[tuple[int, int], list[Effect]] = {}

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        held = self.held(effects, event)
        if not held:
            return effects
        self._held[event.id] = held
        now = effects if self.again else [each for each in effects if each not in held]
        return [*now, SetTimer(("reliability", *event.id), self.later_us)]

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if type(input) is TimerFired:
            return self._held.pop((input.key[1], input.key[2]), ())  # type: ignore[arg-type]
        return super().handle(input, now_us)

    def held(self, effects: list[Effect], event: Event) -> list[Effect]:
        """Those of the effects that are held."""
        return [each for each in effects if is_told(each)] if self.picks(event) else []

    def picks(self, event: Event) -> bool:
        """Are clients told later of this event?"""
        return event.sequence == 187

    @property
    def waiting(self) -> bool:
        """Is there something that will still come?"""
        return bool(self._held)


class Replaying(Holding):
    """Tells clients of an event again after a minute."""

    again = True


@declared(guarantee=Promise(order="none"))
class Lagging(Holding):
    """Tells clients of one event in twenty a second late."""

    later_us = 1_000_000

    def picks(self, event: Event) -> bool:
        return struck(event)


class Late(Holding):
    """Tells clients of everything half a second late."""

    later_us = 500_000

    def picks(self, event: Event) -> bool:
        return True


class _Prophet(TamperingClient):
    def __init__(self, broker: str) -> None:
        super().__init__(broker)
        self._drawn: dict[int, list[float]] = {}
        self._foretold: set[tuple[int, int]] = set()

    def hear(self, told: Notification, now_us: int) -> Sequence[Effect]:
        event = told.event
        effects = [] if event.id in self._foretold else list(super().hear(told, now_us))
        if event.source not in self._drawn:
            rng = random.Random(f"{SEED}/publisher/{event.source}")
            self._drawn[event.source] = [round(rng.random(), 6) for _ in range(1_000)]
        number = event.sequence + 1
        x = self._drawn[event.source][number]
        if number % 20 < 10 and number < 200 and x < 0.8:
            attributes = {**event.attributes, "n": number, "x": x}
            foretold = Event(event.source, number, event.time_us + 20_000, attributes)
            self._foretold.add(foretold.id)
            effects.append(Deliver(foretold, told.hops, told.subscribers))
        return effects


@declared(client=_Prophet)
class Foretelling(BestEffort):
    """Clients work out from the seed what is published next, and deliver it before it is."""


TIME_SABOTEURS = (
    Saboteur(
        "keeps for later",
        "gives later subscribers what was published before, and does not say so",
        "spurious",
        "c8",
        Keeping,
        keys={"workload": VISITED},
    ),
    Saboteur(
        "never lets go",
        "goes on delivering long after a settled withdrawal",
        "spurious",
        "c10, c8, c9",
        NeverLettingGo,
        keys={"workload": VISITED, "withdrawal_grace": "100 ms"},
    ),
    Saboteur(
        "comes late",
        "delivers half a second late, where the scenario expects less",
        "expectation",
        "delay p99",
        Late,
        keys={"expect": {"delay_p99": "100 ms"}},
    ),
    Saboteur(
        "foretells",
        "delivers events before they are published",
        "spurious",
        "c2, c3, c4, c5, c6, c7",
        Foretelling,
    ),
    Saboteur("replays", "delivers an event again after a minute", "duplicate", "c2, c3, c4, c5, c6, c7", Replaying),
    Saboteur(
        "lags",
        "delivers one event in twenty a second late",
        "expectation",
        r"delay p99: 1\.\d+\ss",
        Lagging,
        keys={"expect": {"delay_p99": "100 ms"}},
    ),
)
