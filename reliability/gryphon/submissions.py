"""What publishers submit: each publication is logged once, and in the order of its publisher's numbers.

A client repeats what it takes for lost, and after its broker was away everything that was not accepted. The log knows
the last number of each publisher. A number that is ahead waits for those before it, unless the client says that it has
none of them any more (it was restarted): then they never come.
"""

from collections.abc import Iterator

from murmur_pubsub.event import Event

_AHEAD_MOST = 1_000


class Submissions:
    """`last`: publisher to the last number taken; the log's own table, which grows as events are appended to it."""

    __slots__ = ("_ahead", "_last")

    def __init__(self, last: dict[int, int]) -> None:
        self._last = last
        self._ahead: dict[int, dict[int, Event]] = {}

    def is_old(self, event: Event) -> bool:
        """Has an event of that number been taken before?"""
        return event.sequence <= self._last.get(event.source, -1)

    def take(self, event: Event, oldest: int) -> Iterator[Event]:
        """The events to be appended now, in order, each appended before the next is asked for."""
        source = event.source
        ahead = self._ahead.setdefault(source, {})
        if len(ahead) < _AHEAD_MOST:
            ahead[event.sequence] = event
        if oldest > self._last.get(source, -1) + 1:
            self._last[source] = oldest - 1
            for sequence in [each for each in ahead if each < oldest]:
                del ahead[sequence]
        while (following := ahead.pop(self._last.get(source, -1) + 1, None)) is not None:
            yield following
        if not ahead:
            del self._ahead[source]
