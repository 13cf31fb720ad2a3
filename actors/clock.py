"""Emulated time on the wall clock.

Emulated time is microseconds since the run's origin, slowed down by `dilation` (wall seconds for an emulated second).
It follows the monotonic clock. All processes of one host have that clock in common, so that on the driver's own host
they agree on the origin exactly. On another host the first node ties the monotonic clock to the wall clock, and all
later ones take that over: there time is as good as the synchronisation of the hosts' clocks.
"""

import time
from dataclasses import dataclass
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/time")
_READINGS = 20


@dataclass(frozen=True, slots=True)
class Origin:
    """Emulated time zero."""

    wall_ns: int
    """The wall clock's time then."""
    monotonic_ns: int = 0
    """That of the monotonic clock of the host on which it was read."""
    monotonic_clock: str = ""
    """Which monotonic clock that is; empty: none that another process could read."""


def origin_now() -> Origin:
    """Emulated time begins now."""
    monotonic_ns = time.monotonic_ns()
    return Origin(monotonic_ns + _wall_ahead_ns(), monotonic_ns, _monotonic_clock())


class Clock:
    """Tells emulated time, and how long to wait on the wall for a stretch of it."""

    __slots__ = ("_scale_ns", "_zero_ns", "dilation", "zero_ns")

    def __init__(self, origin: Origin, dilation: float, zero_ns: int | None = None) -> None:
        """`zero_ns`: what this host's monotonic clock showed at the origin (None: nobody here has said so yet)."""
        self.dilation = dilation
        self._scale_ns = int(1000 * dilation)
        if zero_ns is None:
            here = origin.monotonic_clock and origin.monotonic_clock == _monotonic_clock()
            zero_ns = origin.monotonic_ns if here else origin.wall_ns - _wall_ahead_ns()
        self._zero_ns = zero_ns
        self.zero_ns: int | None = zero_ns
        """What this host's monotonic clock showed at the origin, for others there; None if this clock went on."""

    def not_before(self, floor_us: int) -> None:
        """Go on from that time, if it is less here. A node that is started again on another host is handed no time that
        lies before what its former incarnation was handed, though that host's clock is behind."""
        behind_us = floor_us - self.now_us()
        if behind_us > 0:
            self.zero_ns = None
            self._zero_ns -= behind_us * self._scale_ns

    def now_us(self) -> int:
        """Emulated microseconds since the run's origin."""
        return (time.monotonic_ns() - self._zero_ns) // self._scale_ns

    def wall_s(self, stretch_us: int) -> float:
        """Wall-clock seconds that the emulated stretch takes (0 if it is over already)."""
        return max(0.0, stretch_us * self.dilation / 1e6)


def _wall_ahead_ns() -> int:
    """How far the wall clock is ahead of the monotonic one. The process may have to wait for a core between readings of
    the two; those readings of the monotonic clock that lie closest together bound by how long it did."""
    readings = ((time.monotonic_ns(), time.time_ns(), time.monotonic_ns()) for _ in range(_READINGS))
    began, wall, ended = min(readings, key=lambda reading: reading[2] - reading[0])
    return wall - (began + ended) // 2


def _monotonic_clock() -> str:
    """Which monotonic clock this process reads: that of one boot of one host, in one time namespace; or empty."""
    try:
        return f"{_BOOT.read_text('ascii').strip()} {_NAMESPACE.readlink()}"
    except OSError:
        return ""
