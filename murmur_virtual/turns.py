"""What waits at a node in virtual time until it has its turn: while the node is stalled, or at work on a message."""

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

Action = Callable[..., None]
"""Called with its arguments and the time."""


class Worker(Protocol):
    """Whose turns these are: a `VirtualNode`."""

    down: bool
    stalled: bool

    def refresh(self) -> None:
        """Something waits, or nothing does any more."""


class Turns:
    """`waiting`: actions with their arguments, in order. `work_us`: a fault makes each message cost this much more."""

    __slots__ = ("_awake", "_busy_until_us", "_call_at", "_worker", "waiting", "work_us")

    def __init__(self, worker: Worker, call_at: Callable[[int, Callable[[int], None]], None]) -> None:
        self.waiting: deque[tuple[Action, tuple[Any, ...]]] = deque()
        self.work_us = self._busy_until_us = 0
        self._worker = worker
        self._call_at = call_at
        self._awake = False

    def must_wait(self, action: Action, arguments: tuple[Any, ...], now_us: int, work: bool) -> bool:
        """Is the node stalled or busy? Then the action is called later. `work`: if not, it keeps the node busy."""
        busy = self._worker.stalled or (bool(self.waiting) and not self._awake)
        if not busy and work and self.work_us:
            busy = self.is_at_work(now_us)
            if not busy:
                self._busy_until_us = now_us + self.work_us
        if busy:
            self.wait(action, *arguments)
        return busy

    def is_at_work(self, now_us: int) -> bool:
        """Does a message still keep it busy?"""
        return self.work_us > 0 and now_us < self._busy_until_us

    def wait(self, action: Action, *arguments: Any) -> None:
        """Have it called after all that waits already; what has just had its turn keeps it."""
        if not self.waiting and not self._awake and not self._worker.stalled:
            self._call_at(self._busy_until_us, self.wake)
        if self._awake:
            self.waiting.appendleft((action, arguments))
        else:
            self.waiting.append((action, arguments))
        self._worker.refresh()

    def forget(self, is_gone: Callable[[Action, tuple[Any, ...]], bool]) -> None:
        """Of what waits, these will not be called."""
        self.waiting = deque(each for each in self.waiting if not is_gone(*each))
        self._worker.refresh()

    def wake(self, now_us: int) -> None:
        """Call what waits, one after the other, as far as the node can."""
        worker = self._worker
        if worker.down or worker.stalled or self._awake:
            return
        self._awake = True
        while self.waiting and now_us >= self._busy_until_us and not worker.stalled and not worker.down:
            action, arguments = self.waiting.popleft()
            action(*arguments, now_us)
        self._awake = False
        if self.waiting and not worker.stalled:
            self._call_at(self._busy_until_us, self.wake)
        worker.refresh()
