"""Epidemic recovery on 30 live dispatchers with kills and restarts, beside the same plan in virtual time.

The scenario is `epidemic-live`. The delivery rate is of everything that the judge requires, what the killed dispatchers
missed included: the same for all algorithms.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

from murmuration.papers.lab.judged_run import RUNTIMES, Runtime, play_judged
from murmuration.papers.lab.results import PaperResult, ResultTable
from murmuration.scenario.load import load_scenario
from reliability.epidemic.parameters import ALGORITHMS, Algorithm

_ALIKE = 0.02
"""Algorithms whose rates in virtual time are closer than this have no order to keep."""


@dataclass(frozen=True, slots=True)
class LiveDispatchersSpec:
    """One run. `changes`: of the scenario, as on the command line."""

    runtime: Runtime
    algorithm: Algorithm
    seed: int = 1
    changes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LiveDispatchers:
    """What the judge counted; `lag_ms`: by how much an actor was behind at worst."""

    spec: LiveDispatchersSpec
    required: int
    missing: int
    duplicate: int
    spurious: int
    faults_took_effect: int
    lag_ms: float

    @property
    def rate(self) -> float:
        """The delivery rate."""
        return 1 - self.missing / max(1, self.required)


LiveRates = Mapping[tuple[Runtime, Algorithm], LiveDispatchers]


def live_dispatchers(seed: int) -> list[LiveDispatchersSpec]:
    """Every algorithm on both runtimes."""
    return [LiveDispatchersSpec(runtime, algorithm, seed) for runtime in RUNTIMES for algorithm in ALGORITHMS]


def measure_live_dispatchers(spec: LiveDispatchersSpec, address: str | None = None) -> LiveDispatchers:
    """Play it and judge it."""
    changes = [f"runtime={spec.runtime}", f"broker.parameters.epidemic.algorithm={spec.algorithm}", f"seed={spec.seed}"]
    loaded = load_scenario(Path("epidemic-live"), [*changes, *spec.changes])
    with TemporaryDirectory() as place:
        finished, verdict = play_judged(loaded.data, Path(place) / "run", address)
    counted = ("required", "missing", "duplicate", "spurious", "faults_took_effect")
    counts = {name: int(verdict[name]) for name in counted}
    return LiveDispatchers(spec, **counts, lag_ms=round(finished.manifest.lateness.worst_us / 1e3, 1))


def add_live_dispatchers(result: PaperResult, runs: Mapping[LiveDispatchersSpec, LiveDispatchers]) -> None:
    """The table, and the criteria: live runs beside those in virtual time."""
    by = {(spec.runtime, spec.algorithm): each for spec, each in runs.items()}
    rows: list[Sequence[str | int | float]] = [
        (
            algorithm, f"{by['ray', algorithm].rate:.3f}", f"{by['virtual', algorithm].rate:.3f}",
            f"{by['ray', algorithm].required:,}",
            f"{by['ray', algorithm].duplicate} / {by['ray', algorithm].spurious}",
            by["ray", algorithm].faults_took_effect,
            f"{by['ray', algorithm].lag_ms:,.0f}",
        )
        for algorithm in sorted(ALGORITHMS, key=lambda each: by["virtual", each].rate)
    ]  # fmt: skip
    columns = ("algorithm", "live", "virtual", "required", "duplicate / spurious", "faults in effect", "worst lag ms")
    title = "30 dispatchers as actors, loss 0.1, three kills and restarts: delivery rate"
    result.tables.append(ResultTable("live", title, columns, rows))
    judge_live_dispatchers(result, by)


def judge_live_dispatchers(result: PaperResult, by: LiveRates) -> None:
    """Live runs have to show what those in virtual time show."""
    pairs = [
        sorted(pair, key=lambda each: by["virtual", each].rate)
        for pair in combinations(ALGORITHMS, 2)
        if abs(by["virtual", pair[0]].rate - by["virtual", pair[1]].rate) > _ALIKE
    ]
    kept = sum(by["ray", worse].rate < by["ray", better].rate for worse, better in pairs)
    ranked = sorted(ALGORITHMS, key=lambda each: by["ray", each].rate)
    wrong = sum(each.duplicate + each.spurious for each in by.values())
    result.judge(
        "live: order of the algorithms", "as in virtual time", " < ".join(ranked), kept == len(pairs) > 0,
        f"{kept} of {len(pairs)} pairs that are more than {_ALIKE} apart in virtual time",
    )  # fmt: skip
    result.judge("live and virtual: duplicate and spurious deliveries", "0", wrong, wrong == 0, f"in {len(by)} runs")
