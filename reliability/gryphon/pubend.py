"""A pubend: it puts messages on ticks, one each, in the order in which they came.

Theory of operation (sections 2 and 3). A message gets the tick of the present millisecond, or the next free one. It is
logged, and only when the log has it does the pubend's knowledge of it begin and does it go out. All ticks between are
silence. Silence up to just before now can be told without a message, as long as none is on its way into the log. It is
logged before as a message is, so that no tick is used again after a restart, even where the clock has gone back: the
log knows the last tick of which anything was told.
"""

from collections import deque
from typing import NamedTuple

from reliability.gryphon.knowledge import DataTick, KnowledgeStream
from reliability.gryphon.pubend_log import Logged


class _BeingLogged(NamedTuple):
    """What is on its way into the log: a message on the tick, or silence up to it."""

    token: int
    tick: int
    logged: Logged | None


class Pubend:
    """One pubend at its broker. `last` is the greatest tick in use; `knowledge` goes as far as may be told."""

    __slots__ = ("_on_way", "knowledge", "last", "last_message", "number")

    def __init__(self, number: int, knowledge: KnowledgeStream) -> None:
        self.number = number
        self.knowledge = knowledge
        self.last = -1
        self.last_message = -1
        self._on_way: deque[_BeingLogged] = deque()

    def recover(self, logged: Logged) -> None:
        """A message that the log holds."""
        self.recover_silence(logged.tick - 1)
        self.knowledge.learn(logged.tick, DataTick(logged.event, 0, 0))
        self.last = self.last_message = max(self.last, logged.tick)

    def next_tick(self, now_us: int) -> int:
        """The tick of a message that comes now."""
        return max(now_us // 1000, self.last + 1)

    def being_logged(self, token: int, tick: int, logged: Logged | None) -> None:
        """A message on the tick, or silence up to it, is on its way into the log."""
        self.last = tick
        self._on_way.append(_BeingLogged(token, tick, logged))

    def stored(self, token: int) -> tuple[int, int, Logged | None]:
        """The oldest record on its way is in the log: from which tick to which something is known now, silence but for
        the message (if there is one) on the last of them."""
        oldest, tick, logged = self._on_way.popleft()
        assert oldest == token, f"record {token} is stored out of turn"
        start = min(self.knowledge.newest + 1, tick)
        if logged is None:
            self.knowledge.silence(start, tick)
        else:
            self.knowledge.silence(start, tick - 1)
            self.knowledge.learn(tick, DataTick(logged.event, 0, 0))
            self.last_message = tick
        return start, tick, logged

    @property
    def is_being_logged(self) -> bool:
        """Is something on its way into the log?"""
        return bool(self._on_way)

    def recover_silence(self, tick: int) -> None:
        """The log holds nothing more up to the tick, which is in use."""
        self.knowledge.silence(self.knowledge.newest + 1, tick)
        self.last = max(self.last, tick)
