"""How long the service took to be whole again after each repair, and what came too late after the last one.

After a repair two things may go on: events published later are still lost, and events published before it still come.
The recovery time is the longer of the two, from the repair's effect. Losses after the next fault count for that one.
"""

import bisect
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from murmur_pubsub.faults import FaultKind
from spark_analysis.fault_windows import NEVER_US, Window


@dataclass(frozen=True, slots=True)
class Repairs:
    """`repaired_us`: when repairs took effect, in order of time. `ordered_us`: when faults were ordered, in order.
    `all_us`: the last repair if nothing is broken after it, else `NEVER_US`. `limit_us`: what comes this time after
    it is late."""

    repaired_us: Sequence[int]
    ordered_us: Sequence[int]
    all_us: int
    limit_us: int


def repairs_of(windows: Sequence[Window], limit_us: int) -> Repairs:
    """The repairs of these faults."""
    repaired = sorted(window.repaired_us for window in windows if window.repaired_us != NEVER_US)
    # A link that is taken away is not repaired: the one that comes instead is the repair.
    broken = [window for window in windows if window.step.kind not in (FaultKind.DISCONNECT, FaultKind.ORDER)]
    whole = bool(repaired) and len(repaired) == len(broken)
    ordered = sorted(window.from_us for window in windows)
    return Repairs(repaired, ordered, repaired[-1] if whole else NEVER_US, limit_us)


def recovered(pairs: Iterable[tuple[int, int]], repairs: Repairs) -> tuple[dict[int, int], int]:
    """The recovery time after each repair by when it took effect, and how many deliveries were late; `pairs`:
    published_us and delivered_us of what was required (`NEVER_US`: not delivered)."""
    times = dict.fromkeys(repairs.repaired_us, 0)
    late = 0
    for published_us, delivered_us in pairs:
        missing = delivered_us == NEVER_US
        since_us = delivered_us - max(published_us, repairs.all_us)
        late += not missing and delivered_us > repairs.all_us and since_us > repairs.limit_us
        seen_us = published_us if missing else delivered_us
        place = bisect.bisect_right(repairs.repaired_us, seen_us) - 1
        if place < 0:
            continue
        last_us = repairs.repaired_us[place]
        ordered_since = bisect.bisect_right(repairs.ordered_us, seen_us) - bisect.bisect_right(
            repairs.ordered_us, last_us
        )
        if not ordered_since if missing else last_us > published_us:
            times[last_us] = max(times[last_us], seen_us - last_us)
    return times, late


def unsettled_change(
    changes_us: Iterable[int],
    settled: Iterable[tuple[int, int]],
    windows: Sequence[Window],
    last_us: int,
    limit_us: int,
) -> int | None:
    """When the first subscription or withdrawal was issued that had not settled in time, though no fault was in force
    in between and the run went on until then; `settled`: (time_us, covers_us) of the SETTLED rows."""
    settlings = sorted(settled)
    covered = list(itertools.accumulate((covers_us for _, covers_us in settlings), max))
    for time_us in sorted(changes_us):
        place = bisect.bisect_left(covered, time_us)
        settled_us = settlings[place][0] if place < len(settlings) else NEVER_US
        due_us = time_us + limit_us
        if settled_us > due_us and last_us >= due_us:
            if not any(window.in_force(time_us, due_us) for window in windows):
                return time_us
    return None


def tell_unsettled(time_us: int | None) -> str | None:
    """What `unsettled_change` found, in words."""
    return None if time_us is None else f"one was issued or withdrawn at {time_us / 1e6:.3f} s"


def unsettled_after(windows: Sequence[Window], last_us: int, limit_us: int) -> Window | None:
    """The fault after whose repair nothing had settled in time, though nothing else was broken or mended meanwhile, or
    gone for good, and the run went on until then; `last_us`: the end of the journal."""
    changes = sorted(time_us for window in windows for time_us in (window.from_us, window.undone_us))
    for window in windows:
        if window.settled or window.repaired_us == NEVER_US or window.repaired_us + limit_us > last_us:
            continue
        gone = any(other.severs and other.from_us <= window.repaired_us < other.undone_us for other in windows)
        if not gone and not any(window.repaired_us < time_us <= window.repaired_us + limit_us for time_us in changes):
            return window
    return None
