"""What a publishers' broker keeps of durable subscriptions: who wants what, which events matched, who has got what.

An event is matched once, when it goes into the log, and the log says whom it matched; a subscriber that was away is
caught up from that, and nothing is matched again. A message is kept until every client that it matched has it, or has
withdrawn what it matched. A client that has withdrawn all stays on record, so that an older word of it means nothing.

What is given up for a client is kept no more, though the client does not have it. From which event to which that was
stays on record until the client says that it has what follows: then it has been told.
"""

import itertools
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import NodeName
from routing.local_subscriptions import LocalSubscriptions

Matched = Mapping[NodeName, Sequence[int]]
"""Client to those of its subscribers that an event is for."""
Wanted = Sequence[tuple[int, Filter]]
"""Subscribers and their filters."""


class Found(NamedTuple):
    """A message kept for a client."""

    tick: int
    event: Event
    subscribers: Sequence[int]


class Chained(NamedTuple):
    """A message is for the client, and after the tick `after` it is the first that is."""

    client: NodeName
    after: int
    subscribers: Sequence[int]


class _Kept:
    """A message, and for how many clients it is kept."""

    __slots__ = ("event", "matched", "waiting")

    def __init__(self, event: Event) -> None:
        self.event = event
        self.matched: dict[NodeName, Sequence[int]] = {}
        self.waiting = 0


class Lost:
    """What was given up of a pubend for a client: all up to `tick`, of each publisher the events from the first to the
    last number."""

    __slots__ = ("events", "tick")

    def __init__(self, tick: int = -1, events: Mapping[int, tuple[int, int]] | None = None) -> None:
        self.tick = tick
        self.events = dict(events or {})

    def add(self, tick: int, event: Event) -> None:
        """One more, which is later than all before."""
        self.tick = tick
        publisher, number = event.id
        self.events[publisher] = self.events.get(publisher, (number, number))[0], number

    @property
    def flat(self) -> list[int]:
        """As messages have it: [publisher, first number, last number, …]."""
        return [each for publisher, numbers in self.events.items() for each in (publisher, *numbers)]


class Registration:
    """One client's, the `number`th of all. `has`: pubend to the tick up to which the client has everything; `lost`:
    what was given up after that; `owed`: the ticks after both that are kept for it."""

    __slots__ = ("has", "lost", "number", "owed", "revision", "wanted")

    def __init__(self, number: int, has: dict[int, int]) -> None:
        self.number = number
        self.revision = -1
        self.wanted: list[tuple[int, Filter]] = []
        self.has = has
        self.lost: dict[int, Lost] = {}
        self.owed: dict[int, deque[int]] = {pubend: deque() for pubend in has}

    @property
    def any_left(self) -> bool:
        """Is anything kept for it, or was anything given up of which it has not been told?"""
        return bool(self.lost) or any(self.owed.values())

    def done_up(self, pubend: int) -> int:
        """The tick up to which nothing is kept for it."""
        has = self.has.get(pubend, -1)
        return max(has, self.lost[pubend].tick) if pubend in self.lost else has


class DurableRecord:
    """Of all clients, at one publishers' broker."""

    def __init__(self) -> None:
        self.registrations: dict[NodeName, Registration] = {}
        self._left: dict[NodeName, Registration] = {}
        """Those that have any left: mostly few of many."""
        self._filters = LocalSubscriptions("bitset")
        self._kept: dict[int, dict[int, _Kept]] = {}

    def enlist(self, client: NodeName, revision: int, wanted: Wanted, latest: Mapping[int, int]) -> None:
        """From now on that is what the client wants; `latest`: pubend to its last tick in use."""
        registration = self.registrations.get(client)
        if registration is None:
            registration = self._register(client, latest)
        if not wanted or not registration.wanted:  # what it begins with, and what it ends with, it is not owed
            for pubend, tick in latest.items():
                self.release(client, pubend, tick)
        before, registration.wanted = registration.wanted, list(wanted)
        registration.revision = revision
        if not set(wanted).issuperset(before):
            self._withdraw(client, registration)
        for subscriber, each in before:
            self._filters.remove((client, subscriber), each)
        for subscriber, each in wanted:
            self._filters.add((client, subscriber), each)

    def _register(self, client: NodeName, has: Mapping[int, int]) -> Registration:
        registration = self.registrations[client] = Registration(len(self.registrations), dict(has))
        return registration

    def _note_left(self, client: NodeName, registration: Registration) -> None:
        if registration.any_left:
            self._left[client] = registration
        else:
            self._left.pop(client, None)

    def with_any_left(self) -> list[tuple[NodeName, Registration]]:
        """The clients for which anything is kept, or that have to be told of what was given up, as they came."""
        return sorted(self._left.items(), key=lambda each: each[1].number)

    def _withdraw(self, client: NodeName, registration: Registration) -> None:
        """What was withdrawn, and not handed over yet, is kept no more."""
        for pubend, owed in registration.owed.items():
            still: deque[int] = deque()
            for tick in owed:
                kept = self._kept[pubend][tick]
                left = still_for(kept.matched[client], registration.wanted, kept.event)
                kept.matched[client] = left
                if left:
                    still.append(tick)
                else:
                    self._release(pubend, tick)
            registration.owed[pubend] = still
        self._note_left(client, registration)

    def match(self, event: Event) -> dict[NodeName, list[int]]:
        """Whom the event is for."""
        return {client: found for client, found in self._filters.subscribers(event).items() if client is not None}

    def keep(self, pubend: int, tick: int, event: Event, matched: Matched) -> None:
        """Keep the message for those that it matched and that do not have it."""
        for client, subscribers in matched.items():
            registration = self.registrations.get(client)
            if registration is not None and tick > registration.done_up(pubend):
                registration.owed.setdefault(pubend, deque()).append(tick)
                kept = self._kept.setdefault(pubend, {}).setdefault(tick, _Kept(event))
                kept.matched[client] = subscribers
                kept.waiting += 1
                self._left[client] = registration

    def release(self, client: NodeName, pubend: int, tick: int) -> None:
        """The client has everything of the pubend up to the tick."""
        registration = self.registrations.get(client)
        if registration is None:
            return
        has = registration.has[pubend] = max(tick, registration.has.get(pubend, -1))
        if pubend in registration.lost and registration.lost[pubend].tick <= has:
            del registration.lost[pubend]
        owed = registration.owed.setdefault(pubend, deque())
        while owed and owed[0] <= tick:
            self._release(pubend, owed.popleft())
        self._note_left(client, registration)

    def give_up(self, client: NodeName, pubend: int, tick: int) -> None:
        """Keep nothing up to the tick for the client any more."""
        registration = self.registrations[client]
        owed = registration.owed.get(pubend)
        while owed and owed[0] <= tick:
            lost = registration.lost.setdefault(pubend, Lost())
            lost.add(owed[0], self._kept[pubend][owed[0]].event)
            self._release(pubend, owed.popleft())

    def give_up_for_all(self, pubend: int, tick: int) -> None:
        """Keep nothing up to the tick any more."""
        for client in self.registrations:
            self.give_up(client, pubend, tick)

    def _release(self, pubend: int, tick: int) -> None:
        kept = self._kept[pubend][tick]
        kept.waiting -= 1
        if not kept.waiting:
            del self._kept[pubend][tick]

    def keeps(self, pubend: int, tick: int) -> bool:
        """Is the message on that tick kept for somebody?"""
        return tick in self._kept.get(pubend, ())

    @property
    def keeps_any(self) -> bool:
        """Is anything kept for anybody?"""
        return any(self._kept.values())

    def after(self, client: NodeName, pubend: int, tick: int, until: int) -> Iterator[Found]:
        """What is kept for the client after the tick, up to `until`."""
        kept = self._kept.get(pubend, {})
        owed = self.registrations[client].owed.get(pubend, ())
        for each in itertools.takewhile(lambda each: each <= until, owed):
            if each > tick:
                yield Found(each, kept[each].event, kept[each].matched[client])

    def chained(self, pubend: int, tick: int) -> Iterator[Chained]:
        """For whom the message on that tick is kept."""
        kept = self._kept.get(pubend, {}).get(tick)
        for client, subscribers in {} if kept is None else kept.matched.items():
            registration = self.registrations[client]
            done = registration.done_up(pubend)
            if subscribers and tick > done:
                before = (each for each in reversed(registration.owed[pubend]) if each < tick)
                yield Chained(client, next(before, done), subscribers)

    # ---------------------------------------------------------------------------------- in a stable log
    def to_plain(self) -> list[Any]:
        """The registrations for a checkpoint; what is kept is in the log itself."""
        return [
            [
                client,
                each.revision,
                [[subscriber, str(wanted)] for subscriber, wanted in each.wanted],
                each.has,
                {pubend: [lost.tick, lost.events] for pubend, lost in each.lost.items()},
            ]
            for client, each in self.registrations.items()
        ]

    def restore(self, plain: Sequence[Any]) -> None:
        """Take up the registrations of a checkpoint."""
        for client, revision, wanted, has, lost in plain:
            registration = self._register(client, has)
            for pubend, (tick, events) in lost.items():
                registration.lost[pubend] = Lost(tick, {each: (first, last) for each, (first, last) in events.items()})
            self._note_left(client, registration)
            self.enlist(client, revision, wanted_of(wanted), {})

    def check_invariants(self) -> None:
        assert self._left == {client: each for client, each in self.registrations.items() if each.any_left}
        for registration in self.registrations.values():
            for pubend, owed in registration.owed.items():
                assert all(tick > registration.done_up(pubend) for tick in owed)
                assert sorted(set(owed)) == list(owed)
                assert all(self.keeps(pubend, tick) for tick in owed)
            assert all(lost.tick > registration.has[pubend] for pubend, lost in registration.lost.items())
        for kept in self._kept.values():
            assert all(each.waiting > 0 for each in kept.values())


def still_for(subscribers: Sequence[int], wanted: Wanted, event: Event) -> list[int]:
    """Those of the subscribers that an event is for which matched them before, now that this is wanted."""
    matching = {subscriber for subscriber, each in wanted if each.matches(event.attributes)}
    return [each for each in subscribers if each in matching]


def wanted_of(plain: Sequence[Any]) -> list[tuple[int, Filter]]:
    """Subscribers and filters, of a record; raises `InputError` for texts that are no filters."""
    return [(subscriber, parse_filter(text)) for subscriber, text in plain]
