"""The publishers' side of durable subscriptions: it records them, keeps what they are owed, and answers.

Theory of operation. What a client wants is logged before anybody hears that it is recorded, so that everything which is
put on a tick from then on is matched with it, also after a restart. What is asked for is answered with what is kept and
is safely in the log. What a client has is kept for it no more, and the log is cut behind it.

With a lease, what has waited for a client for so long is given up if nothing was heard of the client for as long; the
client is told so when it asks for what follows. While this broker was away no lease ran: it could hear nothing.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from murmur_pubsub.errors import InputError
from murmur_pubsub.machine import Effect, NodeName
from reliability.durable.log import DurableLog
from reliability.durable.messages import (
    BetweenDurables,
    CatchUp,
    Caught,
    CaughtUp,
    Enlist,
    Enlisted,
    GivenUp,
    Release,
    Released,
    flat,
    pairs,
)
from reliability.gryphon.pubend import Pubend

NEVER = 2**62
"""A tick that none comes up to."""
Post = Callable[[BetweenDurables], Sequence[Effect]]
"""Sends a message on its way to the broker that it is for."""


class Keeper:
    """Of one broker; `pubends`: its own, by number. `lease_us`: see `murmur_pubsub.promise.Limits`."""

    def __init__(self, log: DurableLog, pubends: Mapping[int, Pubend], post: Post, lease_us: int | None = None) -> None:
        self._begun_us = 0
        self._lease_us = lease_us
        self._heard_us: dict[NodeName, int] = {}
        self._log = log
        self._pubends = pubends
        self._post = post
        self._recording: dict[int, NodeName] = {}  # token to client
        self._asking: dict[NodeName, Enlist] = {}

    def begin(self, broker: NodeName, now_us: int) -> None:
        """The log was read; raises `InputError` if it says of subscriptions what is none of this broker's."""
        self._begun_us = now_us
        for client, registration in self._log.record.registrations.items():
            for number in registration.has:
                if number not in self._pubends:
                    found = f"how far {client} is with pubend {number}"
                    allowed = f"those of this broker: {', '.join(map(str, self._pubends))}"
                    raise InputError(f"the stable log of {broker}", found, allowed)

    def enlist(self, message: Enlist, now_us: int) -> list[Effect]:
        """A client's broker says what it wants."""
        self._heard_us[message.client] = now_us
        known = self._log.record.registrations.get(message.client)
        if not self._pubends or (known is not None and message.revision < known.revision):
            return []
        if known is not None and message.revision == known.revision:
            if message.client in self._asking:
                self._asking[message.client] = message
                return []
            return self._answer(message)
        wanted = list(zip(message.subscribers, message.filters, strict=False))
        latest = {number: pubend.last for number, pubend in self._pubends.items()}
        token, persist = self._log.enlist(message.client, message.revision, wanted, latest)
        self._recording[token] = message.client
        self._asking[message.client] = message
        return [persist]

    def stored(self, token: int) -> list[Effect] | None:
        """A record is safe: effects of that; None if it is not about what a client wants."""
        if token not in self._recording:
            return None
        client = self._recording.pop(token)
        if client in self._recording.values():
            return []  # a later revision is on its way
        return self._answer(self._asking.pop(client))

    def _answer(self, message: Enlist) -> list[Effect]:
        given = pairs(message.ticks)
        registration = self._log.record.registrations[message.client]
        begins, ends = {}, {}
        for number, pubend in self._pubends.items():
            after = given.get(number, -1)
            if after > pubend.last:
                after = -1  # never given: of another log, or of one that was lost
            self._log.record.release(message.client, number, after)
            begins[number] = registration.has[number]
            lost = registration.lost.get(number)
            if not registration.owed[number] and (lost is None or lost.tick <= begins[number]):
                ends[number] = max(begins[number], pubend.knowledge.newest)
        about = (registration.revision, flat(begins), flat(ends), message.asked)
        answer = Enlisted(message.origin, message.client, *about, 0, [])
        return [*self._post(answer)]

    def catch_up(self, message: CatchUp, now_us: int) -> list[Effect]:
        """A client is to be caught up: the next messages that are kept for it. It says again what it has, since
        this broker may have heard of that before it was restarted, and not have stored it."""
        self._heard_us[message.client] = now_us
        pubend = self._pubends.get(message.pubend)
        registration = self._log.record.registrations.get(message.client)
        if pubend is None:
            return []
        if registration is None:
            return self._unknown(message, [message.pubend])
        _, origin, client, number, after, has, most, asked, *_ = message
        self._log.record.release(client, number, min(has, pubend.last))
        until = pubend.knowledge.newest
        effects: list[Effect] = []
        lost = registration.lost.get(number)
        if lost is not None and lost.tick > after:
            effects += self._post(GivenUp(origin, client, number, after, lost.tick, lost.flat, asked, 0, []))
            after = lost.tick
        count = 0
        found = self._log.record.after(client, number, after, until)
        for tick, event, subscribers in itertools.islice(found, max(0, most)):
            step = Caught(origin, client, number, after, tick, event, 0, list(subscribers), asked, 0, [])
            effects += self._post(step)
            after = tick
            count += 1
        if count < most:
            effects += self._post(CaughtUp(origin, client, number, after, max(after, until), asked, 0, []))
        return effects

    def release(self, message: Release, now_us: int) -> list[Effect]:
        """A client has more than before."""
        self._heard_us[message.client] = now_us
        if self._pubends and message.client not in self._log.record.registrations:
            return self._unknown(message, pairs(message.ticks))
        for number, tick in pairs(message.ticks).items():
            if number in self._pubends:
                self._log.record.release(message.client, number, min(tick, self._pubends[number].last))
        return [*self._post(Released(message.origin, message.client, message.ticks, message.asked, 0, []))]

    def _unknown(self, message: CatchUp | Release, numbers: Iterable[int]) -> list[Effect]:
        """A disk was lost, and with it what the client wants: its broker is to say that again."""
        none = flat(dict.fromkeys(numbers, -1))
        return [*self._post(Enlisted(message.origin, message.client, -1, none, [], message.asked, 0, []))]

    def owes(self, since_us: int) -> bool:
        """Is something kept for a client that was heard of since then, or has it to be told of what was given up? What
        was put on a tick since then counts too."""
        return next(self.kept_for(since_us), None) is not None

    def kept_for(self, since_us: int, until: int = NEVER) -> Iterator[tuple[NodeName, int, int]]:
        """Of each client that `owes` counts: pubends, and the last tick up to `until` that is kept for it there."""
        for client, registration in self._log.record.with_any_left():
            heard_us = self._heard_us.get(client, self._begun_us)
            for number, tick in self.kept_for_one(client, until):
                owed = registration.owed[number]
                if heard_us >= since_us or (owed and owed[0] * 1_000 >= since_us):
                    yield client, number, tick

    def kept_for_one(self, client: NodeName, until: int = NEVER) -> Iterator[tuple[int, int]]:
        """The same of one client, whenever it was heard of; what was given up, and not told yet, counts too."""
        registration = self._log.record.registrations.get(client)
        if registration is None:
            return
        for number, owed in registration.owed.items():
            lost = registration.lost.get(number)
            last = next((tick for tick in reversed(owed) if tick <= until), None if lost is None else lost.tick)
            if last is not None:
                yield number, last

    def give_up(self, now_us: int) -> int | None:
        """Give up what nobody may be waiting for any more; when to look again (None: nothing is kept)."""
        assert self._lease_us is not None
        record, dues_us = self._log.record, []
        for client, registration in record.registrations.items():
            heard_us = self._heard_us.get(client, self._begun_us)
            for number, owed in registration.owed.items():
                if heard_us + self._lease_us <= now_us:
                    record.give_up(client, number, (now_us - self._lease_us) // 1_000)
                if owed:
                    dues_us.append(max(heard_us, owed[0] * 1_000) + self._lease_us)
        # Not at each message of many: a look goes over all clients.
        return max(min(dues_us), now_us + self._lease_us // 8) if dues_us else None
