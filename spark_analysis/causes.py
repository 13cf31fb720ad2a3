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

from murmur_pubsub.journal import RowKind
from spark_analysis.connections import LinkRow


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
    return Causes(longest_us, *map(p99_us, delays))


def _four_digits(delay_us: int) -> int:
    return delay_us - delay_us % int(10 ** max(0, len(str(delay_us)) - 4))


def p99_us(delays: Counter[int]) -> int | None:
    """The smallest delay that is no shorter than 99 % of all."""
    left = max(1, math.ceil(delays.total() * 0.99))
    for delay_us in sorted(delays):
        left -= delays[delay_us]
        if left <= 0:
            return delay_us
    return None
