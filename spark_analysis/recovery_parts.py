"""Recovery times (`spark_analysis.recovery`) of many pairs at once, part by part, as Spark's tasks work them out."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from spark_analysis.fault_windows import NEVER_US
from spark_analysis.recovery import Repairs

Times = npt.NDArray[np.int64]
RECOVERY_COLUMNS = ("repair", "recovery_us", "late")


def recovery_part(repairs: Repairs, published_us: Times, delivered_us: Times) -> pd.DataFrame:
    """`RECOVERY_COLUMNS` for required pairs (a delivery at `NEVER_US`: none): by the place of a repair, the longest of
    these pairs; -1: only `late` counts."""
    repaired_us, ordered_us = np.array(repairs.repaired_us, np.int64), np.array(repairs.ordered_us, np.int64)
    missing = delivered_us == NEVER_US
    seen_us = np.where(missing, published_us, delivered_us)
    place = np.searchsorted(repaired_us, seen_us, "right") - 1
    last_us = repaired_us[place] if len(repaired_us) else np.full(len(place), NEVER_US)
    again = np.searchsorted(ordered_us, seen_us, "right") > np.searchsorted(ordered_us, last_us, "right")
    counts = (place >= 0) & np.where(missing, ~again, last_us > published_us)
    since_us = delivered_us - np.maximum(published_us, repairs.all_us)
    late = int((~missing & (delivered_us > repairs.all_us) & (since_us > repairs.limit_us)).sum())
    longest = pd.Series((seen_us - last_us)[counts]).groupby(place[counts]).max()
    rows = [
        (number, longest_us, 0) for number, longest_us in zip(longest.index.tolist(), longest.tolist(), strict=True)
    ]
    return pd.DataFrame([*rows, (-1, 0, late)], columns=list(RECOVERY_COLUMNS))


def recovered_in_parts(parts: Sequence[pd.DataFrame], repairs: Repairs) -> tuple[dict[int, int], int]:
    """What `recovery.recovered` says of all pairs, from their parts."""
    together: Any = pd.concat(parts) if parts else pd.DataFrame([], columns=list(RECOVERY_COLUMNS))
    longest = together[together["repair"] >= 0].groupby("repair")["recovery_us"].max()
    times = dict.fromkeys(repairs.repaired_us, 0)
    for place, recovery_us in longest.items():
        times[repairs.repaired_us[place]] = int(recovery_us)
    return times, int(together["late"].sum())
