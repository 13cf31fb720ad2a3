"""What a table of the epidemic paper varies: settings, and cases that are compared."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from murmuration.papers.epidemic.run import EpidemicSpec
from reliability.epidemic.parameters import Algorithm

PULLS: tuple[Algorithm, ...] = ("subscriber-pull", "publisher-pull", "combined-pull")


@dataclass(frozen=True, slots=True)
class Setting:
    """What is varied. `random_interval`: random pull's gossip interval, as a share of the others';
    `random_p_forward`: the probability with which its digests go on."""

    base: EpidemicSpec
    random_interval: float
    random_p_forward: float = 1.0

    def spec(self, algorithm: Algorithm, seed: int, **changes: Any) -> EpidemicSpec:
        """A run on it."""
        spec = dataclasses.replace(self.base, algorithm=algorithm, seed=seed, **changes)
        if algorithm == "random-pull":
            interval_s = round(spec.interval_s * self.random_interval, 6)
            return dataclasses.replace(spec, p_forward=self.random_p_forward, interval_s=interval_s)
        if algorithm == "none":  # neither matters then, and the run is done once
            return dataclasses.replace(spec, buffer=self.base.buffer, interval_s=self.base.interval_s)
        return spec


@dataclass(frozen=True, slots=True)
class Case:
    """One of the conditions that a table compares: a setting, and what is changed on it."""

    label: str
    setting: Setting
    changes: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """A table of some algorithms in some cases. `label`: what the cases are."""

    title: str
    label: str
    cases: Sequence[Case]
    algorithms: Sequence[Algorithm]

    def spec(self, case: Case, algorithm: Algorithm, seed: int) -> EpidemicSpec:
        """A run of it."""
        return case.setting.spec(algorithm, seed, **dict(case.changes))

    def specs(self, seed: int) -> list[EpidemicSpec]:
        """All runs of that seed."""
        return [self.spec(case, algorithm, seed) for case in self.cases for algorithm in self.algorithms]
