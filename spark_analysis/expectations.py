"""What a scenario expects of its run, beside what the protocols promise: measures that take part in the verdict."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from murmur_pubsub.verdict_file import Expectation
from spark_analysis.verdict import COUNTS
from spark_analysis.wording import count, duration, share


class _Kind(NamedTuple):
    """`at_least`: the measure must not be below what is expected; else it must not be above. `nothing`: is it met if
    there is nothing to measure?"""

    name: str
    at_least: bool
    say: Callable[[float], str]
    nothing: bool


EXPECTATION_KINDS = {
    "delivery_rate": _Kind("delivery rate", True, share, False),
    "delay_p99_us": _Kind("delay p99", False, duration, False),
    "recovery_us": _Kind("recovery after a repair", False, duration, True),
    "unexplained": _Kind("unexplained findings", False, count, True),
}
"""By the keys of a manifest's section `expect`."""


def check_expectations(expect: Mapping[str, float], measured: Mapping[str, float | None]) -> list[Expectation]:
    """What became of each; `measured`: by the same keys, None where there is nothing to measure."""
    checked = []
    for key, wanted in expect.items():
        kind, found = EXPECTATION_KINDS[key], measured[key]
        met = kind.nothing if found is None else (found >= wanted if kind.at_least else found <= wanted)
        bound = f"at {'least' if kind.at_least else 'most'} {kind.say(wanted)}"
        checked.append(Expectation(kind.name, bound, "none" if found is None else kind.say(found), met))
    return checked


def measured(
    counts: Mapping[str, int], explained: Mapping[str, int], delay_p99_us: float | None, recovery_us: int | None
) -> dict[str, float | None]:
    """What `check_expectations` compares; counts and what is explained as in `verdict.Facts`."""
    required = counts["required"]
    return {
        "delivery_rate": (required - counts["missing"]) / required if required else None,
        "delay_p99_us": delay_p99_us,
        "recovery_us": recovery_us,
        "unexplained": sum(counts[name] - explained.get(name, 0) for name in COUNTS),
    }
