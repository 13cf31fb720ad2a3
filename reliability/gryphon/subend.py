"""A subend: hands the messages of one pubend to local subscribers, in the order of ticks, each once.

Theory of operation (sections 2 and 3). The doubt horizon is the first tick still Q. As it advances, the D ticks that
it passes are delivered; what lies behind it is acknowledged. Ticks that stay Q while later ones are known are a gap:
after GCT they become curious and are asked for, and again after NRT, twice that, and so on, until they are known.
When the pubend says that an acknowledgement is expected, gaps up to that tick are asked for at once; with a finite
DCT also ticks older than that, though nothing later has come.

A subscription begins at a tick: the one from which its pubend sends everything that its filter matches (see
`routing.cells.epochs`), and not before what was acknowledged here already.
"""

from collections import deque

from murmur_pubsub.intervals import Interval, IntervalSet
from reliability.gryphon.knowledge import KnowledgeStream
from reliability.gryphon.parameters import GryphonParameters
from reliability.gryphon.round_trip import RoundTrip

_LONGEST = 8
"""So many times NRT is the longest wait before a nack is repeated, while nothing comes."""


class Subend:
    """`next`: the first tick that has not been consumed; `active`: subscriptions made while the broker's table of
    filters had at most this version are delivered to; `look_back`: with a finite DCT, after how many ms it is looked
    for what is older than that."""

    __slots__ = ("_expected", "_gct_us", "_nrt_most_us", "_seen", "_starts", "_waiting", "active", "look_back", "next")

    def __init__(self, begin: int, parameters: GryphonParameters) -> None:
        self.next = begin
        self.active = -1
        self.look_back = 0
        self._starts: deque[tuple[int, int]] = deque()  # (version, tick)
        self._expected = -1
        self._seen = IntervalSet()
        self._waiting: list[tuple[int, int, int, int]] = []  # (due_us, first, last, interval_us)
        self._gct_us = parameters.gct * 1_000
        self._nrt_most_us = parameters.nrt_most * 1_000

    def begin(self, version: int, tick: int) -> None:
        """Subscriptions of that version begin at the tick, or later if that has been passed."""
        self.reach(self.next - 1)  # while no message comes nobody else asks, and what has begun would pile up
        if version > (self._starts[-1][0] if self._starts else self.active):
            latest = self._starts[-1][1] if self._starts else -1
            begin = max(tick, self.next, latest)
            if begin == latest:
                self._starts.pop()
            self._starts.append((version, begin))

    def reach(self, tick: int) -> int:
        """The version of subscriptions that begin no later than the tick."""
        starts = self._starts
        while starts and starts[0][1] <= tick:
            self.active = starts.popleft()[0]
        return self.active

    def version_at(self, tick: int) -> int:
        """The same without a step: the tick is still to come."""
        return max([self.active, *(version for version, begin in self._starts if begin <= tick)])

    def expect(self, tick: int) -> None:
        """Something was sent at the tick: whatever is not known up to there is asked for at once."""
        self._expected = max(self._expected, tick)
        self._waiting.clear()
        self._seen = IntervalSet()
        self._seen.add(self.next, tick)

    def heard(self, tick: int) -> None:
        """Ticks up to this one are wanted (with a finite DCT)."""
        self._expected = max(self._expected, tick)

    def has_gap(self, knowledge: KnowledgeStream) -> bool:
        """Is there a Q with something known, or expected, behind it?"""
        return self.is_wanted(self.next, knowledge)

    def is_wanted(self, tick: int, knowledge: KnowledgeStream) -> bool:
        """Is something known, or expected, at the tick or behind it?"""
        return max(knowledge.newest, self._expected) >= tick

    def ask(self, knowledge: KnowledgeStream, round_trip: RoundTrip, now_us: int) -> tuple[list[Interval], int | None]:
        """The ranges to nack now, and when to look again (None: there is no gap)."""
        nrt_us = round_trip.nrt_us
        nacks: list[Interval] = []
        still: list[tuple[int, int, int, int]] = []
        for due_us, first, last, interval_us in self._waiting:
            for part in knowledge.unknown(max(first, self.next), last):
                if due_us <= now_us:
                    nacks.append(part)
                    # Something has come since it was asked for: this was lost, and the pubend can be reached.
                    heard = round_trip.heard_us >= due_us - interval_us
                    longer = min(2 * interval_us, _LONGEST * nrt_us, self._nrt_most_us)
                    interval = nrt_us if heard else longer
                    still.append((now_us + interval, *part, interval))
                else:
                    still.append((due_us, *part, interval_us))
        waited_for = IntervalSet()
        for _, first, last, _ in still:
            waited_for.add(first, last)
        young = IntervalSet()
        for gap in knowledge.unknown(self.next, max(knowledge.newest, self._expected)):
            for part in waited_for.missing(*gap):
                for old in self._seen.within(*part):
                    nacks.append(old)
                    still.append((now_us + nrt_us, *old, nrt_us))
                for new in self._seen.missing(*part):
                    young.add(*new)
        self._waiting = still
        self._seen = young
        due = [due_us for due_us, *_ in still]
        if young:
            due.append(now_us + self._gct_us)
        return sorted(nacks), max(min(due), now_us + 1) if due else None
