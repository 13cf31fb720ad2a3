"""What clients were told that was given up for them, or refused, held against the limits of durable subscriptions.

A word excuses an event if it names it, came before any later event of its publisher, and a limit allowed it:

- the event had waited for a lease, with a stretch as long in which nothing need have been heard of the client. Where
  links lose messages all the time that may be any stretch;
- or more events than a broker keeps had been published since. Where faults of others may have held events up on their
  way to the broker, those count too that were published while they did; where links lose messages, all.

A word without a limit excuses nothing. A publication that was refused need not come at all, if as many events had been
published by then as a broker may keep. And it must not come: a publication is decided once, and what its publisher was
told was refused, once or more often, reaches nobody, before or after that word.
"""

import bisect
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from murmur_pubsub.promise import GIVEN_UP, PUBLISHERS_WAIT, REFUSED, Limits
from spark_analysis.excuses import IN_HAND_US, Case, Excuse

_NOTICED_US = 500_000
"""How long after the last word of a client its absence may begin in the journal, at most half of a lease."""
TOPICS = (GIVEN_UP, REFUSED, PUBLISHERS_WAIT)
REFUSED_AND_DELIVERED = "refused and delivered all the same"
"""What is wrong with a delivery of a refused event, in words."""


class ToldRow(NamedTuple):
    """A row of the journal of one of these topics."""

    time_us: int
    topic: int
    node: int
    source: int
    sequence: int
    value: int


class Word(NamedTuple):
    """A client was told that of one publisher the events from `first` to `last`, as far as it lacks them, are lost."""

    told_us: int
    client: str
    publisher: int
    first: int
    last: int


class Words:
    """Those of a run, all clients together. `names`: of its nodes, by number. `published_us`: when each event was
    published, in order; asked for only if the `limits` bound what is kept."""

    def __init__(
        self,
        rows: Sequence[ToldRow],
        names: Sequence[str],
        limits: Limits,
        lossy: bool,
        published_us: Sequence[int] = (),
    ) -> None:
        self._of: dict[tuple[str, int], list[Word]] = {}
        for word in sorted(_words_of(rows, names)):
            self._of.setdefault((word.client, word.publisher), []).append(word)
        self._refused_us: dict[tuple[int, int], int] = {}  # when it was first told
        for row in sorted(rows):
            if row.topic == REFUSED:
                self._refused_us.setdefault((row.source, row.sequence), row.time_us)
        self._limits = limits
        self._lossy = lossy
        self._published_us = published_us

    def tells_of(self, case: Case) -> bool:
        """Was anything said of the event?"""
        return case.event in self._refused_us or any(self._about(case))

    def explain(self, case: Case, silences: Sequence[tuple[int, int]], held_up_us: int) -> Excuse | None:
        """Why the event need not have come, or None; `silences`: from when to when nothing may have been heard of the
        client; `held_up_us`: from when on faults may have held events up that came after this one."""
        if case.event is None:
            return None
        most, refused_us = self._limits.refuses_above, self._refused_us.get(case.event)
        if most is not None and refused_us is not None and self._published(0, refused_us) >= most:
            return Excuse("its publisher was told that it was refused")
        for word in self._about(case):
            if word.told_us <= case.due_in_order_us:
                lost = f"told that it lacks {word.publisher}:{word.first} to {word.publisher}:{word.last}"
                if self._had_run_out(case.published_us, word.told_us, silences):
                    return Excuse(f"{case.client} was away for longer than its lease, and {lost}")
                if self._was_full(min(case.published_us, held_up_us), word.told_us):
                    return Excuse(f"a log was full of what {case.client} lacked, and it was {lost}")
        return None

    def _about(self, case: Case) -> Iterator[Word]:
        """What the client was told of the event, in order."""
        if case.event is not None:
            publisher, number = case.event
            words = self._of.get((case.client, publisher), ())
            yield from (word for word in words if word.first <= number <= word.last)

    def _had_run_out(self, published_us: int, told_us: int, silences: Sequence[tuple[int, int]]) -> bool:
        lease_us = self._limits.lease_us
        if lease_us is None or told_us - published_us < lease_us:
            return False
        enough_us = lease_us - min(_NOTICED_US, lease_us // 2)
        return self._lossy or any(
            min(until_us, told_us) - from_us >= enough_us for from_us, until_us in silences if until_us > published_us
        )

    def _was_full(self, since_us: int, told_us: int) -> bool:
        most = self._limits.drops_above
        if most is None:
            return False
        return self._published(0 if self._lossy else since_us - IN_HAND_US, told_us) > most

    def _published(self, from_us: int, until_us: int) -> int:
        """How many events were, from then to then."""
        return bisect.bisect_right(self._published_us, until_us) - bisect.bisect_left(self._published_us, from_us)


def refused_events(rows: Iterable[ToldRow]) -> frozenset[tuple[int, int]]:
    """Those of which a publisher was told that they were refused."""
    return frozenset((row.source, row.sequence) for row in rows if row.topic == REFUSED)


def joined(stretches: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same stretches of time, those that touch each other as one."""
    found: list[tuple[int, int]] = []
    for from_us, until_us in sorted(stretches):
        if found and from_us <= found[-1][1]:
            found[-1] = found[-1][0], max(until_us, found[-1][1])
        else:
            found.append((from_us, until_us))
    return found


def _words_of(rows: Sequence[ToldRow], names: Sequence[str]) -> list[Word]:
    return [
        Word(row.time_us, names[row.node], row.source, row.value, row.sequence) for row in rows if row.topic == GIVEN_UP
    ]
