"""Push where there is no tree of links: over a routing that says where gossip about a pattern goes.

Theory of operation. As `push`, but the subscription table is routing's own. Since covering hides filters from it, a
digest carries the pattern itself, and every dispatcher with a subscriber whose filter covers it or is covered by it
asks for what it lacks: what that subscriber does not want after all comes once, and is not asked for again. A pattern
is drawn from those of the cached events, for others have nothing to tell.
"""

from collections.abc import Sequence
from typing import Any

from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import Effect, NodeName, Send
from reliability.epidemic.cache import Pattern
from reliability.epidemic.dispatcher import Dispatcher
from reliability.epidemic.messages import EventsRequested, RoutedDigest, check_pairs
from reliability.epidemic.push import Push
from routing.router import GossipRouter, Hop


class RoutedPush(Push):
    """See `dispatcher.Gossip`."""

    _digest = RoutedDigest

    def __init__(self, dispatcher: Dispatcher, router: GossipRouter) -> None:
        super().__init__(dispatcher)
        self._router = router

    def patterns_of(self, event: Event, now_us: int) -> list[Pattern]:
        """The patterns known here now, of this node's subscribers and of others', that the event matches."""
        here = self._dispatcher.table.held_here(event.attributes)
        return list(dict.fromkeys((*here, *self._router.patterns_of(event))))

    def start_round(self) -> list[Effect]:
        here = self._dispatcher
        patterns = here.cache.patterns
        if not patterns:
            return []
        pattern = here.rng.choice(patterns)
        assert isinstance(pattern, Filter)
        return self._send(RoutedDigest(here.name, pattern, here.cache.digest(pattern), ()), None)

    def _on_digest(self, came_from: NodeName, digest: Any) -> list[Effect]:
        here = self._dispatcher
        check_pairs(digest.ids)
        effects: list[Effect] = []
        if here.name != digest.initiator and here.table.related_here(digest.pattern):
            missing = here.received.missing(digest.ids)
            if missing:
                effects.append(Send(digest.initiator, EventsRequested(missing)))
        if here.tosses_p_forward():
            effects += self._send(digest, came_from)
        return effects

    def _send(self, digest: RoutedDigest, came_from: NodeName | None) -> list[Effect]:
        hops: Sequence[Hop] = self._router.towards(digest.pattern, came_from, digest.header)
        return [Send(peer, digest._replace(header=header)) for peer, header in self._dispatcher.some_of(hops)]
