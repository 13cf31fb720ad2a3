"""A client under guaranteed delivery: keeps what it published until it is logged, delivers each message once.

Theory of operation. Publications are numbered by publisher; the client repeats those not accepted, on a timer and on
every new link, and says which is the oldest it still has, so that the broker can tell a number that is late from one
that will never come (its client was killed). The broker logs each number once, in order. While it accepts nothing
(its log is full, or it is away), what is published waits here, beyond a window that is on its way. Deliveries come
numbered within a session (`reliability.gryphon.sessions`), are put in order, and are handed back now and then.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol

from murmur_pubsub.client import CLIENT_MESSAGES, ClientMachine
from murmur_pubsub.event import Event
from murmur_pubsub.machine import (
    Deliver,
    Effect,
    Input,
    LinkDown,
    LinkUp,
    Machine,
    Publish,
    Received,
    Send,
    SetTimer,
    TimerFired,
)
from reliability.gryphon.messages import Accepted, Handed, HandedBack, Submission

_HAND_BACK_AFTER = 50
_HAND_BACK_DELAY_US = 100_000
_AT_ONCE = 100
"""Publications of a publisher that are on their way at once, of those that had to wait."""
_RESEND = ("client", "resend")
_HAND_BACK = ("client", "hand back")


class ClientThresholds(Protocol):
    """What a client takes of its protocol's parameters (`reliability.gryphon.parameters.GryphonParameters`)."""

    @property
    def resend(self) -> int: ...
    @property
    def window(self) -> int: ...


class GryphonClient(Machine):
    """The machine of a client node; subscriptions are those of a plain client."""

    message_types: tuple[type, ...] = (*CLIENT_MESSAGES, Submission, Accepted, Handed, HandedBack)

    def __init__(self, broker: str, parameters: ClientThresholds) -> None:
        self._broker = broker
        self._plain = ClientMachine(broker)
        self._resend_us = parameters.resend * 1_000
        self._connected = False
        self._kept: dict[int, deque[Event]] = {}
        self._sent: dict[int, int] = {}  # publisher to how many of the oldest that are kept were sent over this link
        self._resending = self._idle = False
        self._session = -1
        self._next = 0
        self._ahead: dict[int, Any] = {}
        self._window = parameters.window
        self._to_hand_back = 0

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        """See `murmur_pubsub.machine.Machine`."""
        kind = type(input)
        if kind is Received:
            message = input.message  # type: ignore[union-attr]
            if type(message) is Handed:
                return self._on_handed(message)
            if type(message) is Accepted:
                return self._on_accepted(message)
        elif kind is Publish:
            return self._publish(input.event)  # type: ignore[union-attr]
        elif kind is TimerFired:
            if input.key == _RESEND:  # type: ignore[union-attr]
                return self._resend()
            return self._hand_back() if self._to_hand_back else ()
        elif kind is LinkUp:
            self._connected = True
            self._idle = True
            effects = [*self._plain.handle(input, now_us), *self._submit_again()]
            return [*effects, *self._resend_later()]
        elif kind is LinkDown:
            self._connected = False
            self._ahead.clear()  # the session is over, and what it lacked never comes
        return self._plain.handle(input, now_us)

    @property
    def waiting(self) -> bool:
        """Is something published that the broker has not accepted?"""
        return any(self._kept.values())

    def check_invariants(self) -> None:
        """Publications are kept in order; what is ahead is really ahead."""
        self._plain.check_invariants()
        for kept in self._kept.values():
            assert all(kept[at].sequence < kept[at + 1].sequence for at in range(len(kept) - 1))
        assert all(number > self._next for number in self._ahead)

    # ---------------------------------------------------------------------------------------- publisher
    def _publish(self, event: Event) -> Sequence[Effect]:
        kept = self._kept.setdefault(event.source, deque())
        kept.append(event)
        if not self._connected or self._sent.get(event.source, 0) < len(kept) - 1 or len(kept) > self._window:
            return ()
        self._sent[event.source] = len(kept)
        return [Send(self._broker, Submission(event, kept[0].sequence)), *self._resend_later()]

    def _on_accepted(self, message: Accepted) -> Sequence[Effect]:
        kept = self._kept.get(message.publisher)
        if kept is None or not self._connected:
            return ()
        before = len(kept)
        while kept and kept[0].sequence <= message.sequence:
            kept.popleft()
            self._idle = False
        self._sent[message.publisher] = max(0, self._sent.get(message.publisher, 0) - before + len(kept))
        return self._submit_more(message.publisher)

    def _submit_more(self, publisher: int) -> list[Effect]:
        """Send of what waits here as much as may be on its way."""
        kept, sent = self._kept[publisher], self._sent.get(publisher, 0)
        more = range(sent, min(len(kept), _AT_ONCE))
        self._sent[publisher] = max(sent, more.stop)
        return [Send(self._broker, Submission(kept[at], kept[0].sequence)) for at in more]

    def _resend(self) -> Sequence[Effect]:
        self._resending = False
        idle, self._idle = self._idle, True
        again = self._submit_again() if idle and self._connected else []
        return [*again, *self._resend_later()]

    def _resend_later(self) -> list[Effect]:
        if self._resending or not self._connected or not any(self._kept.values()):
            return []
        self._resending = True
        return [SetTimer(_RESEND, self._resend_us)]

    def _submit_again(self) -> list[Effect]:
        self._sent.clear()
        return [effect for publisher in self._kept for effect in self._submit_more(publisher)]

    # --------------------------------------------------------------------------------------- subscriber
    def _on_handed(self, message: Any) -> Sequence[Effect]:
        if message.session > self._session:
            self._session = message.session
            self._next = 0
            self._ahead.clear()
        if message.session < self._session:
            return ()
        if message.number < self._next:
            return self._hand_back()  # the broker repeats: it does not know that this one has come
        if message.number > self._next:
            if len(self._ahead) < self._window:
                self._ahead[message.number] = message
            return ()
        first = self._to_hand_back == 0
        effects: list[Effect] = []
        here: Any = message
        while here is not None:
            effects += self._given(here)
            self._next += 1
            self._to_hand_back += 1
            here = self._ahead.pop(self._next, None)
        if self._to_hand_back >= _HAND_BACK_AFTER:
            return [*effects, *self._hand_back()]
        if first:
            effects.append(SetTimer(_HAND_BACK, _HAND_BACK_DELAY_US))
        return effects

    def _given(self, message: Any) -> list[Effect]:
        return [Deliver(message.event, message.hops, message.subscribers)]

    def _hand_back(self) -> list[Effect]:
        self._to_hand_back = 0
        if not self._connected or self._session < 0:
            return []
        return [Send(self._broker, HandedBack(self._session, self._next - 1))]
