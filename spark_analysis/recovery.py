"""How long the service took to be whole again after each repair, and what came too late after the last one.

After a repair two things may go on: events published later are still lost, and events published before it still come.
The recovery time is the longer of the two, from the repair's effect. Losses after the next fault count for that one.
"""

import bisect
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from murmur_pubsub.faults import FaultKind
from spark_analysis.fault_windows import NEVER_US, Window

Times = npt.NDArray[np.int64]
RECOVERY_COLUMNS = ("repair", "recovery_us", "late")


@dataclass(frozen=True, slots=True)
class Repairs:
    """`repaired_us`: when repairs took effect, in order of time. `ordered_us`: when faults were ordered, in order.
    `all_us`: the last repair if nothing is broken after it, else `NEVER_US`. `limit_us`: what comes this time after
    it is late."""

    repaired_us: Times
    ordered_us: Times
    all_us: int
    limit_us: int

    def parts(self, published_us: Times, delivered_us: Times) -> pd.DataFrame:
        """`RECOVERY_COLUMNS` for required pairs (a delivery at `NEVER_US`: none): by the place of a repair, the longest
        of these pairs; -1: only `late` counts."""
        missing = delivered_us == NEVER_US
        seen_us = np.where(missing, published_us, delivered_us)
        place = np.searchsorted(self.repaired_us, seen_us, "right") - 1
        last_us = self.repaired_us[place] if len(self.repaired_us) else np.full(len(place), NEVER_US)
        again = np.searchsorted(self.ordered_us, seen_us, "right") > np.searchsorted(self.ordered_us, last_us, "right")
        counts = (place >= 0) & np.where(missing, ~again, last_us > published_us)
        since_us = delivered_us - np.maximum(published_us, self.all_us)
        late = int((~missing & (delivered_us > self.all_us) & (since_us > self.limit_us)).sum())
        longest = pd.Series((seen_us - last_us)[counts]).groupby(place[counts]).max()
        rows = [
            (number, longest_us, 0) for number, longest_us in zip(longest.index.tolist(), longest.tolist(), strict=True)
        ]
        return pd.DataFrame([*rows, (-1, 0, late)], columns=list(RECOVERY_COLUMNS))


def repairs_of(windows: Sequence[Window], limit_us: int) -> Repairs:
    """The repairs of these faults."""
    repaired = sorted(window.repaired_us for window in windows if window.repaired_us != NEVER_US)
    # A link that is taken away is not repaired: the one that comes instead is the repair.
    broken = [window for window in windows if window.step.kind not in (FaultKind.DISCONNECT, FaultKind.ORDER)]
    whole = bool(repaired) and len(repaired) == len(broken)
    ordered = sorted(window.from_us for window in windows)
    return Repairs(
        np.array(repaired, np.int64),
        np.array(ordered, np.int64),
        repaired[-1] if whole else NEVER_US,
        limit_us,
    )


def recovered(parts: Sequence[pd.DataFrame], repairs: Repairs) -> tuple[dict[int, int], int]:
    """From the parts: the recovery time after each repair by when it took effect, and how many deliveries were late."""
    together: Any = pd.concat(parts) if parts else pd.DataFrame([], columns=list(RECOVERY_COLUMNS))
    longest = together[together["repair"] >= 0].groupby("repair")["recovery_us"].max()
    times = {int(repaired_us): 0 for repaired_us in repairs.repaired_us}
    for place, recovery_us in longest.items():
        times[int(repairs.repaired_us[place])] = int(recovery_us)
    return times, int(together["late"].sum())


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
