"""Saboteurs that do not come to life again after a fault, or only after a long time, or never say that they have."""

from collections.abc import Sequence

from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import Effect, Input, LinkDown, LinkUp, NodeContext, NodeName, SetTimer, TimerFired
from murmuration.zoo.entry import VISITED, Saboteur
from murmuration.zoo.tampering import Tampering, declared, is_passed_on, without
from murmuration.zoo.when import Holding, Staying
from reliability.best_effort import BestEffort
from reliability.layer import BrokerServices
from routing.forwarding import SubscriptionForwarding
from routing.protocol import NoParameters
from routing.router import Hop


class _Returning(Tampering):
    """Knows which of its links have been down: `returned` are those that are back."""

    def __init__(self, context: NodeContext, parameters: NoParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        self.returned: set[NodeName] = set()
        self._lost: set[NodeName] = set()

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if type(input) is LinkDown:
            self._lost.add(input.peer)
        if type(input) is LinkUp and input.peer in self._lost:
            self.returned.add(input.peer)
        return super().handle(input, now_us)


class Sulking(_Returning):
    """Sends no event over a link that has once been down."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        return without(effects, lambda each: is_passed_on(each) and each.to in self.returned)  # type: ignore[union-attr]


class Convalescing(_Returning):
    """Loses the events of the first second after a link is back, and says in that second that it is settling."""

    settling = False

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if type(input) is TimerFired:
            self.settling = False
            return ()
        effects = list(super().handle(input, now_us))
        if type(input) is LinkUp and input.peer in self.returned:
            self.settling = True
            effects.append(SetTimer(("reliability",), 1_000_000))
        return effects

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        return without(effects, lambda each: self.settling and is_passed_on(each))


class LateAfterAFault(Holding):
    """Tells clients of what is published after a fault a minute late."""

    _down = False

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        self._down = self._down or type(input) is LinkDown
        return super().handle(input, now_us)

    def picks(self, event: Event) -> bool:
        return self._down and event.sequence > 150


class HidingInARow(Tampering):
    """Says after the first fault that it is settling, for ever, and loses every second event: faults come often."""

    settling = False

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        self.settling = self.settling or type(input) is LinkDown
        return super().handle(input, now_us)

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        return without(effects, lambda each: self.settling and is_passed_on(each) and event.sequence % 2 == 0)


class NeverDone(BestEffort):
    """Does all that it should after a fault, and never says that it has settled."""

    settling = False

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        self.settling = self.settling or type(input) is LinkDown
        return super().handle(input, now_us)


class Unwelcoming(SubscriptionForwarding):
    """Tells no neighbour of filters that come after the first second, and says that it is still settling."""

    settling = False

    def __init__(self, context: NodeContext, parameters: NoParameters) -> None:
        super().__init__(context, parameters)
        self._late = False

    def next_hops(self, event: Event, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        self._late = True
        return super().next_hops(event, came_from, header)

    def subscribe(self, wanted: Filter) -> Sequence[Effect]:
        if not self._late:
            return super().subscribe(wanted)
        self.settling = True
        return ()

    def unsubscribe(self, wanted: Filter) -> Sequence[Effect]:
        return ()


@declared(client=Staying)
class Lingering(BestEffort):
    """Clients go on delivering what was withdrawn, while a broker says that it is still settling."""

    settling = False

    def publish(self, event: Event, now_us: int) -> Sequence[Effect]:
        self.settling = True
        return super().publish(event, now_us)


_CUT = {"faults": [{"at": "500 ms", "cut": ["b1", "b2"], "for": "400 ms"}]}
_ROW = {"faults": [{"at": f"{at} ms", "cut": ["b1", "b2"], "for": "100 ms"} for at in (500, 1_500, 2_500, 3_500)]}
LIVENESS_SABOTEURS = (
    Saboteur(
        "sulks", "sends no event over a link that has been down", "missing", "c3, c4, c5, c6, c7", Sulking, keys=_CUT
    ),
    Saboteur(
        "convalesces",
        "loses events for a second after a cut",
        "expectation",
        "recovery after a repair",
        Convalescing,
        keys={**_CUT, "expect": {"recovery": "700 ms"}},
    ),
    Saboteur(
        "hides in a row",
        "loses events between faults that follow each other",
        "expectation",
        "recovery after a repair",
        HidingInARow,
        keys={**_ROW, "expect": {"recovery": "500 ms"}},
    ),
    Saboteur(
        "late after a fault",
        "delivers a minute late what is published after a cut",
        "late",
        "later than 2",
        LateAfterAFault,
        keys=_CUT,
    ),
    Saboteur("never done", "never says after a cut that it has settled", "unsettled", "cut", NeverDone, keys=_CUT),
    Saboteur(
        "unwelcoming",
        "serves no later subscriber, and says that it is settling",
        "unsettled",
        ".",
        routing=Unwelcoming,
        keys={"workload": {**VISITED, "visits": {"b2": [[0.3, 3.9]]}}},
    ),
    Saboteur(
        "lingers",
        "goes on after withdrawals, and says that they have not settled",
        "spurious",
        "c8",
        Lingering,
        keys={"workload": {**VISITED, "visits": {"b2": [[0.2, 0.6]]}}, "withdrawal_grace": "100 ms"},
    ),
)
