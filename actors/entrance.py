"""Processes that have connected to a node and have not yet proven that they belong to the run.

Such connections are bounded in number and time, and each that is turned away is counted and journaled. When there are
too many, the one that has waited longest goes, so that silent strangers cannot keep a peer out, which is through within
milliseconds. The journal is bounded too: of each reason the first is written at once and further ones are gathered for
a second, so that the counts add up and a flood fills no disk.
"""

import asyncio
import resource
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from actors.gate import Gate
from murmur_pubsub.journal import Refusal

HALF_OPEN_MAX = 256
HANDSHAKE_S = 5.0
"""Wall-clock seconds: what is measured is the patience with a stranger, not a part of the emulated world."""
_HELD_UP_S = 1.0
_GATHER_S = 1.0


class HalfOpen(Protocol):
    """A connection that another process has dialled and that has proven nothing yet."""

    def abort(self) -> None:
        """Close the connection at once, with nothing said."""


class Entrance:
    """The half-open connections of one node. `journal` is called with a reason, and how many were turned away for it;
    `refused` counts all of them. `gate`: that of the node."""

    def __init__(self, journal: Callable[[Refusal, int], None], gate: Gate) -> None:
        self.refused = 0
        self._journal = journal
        self._gate = gate
        self._loop = asyncio.get_running_loop()
        self._half_open: dict[HalfOpen, asyncio.TimerHandle] = {}
        descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most = min(HALF_OPEN_MAX, max(1, descriptors // 4))  # so that some are left for peers
        self._gathered: Counter[Refusal] = Counter()
        self._lately: dict[Refusal, None] = {}
        self._writing: asyncio.TimerHandle | None = None
        self._closed = False

    def came(self, connection: HalfOpen) -> None:
        """A process has connected."""
        if self._closed:
            connection.abort()
            return
        self._wait_for(connection)
        if len(self._half_open) > self._most:
            self.turn_away(next(iter(self._half_open)), Refusal.TOO_MANY)

    def passed(self, connection: HalfOpen) -> bool:
        """It is half open no longer; False if it was not."""
        deadline = self._half_open.pop(connection, None)
        if deadline is not None:
            deadline.cancel()
        return deadline is not None

    def left(self, connection: HalfOpen) -> None:
        """The connection is gone; perhaps it was still half open."""
        if self.passed(connection):
            self._count(Refusal.LEFT)

    def turn_away(self, connection: HalfOpen, reason: Refusal) -> None:
        """Close the connection at once, with nothing said, and journal it."""
        self.passed(connection)
        self._count(reason)
        connection.abort()

    def end(self) -> None:
        """Let no process in any more, and write what is not yet in the journal."""
        self._closed = True
        for connection in list(self._half_open):
            self.turn_away(connection, Refusal.LEFT)
        if self._writing is not None:
            self._writing.cancel()
        self._write()

    def abandon(self) -> None:
        """Close every half-open connection and journal nothing, as if the process were gone."""
        self._closed = True
        for connection in list(self._half_open):
            self.passed(connection)
            connection.abort()
        if self._writing is not None:
            self._writing.cancel()

    def _wait_for(self, connection: HalfOpen) -> None:
        due = self._loop.time() + HANDSHAKE_S
        self._half_open[connection] = self._gate.call_later(HANDSHAKE_S, lambda: self._too_slow(connection, due))

    def _too_slow(self, connection: HalfOpen, due: float) -> None:
        if self._loop.time() - due > _HELD_UP_S:  # this node was held up, and has not looked at what came
            self._wait_for(connection)
        else:
            self.turn_away(connection, Refusal.TOO_SLOW)

    def _count(self, reason: Refusal) -> None:
        self.refused += 1
        self._gathered[reason] += 1
        if reason not in self._lately:
            self._lately[reason] = None
            self._write_one(reason)
        if self._writing is None and not self._closed:
            self._writing = self._gate.call_later(_GATHER_S, self._write_again)

    def _write_again(self) -> None:
        self._writing = None
        self._lately.clear()
        if self._write():
            self._writing = self._gate.call_later(_GATHER_S, self._write_again)

    def _write(self) -> bool:
        """Write a row for each reason that has come up since its last one; was there any?"""
        reasons = [reason for reason in Refusal if self._gathered[reason]]
        for reason in reasons:
            self._lately[reason] = None
            self._write_one(reason)
        return bool(reasons)

    def _write_one(self, reason: Refusal) -> None:
        self._journal(reason, self._gathered.pop(reason))
