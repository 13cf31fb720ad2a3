"""Epidemic recovery: events travel as with best effort, and what was lost is found again by gossip.

After P. Costa, M. Migliavacca, G. P. Picco and G. Cugola, "Introducing Reliability in Content-Based Publish-Subscribe
through Epidemic Algorithms" (DEBS 2003); the values of its evaluation are those of the follow-up (ICDCS 2004).

Theory of operation. An event published here is tagged (pulls only), kept, handed to local subscribers and sent to the
next hops of whatever routing there is; each dispatcher on its way does the same. Beside that, each dispatcher gossips
in rounds (`push`, `pull`) along the tree on which subscriptions have travelled (`subscription_table`), about what it
has (push) or what it knows to be lost (pulls, `loss_detection`). A recovered event comes out of band, is handed to
local subscribers and kept, and goes no further: every dispatcher recovers for its own subscribers. Where there is no
tree of links, on structured overlays, push goes the ways that routing knows (`routed_push`).

An event is handed to local subscribers once, whichever way it comes first (`received`). Its first copy over the tree is
passed on even if it had been recovered before, since the dispatchers behind this one wait for that copy; a second copy
over the tree goes nowhere. A recovered event is handed to those subscribers here that had subscribed before it was
published: neither a new subscriber, nor one that was there before this dispatcher was restarted, gets old events.

Rounds fall asleep: pulls when the LostBuffer is empty, push when there has been no news for a while. So a run in which
nothing is published any more comes to its end. News is an event, a request, a link that comes up, a pattern told.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, ClassVar

from murmur_pubsub.errors import InputError
from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.fingerprint import Fact, state_of
from murmur_pubsub.machine import (
    Effect,
    Input,
    LinkDown,
    LinkUp,
    NodeContext,
    NodeName,
    Received,
    Send,
    SetTimer,
    Start,
    TimerFired,
)
from murmur_pubsub.promise import Promise
from reliability.epidemic.cache import CachedEvent, EventCache, Pattern
from reliability.epidemic.client import EpidemicClient
from reliability.epidemic.dispatcher import Dispatcher, Gossip
from reliability.epidemic.interval import GossipInterval
from reliability.epidemic.loss_detection import LossDetector, LostBuffer
from reliability.epidemic.messages import (
    EPIDEMIC_MESSAGES,
    EventRecovered,
    EventsRequested,
    LinkMade,
    PatternsForwarded,
    PatternsWithdrawn,
    TaggedEvent,
    check_names,
    check_pairs,
    signature,
)
from reliability.epidemic.parameters import EpidemicParameters
from reliability.epidemic.pull import CombinedPull, PullAtRandom, PullFromPublisher, PullFromSubscribers
from reliability.epidemic.push import Push
from reliability.epidemic.received import ReceivedEvents
from reliability.epidemic.routed_push import RoutedPush
from reliability.epidemic.subscription_table import SubscriptionTable
from reliability.layer import BrokerServices, Reliability
from reliability.protocol import ReliabilityProtocol
from routing.protocol import Offer, OverlayTraits, RoutingProtocol

GOSSIPS: Mapping[str, Callable[[Dispatcher], Gossip]] = {
    "push": Push,
    "subscriber-pull": PullFromSubscribers,
    "publisher-pull": PullFromPublisher,
    "combined-pull": CombinedPull,
    "random-pull": PullAtRandom,
}
ROUND = ("reliability", "gossip round")


class Epidemic(Reliability):
    """The dispatcher's recovery; also a `reliability.layer.FilterWatcher`."""

    message_types: tuple[type, ...] = EPIDEMIC_MESSAGES
    remembers: ClassVar = ("_counts",)  # a number for each pattern, see `_tag`

    def __init__(self, context: NodeContext, parameters: EpidemicParameters, services: BrokerServices) -> None:
        self._parameters = parameters
        self._services = services
        self._incarnation = context.incarnation
        self._born_us = 0
        self._table = SubscriptionTable(parameters.linger_us)
        self._received = ReceivedEvents(parameters.remember)
        self._cache = EventCache(parameters.buffer, parameters.discard, context.random("epidemic/cache"))
        self._lost = LostBuffer(parameters.lost_buffer)
        self._detector = LossDetector(self._lost, parameters.buffer, parameters.settle_us)
        self._dispatcher = Dispatcher(
            context.name, parameters, self._table, self._received, self._cache, self._lost,
            context.random("epidemic/gossip"),
        )  # fmt: skip
        longest_us = parameters.interval_max_us if parameters.adaptive else parameters.interval_us
        self._interval = GossipInterval(parameters.interval_us, longest_us, context.random("epidemic/interval"))
        self._gossip: Gossip | None = None
        if parameters.algorithm == "push" and services.gossip_router is not None:
            self._gossip = RoutedPush(self._dispatcher, services.gossip_router)
        elif parameters.algorithm != "none":
            self._gossip = GOSSIPS[parameters.algorithm](self._dispatcher)
        self._push = self._gossip if isinstance(self._gossip, Push) else None
        self._counts: dict[int, int] = {}
        self._awake = False
        self._news_us = 0
        self._told_of_links = False

    # ------------------------------------------------------------------------------------------ the way of an event
    def publish(self, event: Event, now_us: int) -> Sequence[Effect]:
        """See `reliability.layer.Reliability`."""
        relays = self._services.is_relay(event, ())
        event_id = event.id
        if event_id in self._received or event_id in self._cache:
            return ()  # its publisher's link has made a second copy
        parameters, name = self._parameters, self._dispatcher.name
        if not relays:
            self._received.add(event_id, passed_on=True)
        numbers = self._tag(self._table.matching(event.attributes, now_us)) if parameters.pulls else []
        patterns = self._patterns_to_push(event, now_us)
        effects = [] if relays else self._services.notify(event, 0)
        self._keep(CachedEvent(event, 0, name, self._incarnation, numbers, patterns), True, now_us, effects)
        route = (name,) if parameters.records_routes else ()
        return self._pass_on(TaggedEvent(event, 0, (), name, self._incarnation, numbers, route), None, route, effects)

    def _tag(self, patterns: Sequence[int]) -> list[int]:
        """Count the event for each pattern it matches. Counts are kept while the dispatcher lives: starting one anew
        would look like what had been counted before."""
        counts = self._counts
        numbers: list[int] = []
        for pattern in patterns:
            count = counts[pattern] = counts.get(pattern, 0) + 1
            numbers += (pattern, count)
        return numbers

    def _on_event(self, came_from: NodeName, message: TaggedEvent, now_us: int) -> Sequence[Effect]:
        event, hops, header, source, incarnation, numbers, route = message
        relays = self._services.is_relay(event, header)
        check_pairs(numbers)
        check_names(route)
        if relays:
            return self._pass_on(message, came_from, route, [])
        event_id = event.id
        passed_on = self._received.passed_on(event_id)
        if passed_on:
            return ()
        effects: list[Effect] = []
        if route:
            self._dispatcher.routes[source] = route
        if passed_on is None and (event.time_us >= self._born_us or not self._incarnation):
            effects = self._services.notify(event, hops)
            interested = bool(effects)
            if numbers:
                self._look_for_losses(source, incarnation, numbers, event, now_us, effects)
            if interested or self._parameters.cache == "everywhere":
                patterns = self._patterns_to_push(event, now_us)
                cached = CachedEvent(event, hops, source, incarnation, numbers, patterns)
                self._keep(cached, interested, now_us, effects)
        self._received.add(event_id, passed_on=True)
        onward = [*route, self._dispatcher.name] if route else route
        return self._pass_on(message, came_from, onward, effects)

    def _pass_on(
        self, message: TaggedEvent, came_from: NodeName | None, route: Sequence[str], effects: list[Effect]
    ) -> list[Effect]:
        onward: TaggedEvent | None = None
        for peer, header in self._services.next_hops(message.event, came_from, message.header):
            if onward is None or onward.header != header:  # one object for many peers is encoded once
                event, hops, _, source, incarnation, numbers, _ = message
                onward = TaggedEvent(event, hops + 1, header, source, incarnation, numbers, route)
            effects.append(Send(peer, onward))
        return effects

    def _on_recovered(self, message: EventRecovered, now_us: int) -> list[Effect]:
        event, hops, source, incarnation, numbers = message
        check_pairs(numbers)
        effects: list[Effect] = []
        if event.id in self._received:
            self._lost.remove_event(source, incarnation, numbers)
            return effects
        self._received.add(event.id, passed_on=False)
        wanted = self._table.wanted_here(event, now_us)
        if wanted:
            effects = self._services.notify(event, hops, until=event.time_us)
        self._look_for_losses(source, incarnation, numbers, event, now_us, effects)
        if wanted:
            patterns = self._patterns_to_push(event, now_us)
            self._keep(CachedEvent(event, hops, source, incarnation, numbers, patterns), True, now_us, effects)
        self._sign_of_loss(now_us, effects)
        return effects

    def _patterns_to_push(self, event: Event, now_us: int) -> list[Pattern]:
        return [] if self._push is None else self._push.patterns_of(event, now_us)

    def _keep(self, cached: CachedEvent, interested: bool, now_us: int, effects: list[Effect]) -> None:
        if self._gossip is None or cached.event.id in self._cache:
            return
        self._cache.add(cached, interested)
        self._news(now_us, effects)

    # ------------------------------------------------------------------------------------------------- gossip rounds
    def _look_for_losses(
        self,
        source: NodeName,
        incarnation: int,
        numbers: Sequence[int],
        event: Event,
        now_us: int,
        effects: list[Effect],
    ) -> None:
        if self._detector.observe(source, incarnation, numbers, event.time_us, self._table.local, now_us):
            self._sign_of_loss(now_us, effects)
            self._wake(now_us, effects)

    def _news(self, now_us: int, effects: list[Effect]) -> None:
        """There may be more for a push to tell, or more dispatchers to be told."""
        if self._push is not None and len(self._cache):
            self._news_us = now_us
            self._wake(now_us, effects)

    def _on_link_made(self, came_from: NodeName | None, now_us: int) -> list[Effect]:
        """A link of this dispatcher (None) or of one on that neighbour's side has come up. Behind it may be dispatchers
        that lack what others have, who sleep. They are told, unless no event may have been published yet."""
        effects: list[Effect] = []
        if self._push is not None and (len(self._received) or self._told_of_links):
            effects += [Send(peer, LinkMade()) for peer in self._table.neighbours if peer != came_from]
        self._news(now_us, effects)
        return effects

    def _wake(self, now_us: int, effects: list[Effect]) -> None:
        if not self._awake:
            self._awake = True
            effects.append(SetTimer(ROUND, self._interval.delay_us(now_us)))

    def _sign_of_loss(self, now_us: int, effects: list[Effect]) -> None:
        if self._interval.sign_of_loss() and self._awake:
            effects.append(SetTimer(ROUND, self._interval.delay_us(now_us)))

    def _on_round(self, now_us: int) -> list[Effect]:
        self._awake = False
        if self._gossip is None:
            return []
        if self._push is not None:
            if now_us - self._news_us > self._parameters.rest_after_us:
                return []
        else:
            self._lost.give_up(now_us - self._parameters.lost_age_us)
            if not self._lost:
                return []
        effects = self._gossip.start_round()
        self._interval.round_over(now_us)
        self._wake(now_us, effects)
        return effects

    # -------------------------------------------------------------------------------------------------------- inputs
    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        """See `reliability.layer.Reliability`."""
        if type(input) is Received:
            message: Any = input.message
            message_type = type(message)
            if message_type is TaggedEvent:
                return self._on_event(input.source, message, now_us)
            if message_type is EventRecovered:
                return self._on_recovered(message, now_us)
            if message_type is PatternsForwarded:
                effects = self._table.on_forwarded(input.source, message.patterns, now_us)
                self._news(now_us, effects)
                return effects
            if message_type is LinkMade:
                self._told_of_links = True
                return self._on_link_made(input.source, now_us)
            if message_type is PatternsWithdrawn:
                return self._table.on_withdrawn(input.source, message.patterns, now_us)
            return self._on_gossip(input.source, message, now_us)
        if type(input) is TimerFired:
            return self._on_round(now_us)
        if type(input) is LinkUp:
            return [*self._table.on_link_up(input.peer), *self._on_link_made(None, now_us)]
        if type(input) is LinkDown:
            return self._table.on_link_down(input.peer, now_us)
        if type(input) is Start:
            self._born_us = now_us
            return ()
        raise TypeError(f"epidemic recovery takes no {input!r}")

    def _on_gossip(self, source: NodeName, message: Any, now_us: int) -> list[Effect]:
        if self._gossip is None:
            return []
        effects = self._gossip.handle(source, message)
        if type(message) is EventsRequested or any(
            type(effect) is Send and type(effect.message) is EventsRequested for effect in effects
        ):
            self._news_us = now_us
            self._sign_of_loss(now_us, effects)
            self._wake(now_us, effects)
        return effects

    def subscribe(self, wanted: Filter, now_us: int) -> list[Effect]:
        """See `reliability.layer.FilterWatcher`."""
        return self._table.subscribe(wanted, now_us)

    def unsubscribe(self, wanted: Filter, now_us: int) -> list[Effect]:
        """See `reliability.layer.FilterWatcher`."""
        effects = self._table.unsubscribe(wanted, now_us)
        self._detector.forget(signature(wanted))
        return effects

    def fingerprint(self) -> Set[Fact]:
        """See `murmur_pubsub.machine.Machine`."""
        table = self._table
        lost, cached = len(self._lost), len(self._cache)
        return {
            state_of("dispatcher", awake=self._awake, some_lost=lost, caches=cached, alone=not table.neighbours),
            state_of("patterns", held=table.held, some_linger=len(table) > len(table.held)),
        }

    def check_invariants(self) -> None:
        """See `reliability.layer.Reliability`."""
        for part in (self._table, self._received, self._cache, self._lost):
            part.check_invariants()
        self._detector.check_invariants(self._table.local)
        assert self._push is not None or self._awake or not self._lost, "something is lost and is not looked for"


def _check(parameters: EpidemicParameters, traits: OverlayTraits, routing: RoutingProtocol[Any]) -> None:
    """Raise `InputError` for a scenario in which recovery cannot work."""
    if Offer.GOSSIP in routing.offers:
        if parameters.pulls:
            raise InputError(
                "algorithm",
                f"{parameters.algorithm!r} over a structured overlay",
                "push or none: pulls find losses by numbers that each source counts for each pattern as its subscribers"
                " hold it, and here a source knows covering filters, or a rendezvous, only",
            )
    elif not traits.is_tree:
        raise InputError(
            "broker.reliability",
            f"'epidemic' on {traits.kind}",
            "an acyclic overlay, or a structured one: gossip follows the way on which subscriptions have travelled",
        )
    if not traits.has_datagrams and parameters.algorithm != "none":
        raise InputError(
            "broker.reliability",
            "'epidemic' without a section 'datagrams'",
            "datagrams, such as 'datagrams: {delay: 1 ms}': requests and recovered events travel beside the tree",
        )


EPIDEMIC = ReliabilityProtocol(
    name="epidemic",
    make=Epidemic,
    parameters=EpidemicParameters,
    guarantee=Promise("at_most_once", order="none"),
    client=EpidemicClient,
    tried={
        "interval": ("10 ms", "100 ms"),
        "buffer": (10,),
        "fanout": (1,),
        "lost_age": ("500 ms",),
        "lost_buffer": (5,),
        "rest_after": ("200 ms",),
        "linger": ("0 ms",),
    },
    tried_seldom={
        "remember": (1500,),
        "interval_max": ("100 ms",),
        "settle": ("100 ms",),
        "p_forward": (0.3, 1.0),
        "p_source": (0.0, 1.0),
    },
    check=_check,
)
