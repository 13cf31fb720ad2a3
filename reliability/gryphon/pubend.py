"""A pubend: it puts messages on ticks, one each, in the order in which they came.

Theory of operation (sections 2 and 3). A message gets the tick of the present millisecond, or the next free one. It is
logged, and only when the log has it does the pubend's knowledge of it begin and does it go out. All ticks between are
silence. The pubend knows everything up to its last message, and as time goes by further: up to just before now, as
long as no message is on its way into the log.

After a restart no tick is used again: the log tells the last message's tick, and silence was only ever announced for
the past.
"""

from collections import deque

from reliability.gryphon.knowledge import DataTick, KnowledgeStream
from reliability.gryphon.pubend_log import Logged


class Pubend:
    """One pubend at its broker. `last` is the greatest tick in use; `knowledge` goes as far as may be told."""

    __slots__ = ("_being_logged", "knowledge", "last", "last_message", "number")

    def __init__(self, number: int, knowledge: KnowledgeStream) -> None:
        self.number = number
        self.knowledge = knowledge
        self.last = -1
        self.last_message = -1
        self._being_logged: deque[tuple[int, Logged]] = deque()

    def recover(self, logged: Logged) -> None:
        """A message that the log holds."""
        self.advance_silence_to(logged.tick - 1)
        self.knowledge.learn(logged.tick, DataTick(logged.event, 0, 0))
        self.last = self.last_message = max(self.last, logged.tick)

    def next_tick(self, now_us: int) -> int:
        """The tick of a message that comes now."""
        return max(now_us // 1000, self.last + 1)

    def being_logged(self, token: int, logged: Logged) -> None:
        """The message has its tick, and is on its way into the log."""
        self.last = logged.tick
        self._being_logged.append((token, logged))

    def stored(self, token: int) -> tuple[int, Logged] | None:
        """If that was the oldest message on its way into the log: where the silence before it begins, and the message,
        which is known from now on."""
        if not self._being_logged or self._being_logged[0][0] != token:
            return None
        _, logged = self._being_logged.popleft()
        start = min(self.knowledge.newest + 1, logged.tick)
        self.knowledge.silence(start, logged.tick - 1)
        self.knowledge.learn(logged.tick, DataTick(logged.event, 0, 0))
        self.last_message = logged.tick
        return start, logged

    def silent_until(self, now_us: int) -> int:
        """Up to which tick nothing will be published any more."""
        if self._being_logged:
            return self._being_logged[0][1].tick - 1
        return max(self.last, now_us // 1000 - 1)

    def advance_silence_to(self, tick: int) -> tuple[int, int] | None:
        """The ticks that are known to be silent now and were not before, if there are any."""
        first = self.knowledge.newest + 1
        if tick < first:
            return None
        self.knowledge.silence(first, tick)
        self.last = max(self.last, tick)
        return first, tick
