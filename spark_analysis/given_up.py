"""What a client was told that was given up for it, held against the limits of its subscriptions.

A word excuses an event if it names it, and came before any later event of its publisher; and if the event had waited
for a lease by then, with a stretch as long in which nothing need have been heard of the client. Where links lose
messages all the time that may be any stretch. A word without a lease excuses nothing.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from murmur_pubsub.promise import Limits
from spark_analysis.excuses import Case, Excuse
from spark_analysis.fault_windows import NEVER_US

_NOTICED_US = 500_000
"""How long after the last word of a client its absence may begin in the journal, at most half of a lease."""


class Word(NamedTuple):
    """A client was told that of one publisher the events from `first` to `last`, as far as it lacks them, are lost."""

    told_us: int
    client: str
    publisher: int
    first: int
    last: int


class Words:
    """Those of a run, all clients together."""

    def __init__(self, words: Iterable[Word], limits: Limits, lossy: bool) -> None:
        self._of: dict[tuple[str, int], list[Word]] = {}
        for word in sorted(words):
            self._of.setdefault((word.client, word.publisher), []).append(word)
        self._limits = limits
        self._lossy = lossy

    def explain(self, case: Case, silences: Sequence[tuple[int, int]]) -> Excuse | None:
        """Why the event need not have come, or None; `silences`: from when to when nothing may have been heard of the
        client."""
        if case.event is None or self._limits.lease_us is None:
            return None
        publisher, number = case.event
        overtaken_us = NEVER_US if case.overtaken_us is None else case.overtaken_us
        for word in self._of.get((case.client, publisher), ()):
            if word.first <= number <= word.last and word.told_us <= overtaken_us:
                if self._had_run_out(case.published_us, word.told_us, silences):
                    lost = f"{publisher}:{word.first} to {publisher}:{word.last}"
                    return Excuse(f"{case.client} was away for longer than its lease, and told that it lacks {lost}")
        return None

    def _had_run_out(self, published_us: int, told_us: int, silences: Sequence[tuple[int, int]]) -> bool:
        lease_us = self._limits.lease_us
        assert lease_us is not None
        if told_us - published_us < lease_us:
            return False
        enough_us = lease_us - min(_NOTICED_US, lease_us // 2)
        return self._lossy or any(
            min(until_us, told_us) - from_us >= enough_us for from_us, until_us in silences if until_us > published_us
        )


def joined(stretches: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same stretches of time, those that touch each other as one."""
    found: list[tuple[int, int]] = []
    for from_us, until_us in sorted(stretches):
        if found and from_us <= found[-1][1]:
            found[-1] = found[-1][0], max(until_us, found[-1][1])
        else:
            found.append((from_us, until_us))
    return found


def words_of(rows: Iterable[tuple[int, int, int, int, int]], names: Sequence[str]) -> list[Word]:
    """Of the journal's rows of `murmur_pubsub.promise.GIVEN_UP`: time_us, node, source, sequence and value."""
    return [Word(time_us, names[node], source, first, last) for time_us, node, source, last, first in rows]
