"""Small random histories of a run."""

from collections import Counter
from dataclasses import dataclass

from hypothesis import strategies as st

TIME_MAX_US = 12
FILTERS = ["a = 0", "a >= 1", "a BETWEEN 1 AND 2 AND b = TRUE", "a IS NOT NULL", "a > 2 AND a < 1"]

HARMS = ("", "", "", "", "misplaced", "altered")
"""What is wrong with a delivery itself, if anything is."""

_times = st.integers(0, TIME_MAX_US)
_early = st.integers(0, TIME_MAX_US // 2)
_subscribers = st.integers(0, 1)
_publishers = st.integers(0, 1)


@dataclass(frozen=True)
class History:
    """Times are within the history; events of a publisher are numbered in order.

    `changes`: (time, subscriber, filter, withdrawn) in order of time. `deliveries`: (time, publisher, sequence,
    subscriber, harm) in the order of the journal, where harm is one of `HARMS`. `settled`: (time, covers). `refused`:
    (time, publisher, sequence), of an event perhaps twice.
    """

    changes: tuple[tuple[int, int, str, bool], ...]
    events: tuple[tuple[int, int, int, int], ...]
    deliveries: tuple[tuple[int, int, int, int, str], ...]
    settled: tuple[tuple[int, int], ...]
    refused: tuple[tuple[int, int, int], ...] = ()


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
    harms = st.sampled_from(HARMS)
    delivered = draw(st.lists(st.tuples(_times, ids, _subscribers, harms), max_size=8))
    settled = draw(st.lists(st.tuples(_early, _early), min_size=1, max_size=3))
    refused = draw(st.lists(st.tuples(_times, st.sampled_from(known)), max_size=2))
    return History(
        changes=tuple(sorted(changes, key=lambda change: change[0])),
        events=tuple(events),
        deliveries=tuple(
            (time_us, *event, who, harm) for time_us, event, who, harm in sorted(delivered, key=lambda each: each[0])
        ),
        settled=tuple((max(time_us, covers), covers) for time_us, covers in settled),
        refused=tuple((time_us, *event) for time_us, event in refused),
    )  # fmt: skip


def attributes_of(value: int) -> dict[str, int | float | str | bool]:
    """The event with this value of `a`."""
    return {"a": value, "b": value == 2}
