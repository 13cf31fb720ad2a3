"""When a publishers' broker took no more publications, since its log was full of what somebody lacked.

Such a broker says so, and when it takes publications again. Meanwhile they wait with their clients, in order. What
waits for a subscriber that withdraws need not come, and what begins its way late may come to one that subscribed late.
What waits still when the run ends is excused if somebody is away then for whom the log keeps something. A word counts
only where the promise says that publishers may have to wait, and if as many events had been published by then as the
log holds.

Plain Python over small tables, for tests as well as for Spark.
"""

import bisect
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from murmur_pubsub.promise import PUBLISHERS_WAIT, Limits
from spark_analysis.fault_windows import NEVER_US, Window
from spark_analysis.given_up import ToldRow


class FullLog(NamedTuple):
    """The broker took no publications (`NEVER_US`: up to the end of the run)."""

    broker: str
    from_us: int
    until_us: int


def full_logs(
    rows: Iterable[ToldRow],
    names: Sequence[str],
    limits: Limits,
    windows: Sequence[Window] = (),
    published_us: Sequence[int] = (),
) -> list[FullLog]:
    """Those of a run, in order. `windows`: what a broker that dies has said holds no more, if it does not say so again;
    `published_us`: when each event was published, in order."""
    if limits.waits_above is None:
        return []
    since_us: dict[str, int] = {}
    said_us: dict[str, int] = {}
    found: list[FullLog] = []
    for row in sorted(row for row in rows if row.topic == PUBLISHERS_WAIT):
        broker = names[row.node]
        if not row.value and broker in since_us:
            found.append(FullLog(broker, since_us.pop(broker), row.time_us))
        elif row.value and bisect.bisect_right(published_us, row.time_us) >= limits.waits_above:
            since_us.setdefault(broker, row.time_us)
            said_us[broker] = row.time_us
    for broker, from_us in since_us.items():
        deaths_us = (window.in_effect_us for window in windows if window.kills and broker in window.nodes)
        died_us = min((each for each in deaths_us if each >= said_us[broker]), default=NEVER_US)
        found.append(FullLog(broker, from_us, died_us))
    return sorted(found)


def time_waiting(
    full: Iterable[FullLog], brokers: Sequence[str], handed_us: int, within_us: int, taken_over_us: int = 0
) -> FullLog | None:
    """The stretch of time in which an event waited that its client handed to one of these brokers then, or up to
    `within_us` later. A stretch goes on if another one follows as soon as that; at another of the brokers, which has
    to take over what the first one kept, up to `taken_over_us` later."""
    waiting: FullLog | None = None
    for each in full:
        if each.broker not in brokers:
            continue
        if waiting is not None:
            pause_us = within_us if each.broker == waiting.broker else within_us + taken_over_us
            if each.from_us <= waiting.until_us + pause_us:
                last = max(waiting, each, key=lambda stretch: stretch.until_us)
                waiting = last._replace(from_us=waiting.from_us)
                continue
        if waiting is None or waiting.until_us < handed_us:
            waiting = each
    if waiting is None or not waiting.from_us - within_us <= handed_us <= waiting.until_us:
        return None
    return waiting
