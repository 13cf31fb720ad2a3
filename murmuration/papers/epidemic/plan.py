"""Which runs the epidemic paper's tables and charts are made of.

The bars are measured on the evaluation's network of 100 dispatchers and 70 patterns. Charts that vary a parameter take
a network of 40 dispatchers and 28 patterns, where as many subscribers share a pattern (2.86) and a run costs a sixth.

Random pull, the control, is compared at about the gossip overhead of combined pull: its digests go on until they are
answered or have come to a leaf, and its rounds come as much more often as makes up for the rest. That is set for the
default parameters; the overheads themselves are in the tables.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from murmuration.papers.epidemic.run import RunSpec
from reliability.epidemic.parameters import ALGORITHMS, Algorithm

AT_LOW_LOSS: tuple[Algorithm, ...] = ("none", "push", "combined-pull")
PULLS: tuple[Algorithm, ...] = ("subscriber-pull", "publisher-pull", "combined-pull")
SEEDS = 5
SEEDS_OF_PULLS = 10
"""Combined pull is compared with each pull alone seed by seed."""
SEEDS_OF_LOSSY_REPLIES = 3


@dataclass(frozen=True, slots=True)
class Network:
    """What is varied. `random_interval`: random pull's gossip interval, as a share of the others'."""

    base: RunSpec
    random_interval: float

    def spec(self, algorithm: Algorithm, seed: int, **changes: Any) -> RunSpec:
        """A run on it."""
        spec = dataclasses.replace(self.base, algorithm=algorithm, seed=seed, **changes)
        if algorithm == "random-pull":
            return dataclasses.replace(spec, p_forward=1.0, interval_s=round(spec.interval_s * self.random_interval, 6))
        if algorithm == "none":  # neither matters then, and the run is done once
            return dataclasses.replace(spec, buffer=self.base.buffer, interval_s=self.base.interval_s)
        return spec


@dataclass(frozen=True, slots=True)
class Sweep:
    """One chart: the delivery rate against the parameter `name` of `RunSpec`."""

    name: str
    label: str
    values: Sequence[float]
    logarithmic: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything. `bars`: what the bars are measured on; `charts`: where parameters are varied; `reconfigured`: where
    links break, and lose nothing otherwise."""

    bars: Network
    charts: Network
    reconfigured: Network
    sweeps: Sequence[Sweep]
    seeds: int
    seeds_of_pulls: int
    seeds_of_lossy_replies: int

    def specs(self) -> list[RunSpec]:
        """All runs, each once, those of the bars first and in rounds of seeds, so that what is done first is of use."""
        found: list[RunSpec] = []
        for seed in range(1, self.seeds + 1):
            found += [self.bars.spec(algorithm, seed) for algorithm in ALGORITHMS]
            found += [self.bars.spec(algorithm, seed, loss=0.05) for algorithm in AT_LOW_LOSS]
            if seed <= self.seeds_of_lossy_replies:
                found += [self.bars.spec(algorithm, seed, lossy_replies=True) for algorithm in ALGORITHMS[1:]]
            found += [self.reconfigured.spec(algorithm, seed) for algorithm in ALGORITHMS]
            found += [
                self.charts.spec(algorithm, seed, **{sweep.name: value})
                for sweep in self.sweeps
                for value in sweep.values
                for algorithm in ALGORITHMS
            ]
        for seed in range(1, self.seeds_of_pulls + 1):
            found += [self.bars.spec(algorithm, seed) for algorithm in PULLS]
        return list(dict.fromkeys(found))


SWEEPS = (
    Sweep("loss", "loss of a link", (0.05, 0.1, 0.2)),
    Sweep("buffer", "buffer (events)", (250, 500, 1_500), logarithmic=True),
    Sweep("interval_s", "gossip interval (s)", (0.03, 0.1, 0.3), logarithmic=True),
    Sweep("dispatchers", "dispatchers", (20, 40)),
    Sweep("subscribed", "patterns a dispatcher subscribes", (1, 2, 4)),
)


def full_plan(seeds: int) -> Plan:
    """The evaluation's network for the bars, the smaller one for the charts."""
    small = RunSpec("none", dispatchers=40, patterns=28, learn_s=0.7, warm_s=1.5, measured_s=1.0, tail_s=2.0)
    reconfigured = dataclasses.replace(small, loss=0.0, reconfigured_every_s=0.2, measured_s=3.0)
    seeds = max(seeds, SEEDS)
    return Plan(
        Network(RunSpec("none"), 0.42), Network(small, 0.55), Network(reconfigured, 0.55), SWEEPS,
        seeds, max(seeds, SEEDS_OF_PULLS), SEEDS_OF_LOSSY_REPLIES,
    )  # fmt: skip


def quick_plan(seeds: int) -> Plan:
    """Under 50 s: a network of 20 dispatchers throughout."""
    tiny = RunSpec(
        "none", dispatchers=20, patterns=14, rate_per_s=25, buffer=750, interval_s=0.06, learn_s=0.7, warm_s=1.5,
        measured_s=1.0, tail_s=1.5,
    )  # fmt: skip
    reconfigured = dataclasses.replace(tiny, loss=0.0, reconfigured_every_s=0.2)
    return Plan(Network(tiny, 0.55), Network(tiny, 0.55), Network(reconfigured, 0.55), SWEEPS[:1], seeds, seeds, seeds)
