"""Emulated time on the wall clock.

Emulated time is microseconds since the run's origin, slowed down by `dilation` (wall seconds for an emulated
second). It follows the monotonic clock, tied once to the host's wall clock so that all actors of a run
agree on the origin; on several hosts it is as good as their clock synchronisation.
"""

import time


class Clock:
    """Tells emulated time, and how long to wait on the wall for a stretch of it."""

    __slots__ = ("_scale_ns", "_zero_ns", "dilation")

    def __init__(self, origin_wall_ns: int, dilation: float) -> None:
        self.dilation = dilation
        self._scale_ns = int(1000 * dilation)
        self._zero_ns = origin_wall_ns - time.time_ns() + time.monotonic_ns()

    def not_before(self, floor_us: int) -> None:
        """Go on from that time, if it is less here. A node that was started again is handed no time that lies before
        what its former incarnation was handed, though its host's clock was put back, or it is another host's."""
        behind_us = floor_us - self.now_us()
        if behind_us > 0:
            self._zero_ns -= behind_us * self._scale_ns

    def now_us(self) -> int:
        """Emulated microseconds since the run's origin."""
        return (time.monotonic_ns() - self._zero_ns) // self._scale_ns

    def wall_s(self, stretch_us: int) -> float:
        """Wall-clock seconds that the emulated stretch takes (0 if it is over already)."""
        return max(0.0, stretch_us * self.dilation / 1e6)
