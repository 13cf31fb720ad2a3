"""Durable subscriptions: exactly once and in publisher order for subscribers that are away, or whose broker dies.

Theory of operation. Guaranteed delivery (`reliability.gryphon.gryphon`) keeps a message until every broker with
subscribers has it. Here a publishers' broker keeps it until every *client* has it that it matched
(`reliability.durable.keeper`), and the client knows how far it is (`reliability.durable.client`). All others hold soft
state, as they do there: any of them may die, the client's own broker too, and any broker can take the client up
(`reliability.durable.holders`).

While a client is there and keeps up it is served by the consolidated stream of its broker, as all others are. What it
missed comes beside that, from the publishers' broker to the client's by whichever way leads there.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

from murmur_pubsub.machine import Deliver, Effect, Input, LinkDown, NodeContext, NodeName, Received
from murmur_pubsub.measure import Measure
from murmur_pubsub.promise import GIVEN_UP, REFUSED, Promise, Survival
from reliability.durable.client import RESUMED_ELSEWHERE, DurableClient
from reliability.durable.holders import Holders
from reliability.durable.hops import FIRST_US, SAY_AFTER_US, Hops
from reliability.durable.keeper import Keeper
from reliability.durable.log import DurableLog
from reliability.durable.messages import (
    BetweenDurables,
    CatchUp,
    Caught,
    CaughtUp,
    Decided,
    DurableHanded,
    Enlist,
    Enlisted,
    GivenUp,
    HopHeard,
    Release,
    Released,
    Resume,
    ToClient,
)
from reliability.durable.parameters import DurableParameters
from reliability.durable.refusing import RefusingPublishing
from reliability.gryphon.declaration import GRYPHON
from reliability.gryphon.gryphon import Gryphon
from reliability.gryphon.knowledge import DataTick
from reliability.gryphon.messages import HandedBack
from reliability.gryphon.publishing import Publishing
from reliability.gryphon.round_trip import RoundTrip
from reliability.gryphon.streams import BrokerStream
from reliability.gryphon.subend import Subend
from reliability.layer import BrokerServices
from reliability.protocol import ReliabilityProtocol


class Durable(Gryphon):
    """One broker's part."""

    message_types: tuple[type, ...] = (
        *Gryphon.message_types,
        Resume,
        Decided,
        *get_args(ToClient),
        *get_args(BetweenDurables),
        HopHeard,
    )

    def __init__(self, context: NodeContext, parameters: DurableParameters, services: BrokerServices) -> None:
        self._log = DurableLog(context.name, parameters.checkpoint, parameters.drop_above)
        self._refuse_above = parameters.refuse_above
        super().__init__(context, parameters, services)
        self._brokers = frozenset(self._router.brokers)
        self._to_self: deque[BetweenDurables] = deque()
        self._hops = Hops()
        self._marks: dict[NodeName, Sequence[int]] = {}
        """What was said last by each publishers' broker, of the version in `_in_effect`: see `on_in_effect`."""
        own = {pubend.number: pubend for pubend in self._publishing.pubends}
        self._leased_us = parameters.limits.lease_us
        self._keeper = Keeper(self._log, own, self._post, self._leased_us)
        self._holders = Holders(
            context.name, self._numbers_of, self.sessions, RoundTrip.of(parameters), parameters.window,
            parameters.catch_up, lambda number: self.streams[number].subend, self._post,
        )  # fmt: skip
        self._messages[Resume] = self._on_resume
        self._messages[HopHeard] = self._on_hop_heard
        self._answers: Mapping[type, Callable[[NodeName, Any], Sequence[Effect]]] = {
            Enlist: self._on_enlist,
            CatchUp: self._on_catch_up,
            Release: self._on_release,
            Enlisted: lambda source, message: self._holders.enlisted(message, self._now_us),
            Caught: lambda source, message: self._holders.caught(message, self._now_us),
            CaughtUp: lambda source, message: self._holders.caught(message, self._now_us),
            GivenUp: lambda source, message: self._holders.caught(message, self._now_us),
            Released: lambda source, message: self._holders.released(message, self._now_us),
        }
        self._broker_timers["durable"] = lambda: self._holders.repeat(self._now_us)
        self._broker_timers["lease"] = self._give_up
        self._broker_timers["hops"] = lambda: self._hops.repeat(self._now_us)
        self._broker_timers["hops heard"] = self._hops.say
        self._broker_timers["release"] = lambda: self._holders.release(self._now_us)

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        self._now_us = now_us
        effects: list[Effect] = []
        if type(input) is Received and type(input.message) in self._answers:
            message: Any = input.message
            if self._hops.is_new(input.source, message.hop):
                effects += self._on_post(message)
        else:
            if type(input) is LinkDown:
                self._hops.link_down(input.peer)
            effects += super().handle(input, now_us)
        return self._and_later(effects)

    def client_up(self, client: NodeName, now_us: int) -> Sequence[Effect]:
        """See `reliability.layer.ClientWatcher`."""
        self._holders.of.pop(client, None)
        return super().client_up(client, now_us)

    def client_down(self, client: NodeName, now_us: int) -> Sequence[Effect]:
        """See `reliability.layer.ClientWatcher`."""
        self._holders.of.pop(client, None)
        return super().client_down(client, now_us)

    @property
    def settling(self) -> bool:
        """Is there a subscription here that some publishers' broker does not heed, or has not recorded?"""
        forgotten = self._router.is_forgotten
        unlisted = (root for holder in self._holders.of.values() for root in holder.unlisted)
        return super().settling or any(not forgotten(root) for root in unlisted)

    @property
    def waiting(self) -> bool:
        """Is there also a client to be caught up, or a word of one that a publishers' broker has not heard?"""
        return super().waiting or self._holders.waiting

    def check_invariants(self) -> None:
        super().check_invariants()
        self._log.record.check_invariants()
        self._holders.check_invariants()

    # ---------------------------------------------------------------- set-up
    def _make_publishing(self) -> Publishing:
        log_most, refuse_above = self._parameters.log_most, self._refuse_above
        if refuse_above is None:
            return Publishing(self._name, self._log, log_most)
        return RefusingPublishing(self._name, self._log, log_most, refuse_above)

    # -------------------------------------------- from one broker to another
    def _post(self, message: BetweenDurables) -> list[Effect]:
        """Send the message towards the broker that it is for (nothing: there is no way now)."""
        if message.to == self._name:
            self._to_self.append(message)
            return []
        if type(message) is Caught:
            message = message._replace(hops=message.hops + 1)
        branch = self._router.branch_of(message.to)
        path = self._router.path(message.to) if branch is None else self._router.way(branch, 0)
        if len(path) > 1:
            message = message._replace(route=[self._name, *path])
        return [self._hops.send(path[0], message, self._now_us)] if path else []

    def _on_post(self, message: BetweenDurables) -> list[Effect]:
        route = message.route
        if message.to not in self._brokers or (route and self._name not in route):
            return []
        if route and route[-1] != self._name:  # on a detour
            if type(message) is Caught:
                message = message._replace(hops=message.hops + 1)
            return [self._hops.send(route[route.index(self._name) + 1], message, self._now_us)]
        if message.to != self._name:
            return self._post(message._replace(route=[]))
        return [*self._answers[type(message)](self._name, message)]

    def _on_hop_heard(self, source: NodeName, message: HopHeard) -> Sequence[Effect]:
        self._hops.heard(source, message)
        return ()

    def _and_later(self, effects: list[Effect]) -> list[Effect]:
        """With what this broker has told itself, and the timer that repeats what others have not answered."""
        while self._to_self:
            effects += self._on_post(self._to_self.popleft())
        timers = self._timers  # asked first: this is done for every input
        if self._holders.stirred and "durable" not in timers:
            self._holders.stirred = False
            if self._holders.waiting:
                effects += self._set_once("durable", self._holders.wait_us)
        if self._leased_us is not None and "lease" not in timers and self._log.record.keeps_any:
            effects += self._set_once("lease", self._leased_us)
        if "hops" not in timers and self._hops.any_kept:
            effects += self._set_once("hops", FIRST_US)
        if "hops heard" not in timers and self._hops.any_to_say:
            effects += self._set_once("hops heard", SAY_AFTER_US)
        if effects and "sessions" not in timers and self.sessions.any_outstanding:
            effects += self._set_once("sessions", self._parameters.resend * 1_000)
        return effects

    # ---------------------------------------------------- publishers' broker
    def _recover(self, records: Sequence[bytes]) -> Sequence[Effect]:
        effects = super()._recover(records)
        self._keeper.begin(self._name, self._now_us)
        return effects

    def _give_up(self) -> list[Effect]:
        again_us = self._keeper.give_up(self._now_us)
        effects = [] if again_us is None else self._set_once("lease", again_us - self._now_us)
        return [*effects, *self._publishing.cut_log(self._now_us)]

    def _on_stored(self, token: int) -> Sequence[Effect]:
        effects = self._keeper.stored(token)
        return super()._on_stored(token) if effects is None else effects

    def _on_enlist(self, source: NodeName, message: Enlist) -> Sequence[Effect]:
        effects = self._keeper.enlist(message, self._now_us)
        return [*effects, *self._publishing.forget_done(self._now_us)]  # what was withdrawn

    def _on_catch_up(self, source: NodeName, message: CatchUp) -> Sequence[Effect]:
        return [*self._keeper.catch_up(message, self._now_us), *self._publishing.cut_log(self._now_us)]

    def _on_release(self, source: NodeName, message: Release) -> Sequence[Effect]:
        return [*self._keeper.release(message, self._now_us), *self._publishing.cut_log(self._now_us)]

    # --------------------------------------------------- subscribers' broker
    def _on_resume(self, source: NodeName, message: Resume) -> Sequence[Effect]:
        if self.sessions.of(source) is None or self._router.has_left:
            return ()  # sent before its link broke here, or nobody serves it here
        unheeded = {} if self._heeded else dict(self._marks)
        effects = self._holders.resume(source, message, self._router.version, self._now_us)
        for root, marks in unheeded.items():  # who has withdrawn all changes no filter: nobody would say it again
            effects += self.on_in_effect(root, self._in_effect[root], marks)
        return effects

    def on_forgotten(self) -> Sequence[Effect]:
        """See `routing.router.StreamObserver`: what others published meanwhile is kept for the clients here all the
        same, and would be for ever, if nobody asked for it."""
        return self._and_later(self._holders.forgotten(self._router.version, self._now_us))

    def on_tree_changed(self) -> Sequence[Effect]:
        """See `routing.router.StreamObserver`: a client that is still here when the broker departs has to go."""
        if self._router.has_left:
            self._holders.of.clear()
        return super().on_tree_changed()

    @property
    def _heeded(self) -> bool:
        return super()._heeded or bool(self._holders.of)  # who has withdrawn all is caught up until that is in effect

    def on_in_effect(self, root: NodeName, version: int, marks: Sequence[int]) -> Sequence[Effect]:
        """See `routing.router.StreamObserver`: what a restarted broker heard and did not store is told again."""
        self._marks[root] = marks
        effects = [*super().on_in_effect(root, version, marks)]
        numbers = self._numbers_of.get(root, ())
        for number in numbers:
            effects += self._holders.meet(number, self._now_us)
        begun = self._holders.root_began(root, self._router.incarnation_of(root))
        if begun or any(number in self._holders.beginning for number in numbers):
            effects += self._release_later()
        return effects

    def _passed(self, stream: BrokerStream, subend: Subend, effects: list[Effect]) -> None:
        super()._passed(stream, subend, effects)
        if stream.number in self._holders.beginning:
            effects += self._release_later()

    def _release_later(self) -> list[Effect]:
        return self._set_once("release", self._parameters.ack_delay * 1_000)

    def _hand(self, number: int, tick: int, message: DataTick, until: int, effects: list[Effect]) -> bool:
        event, hops, _ = message
        for client, subscribers in self._services.subscribers(event, until).items():
            if client is None:
                effects.append(Deliver(event, hops, subscribers))
            elif self._holders.live_for(client, number, tick):
                session = self.sessions.of(client)
                assert session is not None
                effects.append(session.hand(event, hops, subscribers, DurableHanded, (number, tick)))
        return True

    def _on_handed_back(self, source: NodeName, message: HandedBack) -> Sequence[Effect]:
        done = self.sessions.handed_back(source, message)
        holder = self._holders.of.get(source)
        if holder is None or not done:
            return ()
        self._holders.has(source, done)
        return [*self._holders.go_on(holder, self._now_us), *self._release_later()]


DURABLE = ReliabilityProtocol(
    name="durable",
    make=Durable,
    parameters=DurableParameters,
    guarantee=Promise("exactly_once", survives=Survival(any_path=True), durable=True),
    limits=lambda parameters: parameters.limits,
    needs=GRYPHON.needs,
    client=DurableClient,
    clients_roam=True,
    entrances=GRYPHON.entrances,
    measures=(
        *GRYPHON.measures,
        Measure(RESUMED_ELSEWHERE, "clients resumed at another tick", "rows"),
        Measure(GIVEN_UP, "publishers of whose events some were given up for a client", "rows"),
        Measure(REFUSED, "publications refused", "rows"),
    ),
    tried={
        **GRYPHON.tried,
        "catch_up": (5, 20),
        "lease": ("1 s", "3 s"),
        "drop_above": (10, 40),
        "refuse_above": (15, 60),
    },
    tried_seldom={**GRYPHON.tried_seldom, "log_most": (10, 30)},
)
