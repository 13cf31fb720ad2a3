"""Deliveries by cause (`spark_analysis.causes`), of many at once and in parts."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from spark_analysis.causes import Causes, p99_us
from spark_analysis.recovery_parts import Times

CAUSE_COLUMNS = ("is_caught_up", "delay_us", "count", "catch_up_us")
"""Of a part of the deliveries: how many have that delay (four digits kept), and the longest that catching up took."""
_POWERS = 10 ** np.arange(19, dtype=np.int64)


def cause_part(
    ups_us: Mapping[int, Sequence[int]], node: Times, published_us: Times, delivered_us: Times
) -> pd.DataFrame:
    """`CAUSE_COLUMNS` of a part of the deliveries."""
    last_us = np.full(len(node), -1, np.int64)
    for each in np.unique(node):
        times_us = np.array(ups_us.get(int(each), ()), np.int64)
        here = node == each
        place = np.searchsorted(times_us, delivered_us[here], "left") - 1
        if len(times_us):
            last_us[here] = np.where(place >= 0, times_us[place], -1)
    caught_up = (last_us >= 0) & (last_us >= published_us)
    frame = pd.DataFrame({"is_caught_up": caught_up, "delay_us": np.maximum(delivered_us - published_us, 0)})
    digits = np.searchsorted(_POWERS, frame["delay_us"], "right")
    frame["delay_us"] -= frame["delay_us"] % _POWERS[np.maximum(digits - 4, 0)]
    frame["catch_up_us"] = np.where(caught_up, delivered_us - last_us, -1)
    grouped = frame.groupby(["is_caught_up", "delay_us"], as_index=False)
    told = grouped.agg(count=("catch_up_us", "size"), catch_up_us=("catch_up_us", "max"))
    return told[list(CAUSE_COLUMNS)]


def causes_in_parts(parts: pd.DataFrame) -> Causes:
    """What `causes_of` says of all deliveries, from their parts."""
    delays: tuple[Counter[int], Counter[int]] = (Counter(), Counter())
    for is_caught_up, delay_us, count in parts[["is_caught_up", "delay_us", "count"]].itertuples(index=False):
        delays[bool(is_caught_up)][int(delay_us)] += int(count)
    longest_us = int(parts["catch_up_us"].max()) if delays[True] else None
    return Causes(longest_us, *map(p99_us, delays))
