"""`murmur paper epidemic`: what epidemic recovery finds again, and what it costs.

The text (DEBS 2003) has no figures of its own and refers to an evaluation that appeared later (ICDCS 2004): what is
"remembered" of that one is known without its text. Runs are on the virtual runtime; at full size 30 dispatchers are
live as well. docs/protocols/epidemic.md says how each table is made. The full size takes about three hours on two
cores; finished runs are kept in the folder, so that `--out` with the same folder goes on where it was.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from murmur_pubsub.progress import Progress
from murmuration.papers.epidemic import plots as plots
from murmuration.papers.epidemic.live import compare
from murmuration.papers.epidemic.live import plan as live_plan
from murmuration.papers.epidemic.plan import (
    AT_LOW_LOSS,
    PULLS,
    Network,
    Plan,
    Sweep,
    full_plan,
    quick_plan,
)
from murmuration.papers.epidemic.run import Measures, RunSpec, measure
from murmuration.papers.lab.framework import Bar, PaperResult, ResultTable
from murmuration.papers.lab.run_cache import carry_out
from reliability.epidemic.parameters import ALGORITHMS, Algorithm

Runs = Mapping[RunSpec, Measures]

REMEMBERED = {
    (0.1, "none"): "about 0.55", (0.05, "none"): "about 0.75", (0.1, "push"): "0.9 or more",
    (0.1, "combined-pull"): "0.9 or more", (0.05, "push"): "close to 1", (0.05, "combined-pull"): "close to 1",
    (0.1, "subscriber-pull"): "weaker", (0.1, "publisher-pull"): "weaker", (0.1, "random-pull"): "clearly worse",
}  # fmt: skip
OVERHEAD_COLUMNS = (
    "gossip messages / event message", "gossip messages a dispatcher and s", "gossip bytes / event bytes",
    "recovered events sent / event message", "mean delay ms",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Point:
    """The runs of one algorithm at one setting, seed by seed."""

    runs: Sequence[Measures]

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
    def text(self) -> str:
        """Mean, spread and number of seeds."""
        return f"{self.rate:.3f} ± {self.spread:.3f} ({len(self.runs)})"

    def overhead(self) -> list[str]:
        """What `OVERHEAD_COLUMNS` name."""
        runs = self.runs
        return [
            f"{self.gossip_per_event:.3f}",
            f"{mean(run.gossip_per_dispatcher for run in runs):.1f}",
            f"{mean(run.gossip_bytes / max(1, run.event_bytes) for run in runs):.2f}",
            f"{mean(run.replies / max(1, run.event_messages) for run in runs):.3f}",
            f"{mean(run.delay_us / 1e3 / max(1, run.delivered) for run in runs):.0f}",
        ]


def point(runs: Runs, network: Network, algorithm: Algorithm, seeds: int, **changes: Any) -> Point:
    """The runs of a setting on a network."""
    return Point([runs[network.spec(algorithm, seed, **changes)] for seed in range(1, seeds + 1)])


class EpidemicPaper:
    """See `murmuration.papers.lab.framework.Paper`."""

    name = "epidemic"
    title = "Introducing reliability in content-based publish-subscribe through epidemic algorithms (DEBS 2003)"

    def reproduce(self, folder: Path, quick: bool, seeds: int, progress: Progress) -> PaperResult:
        """Measure everything; the full size takes at least five seeds."""
        plan = quick_plan(seeds) if quick else full_plan(seeds)
        runs = carry_out(measure, plan.specs(), folder, progress, lambda _: Measures)
        result = PaperResult()
        network_table(result, plan, runs)
        for sweep in plan.sweeps:
            sweep_table(result, plan, sweep, runs, folder)
        result.figures.append(plots.overhead(plan.sweeps, {s.name: curves(plan, s, runs) for s in plan.sweeps}, folder))
        reconfiguration(result, plan, runs, folder)
        bars(result, plan, runs, quick)
        if not quick:
            compare(result, live_plan(1), folder, progress)
        return result


def network_table(result: PaperResult, plan: Plan, runs: Runs) -> None:
    """The network of the bars: losses of 0.1 and 0.05, and replies that get lost as well."""
    rows: list[Sequence[str | int | float]] = []
    settings: list[tuple[str, float, bool, Sequence[Algorithm], int]] = [
        ("never", 0.1, False, ALGORITHMS, plan.seeds),
        ("never", 0.05, False, AT_LOW_LOSS, plan.seeds),
        ("as links", 0.1, True, ALGORITHMS[1:], plan.seeds_of_lossy_replies),
    ]
    for replies, loss, lossy, algorithms, seeds in settings:
        for algorithm in algorithms:
            many = plan.seeds_of_pulls if algorithm in PULLS and loss == 0.1 and not lossy else seeds
            found = point(runs, plan.bars, algorithm, many, loss=loss, lossy_replies=lossy)
            remembered = REMEMBERED.get((loss, algorithm), "-")
            rows.append((algorithm, f"{loss:g}", replies, remembered, found.text, *found.overhead()))
    base = plan.bars.base
    result.tables.append(
        ResultTable(
            "delivery", f"{base.dispatchers} dispatchers, {base.patterns} patterns, {base.rate_per_s:g} events/s each, "
            f"buffer {base.buffer}, gossip every {base.interval_s:g} s: delivery rate (mean ± deviation, seeds)",
            ("algorithm", "loss", "replies lost", "remembered", "measured", *OVERHEAD_COLUMNS), rows,
        )
    )  # fmt: skip


def curves(plan: Plan, sweep: Sweep, runs: Runs) -> dict[Algorithm, list[Point]]:
    """Each algorithm's points of a chart."""
    return {
        algorithm: [point(runs, plan.charts, algorithm, plan.seeds, **{sweep.name: value}) for value in sweep.values]
        for algorithm in ALGORITHMS
    }


def sweep_table(result: PaperResult, plan: Plan, sweep: Sweep, runs: Runs, folder: Path) -> None:
    """One chart and its numbers."""
    found = curves(plan, sweep, runs)
    rows: list[Sequence[str | int | float]] = [
        (f"{value:g}", algorithm, found[algorithm][number].text, *found[algorithm][number].overhead())
        for number, value in enumerate(sweep.values)
        for algorithm in ALGORITHMS
    ]
    base = plan.charts.base
    result.tables.append(
        ResultTable(
            f"sweep_{sweep.name}", f"Delivery rate against {sweep.label}: {base.dispatchers} dispatchers, "
            f"{base.patterns} patterns, loss {base.loss:g} where it is not varied",
            (sweep.label, "algorithm", "delivery rate", *OVERHEAD_COLUMNS), rows,
        )
    )  # fmt: skip
    result.figures.append(plots.sweep(sweep, found, folder))


def reconfiguration(result: PaperResult, plan: Plan, runs: Runs, folder: Path) -> None:
    """Links break and others take their places."""
    found = {algorithm: point(runs, plan.reconfigured, algorithm, plan.seeds) for algorithm in ALGORITHMS}
    base = plan.reconfigured.base
    result.tables.append(
        ResultTable(
            "reconfiguration", f"A link breaks every {base.reconfigured_every_s:g} s, another joins the halves "
            f"{base.repair_s:g} s later; {base.dispatchers} dispatchers, no other losses",
            ("algorithm", "breaks", "delivery rate", *OVERHEAD_COLUMNS),
            [
                (algorithm, sum(run.breaks for run in each.runs), each.text, *each.overhead())
                for algorithm, each in found.items()
            ],
        )
    )  # fmt: skip
    result.figures.append(plots.over_time(found, folder))


def bars(result: PaperResult, plan: Plan, runs: Runs, quick: bool) -> None:
    """What should be reached, on the network of 100 dispatchers with replies that are not lost."""
    note = "scaled down: judged at full size only" if quick else ""
    high = {
        algorithm: point(runs, plan.bars, algorithm, plan.seeds_of_pulls if algorithm in PULLS else plan.seeds)
        for algorithm in ALGORITHMS
    }
    low = {algorithm: point(runs, plan.bars, algorithm, plan.seeds, loss=0.05) for algorithm in AT_LOW_LOSS}

    def bar(name: str, paper: str, measured: float | str, met: bool, more: str = "") -> None:
        shown = round(measured, 3) if isinstance(measured, float) else measured
        result.bars.append(Bar(name, paper, shown, None if quick else met, "; ".join(filter(None, (more, note)))))

    def at_overhead(each: Point) -> str:
        return f"{each.gossip_per_event:.2f} gossip messages an event message"

    none = high["none"].rate
    bar("no recovery, loss 0.1", "about 0.55; 0.52 to 0.60", none, 0.52 <= none <= 0.60)
    for algorithm, least in (("push", 0.93), ("combined-pull", 0.92)):
        each = high[algorithm]  # type: ignore[index]
        bar(
            f"{algorithm}, loss 0.1", f"0.9 or more; at least {least}", each.rate, each.rate >= least, at_overhead(each)
        )
    combined = high["combined-pull"].rates
    for algorithm in ("subscriber-pull", "publisher-pull"):
        other = high[algorithm].rates  # type: ignore[index]
        wins = sum(both >= alone for both, alone in zip(combined, other, strict=True))
        bar(
            f"combined-pull at least {algorithm}", "better; in 9 seeds of 10", f"{wins} of {len(combined)}",
            wins >= 0.9 * len(combined), at_overhead(high[algorithm]),  # type: ignore[index]
        )  # fmt: skip
    for algorithm in ("push", "combined-pull"):
        each = low[algorithm]  # type: ignore[index]
        bar(f"{algorithm}, loss 0.05", "close to 1; at least 0.98", each.rate, each.rate >= 0.98, at_overhead(each))
    control, both = high["random-pull"], high["combined-pull"]
    bar(
        "random-pull, loss 0.1, at equal overhead", f"below combined-pull, {both.rate:.3f}", control.rate,
        control.rate < both.rate,
        f"{control.gossip_per_event:.2f} gossip messages an event message, combined {both.gossip_per_event:.2f}",
    )  # fmt: skip
    wrong = sum(run.duplicate + run.spurious for run in runs.values())
    delivered = sum(run.delivered for run in runs.values())
    result.bars.append(
        Bar("duplicate and spurious deliveries", "0", wrong, wrong == 0 and delivered > 0,
            f"in {len(runs)} runs, {delivered:,} measured deliveries")
    )  # fmt: skip
