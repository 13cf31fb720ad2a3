"""The publishers' side of durable subscriptions: it records them, keeps what they are owed, and answers.

Theory of operation. What a client wants is logged before anybody hears that it is recorded, so that everything which is
put on a tick from then on is matched with it, also after a restart. What is asked for is answered with what is kept and
is safely in the log. What a client has is kept for it no more, and the log is cut behind it.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence

from murmur_pubsub.machine import Effect, NodeName
from reliability.durable.log import DurableLog
from reliability.durable.messages import (
    BetweenDurables,
    CatchUp,
    Caught,
    CaughtUp,
    Enlist,
    Enlisted,
    Release,
    Released,
    flat,
    pairs,
)
from reliability.gryphon.pubend import Pubend

Post = Callable[[BetweenDurables], Sequence[Effect]]
"""Sends a message on its way to the broker that it is for."""


class Keeper:
    """Of one broker; `pubends`: its own, by number."""

    def __init__(self, log: DurableLog, pubends: Mapping[int, Pubend], post: Post) -> None:
        self._log = log
        self._pubends = pubends
        self._post = post
        self._recording: dict[int, NodeName] = {}  # token to client
        self._asking: dict[NodeName, Enlist] = {}

    def enlist(self, message: Enlist) -> list[Effect]:
        """A client's broker says what it wants."""
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
        begins = {}
        for number, pubend in self._pubends.items():
            after = given.get(number, -1)
            if after > pubend.last:
                after = -1  # never given: of another log, or of one that was lost
            self._log.record.release(message.client, number, after)
            begins[number] = registration.has[number]
        answer = Enlisted(message.origin, message.client, registration.revision, flat(begins), message.asked, 0, [])
        return [*self._post(answer)]

    def catch_up(self, message: CatchUp) -> list[Effect]:
        """A client is to be caught up: the next messages that are kept for it."""
        pubend = self._pubends.get(message.pubend)
        if pubend is None or message.client not in self._log.record.registrations:
            return []
        _, origin, client, number, after, most, asked, *_ = message
        until = pubend.knowledge.newest
        effects: list[Effect] = []
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

    def release(self, message: Release) -> list[Effect]:
        """A client has more than before."""
        for number, tick in pairs(message.ticks).items():
            if number in self._pubends:
                self._log.record.release(message.client, number, min(tick, self._pubends[number].last))
        return [*self._post(Released(message.origin, message.client, message.ticks, message.asked, 0, []))]
