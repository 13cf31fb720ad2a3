"""Saboteurs that deliver twice, or in another order than was published."""

from collections.abc import Sequence

from murmur_pubsub.client import Notification
from murmur_pubsub.event import Event
from murmur_pubsub.machine import Deliver, Effect, Input, LinkUp, NodeContext, NodeName, Send
from murmuration.zoo.entry import Saboteur, struck
from murmuration.zoo.tampering import Tampering, TamperingClient, declared, is_passed_on, is_told, notification, without
from reliability.best_effort import BestEffort
from reliability.layer import BrokerServices
from routing.protocol import NoParameters

_ALL = "c2, c3, c4, c5, c6, c7"


class Doubling(Tampering):
    """Passes some events on twice."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        return [*effects, *effects] if self.name == "b2" and struck(event) else effects


class Stuttering(Tampering):
    """Names a subscriber twice in one notification."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        for each in effects:
            if type(each) is Send and is_told(each) and struck(event):
                notification(each).subscribers.append(notification(each).subscribers[0])
        return effects


class _Echo(TamperingClient):
    def hear(self, told: Notification, now_us: int) -> Sequence[Effect]:
        times = 2 if struck(told.event) else 1
        return [Deliver(told.event, told.hops, told.subscribers)] * times


@declared(client=_Echo)
class Echoing(BestEffort):
    """Clients deliver some of what they are told twice."""


class Resending(Tampering):
    """Sends the last ten events again when a link is back, whether they had arrived or not."""

    def __init__(self, context: NodeContext, parameters: NoParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        self._sent: dict[NodeName, list[Effect]] = {}

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        for each in effects:
            if type(each) is Send and is_passed_on(each):
                self._sent[each.to] = [*self._sent.get(each.to, ()), each][-30:]
        return effects

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        again = self._sent.pop(input.peer, []) if type(input) is LinkUp else []
        return [*again, *super().handle(input, now_us)]


class DoublingElsewhere(Tampering):
    """b1 tells its clients twice of what b2, behind a link that makes copies, is told as well."""

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        passed = any(type(each) is Send and each.to == "b2" for each in effects)
        return [*effects, *filter(is_told, effects)] if self.name == "b1" and passed and struck(event) else effects


class Swapping(Tampering):
    """One broker keeps some events back until the publisher's next has gone ahead."""

    at = "b1"

    def __init__(self, context: NodeContext, parameters: NoParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        self._kept: dict[int, list[Effect]] = {}

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        if self.name == self.at and struck(event):
            self._kept[event.source] = effects
            return []
        return [*effects, *self._kept.pop(event.source, [])]


class SwappingBehind(Swapping):
    """The same behind a link on which some events overtake others."""

    at = "b2"


class LastFirst(Tampering):
    """Gathers four events for each client and hands them out from the last to the first."""

    def __init__(self, context: NodeContext, parameters: NoParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        self._stacks: dict[NodeName, list[Effect]] = {}

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        out = without(effects, is_told)
        for each in effects:
            if type(each) is Send and is_told(each):
                stack = self._stacks.setdefault(each.to, [])
                stack.append(each)
                if len(stack) == 4 or event.sequence > 180:
                    out += stack[::-1]
                    stack.clear()
        return out


class OvertakingElsewhere(Tampering):
    """b1 exchanges events for its clients that go, in order, over a link on which others overtake each other."""

    def __init__(self, context: NodeContext, parameters: NoParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        self._kept: dict[int, list[Effect]] = {}

    def tamper(self, effects: list[Effect], event: Event, now_us: int) -> Sequence[Effect]:
        if self.name != "b1":
            return effects
        told = list(filter(is_told, effects))
        if struck(event):
            self._kept[event.source] = told
            return without(effects, is_told)
        return [*effects, *self._kept.pop(event.source, [])]


_COPIES = {"faults": [{"at": "0 s", "link": ["b1", "b2"], "duplication": 1.0}]}
_OVERTAKES = {"faults": [{"at": "0 s", "link": ["b1", "b2"], "reordering": 0.9}]}
COPY_SABOTEURS = (
    Saboteur("doubles", "passes an event on twice", "duplicate", "c3, c4, c5, c6, c7", Doubling),
    Saboteur("stutters", "names a subscriber twice in one notification", "duplicate", _ALL, Stuttering),
    Saboteur("echoes", "clients deliver twice", "duplicate", _ALL, Echoing),
    Saboteur(
        "resends",
        "sends its last events again after a cut, though they had arrived",
        "duplicate",
        "c3, c4, c5, c6, c7",
        Resending,
        keys={"faults": [{"at": "1 s", "cut": ["b1", "b2"], "for": "200 ms"}]},
    ),
    Saboteur(
        "copies elsewhere",
        "doubles events where the link that makes copies does not lead",
        "duplicate",
        "c2",
        DoublingElsewhere,
        keys=_COPIES,
    ),
    Saboteur("swaps", "lets an event overtake the one before", "out_of_order", _ALL, Swapping),
    Saboteur(
        "swaps behind a link",
        "exchanges events that came in order over a link that reorders",
        "out_of_order",
        "c3, c4, c5, c6, c7",
        SwappingBehind,
        keys={"faults": [{"at": "0 s", "link": ["b1", "b2"], "reordering": 0.1, "reordering_by": "100 ms"}]},
    ),
    Saboteur("last first", "hands events out from the last to the first", "out_of_order", _ALL, LastFirst),
    Saboteur(
        "overtakes elsewhere",
        "exchanges events where the link that reorders does not lead",
        "out_of_order",
        "c2",
        OvertakingElsewhere,
        keys=_OVERTAKES,
    ),
)
