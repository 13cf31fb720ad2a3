"""Which runs the epidemic paper's tables and charts are made of.

The criteria are measured on the evaluation's network of 100 dispatchers and 70 patterns. Charts that vary a parameter
take a network of 40 dispatchers and 28 patterns, where as many subscribers share a pattern (2.86) and a run costs a
sixth. Some comparisons take 20 dispatchers and 14 patterns, which costs a quarter of that.

Random pull, the control, is compared at about the gossip overhead of combined pull: its digests go on until they are
answered or have come to a leaf, and its rounds come as much more often as makes up for the rest. That is set for the
default parameters; the overheads themselves are in the tables. One table compares it at the same interval as well.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from murmuration.papers.epidemic.conditions import comparisons
from murmuration.papers.epidemic.run import EpidemicSpec
from murmuration.papers.epidemic.settings import PULLS, Comparison, Setting
from reliability.epidemic.parameters import ALGORITHMS, Algorithm

AT_LOW_LOSS: tuple[Algorithm, ...] = ("none", "push", "combined-pull")
_SEEDS = 5
_SEEDS_OF_PULLS = 10
"""Combined pull is compared with each pull alone seed by seed."""
_SEEDS_OF_LOSSY_REPLIES = 3


@dataclass(frozen=True, slots=True)
class Chart:
    """The delivery rate against the parameter `name` of `EpidemicSpec`."""

    name: str
    label: str
    values: Sequence[float]
    logarithmic: bool = False


_CHARTS = (
    Chart("loss", "loss of a link", (0.05, 0.1, 0.2)),
    Chart("buffer", "buffer (events)", (250, 500, 1_500), logarithmic=True),
    Chart("interval_s", "gossip interval (s)", (0.03, 0.1, 0.3), logarithmic=True),
    Chart("dispatchers", "dispatchers", (20, 40)),
    Chart("subscribed", "patterns a dispatcher subscribes", (1, 2, 4)),
)


@dataclass(frozen=True, slots=True)
class EpidemicPlan:
    """Everything. `judged`: what the criteria are measured on; `varied`: where the charts vary parameters;
    `reconfigured`: where links break, and lose nothing otherwise; `comparisons`: by name, at full size only."""

    judged: Setting
    varied: Setting
    reconfigured: Setting
    charts: Sequence[Chart]
    seeds: int
    seeds_of_pulls: int
    seeds_of_lossy_replies: int
    comparisons: Mapping[str, Comparison]

    @classmethod
    def full(cls, seeds: int) -> "EpidemicPlan":
        """The evaluation's network for the criteria, the smaller one for the charts."""
        small = EpidemicSpec("none", dispatchers=40, patterns=28, learn_s=0.7, warm_s=1.5, measured_s=1.0, tail_s=2.0)
        reconfigured = dataclasses.replace(small, loss=0.0, reconfigured_every_s=0.2, measured_s=3.0)
        seeds = max(seeds, _SEEDS)
        judged, varied = Setting(EpidemicSpec("none"), 0.42), Setting(small, 0.55)
        return cls(
            judged, varied, Setting(reconfigured, 0.55), _CHARTS,
            seeds, max(seeds, _SEEDS_OF_PULLS), _SEEDS_OF_LOSSY_REPLIES,
            comparisons(judged, varied),
        )  # fmt: skip

    @classmethod
    def quick(cls, seeds: int) -> "EpidemicPlan":
        """Under 50 s: a network of 20 dispatchers throughout."""
        tiny = EpidemicSpec(
            "none", dispatchers=20, patterns=14, rate_per_s=25, buffer=750, interval_s=0.06, learn_s=0.7, warm_s=1.5,
            measured_s=1.0, tail_s=1.5,
        )  # fmt: skip
        reconfigured = dataclasses.replace(tiny, loss=0.0, reconfigured_every_s=0.2)
        settings = Setting(tiny, 0.55), Setting(tiny, 0.55), Setting(reconfigured, 0.55)
        return cls(*settings, _CHARTS[:1], seeds, seeds, seeds, {})

    def specs(self) -> list[EpidemicSpec]:
        """All runs, each once: those of the criteria first, in rounds of seeds, so that an early end leaves some."""
        found: list[EpidemicSpec] = []
        for seed in range(1, self.seeds + 1):
            found += [self.judged.spec(algorithm, seed) for algorithm in ALGORITHMS]
            found += [self.judged.spec(algorithm, seed, loss=0.05) for algorithm in AT_LOW_LOSS]
            if seed <= self.seeds_of_lossy_replies:
                found += [self.judged.spec(algorithm, seed, lossy_replies=True) for algorithm in ALGORITHMS[1:]]
            found += [self.reconfigured.spec(algorithm, seed) for algorithm in ALGORITHMS]
            found += [
                self.varied.spec(algorithm, seed, **{chart.name: value})
                for chart in self.charts
                for value in chart.values
                for algorithm in ALGORITHMS
            ]
            found += [spec for comparison in self.comparisons.values() for spec in comparison.specs(seed)]
        for seed in range(1, self.seeds_of_pulls + 1):
            found += [self.judged.spec(algorithm, seed) for algorithm in PULLS]
        return list(dict.fromkeys(found))
