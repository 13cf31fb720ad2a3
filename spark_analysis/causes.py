"""Deliveries by cause: live, or caught up with; and how long catching up took.

A client is caught up with an event if its link came up after the event was published and before it was delivered: the
event had to wait for the client. All others are live. Catching up takes from that link to the last such delivery before
the client's next one. Only the journal's own rows of links and deliveries count, not what a protocol says of itself.
"""

import bisect
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from murmur_pubsub.journal import RowKind
from spark_analysis.connections import LinkRow
from spark_analysis.recovery_parts import Times

CAUSE_COLUMNS = ("is_caught_up", "delay_us", "count", "catch_up_us")
"""Of a part of the deliveries: how many have that delay (four digits kept), and the longest that catching up took."""


_POWERS = 10 ** np.arange(19, dtype=np.int64)


class Causes(NamedTuple):
    """Of a run with durable subscriptions; None: there was no such delivery."""

    catch_up_us: int | None = None
    live_p99_us: int | None = None
    caught_up_p99_us: int | None = None


def links_up(rows: Iterable[LinkRow], homes: Mapping[str, str], numbers: Mapping[str, int]) -> dict[int, list[int]]:
    """When the link of each client came up, by the client's number, in order."""
    found: dict[int, list[int]] = {}
    for time_us, kind, node, _ in sorted(rows):
        if kind == RowKind.LINK_UP and node in homes:
            found.setdefault(numbers[node], []).append(time_us)
    return found


def causes_of(deliveries: Iterable[tuple[int, int, int]], ups_us: Mapping[int, Sequence[int]]) -> Causes:
    """The figures of these deliveries: node, when the event was published, and when it was delivered."""
    delays: tuple[Counter[int], Counter[int]] = (Counter(), Counter())
    longest_us = None
    for node, published_us, delivered_us in deliveries:
        times_us = ups_us.get(node, ())
        place = bisect.bisect_left(times_us, delivered_us) - 1
        is_caught_up = place >= 0 and times_us[place] >= published_us
        if is_caught_up:
            longest_us = max(longest_us or 0, delivered_us - times_us[place])
        delays[is_caught_up][_four_digits(max(0, delivered_us - published_us))] += 1
    return Causes(longest_us, *map(_p99_us, delays))


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
    return Causes(longest_us, *map(_p99_us, delays))


def _four_digits(delay_us: int) -> int:
    return delay_us - delay_us % int(_POWERS[max(0, len(str(delay_us)) - 4)])


def _p99_us(delays: Counter[int]) -> int | None:
    """The smallest delay that is no shorter than 99 % of all."""
    left = max(1, math.ceil(delays.total() * 0.99))
    for delay_us in sorted(delays):
        left -= delays[delay_us]
        if left <= 0:
            return delay_us
    return None
