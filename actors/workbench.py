"""The messages of a slow node: one after the other, each after the time that it costs.

The node's gate is shut while it is at work, so that it does nothing else in that time (no timer, no heartbeat). Between
two messages it does what has come up meanwhile. The loop goes on with the others, and with what links delay: to block
it would hold that up as well, and the order that ends the slowness.
"""

from collections import deque
from typing import Any, Protocol

from actors.clock import Clock
from actors.connection import Connection
from actors.gate import Gate


class Worker(Protocol):
    """The node that a workbench is of."""

    clock: Clock
    gate: Gate

    def holds_back(self, connection: Connection) -> bool:
        """Does the node take nothing from that connection now, because a queue to another peer is full?"""

    def take_now(self, connection: Connection, bodies: list[Any]) -> None:
        """Take the messages at once."""


class Workbench:
    """Of one node. `work_us`: what a message costs (0: nothing). `occupied`: a message goes to the end of those that
    wait here."""

    def __init__(self, worker: Worker) -> None:
        self.work_us = 0
        self._worker = worker
        self._waiting: deque[tuple[Connection, Any]] = deque()
        self.occupied = False

    def slow_down(self, work_us: int) -> None:
        """From now on each message costs so much; 0 ends it once those are taken that wait."""
        self.work_us = work_us
        self.occupied = bool(work_us or self._waiting)

    def put(self, connection: Connection, bodies: list[Any]) -> None:
        """Messages have arrived."""
        idle = not self._waiting
        self._waiting.extend((connection, body) for body in bodies)
        if idle and self._waiting:
            self._begin()

    def _begin(self) -> None:
        worker = self._worker
        worker.gate.work(worker.clock.wall_s(self.work_us), self._take)

    def _take(self) -> None:
        worker = self._worker
        connection, body = self._waiting[0]
        if worker.holds_back(connection):
            # All of it, or what comes later would be taken before what goes back now.
            connection.backlog += [each for other, each in self._waiting if other is connection]
            self._waiting = deque(each for each in self._waiting if each[0] is not connection)
        else:
            worker.take_now(connection, [body])
            self._waiting.popleft()
        if self._waiting:
            worker.gate.call_later(0, self._begin)
        self.occupied = bool(self.work_us or self._waiting)
