"""Uniform total order: one broker's subends take turns, so that all subscribers see the events of all pubends alike.

Theory of operation (the paper's abstract names this order, and its text at hand says no more: the rest is ours). A
message's place in the order is its tick, and among messages on one tick the number of its pubend. No broker decides
anything, so no fault can make two brokers decide differently: each merges the streams by these places. A message has
its turn when nothing can come before it any more: the doubt horizon of every other stream has passed its place.

So the slowest stream sets the pace, and a pubend that says nothing would hold up all others. It therefore says how far
it is silent SIT after its broker saw a message on a later tick. A subend that others wait for is curious, as about a
gap: it asks after GCT, and its pubend answers with silence up to that moment. A message that nobody here wants is
acknowledged in its turn as well. Nobody here waits for that turn, so the others are asked when AckExpected comes. While
a pubend's broker is away, what others publish waits: in their logs, as long as their messages fit nowhere else.

Two things could break the order when a broker restarts, and do not. It begins at ticks that its pubends name when they
hear of it, and these lie behind all that it had delivered: a horizon had passed that, so its pubend had logged it.
A pubend whose broker was forgotten by an operator is left out; when it returns, its messages before the place reached
are lost to subscribers here.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import TypeAlias

from murmur_pubsub.machine import Effect
from reliability.gryphon.knowledge import DataTick
from reliability.gryphon.streams import BrokerStream
from reliability.gryphon.subend import Subend
from routing.router import StreamRouter

Place: TypeAlias = tuple[int, int]
"""A tick, and the number of a pubend."""
Merged: TypeAlias = tuple[BrokerStream, Subend]
Hand: TypeAlias = Callable[[int, int, DataTick, int, list[Effect]], bool]


class Merge:
    """The streams of one broker, merged. `hand` hands a message (pubend, tick, message, version of subscriptions) to
    its subscribers by effects that it appends; False: one of them has no room, and nothing is done."""

    __slots__ = ("_expected", "_hand", "_reached", "_router", "_streams")

    def __init__(self, streams: Mapping[int, BrokerStream], router: StreamRouter, hand: Hand) -> None:
        self._streams = streams
        self._router = router
        self._hand = hand
        self._reached: Place = (0, -1)  # all before this have had their turn
        self._expected = -1

    def advance(self, effects: list[Effect], blocked: dict[int, None]) -> list[Merged]:
        """Hand over what has its turn, in order; the streams that got further. A pubend whose message found no room is
        put among those that are blocked."""
        taking = self._taking
        merged = _heard_of(taking)
        if not merged or len(merged) < len(taking):
            return []  # what a pubend says that has not been heard of may come before all others
        for stream, subend in merged:
            subend.next = max(subend.next, _first_not_before(self._reached, stream.number))
        reached = min((stream.knowledge.horizon(subend.next), stream.number) for stream, subend in merged)
        if reached <= self._reached:
            return []  # as mostly: what came is not what all wait for
        turns = [
            (tick, stream.number, stream.knowledge.messages[tick], subend)
            for stream, subend in merged
            for tick in stream.knowledge.ticks(subend.next, _first_not_before(reached, stream.number) - 1)
        ]
        for tick, number, message, subend in sorted(turns, key=itemgetter(0, 1)):
            if not self._hand(number, tick, message, subend.reach(tick), effects):
                reached = tick, number
                blocked[number] = None
                break
        self._reached = max(self._reached, reached)
        return [each for each in merged if _go_on(each, _first_not_before(reached, each[0].number))]

    def expect(self, tick: int) -> None:
        """Some pubend expects acknowledgements up to the tick: all streams have to be so far."""
        self._expected = max(self._expected, tick)

    def behind(self) -> list[Merged]:
        """The streams that are to be asked for, and are not yet: they have gaps, or a message here, or a pubend that
        expects acknowledgements, waits for what they have to say."""
        merged = _heard_of(self._taking)
        newest = self._expected
        for stream, subend in merged:
            kept = stream.knowledge.last_message
            if kept >= subend.next and kept > newest:
                newest = kept
        for _, subend in merged:
            subend.heard(newest)
        return [
            (stream, subend)
            for stream, subend in merged
            if stream.pubend is None and not stream.watching_gap and self.lacks(stream, subend)
        ]

    def lacks(self, stream: BrokerStream, subend: Subend) -> bool:
        """Is there a tick that the subend must hear of, and room for what it hears?"""
        horizon = stream.knowledge.horizon(subend.next)
        wanted = subend.is_wanted(horizon, stream.knowledge) and stream.knowledge.has_room_for(horizon)
        return wanted and not self._router.is_forgotten(stream.root)

    @property
    def _taking(self) -> list[BrokerStream]:
        """The streams that take turns."""
        return [stream for stream in self._streams.values() if not self._router.is_forgotten(stream.root)]


def _heard_of(streams: Sequence[BrokerStream]) -> list[Merged]:
    """Those that have been heard of, with their subends."""
    return [(stream, stream.subend) for stream in streams if stream.subend is not None]


def _first_not_before(place: Place, number: int) -> int:
    """The first tick of the pubend that is not before the place."""
    tick, at = place
    return tick + 1 if number < at else tick


def _go_on(merged: Merged, tick: int) -> bool:
    """The subend has consumed all before the tick; was that news?"""
    _, subend = merged
    if tick <= subend.next:
        return False
    subend.next = tick
    return True
