"""Saboteurs that deliver by the wrong hands: to the wrong client, at the wrong place, or only by their own word."""

from collections.abc import Sequence

from murmur_pubsub.client import Notification
from murmur_pubsub.event import Event
from murmur_pubsub.machine import Deliver, Effect, Send
from murmuration.zoo.entry import Saboteur, struck
from murmuration.zoo.tampering import Tampering, TamperingClient, declared, is_told, notification
from reliability.best_effort import BestEffort

_STRANGER = 4_711


class WrongClient(Tampering):
    """Tells c6 what is for c4, and the other way round."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        exchanged = {"c4": "c6", "c6": "c4"}
        if not struck(event):
            return effects
        return [each._replace(to=exchanged.get(each.to, each.to)) if type(each) is Send else each for each in effects]


class OneClientGetsAll(Tampering):
    """Sends everything for the clients of b3 to one of them, in the names of the others."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        if self.name != "b3":
            return effects
        return [each._replace(to="c4") if type(each) is Send and is_told(each) else each for each in effects]


class Claiming(Tampering):
    """Says that it has delivered, and tells the clients nothing."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        return [
            Deliver(event, notification(each).hops, notification(each).subscribers)
            if type(each) is Send and is_told(each) and struck(event)
            else each
            for each in effects
        ]


class NoNetwork(Tampering):
    """Claims at once, where an event is published, what it knows will be wanted elsewhere, and sends nothing."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        wanted = [number for number in range(6) if number % 2 == event.source]
        return [Deliver(event, 0, wanted)] if float(event.attributes["x"]) < 0.8 else []


class InTwoPlaces(Tampering):
    """Tells the client, and delivers in its place besides."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        if not struck(event):
            return effects
        told = [each for each in effects if type(each) is Send and is_told(each)]
        return [*effects, *(Deliver(event, notification(each).hops, notification(each).subscribers) for each in told)]


class _Neighbourly(TamperingClient):
    def hear(self, told: Notification, now_us: int) -> Sequence[Effect]:
        others = [each + 2 for each in told.subscribers if struck(told.event) and each == 2]
        return [Deliver(told.event, told.hops, [*told.subscribers, *others])]


@declared(client=_Neighbourly)
class Eavesdropping(BestEffort):
    """c4 delivers on behalf of c6 too, which wants the same events."""


class Strangers(Tampering):
    """Delivers to a subscriber that never was."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        for each in effects:
            if type(each) is Send and is_told(each) and struck(event) and each.to == "c3":
                notification(each).subscribers.append(_STRANGER)
        return effects


class _ToItself(TamperingClient):
    def tell(self, event: Event, now_us: int) -> Sequence[Effect]:
        sent = super().tell(event, now_us)
        return [*sent, Deliver(event, 0, [0])] if struck(event) and event.source == 0 else sent


@declared(client=_ToItself)
class ToItself(BestEffort):
    """The publisher's own client delivers to a subscriber of another one, which gets the event as well."""


class Uninvited(Tampering):
    """Tells c4 of events that it has not asked for, which flooding brings to its broker."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        asked = event.source == 0 and float(event.attributes["x"]) < 0.8
        if self.name == "b3" and event.sequence % 5 == 2 and not asked:
            return [*effects, Send("c4", Notification(event, 3, [2]))]
        return effects


class Generous(Tampering):
    """Tells a client of an event in the name of another of its subscribers, which has not asked for it."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        for each in effects if struck(event) else ():
            if type(each) is Send and is_told(each):
                told = notification(each).subscribers
                neighbours = [number + 1 for number in told if (number + 1) % 10]  # ten subscribers a client
                told += [number for number in neighbours if number not in told]
        return effects


class Presumptuous(Tampering):
    """A broker that delivers itself does so for a subscriber of the next broker too."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        if self.name != "b2" or not struck(event) or event.source != 0 or float(event.attributes["x"]) >= 0.8:
            return effects
        return [*effects, Deliver(event, 2, [2])]


_MANY_A_CLIENT = {
    "kind": "zipf", "clients": 4, "subscribers_per_actor": 10, "publishers": 2, "publications": 400, "rate_per_s": 100,
}  # fmt: skip
ADDRESS_SABOTEURS = (
    Saboteur(
        "wrong client", "exchanges what two clients of a broker are told", "misplaced", "c4, c6 for c4, c6", WrongClient
    ),
    Saboteur(
        "one client gets all",
        "tells one client of a broker what is for the others",
        "misplaced",
        "c4 for c5, c6, c7",
        OneClientGetsAll,
    ),
    Saboteur(
        "claims",
        "the broker says that it delivered, and no client is told",
        "misplaced",
        "b1, b2, b3 for c2, c3, c4, c5, c6, c7",
        Claiming,
    ),
    Saboteur(
        "no network",
        "no event leaves its first broker, which claims all deliveries",
        "misplaced",
        "b0 for c2, c3, c4, c5, c6, c7",
        NoNetwork,
    ),
    Saboteur(
        "in two places",
        "the broker delivers what the client delivers too",
        "misplaced",
        "b1, b2, b3 for c2, c3, c4, c5, c6, c7",
        InTwoPlaces,
    ),
    Saboteur("eavesdropper", "a client delivers for another one too", "misplaced", "c4 for c6", Eavesdropping),
    Saboteur(
        "to itself", "the publisher's client delivers for a subscriber elsewhere", "misplaced", "c0 for c2", ToItself
    ),
    Saboteur(
        "presumptuous",
        "a broker delivers for a subscriber of the next one",
        "misplaced",
        "b2 for b3",
        Presumptuous,
        keys={"last_mile": "broker"},
    ),
    Saboteur(
        "generous",
        "tells a client of events in the name of the wrong subscriber",
        "spurious",
        "c0, c1, c2, c3",
        Generous,
        keys={"workload": _MANY_A_CLIENT},
    ),
    Saboteur("stranger", "delivers to a subscriber that never was", "spurious", "c3", Strangers),
    Saboteur(
        "uninvited",
        "tells a client of events that it has not asked for",
        "spurious",
        "c4",
        Uninvited,
        instead=("flooding", "best_effort"),
    ),
)
