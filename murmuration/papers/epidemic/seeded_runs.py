"""The runs of one algorithm at one setting, which differ in their seeds: means, deviation, overhead."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from murmuration.papers.epidemic.run import EpidemicMeasures
from reliability.epidemic.parameters import Algorithm

OVERHEAD_COLUMNS = (
    "gossip messages / event message", "gossip messages a dispatcher and s", "gossip bytes / event bytes",
    "recovered events sent / event message", "mean delay ms",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SeededRuns:
    """The runs of one algorithm at one setting, seed by seed."""

    runs: Sequence[EpidemicMeasures]

    @property
    def rates(self) -> list[float]:
        """Delivery rate of each seed."""
        return [run.rate for run in self.runs]

    @property
    def rate(self) -> float:
        """Their mean."""
        return mean(self.rates)

    @property
    def spread(self) -> float:
        """Their standard deviation."""
        return stdev(self.rates) if len(self.runs) > 1 else 0.0

    @property
    def gossip_per_event(self) -> float:
        """The mean of the seeds."""
        return mean(run.gossip_per_event for run in self.runs)

    @property
    def gossip_bytes_per_event_byte(self) -> float:
        """The mean of the seeds."""
        return mean(run.gossip_bytes / max(1, run.event_bytes) for run in self.runs)

    @property
    def delay_ms(self) -> float:
        """The mean delay of a delivery: the mean of the seeds."""
        return mean(run.delay_us / 1e3 / max(1, run.delivered) for run in self.runs)

    @property
    def text(self) -> str:
        """Mean, spread and number of seeds."""
        return f"{self.rate:.3f} ± {self.spread:.3f} ({len(self.runs)})"

    def overhead(self) -> list[str]:
        """What `OVERHEAD_COLUMNS` name."""
        runs = self.runs
        return [
            f"{self.gossip_per_event:.3f}",
            f"{mean(run.gossip_per_dispatcher for run in runs):.1f}",
            f"{self.gossip_bytes_per_event_byte:.2f}",
            f"{mean(run.replies / max(1, run.event_messages) for run in runs):.3f}",
            f"{self.delay_ms:.0f}",
        ]


Compared = Mapping[tuple[str, Algorithm], SeededRuns]
"""The runs of each case, by its label, and algorithm."""
