"""`murmur paper epidemic`: what epidemic recovery finds again, and what it costs.

The text (DEBS 2003) has no figures of its own and refers to an evaluation that appeared later (ICDCS 2004): what is
"remembered" of that one is known without its text. Runs are on the virtual runtime; at full size 30 dispatchers are
live as well. docs/protocols/epidemic.md says how each table is made. The full size takes about four hours on two
cores; finished runs are kept in the folder, so that `--out` with the same folder goes on where it was.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from murmuration.papers.epidemic import plots
from murmuration.papers.epidemic.claims import judge_claims
from murmuration.papers.epidemic.comparisons import compared, comparison_table
from murmuration.papers.epidemic.live import (
    LiveDispatchers,
    add_live_dispatchers,
    live_dispatchers,
    measure_live_dispatchers,
    reconfigured_dispatchers,
)
from murmuration.papers.epidemic.plan import AT_LOW_LOSS, Chart, EpidemicPlan
from murmuration.papers.epidemic.run import EpidemicMeasures, EpidemicSpec, measure_dispatchers
from murmuration.papers.epidemic.seeded_runs import OVERHEAD_COLUMNS, SeededRuns
from murmuration.papers.epidemic.settings import PULLS, Setting
from murmuration.papers.lab.paper_runs import PaperRuns
from murmuration.papers.lab.results import Figure, PaperResult, ResultTable
from reliability.epidemic.parameters import ALGORITHMS, Algorithm

EpidemicRuns = Mapping[EpidemicSpec, EpidemicMeasures]

REMEMBERED = {
    (0.1, "none"): "about 0.55", (0.05, "none"): "about 0.75", (0.1, "push"): "0.9 or more",
    (0.1, "combined-pull"): "0.9 or more", (0.05, "push"): "close to 1", (0.05, "combined-pull"): "close to 1",
    (0.1, "subscriber-pull"): "weaker", (0.1, "publisher-pull"): "weaker", (0.1, "random-pull"): "clearly worse",
}  # fmt: skip


def seeded(runs: EpidemicRuns, setting: Setting, algorithm: Algorithm, seeds: int, **changes: Any) -> SeededRuns:
    """The runs of an algorithm at a setting."""
    return SeededRuns([runs[setting.spec(algorithm, seed, **changes)] for seed in range(1, seeds + 1)])


class EpidemicPaper:
    """See `murmuration.papers.lab.results.Paper`."""

    name = "epidemic"
    title = "Introducing reliability in content-based publish-subscribe through epidemic algorithms (DEBS 2003)"
    about = (
        "The text prints no figures. Its evaluation appeared later (ICDCS 2004), and what is called the paper's here"
        " is remembered from there. Dispatchers form a tree whose links lose events; an algorithm that gossips finds"
        " them again. All runs are in virtual time, but for the table of live dispatchers."
    )

    def reproduce(self, runs: PaperRuns, quick: bool, seeds: int) -> PaperResult:
        """Measure everything; the full size takes at least five seeds."""
        plan = EpidemicPlan.quick(seeds) if quick else EpidemicPlan.full(seeds)
        found = runs.spread(measure_dispatchers, plan.specs(), lambda _: EpidemicMeasures)
        lived = [] if quick else [*live_dispatchers(1), *reconfigured_dispatchers(1)]
        live = runs.one_by_one(measure_live_dispatchers, lived, lambda _: LiveDispatchers)
        result = PaperResult(scaled_down=quick)
        drawn = {chart.name: curves(plan, chart, found) for chart in plan.charts}
        overhead = plots.gossip_against(plan.charts, drawn, runs.folder)
        result.tables.append(delivery_table(plan, found, Figure(overhead, "Gossip messages for each event message")))
        result.tables += [chart_table(plan, chart, drawn[chart.name], runs.folder) for chart in plan.charts]
        broken = {algorithm: seeded(found, plan.reconfigured, algorithm, plan.seeds) for algorithm in ALGORITHMS}
        result.tables.append(reconfiguration_table(plan, broken, runs.folder))
        by_name = {name: compared(plan, name, found) for name in plan.comparisons}
        result.tables += [
            comparison_table(name, plan.comparisons[name], each, runs.folder) for name, each in by_name.items()
        ]
        judge_recovery(result, plan, found)
        if by_name:
            judge_claims(result, by_name, broken)
        if live:
            add_live_dispatchers(result, live)
        return result


def delivery_table(plan: EpidemicPlan, runs: EpidemicRuns, overhead: Figure) -> ResultTable:
    """The network of the criteria: losses of 0.1 and 0.05, and replies that get lost as well."""
    rows: list[Sequence[str | int | float]] = []
    settings: list[tuple[str, float, bool, Sequence[Algorithm], int]] = [
        ("never", 0.1, False, ALGORITHMS, plan.seeds),
        ("never", 0.05, False, AT_LOW_LOSS, plan.seeds),
        ("as links", 0.1, True, ALGORITHMS[1:], plan.seeds_of_lossy_replies),
    ]
    for replies, loss, lossy, algorithms, seeds in settings:
        for algorithm in algorithms:
            many = plan.seeds_of_pulls if algorithm in PULLS and loss == 0.1 and not lossy else seeds
            found = seeded(runs, plan.judged, algorithm, many, loss=loss, lossy_replies=lossy)
            remembered = REMEMBERED.get((loss, algorithm), "-")
            rows.append((algorithm, f"{loss:g}", replies, remembered, found.text, *found.overhead()))
    base = plan.judged.base
    return ResultTable(
        "delivery", f"{base.dispatchers} dispatchers, {base.patterns} patterns, {base.rate_per_s:g} events/s each, "
        f"buffer {base.buffer}, gossip every {base.interval_s:g} s: delivery rate (mean ± deviation, seeds)",
        ("algorithm", "loss", "replies lost", "remembered", "measured", *OVERHEAD_COLUMNS), rows, [overhead],
    )  # fmt: skip


def curves(plan: EpidemicPlan, chart: Chart, runs: EpidemicRuns) -> dict[Algorithm, list[SeededRuns]]:
    """Each algorithm's points of a chart."""
    return {
        algorithm: [seeded(runs, plan.varied, algorithm, plan.seeds, **{chart.name: value}) for value in chart.values]
        for algorithm in ALGORITHMS
    }


def chart_table(
    plan: EpidemicPlan, chart: Chart, found: Mapping[Algorithm, Sequence[SeededRuns]], folder: Path
) -> ResultTable:
    """One chart and its numbers."""
    rows: list[Sequence[str | int | float]] = [
        (f"{value:g}", algorithm, found[algorithm][number].text, *found[algorithm][number].overhead())
        for number, value in enumerate(chart.values)
        for algorithm in ALGORITHMS
    ]
    base = plan.varied.base
    return ResultTable(
        f"sweep_{chart.name}", f"Delivery rate against {chart.label}: {base.dispatchers} dispatchers, "
        f"{base.patterns} patterns, loss {base.loss:g} where it is not varied",
        (chart.label, "algorithm", "delivery rate", *OVERHEAD_COLUMNS), rows,
        [Figure(plots.rate_against(chart, found, folder), f"Delivery rate against {chart.label}")],
    )  # fmt: skip


def reconfiguration_table(plan: EpidemicPlan, found: Mapping[Algorithm, SeededRuns], folder: Path) -> ResultTable:
    """Links break and others take their places."""
    base = plan.reconfigured.base
    return ResultTable(
        "reconfiguration", f"A link breaks every {base.reconfigured_every_s:g} s, another joins the halves "
        f"{base.repair_s:g} s later; {base.dispatchers} dispatchers, no other losses",
        ("algorithm", "breaks", "delivery rate", *OVERHEAD_COLUMNS),
        [
            (algorithm, sum(run.breaks for run in each.runs), each.text, *each.overhead())
            for algorithm, each in found.items()
        ],
        [Figure(plots.rate_over_time(found, folder), "Delivery rate by time of publication")],
    )  # fmt: skip


def judge_recovery(result: PaperResult, plan: EpidemicPlan, runs: EpidemicRuns) -> None:
    """What should be reached, on the network of 100 dispatchers with replies that are not lost."""
    high = {
        algorithm: seeded(runs, plan.judged, algorithm, plan.seeds_of_pulls if algorithm in PULLS else plan.seeds)
        for algorithm in ALGORITHMS
    }
    low = {algorithm: seeded(runs, plan.judged, algorithm, plan.seeds, loss=0.05) for algorithm in AT_LOW_LOSS}

    def judge_rate(name: str, paper: str, found: SeededRuns, least: float, most: float = 1.0) -> None:
        overhead = f"{found.gossip_per_event:.2f} gossip messages an event message"
        met = least <= found.rate <= most
        result.judge(name, paper, round(found.rate, 3), met, overhead if found.gossip_per_event else "")

    judge_rate("no recovery, loss 0.1", "about 0.55; 0.52 to 0.60", high["none"], 0.52, 0.60)
    judge_rate("push, loss 0.1", "0.9 or more; at least 0.93", high["push"], 0.93)
    judge_rate("combined-pull, loss 0.1", "0.9 or more; at least 0.92", high["combined-pull"], 0.92)
    combined = high["combined-pull"]
    alone: tuple[Algorithm, ...] = ("subscriber-pull", "publisher-pull")
    for algorithm in alone:
        other = high[algorithm]
        wins = sum(both >= one for both, one in zip(combined.rates, other.rates, strict=True))
        result.judge(
            f"combined-pull at least {algorithm}", "better; in 9 seeds of 10", f"{wins} of {len(combined.rates)}",
            wins >= 0.9 * len(combined.rates), f"{other.gossip_per_event:.2f} gossip messages an event message",
        )  # fmt: skip
    judge_rate("push, loss 0.05", "close to 1; at least 0.98", low["push"], 0.98)
    judge_rate("combined-pull, loss 0.05", "close to 1; at least 0.98", low["combined-pull"], 0.98)
    control = high["random-pull"]
    result.judge(
        "random-pull, loss 0.1, at equal overhead", f"below combined-pull, {combined.rate:.3f}", round(control.rate, 3),
        control.rate < combined.rate,
        f"{control.gossip_per_event:.2f} gossip messages an event message, combined {combined.gossip_per_event:.2f}",
    )  # fmt: skip
    wrong = sum(run.duplicate + run.spurious for run in runs.values())
    delivered = sum(run.delivered for run in runs.values())
    result.judge(
        "duplicate and spurious deliveries", "0", wrong, wrong == 0 and delivered > 0,
        f"in {len(runs)} runs, {delivered:,} measured deliveries", at_any_size=True,
    )  # fmt: skip
