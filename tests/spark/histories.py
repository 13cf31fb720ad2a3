"""Small random histories of a run, and the judge's rules applied to one of them in the plainest way."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from pubsub.filter_parser import parse_filter

TIME_MAX_US = 12
FILTERS = ["a = 0", "a >= 1", "a BETWEEN 1 AND 2 AND b = TRUE", "a IS NOT NULL", "a > 2 AND a < 1"]
Finding = tuple[str, int, int, int]
"""(finding, publisher, sequence, subscriber)."""

_times = st.integers(0, TIME_MAX_US)
_early = st.integers(0, TIME_MAX_US // 2)
_subscribers = st.integers(0, 1)
_publishers = st.integers(0, 1)


@dataclass(frozen=True)
class History:
    """Times are within the history; events of a publisher are numbered in order.

    `changes`: (time, subscriber, filter, withdrawn) in order of time. `deliveries`: (time, publisher, sequence,
    subscriber) in the order of the journal. `settled`: (time, covers).
    """

    changes: tuple[tuple[int, int, str, bool], ...]
    events: tuple[tuple[int, int, int, int], ...]
    deliveries: tuple[tuple[int, int, int, int], ...]
    settled: tuple[tuple[int, int], ...]


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Events (time, publisher, sequence, value of `a`), with deliveries that are mostly of those."""
    withdrawn = st.sampled_from([False, False, True])
    changes = draw(
        st.lists(st.tuples(_early, _subscribers, st.sampled_from(FILTERS), withdrawn), min_size=2, max_size=7)
    )
    published = draw(st.lists(st.tuples(_times, _publishers, st.integers(0, 2)), min_size=1, max_size=6))
    numbers: Counter[int] = Counter()
    events = []
    for time_us, publisher, value in sorted(published):
        events.append((time_us, publisher, numbers[publisher], value))
        numbers[publisher] += 1
    known = [(publisher, sequence) for _, publisher, sequence, _ in events] or [(0, 0)]
    ids = st.one_of(st.sampled_from(known), st.sampled_from(known), st.tuples(_publishers, st.integers(0, 5)))
    delivered = draw(st.lists(st.tuples(_times, ids, _subscribers), max_size=8))
    settled = draw(st.lists(st.tuples(_early, _early), min_size=1, max_size=3))
    return History(
        changes=tuple(sorted(changes, key=lambda change: change[0])),
        events=tuple(events),
        deliveries=tuple((time_us, *event, who) for time_us, event, who in sorted(delivered, key=lambda each: each[0])),
        settled=tuple((max(time_us, covers), covers) for time_us, covers in settled),
    )  # fmt: skip


def plain_judge(history: History, grace_us: int) -> tuple[list[Finding], int]:
    """(findings, repeated as often as they count; number of required pairs)."""
    never = 10**9

    def settled_at(issued_us: int) -> int:
        return min((at for at, covers in history.settled if covers >= issued_us), default=never)

    lives: list[list[Any]] = []
    for time_us, subscriber, text, withdrawn in history.changes:
        if not withdrawn:
            lives.append([subscriber, parse_filter(text), time_us, never, text])
            continue
        held = (life for life in lives if life[0] == subscriber and life[4] == text and life[3] == never)
        for life in held:
            life[3] = time_us
            break
    findings: list[Finding] = []
    required = 0
    first_at = _first_deliveries(history.deliveries)
    counts = Counter(delivery[1:] for delivery in history.deliveries)
    published = {(publisher, sequence): (at, value) for at, publisher, sequence, value in history.events}
    pairs = {(*event, subscriber) for event in published for subscriber in (0, 1)} | set(counts)
    for publisher, sequence, subscriber in sorted(pairs):
        at, value = published.get((publisher, sequence), (0, -1))
        held = [
            (issued_us, ended_us)
            for who, wanted, issued_us, ended_us, _ in lives
            if who == subscriber and value >= 0 and wanted.matches(attributes_of(value))
        ]
        must = any(settled_at(issued) <= at <= (ended - grace_us) for issued, ended in held)
        required += must
        pair = (publisher, sequence, subscriber)
        if pair not in first_at:
            findings += [("missing", *pair)] * must
            continue
        may = any(
            issued <= first_at[pair] and (ended == never or at <= settled_at(ended) + grace_us)
            for issued, ended in held
        )
        findings += [("spurious", *pair)] * (not may)
        findings += [("duplicate", *pair)] * (counts[pair] - 1)
    return sorted(findings + _out_of_order(history.deliveries)), required


def attributes_of(value: int) -> dict[str, int | float | str | bool]:
    """The event with this value of `a`."""
    return {"a": value, "b": value == 2}


def _first_deliveries(deliveries: Sequence[tuple[int, int, int, int]]) -> dict[tuple[int, int, int], int]:
    first: dict[tuple[int, int, int], int] = {}
    for time_us, *pair in deliveries:
        first.setdefault((pair[0], pair[1], pair[2]), time_us)
    return first


def _out_of_order(deliveries: Sequence[tuple[int, int, int, int]]) -> list[Finding]:
    found: list[Finding] = []
    seen: set[tuple[int, int, int]] = set()
    highest: dict[tuple[int, int], int] = {}
    for _, publisher, sequence, subscriber in deliveries:
        if (publisher, sequence, subscriber) in seen:
            continue
        seen.add((publisher, sequence, subscriber))
        if sequence < highest.get((publisher, subscriber), -1):
            found.append(("out_of_order", publisher, sequence, subscriber))
        highest[publisher, subscriber] = max(sequence, highest.get((publisher, subscriber), -1))
    return found
