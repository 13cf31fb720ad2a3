"""What the loss of a publishers' broker still excuses where another one stands in for it: next to nothing.

Of the three brokers of a redundant end (`murmur_pubsub.promise.RedundantEnd`) any one may be lost for good. A loss that
meets another fault of the three excuses as a loss does where nobody stands in: it begins while that is in force, or
mended for less time than the brokers need to take note; or that begins before the others had settled without what was
lost. The witness settles only what comes later: if it is lost for good, any later fault of the two others meets that.

An event counts as accepted for sure if its publisher's client was connected, and nothing was wrong, for long enough
after it was published, unless so many may have waited by then that publishers had to wait too.

Plain Python over small tables, for tests as well as for Spark.
"""

import bisect
from collections.abc import Callable, Iterable, Sequence

from murmur_pubsub.promise import RedundantEnd
from spark_analysis.excuses import Case
from spark_analysis.fault_windows import NEVER_US, Window
from spark_analysis.passages import ON_THE_WAY_US

_ACCEPTED_US = 2_000_000
"""How long it may take to accept an event where no link loses messages."""


def end_of(broker: str, ends: Iterable[RedundantEnd]) -> RedundantEnd | None:
    """The redundant end at which a publisher's broker takes part."""
    return next((end for end in ends if broker in (end.host, end.backup)), None)


def touches(window: Window, end: RedundantEnd) -> bool:
    """Is the fault about one of the three, or between them?"""
    if window.step.groups:
        return any(window.separates(first, second) for first in end.names for second in end.names)
    return not window.nodes.isdisjoint(end.names)


def is_lasting(window: Window, last_us: int) -> bool:
    """Does it take something away for good? `last_us`: the end of the run."""
    return window.step.disk_lost or (window.severs and window.undone_us > last_us - ON_THE_WAY_US)


def not_covered(
    case: Case, end: RedundantEnd, windows: Iterable[Window], last_us: int, told_again_us: Callable[[int], int]
) -> Window | None:
    """The loss of one of the three that met another fault of them, and may have cost the event, if there is one.
    `told_again_us`: when one that is whole again knows what the subscriber wants."""
    touching = [window for window in windows if touches(window, end)]

    def mended_us(window: Window) -> int:
        """When all three were there again as before (`NEVER_US`: not)."""
        return NEVER_US if window.undone_us > last_us else window.until_us + end.notices_us

    for lost in touching:
        for other in touching if is_lasting(lost, last_us) else ():
            until_us = mended_us(lost)
            if until_us == NEVER_US and end.witness not in lost.nodes and not is_lasting(other, last_us):
                until_us = lost.absorbed_us + end.notices_us  # another one serves, and only it can lose anything
            if other is not lost and other.from_us <= until_us and lost.from_us <= mended_us(other):
                whole_us = max(mended_us(lost), mended_us(other))
                if case.may_end_in(min(lost.from_us, other.from_us), told_again_us(whole_us)):
                    return lost
    return None


def able_to_serve(end: RedundantEnd, there: Sequence[Window]) -> list[str]:
    """Of the two those that may serve while these faults are in force: with one more of the three at least."""

    def talk(first: str, second: str) -> bool:
        return not any(
            first in window.nodes or second in window.nodes or window.separates(first, second) for window in there
        )

    return [name for name in (end.host, end.backup) if any(talk(name, other) for other in end.names if other != name)]


def is_accepted(
    case: Case,
    by_us: int,
    end: RedundantEnd,
    windows: Iterable[Window],
    published_us: Sequence[int],
    within_us: int = _ACCEPTED_US,
) -> bool:
    """Was the event accepted for sure by that time, up to which its publisher's client was connected? `published_us`:
    when each event of the run was published, in order; `within_us`: how long it may take."""
    if case.published_us + within_us > by_us or bisect.bisect(published_us, by_us) >= end.log_most:
        return False
    for window in windows:
        about = touches(window, end) or case.publisher in window.nodes or _is_at(window, case.publisher)
        if about and window.in_effect_us < by_us and window.until_us + end.notices_us >= case.published_us:
            return False
    return True


def _is_at(window: Window, name: str) -> bool:
    """Is the fault about a link of that node?"""
    return any(name in link for link in window.links)
