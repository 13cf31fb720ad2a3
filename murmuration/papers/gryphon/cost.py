"""What guaranteed delivery costs beside best effort while nothing fails.

The same overlay, routing, events and subscribers with one reliability and with the other, and that several times: a
host is busier at one time than at another. Which of the two is first changes from pair to pair, so that what drifts
falls on both. There are two publishers, and two subscribers at each broker: clients are processes too, and half as many
leave more of the host to brokers.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from murmur_pubsub.journal import RowKind
from murmur_pubsub.run_manifest import read_manifest
from murmuration.papers.gryphon.plan import failure_scenario, without_failures
from murmuration.papers.lab.judged_run import Runtime, journal, play_plainly

_CONFIDENCE = 0.95


@dataclasses.dataclass(frozen=True, slots=True)
class ReliabilityCostSpec:
    """A run without failures; `pair`: which one it is of."""

    reliability: str
    runtime: Runtime
    seconds: float
    rate_per_s: float
    pair: int


@dataclasses.dataclass(frozen=True, slots=True)
class ReliabilityCost:
    """Of one run without failures. `cpu_s`: of all actors from the first publication until all is delivered (of the one
    process in virtual time); `messages`, `bytes`: sent over links."""

    reliability: str
    cpu_s: float
    messages: int
    bytes: int
    deliveries: int
    verdict: str


def cost_specs(runtime: Runtime, seconds: float, rate_per_s: float, pairs: int) -> list[ReliabilityCostSpec]:
    """The runs in their order: best effort first in the pairs of even number, second in the others."""
    found = []
    for pair in range(pairs):
        two = ["best_effort", "gryphon"]
        for each in reversed(two) if pair % 2 else two:
            found.append(ReliabilityCostSpec(each, runtime, seconds, rate_per_s, pair))
    return found


def measure_reliability(spec: ReliabilityCostSpec, address: str | None = None) -> ReliabilityCost:
    """Run it and count."""
    test = without_failures(spec.runtime, spec.seconds, spec.rate_per_s, publishers=2)
    with TemporaryDirectory() as place:
        folder = Path(place) / "run"
        verdict = play_plainly(failure_scenario(test, spec.reliability), folder, address)
        spent = read_manifest(folder).cpu_seconds
        rows = journal(folder)
    sent = rows[rows.kind == RowKind.SEND]
    cpu_s = spent["virtual"] if spec.runtime == "virtual" else spent["publishing"]
    delivered, outcome = int(verdict["delivered"]), str(verdict["verdict"])
    return ReliabilityCost(spec.reliability, cpu_s, len(sent), int(sent.bytes.sum()), delivered, outcome)


class Ratio(NamedTuple):
    """How many times as much the others cost, and between which bounds that lies at a confidence of 95 %, if there are
    runs enough to say so."""

    middle: float
    least: float | None
    most: float | None

    def __str__(self) -> str:
        return f"{self.middle:.2f}" + ("" if self.least is None else f" ({self.least:.2f} to {self.most:.2f})")


def ratio_of(base: Sequence[float], others: Sequence[float]) -> Ratio:
    """By the ratios of every other to every base: their median (Hodges and Lehmann), and the bounds of the rank sum
    test, which supposes no distribution. Four runs of each are the fewest for that."""
    ratios = sorted(other / each for other in others for each in base)
    ways = _ways_by_rank_sum(len(base), len(others))
    outside, place = 0, 0
    while (outside + ways[place]) * 2 <= (1 - _CONFIDENCE) * sum(ways):
        outside += ways[place]
        place += 1
    if not place:
        return Ratio(median(ratios), None, None)
    return Ratio(median(ratios), ratios[place - 1], ratios[-place])


def _ways_by_rank_sum(few: int, many: int) -> list[int]:
    """In how many orders of so many runs of two kinds 0, 1, 2, … pairs of them are the wrong way round."""
    if not few or not many:
        return [1]
    found = [0] * (few * many + 1)
    for wrong, ways in enumerate(_ways_by_rank_sum(few - 1, many)):  # the last in order is of the first kind
        found[wrong + many] += ways
    for wrong, ways in enumerate(_ways_by_rank_sum(few, many - 1)):
        found[wrong] += ways
    return found
