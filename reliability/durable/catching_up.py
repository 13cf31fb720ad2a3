"""One client's durable subscription at the broker where the client is: how far it is with each pubend.

Theory of operation. A client that has come (back) is given what its publishers' brokers keep for it, pubend by pubend,
in order, by a catch-up stream: asked for so many messages at a time, as many as the client has room for. Meanwhile the
consolidated stream, which all subscribers here share, goes on without it. Each step of the catch-up stream says after
which tick it is the first for the client, so what is lost, late or repeated leaves no gap and no doubt.

It switches over where both streams meet: once it has come at least as far as the consolidated stream, which from the
tick that follows on has everything that the client wants. Then it is *live*. A live client whose window is full falls
behind, and catches up from there when it has room: it holds up nobody else.
"""

import heapq
from collections.abc import Sequence

from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import NodeName
from reliability.durable.messages import CatchUpStep, Caught, CaughtUp

_FIRST = 10
"""Messages that are asked for at first; twice as many each time that all have come, and so many again if nothing
of them comes any more."""


class CatchUpStream:
    """Of one pubend, for one client. `tick`: up to there the client was handed everything. `left`: so many messages are
    still to come of those asked for (0: nothing is asked for). `at_end`: there was no more when it was last asked, or
    when it began. `due_us`: when what was asked for is overdue."""

    __slots__ = ("_ahead", "_ends", "_limit", "_most", "asked", "at_end", "due_us", "left", "live", "tick")

    def __init__(self, tick: int, limit: int) -> None:
        self.tick = tick
        self.live = False
        self.asked = False
        """Has it ever asked for anything?"""
        self.at_end = False
        self.left = 0
        self.due_us = 0
        self._most = min(_FIRST, limit)
        self._limit = limit
        self._ahead: dict[int, CatchUpStep] = {}
        self._ends: list[int] = []

    def begin_at(self, end: int, due_us: int) -> None:
        """There is nothing for the client up to the tick `end`; at that time it asks whether that is so still."""
        self.tick = max(self.tick, end)
        self.at_end = True
        self.due_us = due_us

    def ask(self, room: int, due_us: int) -> int:
        """For how many messages to ask now, of a client that has room for so many."""
        self.asked = True
        self.left = min(self._most, room)
        self.due_us = due_us
        return self.left

    def put_off(self) -> None:
        """What was asked for is overdue, or it is time to ask again."""
        if self.left:
            self._most = min(_FIRST, self._limit)
        self.left = 0
        self.at_end = False

    def put(self, step: CatchUpStep, due_us: int) -> None:
        """A step has come, and the next one is overdue at that time; what is no news, or too much, is dropped."""
        if type(step) is CaughtUp and step.after <= self.tick >= step.tick:
            self.go_on(step._replace(tick=self.tick))
            return
        former = self._ahead.get(step.tick)
        # One may be here that begins later: what would lead to it was given up, or withdrawn, and never comes.
        news = step.tick > max(self.tick, step.after) and (former is None or step.after < former.after)
        if news and (former is not None or len(self._ahead) < 2 * self._limit):
            self.due_us = due_us
            self._ahead[step.tick] = step
            if former is None:
                heapq.heappush(self._ends, step.tick)

    def following(self) -> CatchUpStep | None:
        """The step that goes on from `tick`, if it is here. One that a withdrawal has made untrue may be here too."""
        while self._ends and self._ends[0] <= self.tick:
            del self._ahead[heapq.heappop(self._ends)]
        if self._ends and self._ahead[self._ends[0]].after <= self.tick:
            return self._ahead[self._ends[0]]
        return next((self._ahead[end] for end in sorted(self._ends) if self._ahead[end].after <= self.tick), None)

    def go_on(self, step: CatchUpStep) -> None:
        """The step was taken."""
        self.tick = step.tick
        self.at_end = type(step) is CaughtUp
        if self.at_end:
            self.left = 0
        elif self.left and type(step) is Caught:
            self.left -= 1
            if not self.left:
                self._most = min(2 * self._most, self._limit)

    def go_live(self) -> None:
        """From the next tick on the consolidated stream has everything."""
        self.live = True
        self.left = 0
        self._ahead.clear()
        self._ends.clear()

    def fall_behind(self, tick: int) -> None:
        """The client has no room: it has everything up to that tick."""
        self.live = self.at_end = False
        self.tick = tick


class Holder:
    """A client here. `version`: that of the broker's filters since which all that it wants is among them. `has`: pubend
    to the last tick that the client itself has acknowledged; `heard` is what the publishers' brokers know of that.
    `unlisted`: publishers' brokers that have not recorded the revision yet. `begins`: pubends with which it was live
    when the revision was made, and whose consolidated stream is not known to be handed out by it yet."""

    __slots__ = (
        "begins", "client", "filters", "has", "heard", "revision", "since", "streams", "subscribers", "unlisted",
        "version",
    )  # fmt: skip

    def __init__(self, client: NodeName, has: dict[int, int], since: int) -> None:
        self.client = client
        self.since = since
        """When it came, in ms: what was asked for before was for an earlier stay here."""
        self.has = has
        self.heard: dict[int, int] = {}
        self.revision = -1
        self.version = 0
        self.subscribers: Sequence[int] = ()
        self.filters: Sequence[Filter] = ()
        self.streams: dict[int, CatchUpStream] = {}
        self.unlisted: dict[NodeName, None] = {}
        self.begins: dict[int, None] = {}

    def is_live(self, pubend: int, tick: int) -> bool:
        """Is the message on that tick of the consolidated stream for it?"""
        stream = self.streams.get(pubend)
        return stream is not None and stream.live and tick > stream.tick

    @property
    def behind(self) -> list[int]:
        """The pubends with which it is not live."""
        return [pubend for pubend, stream in self.streams.items() if not stream.live]

    def unreleased(self, pubends: Sequence[int]) -> dict[int, int]:
        """Of these, what the client has and their broker does not know of."""
        return {each: self.has[each] for each in pubends if self.has.get(each, -1) > self.heard.get(each, -1)}

    def check_invariants(self) -> None:
        for stream in self.streams.values():
            assert not (stream.live and stream.left)
