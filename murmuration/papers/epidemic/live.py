"""Epidemic recovery on 30 live dispatchers, beside the same plan in virtual time.

Links lose events while dispatchers are killed and restarted; or links break while others take their places.

The scenario is `epidemic-live`. The delivery rate is of everything that the judge requires, what the killed dispatchers
missed included: the same for all algorithms.
"""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

from murmuration.deployment.build import build_overlay
from murmuration.papers.epidemic.reconfiguration import reconfigurations
from murmuration.papers.lab.judged_run import RUNTIMES, Runtime, play_judged
from murmuration.papers.lab.results import PaperResult, ResultTable
from murmuration.scenario.load import load_scenario
from reliability.epidemic.parameters import ALGORITHMS, Algorithm

_DELAY_MS = 2
"""Of a link, as in the scenario."""
_BREAKS_MS, _REPAIR_MS = range(1_000, 19_000, 250), 100
"""A link breaks every 0.25 s, counted from the first publication, and another comes 0.1 s later."""
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


def reconfigured_dispatchers(seed: int) -> list[LiveDispatchersSpec]:
    """The same with links that break, of which each is made good before the next one breaks."""
    loaded = load_scenario(Path("epidemic-live"))
    rng = random.Random(f"{seed}/reconfiguration")
    edges, degree = build_overlay(loaded).edges, loaded.data["overlay"]["degree"]
    faults = reconfigurations(edges, degree, _BREAKS_MS, _REPAIR_MS, _DELAY_MS, rng)
    changes = (f"links={{delay: {_DELAY_MS} ms}}", f"faults={json.dumps(faults)}")
    return [LiveDispatchersSpec(each.runtime, each.algorithm, seed, changes) for each in live_dispatchers(seed)]


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
    """The tables, and the criteria: live runs beside those in virtual time."""
    kills = "loss 0.1, three kills and restarts"
    breaks = "a link breaks every 0.25 s, another joins the halves 0.1 s later"
    for name, with_, changed in (("live", kills, False), ("live_reconfiguration", breaks, True)):
        by = {(spec.runtime, spec.algorithm): each for spec, each in runs.items() if bool(spec.changes) == changed}
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
        columns = (
            "algorithm", "live", "virtual", "required", "duplicate / spurious", "faults in effect", "worst lag ms"
        )  # fmt: skip
        title = f"30 dispatchers as actors, {with_}: delivery rate"
        result.tables.append(ResultTable(name, title, columns, rows))
        judge_live_dispatchers(result, by, "live, links that break" if changed else "live")


def judge_live_dispatchers(result: PaperResult, by: LiveRates, name: str = "live") -> None:
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
        f"{name}: order of the algorithms", "as in virtual time", " < ".join(ranked), kept == len(pairs) > 0,
        f"{kept} of {len(pairs)} pairs that are more than {_ALIKE} apart in virtual time",
    )  # fmt: skip
    where = "live and virtual" if name == "live" else f"{name}, and virtual"
    result.judge(f"{where}: duplicate and spurious deliveries", "0", wrong, wrong == 0, f"in {len(by)} runs")
