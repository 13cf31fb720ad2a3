"""The subscribers' side of durable subscriptions: the clients that are here now, and how each is caught up.

Theory of operation. All that is kept here is soft. A client that comes says what it wants and how far it is; that goes
to every publishers' broker, again and again until each has recorded it. From then on the client is caught up pubend by
pubend (`reliability.durable.catching_up`), and what it acknowledges is told to the publishers' brokers until they have
heard of it. One timer repeats whatever was not answered: after the round trip that was estimated from answers, and
less often while there are none. A publishers' broker that does not answer is asked to record ever less often, until
something is heard of it: of many brokers some are always away, and each client has something to say to each.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from murmur_pubsub.machine import Effect, NodeName, Send
from reliability.durable.catching_up import CatchUpStream, Holder
from reliability.durable.keeper import Post
from reliability.durable.messages import (
    CatchUp,
    CatchUpStep,
    Caught,
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
    flat,
    pairs,
)
from reliability.gryphon.round_trip import RoundTrip, doubled
from reliability.gryphon.sessions import Sessions
from reliability.gryphon.subend import Subend

SubendOf = Callable[[int], Subend | None]
"""Where the consolidated stream of a pubend is handed out here (None: not yet)."""


class Holders:
    """Those of one broker. `roots`: publishers' broker to the numbers of its pubends. `window`: see `Sessions`;
    `catch_up`: the most messages that are asked for at a time. `stirred`: there may be something to be answered that
    was not there when this was last False."""

    def __init__(
        self,
        name: NodeName,
        roots: Mapping[NodeName, Sequence[int]],
        sessions: Sessions,
        round_trip: RoundTrip,
        window: int,
        catch_up: int,
        subend_of: SubendOf,
        post: Post,
    ) -> None:
        self.of: dict[NodeName, Holder] = {}
        self._name = name
        self._roots = roots
        self._root_of = {number: root for root, numbers in roots.items() for number in numbers}
        self._sessions = sessions
        self._round_trip = round_trip
        self._window = window
        self._catch_up = catch_up
        self._subend_of = subend_of
        self._post = post
        self._unanswered = 0
        self._silent: dict[NodeName, tuple[int, int]] = {}
        """Publishers' broker to how often it was asked since something was heard of it, and when it is asked again."""
        self._lives: dict[NodeName, int] = {}
        self.beginning: dict[int, None] = {}
        """Pubends of which some holder here may begin with a revision: see `Holder.begins`."""
        self.stirred = False

    # ---------------------------------------------------------------------------------- who is here, and what they want
    def resume(self, client: NodeName, message: Resume, version: int, now_us: int) -> list[Effect]:
        """The client says what it wants, and how far it is."""
        holder = self.of.get(client)
        if holder is None:
            holder = self.of[client] = Holder(client, pairs(message.ticks), now_us // 1_000)
        if message.revision <= holder.revision:
            return []
        self.stirred = True
        holder.revision, holder.subscribers, holder.filters = message.revision, message.subscribers, message.filters
        holder.version = version
        holder.unlisted = dict.fromkeys(self._roots)
        holder.begins = {number: None for number, stream in holder.streams.items() if stream.live}
        self.beginning |= holder.begins
        return self._enlist(holder, holder.unlisted, now_us)

    def enlisted(self, message: Enlisted, now_us: int) -> list[Effect]:
        """A publishers' broker has recorded that."""
        holder, begins, ends = self.of.get(message.client), pairs(message.ticks), pairs(message.ends)
        root = self._heard(next(iter(begins), -1), message.asked, now_us)
        if holder is None or message.asked < holder.since:
            return []
        if message.revision < 0 and root is not None and root not in holder.unlisted:
            return self._enlist_anew(holder, root, now_us)
        if message.revision != holder.revision:
            return []
        if root not in holder.unlisted:
            return []
        del holder.unlisted[root]
        effects: list[Effect] = []
        for number in self._roots[root]:
            tick = begins.get(number, -1)
            holder.heard[number] = tick
            stream, has = holder.streams.get(number), holder.has.get(number, tick)
            if stream is not None:
                continue
            stream = holder.streams[number] = CatchUpStream(tick, self._catch_up)
            if number in ends:
                stream.begin_at(ends[number], now_us + self._round_trip.nrt_us)
            if has != tick:
                holder.has[number] = tick
                effects.append(Send(holder.client, ResumedAt(number, has, tick)))
        if not holder.unlisted:
            effects.append(Send(holder.client, Recorded(holder.revision)))
        return [*effects, *self.go_on(holder, now_us)]

    def _enlist_anew(self, holder: Holder, root: NodeName, now_us: int) -> list[Effect]:
        """That publishers' broker had recorded what the client wants, and knows nothing of it: its disk was lost."""
        for number in self._roots[root]:
            for each in (holder.streams, holder.begins, holder.heard):
                each.pop(number, None)
        holder.unlisted[root] = None
        self.stirred = True
        return self._enlist(holder, [root], now_us)

    def _enlist(self, holder: Holder, roots: Iterable[NodeName], now_us: int) -> list[Effect]:
        effects: list[Effect] = []
        for root in roots:
            ticks = {each: holder.has[each] for each in self._roots[root] if each in holder.has}
            wants = list(holder.subscribers), list(holder.filters)
            asked = now_us // 1_000
            message = Enlist(root, self._name, holder.client, holder.revision, *wants, flat(ticks), asked, 0, [])
            effects += self._post(message)
        return effects

    # ---------------------------------------------------------------------------------------------------- catching up
    def caught(self, message: CatchUpStep, now_us: int) -> list[Effect]:
        """A step of a catch-up stream has come."""
        self._heard(message.pubend, message.asked, now_us)
        holder = self.of.get(message.client)
        stream = None if holder is None else holder.streams.get(message.pubend)
        if holder is None or stream is None or stream.live:
            return []
        stream.put(message, now_us + self._round_trip.nrt_us)
        return self._take(holder, message.pubend, stream, now_us)

    def go_on(self, holder: Holder, now_us: int) -> list[Effect]:
        """There may be room, or the consolidated stream may have got where it is met."""
        return [
            effect for number in holder.behind for effect in self._take(holder, number, holder.streams[number], now_us)
        ]

    def meet(self, number: int, now_us: int) -> list[Effect]:
        """The consolidated stream of the pubend begins here, or is handed out by later filters."""
        effects: list[Effect] = []
        for holder in self.of.values():
            stream = holder.streams.get(number)
            if stream is not None and not stream.live:
                effects += self._take(holder, number, stream, now_us)
        return effects

    def forgotten(self, version: int, now_us: int) -> list[Effect]:
        """Others had dropped what is wanted here, up to that version of its filters: the consolidated streams have
        nothing of what was published meanwhile."""
        self.stirred = True
        effects: list[Effect] = []
        for holder in self.of.values():
            holder.version = version
            for number, stream in holder.streams.items():
                subend = self._subend_of(number)
                if stream.live and subend is not None and self._root_of[number] != self._name:
                    stream.fall_behind(max(stream.tick, subend.next - 1))
            effects += self.go_on(holder, now_us)
        return effects

    def _take(self, holder: Holder, number: int, stream: CatchUpStream, now_us: int) -> list[Effect]:
        session = self._sessions.of(holder.client)
        assert session is not None, "a holder goes with its session"
        effects: list[Effect] = []
        before = stream.tick
        while (step := stream.following()) is not None:
            if type(step) is Caught:
                if session.outstanding >= self._window:
                    return effects
                about = (number, step.tick)
                effects.append(session.hand(step.event, step.hops, step.subscribers, DurableHanded, about))
            elif type(step) is GivenUp:
                effects.append(session.tell(DurableGivenUp, number, step.tick, step.events))
            stream.go_on(step)
        subend, following = self._subend_of(number), stream.tick + 1
        if subend is not None and subend.next <= following and subend.version_at(following) >= holder.version:
            stream.go_live()
        elif not stream.left:
            has_more = subend is not None and subend.next > following and (following > before + 1 or not stream.asked)
            if has_more or not stream.at_end:
                effects += self._ask(holder, number, stream, now_us)
        return effects

    def _ask(self, holder: Holder, number: int, stream: CatchUpStream, now_us: int) -> list[Effect]:
        room = self._window - self._sessions.outstanding(holder.client)
        if room <= 0:
            return []
        most = stream.ask(room, now_us + self._round_trip.nrt_us)
        root, asked = self._root_of[number], now_us // 1_000
        has = holder.has.get(number, -1)
        return [*self._post(CatchUp(root, self._name, holder.client, number, stream.tick, has, most, asked, 0, []))]

    def live_for(self, client: NodeName, pubend: int, tick: int) -> bool:
        """Is the message on that tick of the consolidated stream to be handed to the client?"""
        holder = self.of.get(client)
        if holder is None or not holder.is_live(pubend, tick):
            return False
        if self._sessions.outstanding(client) < self._window:
            return True
        holder.streams[pubend].fall_behind(tick - 1)
        self.stirred = True
        return False

    # ------------------------------------------------------------------------------------------------------- releasing
    def has(self, client: NodeName, messages: Iterable[DurableHanded | DurableGivenUp]) -> None:
        """The client has acknowledged these."""
        self.stirred = True
        self.of[client].has.update((message.pubend, message.tick) for message in messages)

    def root_began(self, root: NodeName, incarnation: int) -> bool:
        """That incarnation of a publishers' broker is there; True if it has to hear again what clients have."""
        self._silent.pop(root, None)
        if incarnation <= self._lives.get(root, 0):
            return False
        self._lives[root] = incarnation
        for holder in self.of.values():
            for number in self._roots[root]:
                holder.heard.pop(number, None)
        self.stirred = True
        return bool(self.of)

    def _pass_by(self, holder: Holder) -> None:
        """A publishers' broker matches by a new revision at once, and the consolidated stream is handed out by it from
        a later tick on. What was matched between the two nobody hands over: the client has what the stream has passed.
        (It may be long until the stream gets to where the revision begins, if its pubend says nothing.)"""
        session = self._sessions.of(holder.client)
        for number in list(holder.begins):
            subend = self._subend_of(number)
            owed = session is None or any(each.pubend == number for each in session.not_handed_back)
            if subend is not None and holder.streams[number].live and not owed:
                self.stirred = True
                holder.has[number] = max(holder.has.get(number, -1), subend.next - 1)
                if subend.version_at(subend.next) >= holder.version:
                    del holder.begins[number]

    def release(self, now_us: int) -> list[Effect]:
        """Tell the publishers' brokers what clients have."""
        effects: list[Effect] = []
        self.beginning = {}
        for holder in self.of.values():
            self._pass_by(holder)
            self.beginning |= holder.begins
            for root, numbers in self._roots.items():
                news = {} if root in holder.unlisted else holder.unreleased(numbers)
                if news:
                    message = Release(root, self._name, holder.client, flat(news), now_us // 1_000, 0, [])
                    effects += self._post(message)
        return effects

    def released(self, message: Released, now_us: int) -> list[Effect]:
        """A publishers' broker has heard that."""
        holder, ticks = self.of.get(message.client), pairs(message.ticks)
        self._heard(next(iter(ticks), -1), message.asked, now_us)
        if holder is not None:
            for number, tick in ticks.items():
                holder.heard[number] = max(tick, holder.heard.get(number, -1))
        return []

    # ------------------------------------------------------------------------------------------------------- repeating
    @property
    def waiting(self) -> bool:
        """Is there anything that a publishers' broker has to answer?"""
        return any(
            holder.unlisted or holder.behind or holder.unreleased(list(holder.has)) for holder in self.of.values()
        )

    @property
    def wait_us(self) -> int:
        """After how long to repeat what is not answered."""
        return doubled(self._round_trip.nrt_us, min(self._unanswered, 2), self._round_trip.most_us)

    def repeat(self, now_us: int) -> list[Effect]:
        """Say again what was not answered."""
        self._unanswered += 1
        self.stirred = True
        effects: list[Effect] = []
        asked: dict[NodeName, None] = {}
        for holder in self.of.values():
            due = [root for root in holder.unlisted if self._silent.get(root, (0, 0))[1] <= now_us]
            effects += self._enlist(holder, due, now_us)
            asked.update(dict.fromkeys(due))
            for number in holder.behind:
                stream = holder.streams[number]
                if stream.due_us <= now_us:
                    stream.put_off()
                    effects += self._take(holder, number, stream, now_us)
        for root in asked:
            often = self._silent.get(root, (0, 0))[0] + 1
            self._silent[root] = often, now_us + doubled(self._round_trip.nrt_us, often, self._round_trip.most_us)
        return [*effects, *self.release(now_us)]

    def _heard(self, pubend: int, asked: int, now_us: int) -> NodeName | None:
        """The pubend's broker has answered; which is it?"""
        self._unanswered = 0
        self._round_trip.answered(asked, now_us)
        root = self._root_of.get(pubend)
        if root is not None:
            self._silent.pop(root, None)
        return root

    def check_invariants(self) -> None:
        for holder in self.of.values():
            holder.check_invariants()
