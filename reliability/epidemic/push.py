"""Push with positive digests (section 4.1, Figure 2).

Theory of operation. In a round a dispatcher draws a pattern from its whole subscription table, not from its own
subscribers' patterns alone, and sends the identifiers of the cached events that match it towards subscribers of the
pattern. Which those are is known from when they were cached. Only for a pattern that was told later all cached events
are evaluated, once, when the first digest about it is made. A dispatcher that gets such a digest and subscribes the
pattern asks the initiator, out of band, for what it has not received; every dispatcher that it reaches tosses the coin
of Pforward and passes it on along the tree. The initiator answers with the events that are still in its cache. A round
with nothing to tell sends nothing.
"""

from typing import Any

from murmur_pubsub.event import Event, EventId
from murmur_pubsub.machine import Effect, NodeName, Send
from reliability.epidemic.cache import Pattern
from reliability.epidemic.dispatcher import Dispatcher
from reliability.epidemic.messages import EventRecovered, EventsRequested, PushDigest, check_pairs


class Push:
    """See `dispatcher.Gossip`."""

    _digest: type = PushDigest

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    def patterns_of(self, event: Event, now_us: int) -> list[Pattern]:
        """The patterns by which the event, which comes next into the cache, is to be found there."""
        here = self._dispatcher
        if not len(here.cache):
            here.table.fresh.clear()  # no event was cached before these were known
        return [*here.table.matching(event.attributes, now_us)]

    def start_round(self) -> list[Effect]:
        here = self._dispatcher
        patterns = here.table.held
        if not patterns:
            return []
        pattern = here.rng.choice(patterns)
        peers = here.towards_subscribers(pattern)
        if not peers:
            return []
        if pattern in here.table.fresh:
            del here.table.fresh[pattern]
            here.cache.index(pattern, here.table.pattern(pattern))
        ids = here.cache.digest(pattern)
        if not ids:
            return []
        digest = PushDigest(here.name, pattern, ids)
        return [Send(peer, digest) for peer in peers]

    def handle(self, came_from: NodeName, message: Any) -> list[Effect]:
        if type(message) is EventsRequested:
            return self._on_requested(came_from, message)
        if type(message) is self._digest:
            return self._on_digest(came_from, message)
        return []

    def _on_digest(self, came_from: NodeName, digest: Any) -> list[Effect]:
        here = self._dispatcher
        check_pairs(digest.ids)
        effects: list[Effect] = []
        if digest.pattern in here.table.local:
            missing = here.received.missing(digest.ids)
            if missing:
                effects.append(Send(digest.initiator, EventsRequested(missing)))
        if here.tosses_p_forward():
            effects += [Send(peer, digest) for peer in here.towards_subscribers(digest.pattern, came_from)]
        return effects

    def _on_requested(self, requester: NodeName, request: EventsRequested) -> list[Effect]:
        check_pairs(request.ids)
        ids = request.ids
        found = (self._dispatcher.cache.get(EventId(ids[at], ids[at + 1])) for at in range(0, len(ids), 2))
        return [
            Send(requester, EventRecovered(each.event, each.hops + 1, each.source, each.incarnation, each.numbers))
            for each in found
            if each is not None
        ]
