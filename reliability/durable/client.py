"""A client with durable subscriptions: it remembers on its own disk how far it is with each pubend.

Theory of operation. What a client has been delivered it records, tick by pubend, when it would hand back, and hands
back when that is safe. So what its broker and the publishers' brokers release is what the client will never ask for
again, whoever dies. With each new link, to the same broker or another one, it says what it subscribes to and the last
ticks that it has; a message up to there that comes again is not delivered again.

A client whose own process dies may have been delivered what it had not recorded yet. That comes once more when it is
back: only its user could record both in one step.
"""

from collections.abc import Sequence
from typing import Any

import msgpack

from murmur_pubsub.errors import InputError
from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import (
    Effect,
    Input,
    LinkDown,
    LinkUp,
    NodeName,
    Persist,
    Received,
    Record,
    Send,
    SetTimer,
    Start,
    Stored,
    Subscribe,
    TimerFired,
    Truncate,
    Unsubscribe,
)
from murmur_pubsub.promise import GIVEN_UP, REFUSED
from reliability.durable.messages import Decided, DurableGivenUp, DurableHanded, Recorded, Resume, ResumedAt, flat
from reliability.durable.record import still_for
from reliability.gryphon.client import ClientThresholds, GryphonClient
from reliability.gryphon.messages import Accepted, HandedBack

RESUMED_ELSEWHERE = 161
"""Topic of the journal rows of a client that gets what follows another tick than it had asked for: the value is that
tick."""
_RESUME = ("client", "resume")
_GATHERING_US = 5_000


def rows_of(given_up: Sequence[int]) -> list[Record]:
    """The journal's rows of what was given up, as `GivenUp` has it."""
    lost = zip(given_up[::3], given_up[1::3], given_up[2::3], strict=False)
    return [Record(GIVEN_UP, first, event=Event(publisher, last, 0, {})) for publisher, first, last in lost]


class DurableClient(GryphonClient):
    """The machine of a client all of whose subscriptions are durable."""

    message_types: tuple[type, ...] = (
        *GryphonClient.message_types,
        Resume,
        Recorded,
        ResumedAt,
        DurableHanded,
        DurableGivenUp,
        Decided,
    )

    def __init__(self, broker: NodeName, parameters: ClientThresholds) -> None:
        super().__init__(broker, parameters)
        self._ticks: dict[int, int] = {}
        self._revision = self._recorded = -1
        self._told = -1
        """The last revision that was said over this link."""
        self._gathering = False
        self._token = 0
        self._storing: dict[int, tuple[int, int]] = {}  # token to what may be handed back: session and number
        self._withdrew: set[int] = set()  # subscribers that have withdrawn something

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        """See `murmur_pubsub.machine.Machine`."""
        kind = type(input)
        if kind is Received:
            if input.source != self._broker or not self._connected:  # type: ignore[union-attr]
                return ()  # of a link that is gone
            message: Any = input.message  # type: ignore[union-attr]
            if type(message) is DurableHanded or type(message) is DurableGivenUp:
                return self._on_handed(message)
            if type(message) is Recorded:
                self._recorded = max(self._recorded, message.revision)
                return ()
            if type(message) is Decided:
                return self._on_decided(message)
            if type(message) is ResumedAt:
                return [self._resumed_at(message)]
        elif kind is Stored:
            return self._on_stored(input.token)  # type: ignore[union-attr]
        elif kind is Start:
            self._recover(input.records)  # type: ignore[union-attr]
        elif kind is LinkUp:
            self._to(input.peer)  # type: ignore[union-attr]
            effects = super().handle(input, now_us)
            return [*effects, self._resume()] if self._revision >= 0 else effects
        elif kind is LinkDown and input.peer != self._broker:  # type: ignore[union-attr]
            return ()
        elif kind is Subscribe or kind is Unsubscribe:
            held = input.subscriber, input.filter  # type: ignore[union-attr]
            before = self._plain.subscriptions.get(held, 0)
            effects = super().handle(input, now_us)
            if bool(before) == bool(self._plain.subscriptions.get(held, 0)):
                return effects
            if kind is Unsubscribe:
                self._withdrew.add(input.subscriber)  # type: ignore[union-attr]
            self._revision = max(self._revision + 1, now_us)
            return [*effects, *self._resume_later()]
        elif kind is TimerFired and input.key == _RESUME:  # type: ignore[union-attr]
            self._gathering = False
            return [self._resume()] if self._connected and self._told < self._revision else ()
        return super().handle(input, now_us)

    def _resumed_at(self, message: ResumedAt | DurableGivenUp) -> Record:
        self._ticks[message.pubend] = message.tick
        return Record(RESUMED_ELSEWHERE, message.tick)

    def _on_decided(self, message: Decided) -> list[Effect]:
        refused = {each for each in message.refused if each <= message.sequence}
        kept = self._kept.get(message.publisher, ())
        rows = [Record(REFUSED, 0, event=event) for event in kept if event.sequence in refused]
        return [*rows, *self._on_accepted(Accepted(message.publisher, message.sequence))]

    @property
    def settling(self) -> bool:
        """Is there something that it subscribes to, or has withdrawn, that is not on record everywhere?"""
        return self._recorded < self._revision

    @property
    def _wanted(self) -> list[tuple[int, Filter]]:
        return [held for held, count in self._plain.subscriptions.items() if count]

    def _to(self, broker: NodeName) -> None:
        """A link is new, and what came by an older one counts no more."""
        self._broker = broker
        self._plain.broker = broker
        self._session = -1
        self._next = 0
        self._ahead.clear()

    def _resume_later(self) -> list[Effect]:
        """What subscribers change within some milliseconds is said in one word: each says all that they want."""
        if self._gathering or not self._connected:
            return []
        self._gathering = True
        return [SetTimer(_RESUME, _GATHERING_US)]

    def _resume(self) -> Send:
        self._told = self._revision
        wanted = self._wanted
        subscribers, filters = [subscriber for subscriber, _ in wanted], [each for _, each in wanted]
        return Send(self._broker, Resume(self._revision, subscribers, filters, flat(self._ticks)))

    def _given(self, message: Any) -> list[Effect]:
        if type(message) is DurableGivenUp:
            return [self._resumed_at(message), *rows_of(message.events)]
        if type(message) is not DurableHanded:
            return super()._given(message)
        if message.tick <= self._ticks.get(message.pubend, -1):
            return []
        self._ticks[message.pubend] = message.tick
        if not self._withdrew.isdisjoint(message.subscribers):
            # It matched what was wanted when it was logged. No broker may know yet what was withdrawn since.
            message = message._replace(subscribers=still_for(message.subscribers, self._wanted, message.event))
        return super()._given(message) if message.subscribers else []

    def _hand_back(self) -> list[Effect]:
        self._to_hand_back = 0
        self._token += 1
        self._storing[self._token] = self._session, self._next - 1
        return [Persist(self._token, msgpack.packb([self._token, self._revision, self._ticks]))]

    def _on_stored(self, token: int) -> list[Effect]:
        session, number = self._storing.pop(token)
        effects: list[Effect] = [Truncate(token)]
        if self._connected and session == self._session >= 0:
            effects.append(Send(self._broker, HandedBack(session, number)))
        return effects

    def _recover(self, records: Sequence[bytes]) -> None:
        for record in records:
            try:
                self._token, self._revision, self._ticks = msgpack.unpackb(record, strict_map_key=False)
            except (ValueError, TypeError) as error:
                place = "the stable log of a client with durable subscriptions"
                raise InputError(place, f"{record[:40]!r} ({error})", "what it has written") from None
