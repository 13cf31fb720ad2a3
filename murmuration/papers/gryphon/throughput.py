"""Deliveries a second through the failures of one broker, over those before: b1 stalls, crashes and returns."""

from collections.abc import Iterable
from statistics import mean

from murmuration.papers.gryphon.plan import SUBSCRIBERS_AT
from murmuration.papers.gryphon.run import FailureRun

BEHIND_B1 = SUBSCRIBERS_AT[:2]
UNTOUCHED = SUBSCRIBERS_AT[2:]
_FIRST_S = 1
"""Before this second the run is not steady yet."""
_CATCHING_UP_S = 5


class Throughput:
    """Whole seconds are counted: those in which a failure begins or ends belong to neither side."""

    def __init__(self, seen: FailureRun) -> None:
        times = {str(each): each.at_s for each in seen.test.faults}
        self._counts = seen.deliveries
        self._stall_s, self._crash_s = times["stall b1"], times["kill b1"]
        self._end = int(seen.test.seconds)
        self._before = {broker: mean(self._counts[broker][_FIRST_S : int(self._stall_s)]) for broker in SUBSCRIBERS_AT}

    def _shares(self, brokers: Iterable[str], first: int, end: int) -> list[float]:
        return [count / self._before[broker] for broker in brokers for count in self._counts[broker][first:end]]

    @property
    def through(self) -> float:
        """At all subscribers' brokers, from the stall on until all that was held up has come."""
        return mean(self._shares(SUBSCRIBERS_AT, int(self._stall_s), int(self._crash_s) + _CATCHING_UP_S))

    @property
    def least_untouched(self) -> float:
        """Where no way to the subscribers leads by b1: the worst second from the stall on, the return included."""
        return min(self._shares(UNTOUCHED, int(self._stall_s), self._end))

    @property
    def while_stalled(self) -> float:
        """Behind b1, while nobody has noticed yet that it is stalled."""
        return mean(self._shares(BEHIND_B1, int(self._stall_s) + 1, int(self._crash_s)))

    @property
    def least_after(self) -> float:
        """Behind b1, from a second after its crash on: the worst second, its return included."""
        return min(self._shares(BEHIND_B1, int(self._crash_s) + 1, self._end))
