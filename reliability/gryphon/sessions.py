"""Sessions: the last mile between a broker and its clients, over links that may lose, repeat and reorder.

A session begins with a client's link and ends with it. The broker numbers the messages that it hands over, and repeats
those that the client has not handed back; the client delivers by number. When the window of outstanding
messages is full, the broker's subends wait: a slow client slows the others of its broker, and costs no memory
elsewhere. While a client hands nothing back it is repeated to ever more seldom. Or on a narrow link what is handed back
would come later than the next repetition, for ever.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from murmur_pubsub.event import Event
from murmur_pubsub.machine import Deliver, Effect, NodeName, Send
from reliability.gryphon.messages import Handed, HandedBack

Ticks: TypeAlias = tuple[int, ...]
_new = tuple.__new__
"""Makes a NamedTuple without the Python call of its constructor, where one is made for every message."""

_SESSION_BITS = 32
_AGAIN_AT_ONCE = 50
"""The most messages that are repeated at a time: the oldest ones, which the client waits for."""
_SELDOM = 8
"""The most periods that pass before they are repeated once more."""


class ClientSession:
    """One client's. `number` tells it from earlier ones."""

    __slots__ = ("_next", "_outstanding", "_rests", "_waits", "client", "number")

    def __init__(self, client: NodeName, number: int) -> None:
        self.client = client
        self.number = number
        self._next = 0
        self._outstanding: deque[Any] = deque()
        self._waits = self._rests = 1
        """How many periods are to pass before what is outstanding is repeated, and how many after that."""

    @property
    def outstanding(self) -> int:
        """How many messages the client has not handed back."""
        return len(self._outstanding)

    @property
    def not_handed_back(self) -> Iterable[Any]:
        """The messages that the client has not handed back."""
        return self._outstanding

    def hand(self, event: Event, hops: int, subscribers: list[int], kind: type = Handed, about: Ticks = ()) -> Send:
        """Hand the message to the client, as one of that kind, which says so much more about it."""
        return self._numbered(_new(kind, (self.number, self._next, event, hops, subscribers, *about)))

    def tell(self, kind: type, *about: Any) -> Send:
        """Tell the client something else in its turn, as a message of that kind, which says this."""
        return self._numbered(_new(kind, (self.number, self._next, *about)))

    def _numbered(self, message: Any) -> Send:
        self._next += 1
        if not self._outstanding:
            self._waits = self._rests = 1  # what was handed over before counts as lost though more follows it
        self._outstanding.append(message)
        return _new(Send, (self.client, message))

    def handed_back(self, message: HandedBack) -> list[Any]:
        """The client has everything up to that number; the messages of which that is news."""
        done: list[Any] = []
        if message.session == self.number:
            while self._outstanding and self._outstanding[0].number <= message.number:
                done.append(self._outstanding.popleft())
                self._waits = self._rests = 1
        return done

    def repeat(self) -> list[Effect]:
        """A period is over: the oldest messages again, if the client has handed nothing back for long enough."""
        if self._waits:
            self._waits -= 1
            return []
        self._waits, self._rests = self._rests - 1, min(2 * self._rests, _SELDOM)
        return [Send(self.client, self._outstanding[at]) for at in range(min(_AGAIN_AT_ONCE, self.outstanding))]


class Sessions:
    """Those of a broker's clients. `window`: how many messages a client may have that it has not handed back."""

    __slots__ = ("_next_number", "_of", "_window")

    def __init__(self, incarnation: int, window: int) -> None:
        self._of: dict[NodeName, ClientSession] = {}
        self._next_number = (incarnation << _SESSION_BITS) + 1
        self._window = window

    def __bool__(self) -> bool:
        return bool(self._of)

    def begin(self, client: NodeName) -> None:
        """The client's link is up."""
        self._of[client] = ClientSession(client, self._next_number)
        self._next_number += 1

    def end(self, client: NodeName) -> None:
        """It is gone, and with it what the client has not handed back."""
        del self._of[client]

    def outstanding(self, client: NodeName) -> int:
        """How many messages the client has been handed and not handed back."""
        return self._of[client].outstanding if client in self._of else 0

    @property
    def any_outstanding(self) -> bool:
        """Has some client not handed back what it was handed?"""
        return any(session.outstanding for session in self._of.values())

    def hand_over(
        self, event: Event, hops: int, receivers: Mapping[NodeName | None, list[int]], effects: list[Effect]
    ) -> bool:
        """Hand a message to its subscribers; False, and nothing is done, if a client's window is full."""
        sessions = self._of
        for client in receivers:
            if client in sessions and sessions[client].outstanding >= self._window:
                return False
        for client, subscribers in receivers.items():
            if client is None:
                effects.append(Deliver(event, hops, subscribers))
            elif client in sessions:
                effects.append(sessions[client].hand(event, hops, subscribers))
        return True

    def of(self, client: NodeName) -> ClientSession | None:
        """The client's, if its link is up."""
        return self._of.get(client)

    def handed_back(self, client: NodeName, message: HandedBack) -> list[Any]:
        """The client has everything up to the message's number; the messages of which that is news."""
        return self._of[client].handed_back(message) if client in self._of else []

    def repeat(self) -> list[Effect]:
        """To each client that has handed nothing back for a whole period, the oldest of what it was handed."""
        return [effect for session in self._of.values() for effect in session.repeat()]
