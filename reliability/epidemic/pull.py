"""Pull with negative digests (section 4.2, Figure 3): towards subscribers, towards the publisher, both, and at random.

Theory of operation. A round takes place only while something is lost. It is about the pattern or the source of an entry
of the LostBuffer drawn at random: of the patterns that local subscribers hold, only those of which something is lost
are drawn, since a digest without entries would tell nothing. Towards subscribers, the digest of the pattern
travels the tree as a push would; but only dispatchers that subscribe the pattern toss the coin of Pforward, all others
pass it on. Towards the publisher, the digest of the source walks back the route that the source's most recent event has
recorded, until it is at the source. At random, the digest of a pattern goes to one neighbour, drawn without regard to
which dispatcher subscribes what: the evaluation's control.

Every dispatcher that a digest reaches looks for each entry in its cache, whether it subscribes the pattern or not: an
event that it keeps for another pattern has the number of this one in its tag. What it has it sends to the initiator,
out of band, and takes off the digest; when nothing is left the digest goes no further.
"""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from murmur_pubsub.event import EventId
from murmur_pubsub.machine import Effect, NodeName, Send
from reliability.epidemic.cache import CachedEvent, Number
from reliability.epidemic.dispatcher import Dispatcher
from reliability.epidemic.messages import (
    EventRecovered,
    PublisherPull,
    RandomPull,
    SubscriberPull,
    check_missing,
    check_names,
)

Digest = TypeVar("Digest", SubscriberPull, RandomPull)


class _PullByPattern(Generic[Digest]):
    """The digest of a pattern, passed on from one dispatcher to the next. See `dispatcher.Gossip`."""

    _digest: type[Digest]

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    def start_round(self) -> list[Effect]:
        here = self._dispatcher
        drawn = here.lost.draw(here.rng)
        if drawn is None:
            return []
        pattern = drawn[2]
        return self._send(self._digest(here.name, pattern, here.lost.of_pattern(pattern)), None)

    def handle(self, came_from: NodeName, message: Any) -> list[Effect]:
        if type(message) is not self._digest:
            return []
        initiator, pattern, missing = message
        check_missing(missing, str)
        effects, left = _answer(
            self._dispatcher, initiator, missing, lambda group, number: (group[0], group[1], pattern, number)
        )
        if left and self._goes_on(pattern):
            effects += self._send(self._digest(initiator, pattern, left), came_from)
        return effects

    def _goes_on(self, pattern: int) -> bool:
        return self._dispatcher.tosses_p_forward()

    def _send(self, digest: Digest, came_from: NodeName | None) -> list[Effect]:
        raise NotImplementedError


class PullFromSubscribers(_PullByPattern[SubscriberPull]):
    """Along the tree, to all dispatchers that subscribe the pattern."""

    _digest = SubscriberPull

    def _goes_on(self, pattern: int) -> bool:
        return pattern not in self._dispatcher.table.local or super()._goes_on(pattern)

    def _send(self, digest: SubscriberPull, came_from: NodeName | None) -> list[Effect]:
        return [Send(peer, digest) for peer in self._dispatcher.towards_subscribers(digest.pattern, came_from)]


class PullAtRandom(_PullByPattern[RandomPull]):
    """To one neighbour, whichever that is."""

    _digest = RandomPull

    def _send(self, digest: RandomPull, came_from: NodeName | None) -> list[Effect]:
        here = self._dispatcher
        peers = [peer for peer in here.table.neighbours if peer != came_from]
        return [Send(here.rng.choice(peers), digest)] if peers else []


class PullFromPublisher:
    """See `dispatcher.Gossip`."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    def start_round(self) -> list[Effect]:
        here = self._dispatcher
        drawn = here.lost.draw(here.rng)
        if drawn is None or drawn[0] not in here.routes:
            return []
        source = drawn[0]
        return _walk_back(PublisherPull(here.name, source, here.lost.of_source(source), here.routes[source][::-1]))

    def handle(self, came_from: NodeName, message: Any) -> list[Effect]:
        if type(message) is not PublisherPull:
            return []
        initiator, source, missing, route = message
        check_missing(missing, int)
        check_names(route)
        effects, left = _answer(
            self._dispatcher, initiator, missing, lambda group, number: (source, group[0], group[1], number)
        )
        if left and route:
            effects += _walk_back(PublisherPull(initiator, source, left, route))
        return effects


class CombinedPull:
    """Each round is one of the two: towards the publisher with probability p_source. See `dispatcher.Gossip`."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._from_subscribers = PullFromSubscribers(dispatcher)
        self._from_publisher = PullFromPublisher(dispatcher)

    def start_round(self) -> list[Effect]:
        here = self._dispatcher
        if here.rng.random() < here.parameters.p_source:
            return self._from_publisher.start_round()
        return self._from_subscribers.start_round()

    def handle(self, came_from: NodeName, message: Any) -> list[Effect]:
        if type(message) is PublisherPull:
            return self._from_publisher.handle(came_from, message)
        return self._from_subscribers.handle(came_from, message)


def _walk_back(pull: PublisherPull) -> list[Effect]:
    """One step of the route back: a neighbour on the tree; out of band, if the tree has changed since."""
    return [Send(pull.route[0], pull._replace(route=pull.route[1:]))]


def _answer(
    here: Dispatcher,
    initiator: NodeName,
    missing: Sequence[list[Any]],
    name_of: Callable[[list[Any], int], Number],
) -> tuple[list[Effect], list[list[Any]]]:
    """The events of the digest that are cached here, sent to the initiator, and what is left of the digest. In each
    group two fields come before its numbers; `name_of`: an event's name, of its group and number."""
    found: dict[EventId, CachedEvent] = {}
    left: list[list[Any]] = []
    for group in missing:
        numbers = []
        for number in group[2:]:
            cached = here.cache.numbered(name_of(group, number))
            if cached is None:
                numbers.append(number)
            else:
                found[cached.event.id] = cached
        if numbers:
            left.append([*group[:2], *numbers])
    effects: list[Effect] = [
        Send(initiator, EventRecovered(each.event, each.hops + 1, each.source, each.incarnation, each.numbers))
        for each in found.values()
    ]
    return effects, left
