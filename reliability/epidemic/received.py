"""What has been received: `isReceived` of Figure 2, and what keeps an event from being delivered twice.

Identifiers are kept in the order in which they came, a bounded number of them. When one is forgotten, every event of
the same publisher with that number or a lower one counts as received from then on: what cannot be known to be new is
never delivered, so that forgetting can lose a very late event but never deliver one twice.
"""

from collections import deque
from collections.abc import Sequence

from murmur_pubsub.event import EventId


class ReceivedEvents:
    """Identifiers of events, each with whether the event has come over the tree (or was published here) and so has been
    passed on, or only out of band."""

    remembers = ("_order", "_passed_on")

    def __init__(self, remember: int) -> None:
        self._remember = remember
        self._passed_on: dict[EventId, bool] = {}
        self._order: deque[EventId] = deque()
        self._forgotten: dict[int, int] = {}

    def __contains__(self, event: EventId) -> bool:
        return event in self._passed_on or event[1] <= self._forgotten.get(event[0], -1)

    def __len__(self) -> int:
        return len(self._passed_on)

    def passed_on(self, event: EventId) -> bool | None:
        """Has it come over the tree before (or too long ago to be known)? None: it has not come at all."""
        found = self._passed_on.get(event)
        if found is None and self._forgotten and event[1] <= self._forgotten.get(event[0], -1):
            return True
        return found

    def add(self, event: EventId, passed_on: bool) -> None:
        """It is here."""
        if event not in self._passed_on:
            self._order.append(event)
            if len(self._order) > self._remember:
                oldest = self._order.popleft()
                del self._passed_on[oldest]
                self._forgotten[oldest[0]] = max(oldest[1], self._forgotten.get(oldest[0], -1))
        self._passed_on[event] = passed_on

    def missing(self, ids: Sequence[int]) -> list[int]:
        """Those of the identifiers (publisher, sequence, …) that have not been received."""
        known, forgotten = self._passed_on, self._forgotten
        found: list[int] = []
        numbers = iter(ids)
        for publisher, sequence in zip(numbers, numbers, strict=True):
            if (publisher, sequence) not in known and sequence > forgotten.get(publisher, -1):
                found += (publisher, sequence)
        return found

    def check_invariants(self) -> None:
        """Raise AssertionError if it contradicts itself."""
        assert len(self._order) == len(self._passed_on) <= self._remember
