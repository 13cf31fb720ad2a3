"""AckExpected: a pubend that lacks acknowledgements for longer than AET says so, and brokers on the way say it again.

Theory of operation (section 4.2). AET after a message that is not acknowledged, a pubend sends AckExpected, with the
tick of its last one that half of AET has passed since: what was sent later is on its way, and would be asked for. So it
does soon after a restart with the tick of its last one, and again until all is acknowledged, more slowly while nothing
is. A broker that owes acknowledgements passes it on; one that has them answers with its own.

AckExpected may be lost on each link. A broker that has sent it therefore repeats it to the branches that still owe
something, until the pubend itself would do so as often by AET.

An acknowledgement goes to every broker of a cell, and may be lost on its way to one of them. The pubend has it by the
others, so it expects nothing, and that broker would keep the messages until the next acknowledgement of their stream.
A broker that is not alone in its cell therefore looks at what it keeps for its branches. Where nothing has come for the
longest AET, it expects acknowledgements itself, each time after twice as long.
"""

from murmur_pubsub.machine import Effect, Record
from reliability.gryphon.parameters import GryphonParameters
from reliability.gryphon.streams import BrokerStream, stream_timer
from routing.router import StreamRouter

ACK_EXPECTED_SENT = 154
"""Topic of the journal rows of AckExpected messages of a pubend: the value is the tick."""
_FIRST_LINK_US = 100_000
"""How often a pubend looks for a link to send its AckExpected over, while it has none."""


class AckExpectations:
    """Those of one broker, for its own pubends and for the streams that pass it."""

    __slots__ = ("_aet", "_aet_most", "_expecting", "_least_us", "_reminding", "_router", "keeping")

    def __init__(self, parameters: GryphonParameters, router: StreamRouter) -> None:
        self._aet, self._aet_most = parameters.acknowledged_within
        self._least_us = parameters.ack_delay * 1_000
        self._router = router
        self._expecting: dict[int, tuple[int, int, int]] = {}
        """Pubend to the interval in ms, F when it was last looked at, and the tick of the last message that was logged
        when the broker was restarted."""
        self._reminding: dict[int, tuple[int, int]] = {}  # pubend to (tick, wait in us)
        self.keeping: dict[int, tuple[int, int]] = {}
        """Streams with messages kept for branches, at the last look: the tick of the last one, and the wait in ms."""

    def __bool__(self) -> bool:
        return bool(self._expecting)

    def begin(self, number: int, logged: int = -1) -> list[Effect]:
        """Something was sent that is not acknowledged; in an earlier life, if `logged` is a tick."""
        if number in self._expecting:
            return []
        self._expecting[number] = (self._aet, -1, logged)
        return [stream_timer("expect", number, _FIRST_LINK_US if logged >= 0 else self._aet * 1_000)]

    def look(self, stream: BrokerStream, now_us: int) -> list[Effect]:
        """AET has passed: has everything that the pubend here sent before that been acknowledged?"""
        number, pubend, final = stream.number, stream.pubend, stream.knowledge.final
        assert pubend is not None
        last = pubend.last_message
        if last <= final:
            del self._expecting[number]
            return []
        if not any(self._router.way(branch, number) for branch in stream.ostreams):
            return [stream_timer("expect", number, _FIRST_LINK_US)]
        interval, before, logged = self._expecting[number]
        # A pubend's ticks are its clock's ms, or later ones where it publishes faster than that.
        now_ms = now_us // 1_000
        overdue_ms, oldest = now_ms - self._aet, stream.knowledge.ticks(final + 1, last)[0]
        if oldest > max(overdue_ms, logged):
            self._expecting[number] = (self._aet, final, logged)
            return [stream_timer("expect", number, min(self._aet, oldest - overdue_ms) * 1_000)]
        expected = max(oldest, logged, *stream.knowledge.ticks(final + 1, now_ms - self._aet // 2)[-1:])
        longer = self._aet if final > before >= 0 else min(2 * interval, self._aet_most)
        self._expecting[number] = (longer, final, logged)
        wait_ms = longer if last == expected else min(longer, last - overdue_ms)
        return [
            *self.pass_on(stream, expected),
            Record(ACK_EXPECTED_SENT, expected),
            stream_timer("expect", number, wait_ms * 1_000),
        ]

    def pass_on(self, stream: BrokerStream, tick: int) -> list[Effect]:
        """AckExpected goes to those that owe something, and soon again."""
        return [*stream.expect_ack(tick), *self._again(stream, tick, self._least_us + stream.round_trip.nrt_us)]

    def repeat(self, stream: BrokerStream) -> list[Effect]:
        """It was passed on a while ago: to those that still owe acknowledgements it goes again."""
        tick, waited_us = self._reminding.pop(stream.number)
        return [*stream.expect_ack(tick), *self._again(stream, tick, 2 * waited_us)]

    def keep(self, stream: BrokerStream) -> list[Effect]:
        """A message of the stream is kept for branches: look later whether they have it."""
        number = stream.number
        if number in self.keeping or self._router.stands_alone:
            return []
        self.keeping[number] = (-1, self._aet_most)
        return [stream_timer("kept", number, self._aet_most * 1_000)]

    def look_at_kept(self, stream: BrokerStream) -> list[Effect]:
        """Messages were kept a while ago: are they still, though nothing has followed?"""
        number, last = stream.number, stream.knowledge.last_message
        before, wait = self.keeping.pop(number)
        if last < 0:
            return []
        effects: list[Effect] = []
        if last == before:
            effects = self.pass_on(stream, last)
            wait *= 2
        self.keeping[number] = (last, wait)
        return [*effects, stream_timer("kept", number, wait * 1_000)]

    def _again(self, stream: BrokerStream, tick: int, wait_us: int) -> list[Effect]:
        if wait_us >= self._aet * 1_000 or not stream.owing(tick):
            return []
        self._reminding[stream.number] = tick, wait_us
        return [stream_timer("remind", stream.number, wait_us)]
