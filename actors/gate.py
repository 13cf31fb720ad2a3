"""The gate of a node: while it is shut the node does nothing, and the others of its actor go on.

Theory of operation. Of a node that is stalled here nothing is read, so that what peers send waits in the kernel and
then with them; and whatever else would have the node act (a timer, a link that is made or lost, a record that is safe)
waits at the gate. Its tasks, such as its heartbeats and the script that it plays, wait there too. When the gate opens,
what waits goes on in the order in which it came, as with a process that goes on. What the node had handed to its
sockets still leaves. A node with a process of its own is stalled by stopping that, too. When it goes on the gate is
still shut, until the node has been told what has become of its links.

A slow node is at work for a while at each message: the gate is shut for so long, and the message is taken then.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol


class Reader(Protocol):
    """A connection that may be kept from reading."""

    def hold(self, held: bool) -> None:
        """Stop reading, or go on unless something else forbids it."""


class Gate:
    """Of one incarnation of a node. `stalled`: a fault keeps the gate shut."""

    def __init__(self) -> None:
        self.stalled = False
        self._loop = asyncio.get_running_loop()
        self._working: asyncio.TimerHandle | None = None
        self._worked: Callable[[], None] | None = None
        """What the node has worked for while it was stalled."""
        self._waiting: deque[Callable[[], None]] = deque()
        self._readers: dict[Reader, None] = {}
        self._opened = asyncio.Event()
        self._opened.set()

    @property
    def shut(self) -> bool:
        """May the node do nothing now?"""
        return self.stalled or self._working is not None

    def enter(self, action: Callable[[], None]) -> None:
        """Do it now, or when the gate opens."""
        if self.shut:
            self._waiting.append(action)
        else:
            action()

    async def passed(self) -> None:
        """Wait until the gate is open."""
        while self.shut:
            await self._opened.wait()

    def call_later(self, wall_s: float, action: Callable[[], None]) -> asyncio.TimerHandle:
        """Have it done after that time, or when the gate opens then, unless the handle was cancelled meanwhile."""

        def due() -> None:
            if self.shut:
                self._waiting.append(lambda: None if handle.cancelled() else action())
            else:
                action()

        handle = self._loop.call_later(wall_s, due)
        return handle

    # ---------------------------------------------------------------------------------------- connections
    def watch(self, reader: Reader) -> None:
        """A connection is there: it reads only while the gate is open."""
        self._readers[reader] = None
        if self.shut:
            reader.hold(True)

    def forget(self, reader: Reader) -> None:
        """The connection is gone."""
        self._readers.pop(reader, None)

    # --------------------------------------------------------------------------------------------- shutting
    def stall(self) -> None:
        """Shut the gate until `resume`."""
        self.stalled = True
        self._shut()

    def resume(self) -> None:
        """A stall is over: go on with what has come meanwhile."""
        self.stalled = False
        if self._worked is not None:
            done, self._worked = self._worked, None
            self._end_work(done)
        elif not self.shut:
            self._open()

    def work(self, wall_s: float, then: Callable[[], None]) -> None:
        """Shut the gate for so long, and do that then; it may begin the next work."""
        self._working = self._loop.call_later(wall_s, self._end_work, then)
        self._shut()

    def abandon(self) -> None:
        """The node is gone: nothing of what waits is ever done."""
        self._waiting.clear()
        self._worked = None
        if self._working is not None:
            self._working.cancel()

    def _end_work(self, then: Callable[[], None]) -> None:
        if self.stalled:
            self._worked = then
            return
        self._working = None
        then()
        if not self.shut:
            self._open()

    def _shut(self) -> None:
        if self._opened.is_set():
            self._opened.clear()
            for reader in self._readers:
                reader.hold(True)

    def _open(self) -> None:
        while self._waiting and not self.shut:
            self._waiting.popleft()()
        if not self.shut:
            self._opened.set()
            for reader in list(self._readers):
                reader.hold(False)
