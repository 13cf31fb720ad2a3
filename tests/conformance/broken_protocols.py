"""Protocols that break the contract of `murmur_pubsub.machine`, each in one way; both runtimes meet them.

What a reliability part does wrong, it does when the event whose attribute `n` is 2 is published at its broker, so that
others come through before. What is wrong with effects alone is in `EFFECTS`.
"""

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

from murmur_pubsub.event import Event
from murmur_pubsub.machine import (
    Answer,
    Deliver,
    Effect,
    Input,
    NodeContext,
    NodeName,
    Persist,
    Received,
    Record,
    Send,
    SetTimer,
    TimerFired,
)
from murmur_pubsub.message import message
from reliability.best_effort import BestEffort, Forwarded
from reliability.layer import BrokerServices
from routing.flooding import Flooding
from routing.protocol import NoParameters
from routing.router import Hop

WHEN = 2
EVENT = Event(0, 0, 1, {"n": WHEN})

EFFECTS: dict[str, tuple[Any, str, str]] = {
    "nothing": (None, "None", "a list or tuple of effects"),
    "a number": (7, "7", "a list or tuple of effects"),
    "a text": ("b1", "'b1'", "a list or tuple of effects"),
    "an iterator": (iter([Record(1, 1)]), "list_iterator", "a list or tuple of effects"),
    "a tuple that is no effect": ([("b1", EVENT)], "as an effect", "Send, SetTimer"),
    "a class": ([Record], "as an effect", "Send, SetTimer"),
    "a receiver that is no name": ([Send(["b1"], Forwarded(EVENT, 1, ()))], r"\['b1'\]", "the name of a node"),  # type: ignore[arg-type]
    "a number for a receiver": ([Send(1, Forwarded(EVENT, 1, ()))], "1, which is of type int", "the name of a node"),  # type: ignore[arg-type]
    "no message": (
        [Send("b1", cast(Any, "hello"))],
        "'hello', which is of type str",
        "a message of a class",
    ),
    "a delay below zero": ([SetTimer(("reliability",), -1)], "a delay of -1", "whole microseconds from 0"),
    "a delay of a fraction": ([SetTimer(("reliability",), 0.5)], "a delay of 0.5", "whole microseconds from 0"),  # type: ignore[arg-type]
    "a delay without an end": (
        [SetTimer(("reliability",), (1 << 53) + 1)],
        "a delay of 9007199254740993",
        "whole microseconds from 0",
    ),
    "a key of text": ([SetTimer("reliability", 1)], "the key 'reliability'", "a tuple whose first element"),  # type: ignore[arg-type]
    "a list in a key": ([SetTimer(("reliability", []), 1)], "unhashable", ""),  # type: ignore[arg-type]
    "too many hops": ([Deliver(EVENT, 1 << 15, [1])], "32768 hops", "0 to 32767"),
    "hops of text": ([Deliver(EVENT, "2", [1])], "'2' hops", "0 to 32767"),  # type: ignore[arg-type]
    "a subscriber of text": ([Deliver(EVENT, 1, ["s1"])], "the subscriber 's1'", "a number of 64 bits"),  # type: ignore[list-item]
    "a subscriber of 65 bits": ([Deliver(EVENT, 1, [1 << 63])], "the subscriber 9223", "a number of 64 bits"),
    "one subscriber": ([Deliver(EVENT, 1, 7)], "7, which is of type int", "a list of subscribers"),  # type: ignore[arg-type]
    "a delivery of no event": ([Deliver({"n": 1}, 1, [1])], "as an event", "an Event"),  # type: ignore[arg-type]
    "a value below 64 bits": ([Record(1, -(1 << 63) - 1)], "the value -9223", "a number of 64 bits"),
    "a value of 65 bits": ([Record(1, 1 << 63)], "the value 9223", "a number of 64 bits"),
    "a value of text": ([Record(1, "x")], "the value 'x'", "a number of 64 bits"),  # type: ignore[arg-type]
    "a topic of 32 bits": ([Record(1 << 31, 1)], "the topic 2147483648", "a number from 0, of 31 bits"),
    "a peer that is no name": ([Record(1, 1, ["b1"])], r"\['b1'\]", "the name of a node"),  # type: ignore[arg-type]
    "an answer that is no text": ([Answer(1, {1})], r"\{1\} to the order 1", "a text, and the number"),  # type: ignore[arg-type]
    "a record of no event": ([Record(1, 1, None, (0, 1))], "as an event", "an Event"),  # type: ignore[arg-type]
}
"""What is handed back; a pattern of what is found; a pattern of what is allowed."""


class AtTheSecond(BestEffort):
    """Best effort but for one event."""

    def __init__(self, context: NodeContext, parameters: NoParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        self.name = context.name

    def publish(self, event: Event, now_us: int) -> Sequence[Effect]:
        return self.wrong(event) if event.attributes["n"] == WHEN else super().publish(event, now_us)

    def wrong(self, event: Event) -> Any:
        raise ValueError("a planted mistake")


class Exits(AtTheSecond):
    def wrong(self, event: Event) -> Any:
        sys.exit(3)


class Loops(AtTheSecond):
    def wrong(self, event: Event) -> Any:
        while True:
            pass


class Sleeps(AtTheSecond):
    def wrong(self, event: Event) -> Any:
        time.sleep(3_600)


class ForgetsToStop(AtTheSecond):
    """Sets a timer anew whenever it fires, in no time."""

    def wrong(self, event: Event) -> Any:
        return [SetTimer(("reliability", "again"), 0)]

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        return self.wrong(EVENT) if type(input) is TimerFired else super().handle(input, now_us)


class Echoes(AtTheSecond):
    """Sends back what it gets, over links that take no time."""

    copies = 1

    def wrong(self, event: Event) -> Any:
        return [Send("b1" if self.name == "b0" else "b0", Forwarded(event, 1, ()))] * self.copies

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if type(input) is Received and input.message.event.attributes["n"] == WHEN:  # type: ignore[attr-defined]
            return list(self.wrong(input.message.event))  # type: ignore[attr-defined]
        return super().handle(input, now_us)


class Floods(Echoes):
    """Sends back twice what it gets, so that there is ever more, though time goes on."""

    copies = 2


class SendsToNobody(AtTheSecond):
    def wrong(self, event: Event) -> Any:
        return [Send("b99", Forwarded(event, 1, ()))]


class SendsWhatNobodyReads(AtTheSecond):
    def wrong(self, event: Event) -> Any:
        return [Send("b1", Forwarded(event, 1, ("b1",)))]  # type: ignore[arg-type]


class TimerOfNobody(AtTheSecond):
    def wrong(self, event: Event) -> Any:
        return [SetTimer(("own", 1), 1)]


class WaitsForNothing(AtTheSecond):
    """`waiting` becomes something else than true or false."""

    at = False

    def wrong(self, event: Event) -> Any:
        self.at = None  # type: ignore[assignment]
        return ()

    @property
    def waiting(self) -> bool:
        return self.at


class SettlingMethod(BestEffort):
    def settling(self) -> bool:  # type: ignore[override]
        return False


class Inconsistent(BestEffort):
    def check_invariants(self) -> None:
        assert False, "one and one is three"  # noqa: B011, PT015


class NotMade(BestEffort):
    def __init__(self, context: NodeContext, parameters: NoParameters, services: BrokerServices) -> None:
        raise KeyError("no such thing")


class NeverSettles(BestEffort):
    """Says for ever that it has not settled, and looks again every now and then."""

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        return [
            *(() if type(input) is TimerFired else super().handle(input, now_us)),
            SetTimer(("reliability",), 1_000),
        ]

    @property
    def settling(self) -> bool:
        return True


@message(129, control=True)
class Gossip(NamedTuple):
    """Control messages that never end."""

    number: int


class GossipsForEver(BestEffort):
    """Passes a control message to and fro, so that subscriptions never settle; nobody says so."""

    message_types = (Forwarded, Gossip)

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if type(input) is Received and type(input.message) is Gossip:
            return [Send(input.source, input.message)]
        if type(input).__name__ == "LinkUp":
            return [Send(input.peer, Gossip(1))]  # type: ignore[union-attr]
        return super().handle(input, now_us)


class Hands(Flooding):
    """A router that hands back something else than hops."""

    hops: Callable[[Sequence[Hop]], Any] = staticmethod(lambda hops: [hop.peer for hop in hops])

    def next_hops(self, event: Event, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        right = super().next_hops(event, came_from, header)
        found: Sequence[Hop] = self.hops(right) if event.attributes["n"] == WHEN else right
        return found


class HandsTuples(Hands):
    hops = staticmethod(lambda hops: [(hop.peer, ()) for hop in hops])


class HandsNothing(Hands):
    hops = staticmethod(lambda hops: None)


class HandsOnlyOne(Hands):
    hops = staticmethod(lambda hops: Hop("b1"))


class ForgetsEffects(Flooding):
    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        super().handle(input, now_us)
        return None  # type: ignore[return-value]


class PersistsAgain(AtTheSecond):
    def wrong(self, event: Event) -> Any:
        return [Persist(3, b"first"), Persist(3, b"second")]


class PersistsText(AtTheSecond):
    def wrong(self, event: Event) -> Any:
        return [Persist(1, "text")]  # type: ignore[arg-type]


class RaisesAtTheFourth(BestEffort):
    """Takes three publications at its broker."""

    count = 0

    def publish(self, event: Event, now_us: int) -> Sequence[Effect]:
        self.count += 1
        if self.count == 4:
            raise ValueError("a planted mistake")
        return super().publish(event, now_us)
