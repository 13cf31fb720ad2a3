"""The subscribers' end: the clients at this broker, and how far each is with each pubend.

Theory of operation. Whatever is missing is asked for here, straight at the pubend's broker, and nobody else asks. What
a client wants is told to every publishers' broker until each has recorded it, one revision at a time; that begins a
chain (`reliability.end_to_end.chain`) for each pubend. A chain is asked for what follows when a step is there that does
not follow (after `gap`), when the pubend's broker reminds of one, and when an answer is overdue. So an event that
routing lost is found by the next one that arrives, or by a reminder if none does. Nothing depends on what was told
earlier: a publishers' broker or this one may be restarted at any time. Where all reminders are lost, or nobody is left
who would remind, a question that comes after `idle` finds it, for as long as the client is here.

The broker's own subscribers are one client more, of the broker's name. It has no memory over a restart: each
incarnation begins anew.
"""

from collections.abc import Iterable, Sequence

from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import Deliver, Effect, NodeName, Send
from reliability.durable.client import rows_of
from reliability.durable.keeper import NEVER, Post
from reliability.durable.messages import (
    CatchUp,
    CatchUpStep,
    Caught,
    CaughtUp,
    DurableGivenUp,
    DurableHanded,
    Enlist,
    Enlisted,
    GivenUp,
    Recorded,
    Release,
    Released,
    Resume,
    ResumedAt,
    pairs,
)
from reliability.end_to_end.chain import Chain
from reliability.end_to_end.messages import Carried, Reminder
from reliability.end_to_end.parameters import EndToEndParameters
from reliability.gryphon.round_trip import RoundTrip, doubled
from reliability.gryphon.sessions import Sessions

NEVER_US = 2**62
_QUICK = 5
"""How often a broker is told something before it may be away, and is told more seldom. Where three of ten messages are
lost on each way, an answer comes in time in all but three of a hundred cases."""


class Holder:
    """A client here. `has`: pubend to the last tick that the client itself has acknowledged; `heard` is what the
    publishers' brokers know of that. `unlisted`: pubends whose brokers have not recorded the revision yet."""

    __slots__ = (
        "chains",
        "client",
        "due_us",
        "filters",
        "has",
        "heard",
        "revision",
        "since",
        "subscribers",
        "unanswered",
        "unlisted",
    )

    def __init__(self, client: NodeName, has: dict[int, int], since: int) -> None:
        self.client = client
        self.since = since
        """When it came, in ms: what was asked for before was for an earlier stay here."""
        self.has = has
        self.heard: dict[int, int] = {}
        self.revision = -1
        self.subscribers: Sequence[int] = ()
        self.filters: Sequence[Filter] = ()
        self.chains: dict[int, Chain] = {}
        self.unlisted: dict[int, None] = {}
        self.unanswered: dict[int, tuple[int, int]] = {}
        """Pubends whose brokers were told something, and have not answered: how often, and when to tell it again."""
        self.due_us = NEVER_US
        """When to tell publishers' brokers what is to be told."""

    @property
    def unreleased(self) -> dict[int, int]:
        """What the client has, and the pubend's broker does not know of."""
        return {number: tick for number, tick in self.has.items() if self.is_unreleased(number)}

    def is_unreleased(self, number: int) -> bool:
        """Does the client have more of the pubend than its broker knows of?"""
        return self.has.get(number, -1) > self.heard.get(number, -1) and number in self.chains


class Holders:
    """Those of one broker. `roots`: the brokers of the pubends, by number. `due_us`: when to `look` again."""

    def __init__(
        self,
        name: NodeName,
        roots: Sequence[NodeName],
        sessions: Sessions,
        parameters: EndToEndParameters,
        post: Post,
    ) -> None:
        self.of: dict[NodeName, Holder] = {}
        self.due_us = NEVER_US
        self._name = name
        self._roots = roots
        self._sessions = sessions
        self._post = post
        self._window = parameters.window
        self._catch_up = parameters.catch_up
        self._gap_us = parameters.gap * 1_000
        self._rest_us = parameters.rest * 1_000
        self._idle_us = parameters.idle * 1_000
        self._rest_most_us = parameters.rest_most * 1_000
        self._ack_delay_us = parameters.ack_delay * 1_000
        self._round_trip = RoundTrip(parameters.answer * 1_000, parameters.answer_least * 1_000, self._rest_most_us)

    # ---------------------------------------------------------------------------------- who is here, and what they want
    def resume(self, client: NodeName, message: Resume, now_us: int) -> list[Effect]:
        """The client says what it wants, and how far it is."""
        holder = self.of.get(client)
        if holder is None:
            holder = self.of[client] = Holder(client, pairs(message.ticks), now_us // 1_000)
        if message.revision <= holder.revision:
            return []
        holder.revision, holder.subscribers, holder.filters = message.revision, message.subscribers, message.filters
        holder.unlisted = dict.fromkeys(range(len(self._roots)))
        return self._tell(holder, holder.unlisted, now_us)

    def _tell(self, holder: Holder, numbers: Iterable[int], now_us: int) -> list[Effect]:
        """Tell the brokers of these pubends what they have to hear: one word at a time, and again until it is answered,
        ever more seldom. So of many revisions or acknowledgements in a row a broker hears the first and the last."""
        effects: list[Effect] = []
        for number in numbers:
            often, again_us = holder.unanswered.get(number, (0, 0))
            if again_us <= now_us:
                tell = self._enlist if number in holder.unlisted else self._release
                effects += tell(holder, number, now_us)
                first_us = max(self._round_trip.nrt_us, self._ack_delay_us)
                again_us = now_us + doubled(first_us, max(0, often - _QUICK), self._rest_most_us)
                holder.unanswered[number] = often + 1, again_us
            self._tell_at(holder, again_us)
        return effects

    def _tell_at(self, holder: Holder, at_us: int) -> None:
        holder.due_us = min(holder.due_us, at_us)
        self.due_us = min(self.due_us, holder.due_us)

    def _enlist(self, holder: Holder, number: int, now_us: int) -> Sequence[Effect]:
        has = [number, holder.has[number]] if number in holder.has else []
        wants = list(holder.subscribers), list(holder.filters)
        root, asked = self._roots[number], now_us // 1_000
        return self._post(Enlist(root, self._name, holder.client, holder.revision, *wants, has, asked, 0, []))

    def enlisted(self, message: Enlisted, now_us: int) -> list[Effect]:
        """A publishers' broker has recorded that."""
        self._round_trip.answered(message.asked, now_us)
        holder = self.of.get(message.client)
        if holder is None or message.asked < holder.since:
            return []
        effects: list[Effect] = []
        for number, tick in pairs(message.ticks).items():
            holder.unanswered.pop(number, None)
            if message.revision < 0 and holder.chains.pop(number, None) is not None:
                # It has nothing of the client on record any more: it is told again, and says where it goes on.
                holder.unlisted[number] = None
            if number in holder.unlisted and message.revision != holder.revision:
                effects += self._tell(holder, [number], now_us)
            elif number in holder.unlisted:
                effects += self._begin_chain(holder, number, tick, now_us)
        return effects

    def _begin_chain(self, holder: Holder, number: int, tick: int, now_us: int) -> list[Effect]:
        effects: list[Effect] = []
        del holder.unlisted[number]
        if number not in holder.chains:
            # What is kept for a client that knows of nothing yet, if anything is, its broker is reminded of.
            due_us = now_us + (0 if number in holder.has else self._idle_us)
            holder.heard[number] = tick
            if holder.has.get(number, tick) != tick and not self._is_own(holder):
                effects.append(Send(holder.client, ResumedAt(number, holder.has[number], tick)))
            holder.has[number] = tick
            holder.chains[number] = Chain(tick, self._catch_up, due_us)
            self._ask_at(holder.chains[number], due_us)
            effects += self._go_on(holder, number, now_us)
        if not holder.unlisted and not self._is_own(holder):
            effects.append(Send(holder.client, Recorded(holder.revision)))
        return effects

    # ---------------------------------------------------------------------------------------------------------- steps
    def carried(self, message: Carried, now_us: int) -> list[Effect]:
        """An event has come by routing, or was published here: hand it to those clients here that it is for."""
        effects: list[Effect] = []
        for client, after, subscribers in zip(message.clients, message.afters, message.subscribers, strict=False):
            if client in self.of:
                about = (after, message.tick, message.event, message.hops, subscribers)
                effects += self.step(Caught(self._name, client, message.pubend, *about, 0, 0, []), now_us)
        return effects

    def step(self, step: CatchUpStep, now_us: int) -> list[Effect]:
        """A step of a client's chain has come."""
        self._round_trip.answered(step.asked, now_us)
        holder = self.of.get(step.client)
        chain = None if holder is None else holder.chains.get(step.pubend)
        if holder is None or chain is None:
            return []
        chain.put(step)
        effects = self._go_on(holder, step.pubend, now_us)
        if type(step) is CaughtUp and not chain.left:
            self._ask_at(chain, now_us + self._idle_us)
        elif step.asked and chain.left and chain.has_gap:  # an answer with a hole: its broker is there
            chain.silent = 0
            self._ask_at(chain, min(chain.due_us, now_us + self._round_trip.nrt_us))
        return effects

    def remind(self, message: Reminder, now_us: int) -> list[Effect]:
        """The pubend's broker says what has not been acknowledged: who lacks it asks, who has it says so."""
        effects: list[Effect] = []
        named = dict(zip(message.clients, message.ticks, strict=False)) or dict.fromkeys(self.of, NEVER)
        for client, tick in named.items():
            holder = self.of.get(client)
            chain = None if holder is None else holder.chains.get(message.pubend)
            if holder is None or chain is None:
                continue
            if chain.tick >= tick or chain.held_up:  # it waits for the client, as the client's broker does
                effects += self._release(holder, message.pubend, now_us)
            elif not chain.left:  # what was asked for before is asked for again by itself
                effects += self._ask(holder, message.pubend, now_us)
        return effects

    def go_on(self, client: NodeName, now_us: int) -> list[Effect]:
        """The client may have room again."""
        holder = self.of[client]
        effects: list[Effect] = []
        for number, chain in holder.chains.items():
            if chain.held_up:
                chain.held_up = False
                if not chain.left:  # what came while it was held up may not have been kept
                    chain.due_us = now_us
            if chain.due_us <= now_us or chain.has_gap:  # most often of none
                effects += self._go_on(holder, number, now_us)
        return effects

    def _go_on(self, holder: Holder, number: int, now_us: int) -> list[Effect]:
        chain = holder.chains[number]
        effects: list[Effect] = []
        while (step := chain.following()) is not None:
            if not self._take(holder, number, chain.tick, step, effects):
                chain.held_up = True
                self._ask_at(chain, now_us + self._rest_us)  # it goes on when the client has room
                return effects
            chain.go_on(step)
            if not chain.left and chain.due_us > now_us:
                self._ask_at(chain, now_us + self._idle_us)
        if self._is_own(holder):
            self._release_later(holder, number, now_us)
        if chain.due_us <= now_us:
            return [*effects, *self._ask(holder, number, now_us)]
        if chain.has_gap and not chain.left and chain.due_us > now_us + self._gap_us:
            self._ask_at(chain, now_us + self._gap_us)
        return effects

    def _take(self, holder: Holder, number: int, tick: int, step: CatchUpStep, effects: list[Effect]) -> bool:
        """Hand it over; False if that has to wait."""
        if self._is_own(holder):
            if type(step) is not CaughtUp:
                holder.has[number] = step.tick
            if type(step) is Caught:
                effects.append(Deliver(step.event, step.hops, step.subscribers))
            elif type(step) is GivenUp:
                effects += rows_of(step.events)
            return True
        session = self._sessions.of(holder.client)
        assert session is not None, "a holder goes with its session"
        if type(step) is Caught:
            if session.outstanding >= self._window:
                return False
            about = (number, step.tick)
            effects.append(session.hand(step.event, step.hops, list(step.subscribers), DurableHanded, about))
        elif type(step) is GivenUp:
            effects.append(session.tell(DurableGivenUp, number, step.tick, step.events))
        return True

    def _is_own(self, holder: Holder) -> bool:
        return holder.client == self._name

    # -------------------------------------------------------------------------------------------------------- asking
    def _ask(self, holder: Holder, number: int, now_us: int) -> list[Effect]:
        chain = holder.chains[number]
        outstanding = self._sessions.outstanding(holder.client)
        if outstanding >= self._window:
            chain.held_up = True
            self._ask_at(chain, now_us + self._rest_us)
            return []
        most = chain.ask(self._window - outstanding)
        self._ask_at(chain, now_us + doubled(self._round_trip.nrt_us, chain.silent - 1, self._rest_most_us))
        root, asked = self._roots[number], now_us // 1_000
        has = holder.has.get(number, -1)
        return [*self._post(CatchUp(root, self._name, holder.client, number, chain.tick, has, most, asked, 0, []))]

    def _ask_at(self, chain: Chain, at_us: int) -> None:
        chain.due_us = at_us
        self.due_us = min(self.due_us, at_us)

    def look(self, now_us: int) -> list[Effect]:
        """Ask and tell what is due."""
        effects: list[Effect] = []
        self.due_us = NEVER_US
        for holder in self.of.values():
            for number, chain in holder.chains.items():
                if chain.due_us <= now_us:
                    effects += self._ask(holder, number, now_us)
                self.due_us = min(self.due_us, chain.due_us)
            if holder.due_us <= now_us:
                holder.due_us = NEVER_US
                effects += self._tell(holder, dict.fromkeys((*holder.unlisted, *holder.unreleased)), now_us)
            self.due_us = min(self.due_us, holder.due_us)
        return effects

    # ------------------------------------------------------------------------------------------------------ releasing
    def has(self, client: NodeName, messages: Iterable[DurableHanded | DurableGivenUp], now_us: int) -> None:
        """The client has acknowledged these."""
        holder = self.of[client]
        for message in messages:
            holder.has[message.pubend] = message.tick
            self._release_later(holder, message.pubend, now_us)

    def _release_later(self, holder: Holder, number: int, now_us: int) -> None:
        """There may be something of the client's to tell the pubend's broker."""
        if holder.is_unreleased(number):
            self._tell_at(holder, now_us + self._ack_delay_us)

    def _release(self, holder: Holder, number: int, now_us: int) -> Sequence[Effect]:
        root, asked = self._roots[number], now_us // 1_000
        return self._post(Release(root, self._name, holder.client, [number, holder.has[number]], asked, 0, []))

    def released(self, message: Released, now_us: int) -> list[Effect]:
        """A publishers' broker has heard that."""
        self._round_trip.answered(message.asked, now_us)
        holder = self.of.get(message.client)
        if holder is not None:
            for number, tick in pairs(message.ticks).items():
                holder.unanswered.pop(number, None)
                holder.heard[number] = max(tick, holder.heard.get(number, -1))
                self._release_later(holder, number, now_us)
        return []

    def is_served_anew(self, root: NodeName, now_us: int) -> None:
        """Another broker serves that pubend now: it may not have heard what the one before it has."""
        number = self._roots.index(root)
        for holder in self.of.values():
            holder.unanswered.pop(number, None)
            if holder.heard.pop(number, None) is not None:
                self._release_later(holder, number, now_us)

    # -------------------------------------------------------------------------------------------------- what is open
    @property
    def settling(self) -> bool:
        """Is there something that a client wants, and a publishers' broker has not recorded?"""
        return any(holder.unlisted for holder in self.of.values())

    @property
    def waiting(self) -> bool:
        """Is something missing here, or has a client something that its publishers' broker has not heard?"""
        return any(
            holder.unreleased or any(chain.has_gap for chain in holder.chains.values()) for holder in self.of.values()
        )

    def check_invariants(self) -> None:
        for holder in self.of.values():
            for chain in holder.chains.values():
                chain.check_invariants()
                assert chain.due_us < NEVER_US, "nobody would ever ask"
                assert self.due_us <= chain.due_us, "nobody would look in time"
