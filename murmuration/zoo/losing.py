"""Saboteurs that lose events: few of them, for one subscriber, in one direction, or only under some circumstance."""

from collections.abc import Sequence
from typing import cast

from murmur_pubsub.client import Notification
from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import (
    Effect,
    Input,
    LinkDown,
    LinkUp,
    NodeContext,
    NodeName,
    Received,
    Send,
    SetTimer,
    TimerFired,
)
from murmur_pubsub.values import Value
from murmuration.zoo.entry import SPREAD, Saboteur, struck
from murmuration.zoo.tampering import Tampering, TamperingClient, declared, forwarded, is_passed_on, is_told, without
from reliability.best_effort import BestEffort
from reliability.layer import BrokerServices
from routing.forwarding import SubscriptionForwarding
from routing.protocol import NoParameters
from routing.router import Hop

_ALL = "c2, c3, c4, c5, c6, c7"
_BEHIND = "c3, c4, c5, c6, c7"
_AT_B3 = "c4, c5, c6, c7"


class Losing(BestEffort):
    """Loses one event in a hundred instead of passing it on."""

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if type(input) is Received and forwarded(input).event.sequence % 100 == 7:
            return ()
        return super().handle(input, now_us)


class Forgetting(Tampering):
    """Never tells one of the clients of anything."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        return without(effects, lambda each: type(each) is Send and each.to == "c5")


class Mismatching(SubscriptionForwarding):
    """Takes every number with a fraction for a little more than it is, and routes by that."""

    def next_hops(self, event: Event, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        wrong: dict[str, Value] = {
            name: value + 0.02 if isinstance(value, float) else value for name, value in event.attributes.items()
        }
        return super().next_hops(Event(event.source, event.sequence, event.time_us, wrong), came_from, header)


class OneValue(SubscriptionForwarding):
    """Takes no event on with one value of one attribute."""

    def next_hops(self, event: Event, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        return () if event.attributes["n"] == 42 else super().next_hops(event, came_from, header)


class OneWay(Tampering):
    """Loses some events on the link from b2 to b1, and none from b1 to b2."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        lost = self.name == "b2" and struck(event)
        return without(effects, lambda each: lost and type(each) is Send and each.to == "b1")


class Tiring(Tampering):
    """Takes an event over no more than two links."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        return without(
            effects,
            lambda each: type(each) is Send and is_passed_on(each) and struck(event) and forwarded(each).hops > 2,
        )


class Hasty(Tampering):
    """Tells no client of some events that come within 12 ms of another one."""

    _last_us = -1_000_000

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        soon = now_us - self._last_us < 12_000 and event.source == 1 and struck(event)
        self._last_us = now_us
        return without(effects, lambda each: soon and is_told(each))


class FirstEvents(Tampering):
    """Loses the first events of each publisher."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        return without(effects, lambda each: event.sequence < 4 and is_passed_on(each))


class Batching(Tampering):
    """Gathers eight events before it tells a client, and never tells those of the last batch."""

    def __init__(self, context: NodeContext, parameters: NoParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        self._batch: list[Effect] = []

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        self._batch += [each for each in effects if is_told(each)]
        passed = without(effects, is_told)
        if len(self._batch) < 8:
            return passed
        batch, self._batch = self._batch, []
        return [*passed, *batch]


class _Deaf(TamperingClient):
    def hear(self, told: Notification, now_us: int) -> Sequence[Effect]:
        return () if struck(told.event) else super().hear(told, now_us)


@declared(client=_Deaf)
class DeafClients(BestEffort):
    """Clients do not deliver some of what they are told."""


class _Dumb(TamperingClient):
    def tell(self, event: Event, now_us: int) -> Sequence[Effect]:
        return () if struck(event) else super().tell(event, now_us)


@declared(client=_Dumb)
class DumbClients(BestEffort):
    """Clients do not send some of what they publish."""


class AfterARestart(Tampering):
    """Loses some events once it has been started again."""

    def __init__(self, context: NodeContext, parameters: NoParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        self._again = context.incarnation > 0

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        return without(effects, lambda each: self._again and struck(event))


class NoRenewal(SubscriptionForwarding):
    """Does not tell a neighbour again what it wants when the link between them is back."""

    def __init__(self, context: NodeContext, parameters: NoParameters) -> None:
        super().__init__(context, parameters)
        self._known: set[NodeName] = set()

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        effects = super().handle(input, now_us)
        if type(input) is not LinkUp or input.peer not in self._known:
            self._known |= {input.peer} if type(input) is LinkUp else set()
            return effects
        return ()

    def check_invariants(self) -> None:
        """They do not hold: that is the fault."""


class Procrastinating(SubscriptionForwarding):
    """Tells its neighbours of a filter a second after it has heard of it, and does not say that it has not settled."""

    def __init__(self, context: NodeContext, parameters: NoParameters) -> None:
        super().__init__(context, parameters)
        self._put_off: dict[int, Sequence[Effect]] = {}
        self._count = 0

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if type(input) is TimerFired:
            return self._put_off.pop(cast(int, input.key[1]))
        return self._later(super().handle(input, now_us))

    def subscribe(self, wanted: Filter) -> Sequence[Effect]:
        return self._later(super().subscribe(wanted))

    def _later(self, effects: Sequence[Effect]) -> Sequence[Effect]:
        if not effects:
            return effects
        self._count += 1
        self._put_off[self._count] = effects
        return [SetTimer(("routing", self._count), 300_000)]


class WhileAnotherIsCut(Tampering):
    """b1 loses some events while its own link to b0 is down, which those events do not need."""

    def __init__(self, context: NodeContext, parameters: NoParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        self._cut = False

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if type(input) in (LinkDown, LinkUp) and input.peer == "b0":  # type: ignore[union-attr]
            self._cut = type(input) is LinkDown
        return super().handle(input, now_us)

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        return without(effects, lambda each: self._cut and event.sequence % 3 == 0 and is_told(each))


_RESTART: dict[str, object] = {"faults": [{"at": "1 s", "kill": "b2", "for": "300 ms"}]}
_TWO_AT_B1 = {**SPREAD, "subscribers": {"b1": 2, "b2": 1, "b3": 4}}
_CUT_FIRST = {"workload": _TWO_AT_B1, "faults": [{"at": "1 s", "cut": ["b0", "b1"], "for": "1500 ms"}]}
LOSS_SABOTEURS = (
    Saboteur("one in a hundred", "loses one event in a hundred", "missing", _ALL, Losing),
    Saboteur("one forgotten", "never tells one of the clients", "missing", "c5", Forgetting),
    Saboteur("mismatches", "takes a number for a little more than it is", "missing", _ALL, routing=Mismatching),
    Saboteur(
        "one value", "takes no event on with one value of one attribute", "missing", "c3, c5, c7", routing=OneValue
    ),
    Saboteur(
        "one way",
        "loses events in one direction of a link",
        "missing",
        "c3",
        OneWay,
        keys={"workload": _TWO_AT_B1},
    ),
    Saboteur("tires", "takes an event over no more than two links", "missing", _AT_B3, Tiring),
    Saboteur("hasty", "tells no client what comes soon after another event", "missing", "c3, c5, c7", Hasty),
    Saboteur("first events", "loses the first events of each publisher", "missing", _ALL, FirstEvents),
    Saboteur("last batch", "gathers events, and never sends the last of them", "missing", _ALL, Batching),
    Saboteur("deaf clients", "clients do not deliver what they are told", "missing", _ALL, DeafClients),
    Saboteur("dumb clients", "clients do not send what they publish", "missing", _ALL, DumbClients),
    Saboteur(
        "after a restart",
        "loses events after it was started again",
        "missing",
        "c3, c4, c5, c6, c7",
        AfterARestart,
        keys=_RESTART,
    ),
    Saboteur(
        "no renewal",
        "does not tell its filters again after a cut",
        "missing",
        _BEHIND,
        routing=NoRenewal,
        keys={"faults": [{"at": "1 s", "cut": ["b1", "b2"], "for": "500 ms"}]},
    ),
    Saboteur("procrastinates", "tells its neighbours of filters late", "missing", _ALL, routing=Procrastinating),
    Saboteur(
        "while another is cut",
        "loses events of one way while a link elsewhere is cut",
        "missing",
        "c3",
        WhileAnotherIsCut,
        keys=_CUT_FIRST,
    ),
)
