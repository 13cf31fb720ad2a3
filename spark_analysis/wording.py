"""Numbers in words for people: durations, sizes, counts and shares with a unit and few digits."""

import math

from murmur_pubsub.run_manifest import LATE_US, Lateness, RunManifest


def count(number: float) -> str:
    """1,234,567"""
    return f"{number:,.0f}"


def share(part: float | None) -> str:
    """A part of one in per cent; 100 % and 0 % only when it is exactly that."""
    if part is None or math.isnan(part):
        return "none"
    if part in (0, 1):
        return f"{part:.0%}".replace("%", "\u202f%")
    return f"{min(max(100 * part, 0.01), 99.99):.2f}\u202f%"


def duration(time_us: float | None) -> str:
    """Three digits of the largest fitting unit from µs to h."""
    if time_us is None or math.isnan(time_us):
        return "none"
    for limit, unit_us, unit in ((1e3, 1, "µs"), (1e6, 1e3, "ms"), (120e6, 1e6, "s"), (7_200e6, 60e6, "min")):
        if abs(time_us) < limit:
            return f"{_three_digits(time_us / unit_us)}\u202f{unit}"
    return f"{_three_digits(time_us / 3_600e6)}\u202fh"


def late_words(lateness: Lateness) -> str:
    """How late actors were, and which percentiles of delay that spoils."""
    return (
        f"{share(lateness.late / lateness.due)} of messages, timers and publications came more than"
        f" {duration(LATE_US)} late, {duration(lateness.worst_us)} at worst:"
        f" percentiles of delay above p{lateness.sound_percentile} are not to be trusted"
    )


def emulated_words(manifest: RunManifest) -> str:
    """How long a run was in emulated time, and how much of it a second of a core brings."""
    rate = manifest.emulated_per_cpu_second
    told = duration(manifest.emulated_us)
    return told if rate is None else f"{told}, {_three_digits(rate)}\u202fs in a second of a core"


def size(number_of_bytes: float) -> str:
    """Three digits of the largest fitting decimal unit."""
    for unit in ("B", "kB", "MB", "GB"):
        if number_of_bytes < 1_000 or unit == "GB":
            break
        number_of_bytes /= 1_000
    return f"{_three_digits(number_of_bytes)}\u202f{unit}"


def rate(per_second: float) -> str:
    """A rate with its unit."""
    return f"{_three_digits(per_second)}\u202f/s"


def _three_digits(number: float) -> str:
    magnitude = abs(number)
    if magnitude == int(magnitude) or magnitude >= 100:
        return f"{number:,.0f}"
    return f"{number:.1f}" if magnitude >= 10 else f"{number:.2f}"
