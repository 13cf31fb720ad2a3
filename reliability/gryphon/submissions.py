"""What publishers submit: each publication is logged once, and in the order of its publisher's numbers.

A client repeats what it takes for lost, and over each new link everything that was not accepted. The log knows the last
number of each publisher. A number that is ahead waits for those before it, unless the client says that it has none of
them any more (it was restarted): then they never come. A client that publishes no more says nothing, so what is ahead
goes when the client's link goes. All wait here while the log has no room, and what does not fit here waits at its
client, which will submit it again.
"""

from collections.abc import Collection

from murmur_pubsub.event import Event
from murmur_pubsub.machine import NodeName

_AHEAD_MOST = 1_000
"""Publications of one publisher that wait here."""


class Submissions:
    """`last`: publisher to the last number taken; the log's own table, which grows as events are appended to it."""

    __slots__ = ("_ahead", "_last")

    def __init__(self, last: dict[int, int]) -> None:
        self._last = last
        self._ahead: dict[int, dict[int, tuple[Event, NodeName]]] = {}

    def is_old(self, event: Event) -> bool:
        """Has an event of that number been taken before?"""
        return event.sequence <= self._last.get(event.source, -1)

    def put(self, event: Event, oldest: int, client: NodeName) -> None:
        """A client submits an event that is not old; `oldest` is that of the publisher's that it still has."""
        source = event.source
        ahead = self._ahead.setdefault(source, {})
        if len(ahead) < _AHEAD_MOST:
            ahead[event.sequence] = event, client
        if oldest > self._last.get(source, -1) + 1:
            self._last[source] = oldest - 1
            for sequence in [each for each in ahead if each < oldest]:
                del ahead[sequence]

    def take(self) -> tuple[Event, NodeName] | None:
        """The next event to be appended, and its client; it must be appended before the next is asked for. Publishers
        take turns."""
        for source, ahead in self._ahead.items():
            following = ahead.pop(self._last.get(source, -1) + 1, None)
            if following is not None:
                del self._ahead[source]
                if ahead:
                    self._ahead[source] = ahead
                return following
        return None

    def holds_from(self, clients: Collection[NodeName]) -> bool:
        """Does something wait here that one of these clients has submitted?"""
        return any(client in clients for ahead in self._ahead.values() for _, client in ahead.values())

    def client_gone(self, client: NodeName) -> None:
        """The client's link is gone: it submits again what it still has, or was killed with what is missing here."""
        for source, ahead in list(self._ahead.items()):
            gap = self._last.get(source, -1) + 1
            while gap in ahead:
                gap += 1
            self._ahead[source] = {each: it for each, it in ahead.items() if each < gap or it[1] != client}
            if not self._ahead[source]:
                del self._ahead[source]
