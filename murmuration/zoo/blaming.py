"""Saboteurs that blame a fault which was over when they did their harm, or which had no part in it."""

from collections.abc import Sequence

from murmur_pubsub.event import Event
from murmur_pubsub.machine import Effect, Input, Send, Subscribe, Unsubscribe
from murmur_pubsub.promise import Promise
from murmuration.zoo.entry import RING, VISITED, Keys, Saboteur, dotted
from murmuration.zoo.promises import ExactlyOnce
from murmuration.zoo.tampering import Tampering, TamperingClient, declared, is_told, without
from murmuration.zoo.templates import EveryLink, FirstTimeOnly
from murmuration.zoo.when import Keeping
from reliability.best_effort import BestEffort

_MEANWHILE = range(42, 52)
"""The numbers of the events that a fault at second 5 may have held up, at ten in a second."""


def _is_for(effect: Effect, client: str) -> bool:
    return type(effect) is Send and effect.to == client


class Forgetting(Tampering):
    """Tells a client nothing of what is published during a fault, and blames that when the client withdraws later."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        return without(effects, lambda each: _is_for(each, "c8") and event.sequence in _MEANWHILE)


@declared(guarantee=Promise("exactly_once"))
class ForgettingOnce(Forgetting):
    """Promises besides that each event arrives once."""


@declared(guarantee=Promise("exactly_once"))
class KeepingOnce(Keeping):
    """Promises that each event arrives once, and tells a later subscriber what was published during a fault."""

    kept_us = 60_000_000

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        return super().tamper(effects, event, now_us) if event.sequence in _MEANWHILE else effects


@declared(guarantee=Promise("exactly_once"))
class ForgettingAfterALoss(Tampering):
    """Promises that each event arrives once, and loses some long after the publishers' broker has lost its disk."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        return without(effects, lambda each: _is_for(each, "c5") and 150 <= event.sequence < 160)


@declared(guarantee=Promise("exactly_once"))
class LosingTheEnd(Tampering):
    """Promises that each event arrives once, and loses the last ones, just before a link blinks."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        return without(effects, lambda each: is_told(each) and event.sequence >= 186)


class OnARing(FirstTimeOnly):
    """Tells one client of a ring nothing for a while, in which a fault elsewhere costs nothing."""

    def tamper(self, effects: list[Effect], event: Event) -> Sequence[Effect]:
        return without(effects, lambda each: _is_for(each, "c4") and 50 <= event.sequence < 60)


class _Clinging(TamperingClient):
    """A client that tells its broker of the first of equal subscriptions, and of no withdrawal."""

    def __init__(self, broker: str) -> None:
        super().__init__(broker)
        self._told: set[tuple[int, str]] = set()

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if type(input) is Unsubscribe:
            return ()
        if type(input) is Subscribe:
            key = (input.subscriber, str(input.filter))
            if key in self._told:
                return ()
            self._told.add(key)
        return super().handle(input, now_us)


@declared(client=_Clinging)
class NeverAway(BestEffort):
    """Clients keep withdrawals to themselves, and so get what they have not asked for until they ask for it again."""


_ON_RING = (dotted(EveryLink), dotted(FirstTimeOnly))
_ONCE = ("forwarding", dotted(ExactlyOnce))
_LONG = {**VISITED, "rate_per_s": 10, "seconds": 20}
_SLOW = {"faults": [{"at": "5 s", "slow": "b3", "work": "10 us", "for": "200 ms"}]}
_AGAIN = {
    "kind": "zipf",
    "clients": 8,
    "publications": 400,
    "rate_per_s": 100,
    "matching_rate": 0.5,
    "resubscriptions": 1,
}


def _visited(broker: str, from_s: float) -> Keys:
    """c8 visits that broker until second 19."""
    return {"workload": {**_LONG, "visits": {broker: [[from_s, 19.0]]}}, **_SLOW}


BLAMING_SABOTEURS = (
    Saboteur(
        "forgets in a fault",
        "loses events during a fault for a client that withdraws long after it",
        "missing",
        "c8",
        Forgetting,
        keys=_visited("b3", 0.5),
    ),
    Saboteur(
        "forgets beside a fault",
        "promises exactly once, and does the same where no fault was",
        "missing",
        "c8",
        ForgettingOnce,
        keys=_visited("b1", 0.5),
        instead=_ONCE,
    ),
    Saboteur(
        "keeps from a fault",
        "promises exactly once, and gives later subscribers events of a fault",
        "spurious",
        "c8",
        KeepingOnce,
        keys=_visited("b2", 18.0),
        instead=_ONCE,
    ),
    Saboteur(
        "asks again",
        "delivers what was withdrawn and is asked for again, beside a slow broker",
        "spurious",
        "c7",
        NeverAway,
        keys={
            "workload": _AGAIN,
            "withdrawal_grace": "50 ms",
            "subscription_grace": "50 ms",
            "faults": [{"at": "0 ms", "slow": "b3", "work": "10 us", "for": "5 s"}],
        },
    ),
    Saboteur(
        "slow on a ring",
        "loses events of a ring where a broker is slow, and no way is gone",
        "missing",
        "c4",
        OnARing,
        EveryLink,
        keys={**RING, "faults": [{"at": "900 ms", "slow": "b3", "work": "100 us", "for": "400 ms"}]},
        instead=_ON_RING,
    ),
    Saboteur(
        "lossy on a ring",
        "loses events of a ring where a link may lose one in ten thousand",
        "missing",
        "c4",
        OnARing,
        EveryLink,
        keys={**RING, "faults": [{"at": "900 ms", "link": ["c4", "b3"], "loss": 0.0001, "for": "400 ms"}]},
        instead=_ON_RING,
    ),
    Saboteur(
        "after a lost disk",
        "promises exactly once, and loses events long after a disk was lost",
        "missing",
        "c5",
        ForgettingAfterALoss,
        keys={"faults": [{"at": "300 ms", "kill": "b0", "disk": "lost", "for": "100 ms"}]},
        instead=_ONCE,
    ),
    Saboteur(
        "before a blink",
        "promises exactly once, and loses the last events before a link blinks",
        "missing",
        "c2, c3, c4, c5, c6, c7",
        LosingTheEnd,
        keys={
            "faults": [
                {"at": "4100 ms", "cut": ["b1", "b2"], "for": "10 ms"},
                {"at": "15 s", "slow": "b3", "work": "10 us", "for": "100 ms"},
            ]
        },
        instead=_ONCE,
    ),
)
