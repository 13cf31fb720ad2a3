"""A knowledge stream: what one broker knows of the ticks of one pubend.

Theory of operation (guaranteed-delivery paper, section 2). A pubend's stream is a line of ticks, one a millisecond, at
most one message to a tick. A tick is Q (nothing known), S (silence: no message, or none that is wanted down here),
D (a message) or F (final: it will never be needed down here again). Knowledge accumulates: what comes twice or late
changes nothing, and what is known is not unlearnt, but forgotten: an intermediate broker holds soft state only, and
drops the oldest messages back to Q when its cache is full.

S is the first word on a tick that is kept: where brokers know different filters, one may send a message where another
had said that it is not wanted here. Both are right, and the message is then for no subscriber here. Two different
messages on one tick are a contradiction.
"""

from bisect import bisect_left, bisect_right
from typing import NamedTuple

from murmur_pubsub.event import Event
from murmur_pubsub.intervals import Interval, IntervalSet


class DataTick(NamedTuple):
    """A D tick. `hops` is how many links it has passed; `stamp` its filter epoch (see `routing.cells.epochs`)."""

    event: Event
    hops: int
    stamp: int


class KnowledgeStream:
    """Ticks up to `final` are F; above, `known` are S or D, and `messages` are the D among them.

    `room`: the most messages that are kept (None: all). A full broker forgets the oldest. One with subscribers
    (`keeps_oldest`) forgets only what these have consumed, all below the tick `consumed`: of the rest it needs the
    oldest first, and takes no more.
    """

    __slots__ = ("_order", "consumed", "final", "keeps_oldest", "known", "messages", "room")

    def __init__(self, room: int | None = None, keeps_oldest: bool = False) -> None:
        self.final = -1
        self.known = IntervalSet()
        self.messages: dict[int, DataTick] = {}
        self.room = room
        self.keeps_oldest = keeps_oldest
        self.consumed = 0
        self._order: list[int] = []

    @property
    def newest(self) -> int:
        """The highest tick about which something is known."""
        return max(self.final, self.known.greatest)

    @property
    def last_message(self) -> int:
        """The tick of the last message that is kept (-1: there is none)."""
        return self._order[-1] if self._order else -1

    def has_room_for(self, tick: int) -> bool:
        """Would a message on that tick, of which nothing is known, be kept?"""
        if self.room is None or len(self._order) < self.room:
            return True
        return self._order[0] < self.consumed or tick < self._order[-1]

    def horizon(self, tick: int) -> int:
        """The doubt horizon from `tick` on: the first Q."""
        return self.known.first_missing(tick if tick > self.final else self.final + 1)

    def silence(self, first: int, last: int) -> None:
        """The ticks are S, where nothing else is known of them."""
        self.known.add(max(first, self.final + 1), last)

    def go_on(self, start: int, tick: int, message: DataTick) -> bool:
        """What nearly always comes next: silence from `start`, where the known ends, and a message. False, and nothing
        is done, if it is anything else."""
        order = self._order
        if (self.room is not None and len(order) >= self.room) or not self.known.extend(start, tick):
            return False
        self.messages[tick] = message
        order.append(tick)
        return True

    def learn(self, tick: int, message: DataTick) -> bool:
        """The tick is D; False if that is no news or there is no room. Raises ValueError for a second message on it."""
        if tick <= self.final or tick in self.known:
            held = self.messages.get(tick)
            if held is not None and held.event.id != message.event.id:
                raise ValueError(f"tick {tick} holds {held.event.id}, and now {message.event.id}")
            return False
        if self.room is not None and len(self._order) >= self.room and not self._make_room(tick):
            return False
        self.known.add(tick, tick)
        self.messages[tick] = message
        if not self._order or tick > self._order[-1]:
            self._order.append(tick)
        else:
            self._order.insert(bisect_left(self._order, tick), tick)
        return True

    def finalize(self, upto: int) -> None:
        """The ticks up to `upto` are F."""
        if upto <= self.final:
            return
        self.final = upto
        self.known.remove(0, upto)
        self._forget_messages(bisect_right(self._order, upto))

    def ticks(self, first: int, last: int) -> list[int]:
        """The D ticks from `first` to `last`, in order."""
        return self._order[bisect_left(self._order, first) : bisect_right(self._order, last)]

    def unknown(self, first: int, last: int) -> list[Interval]:
        """The parts of [first, last] that are Q."""
        return self.known.missing(max(first, self.final + 1), last)

    def _make_room(self, tick: int) -> bool:
        if self.keeps_oldest and self._order[0] >= self.consumed:
            latest = self._order[-1]
            if tick > latest:
                return False
            self.known.remove(latest, latest)
            del self.messages[self._order.pop()]
            return True
        if tick < self._order[0]:
            return False
        oldest = self._order[0]
        self.known.remove(0, oldest)
        self._forget_messages(1)
        return True

    def _forget_messages(self, count: int) -> None:
        for tick in self._order[:count]:
            del self.messages[tick]
        del self._order[:count]

    def check_invariants(self) -> None:
        self.known.check_invariants()
        assert sorted(self.messages) == self._order
        assert all(tick in self.known for tick in self._order)
        assert not self._order or self._order[0] > self.final
        assert self.room is None or len(self._order) <= self.room
