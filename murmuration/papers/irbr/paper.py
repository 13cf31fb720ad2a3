"""`murmur paper irbr`: identifier range based routing beside Scribe and reverse path forwarding, on one Pastry.

Runs are on the virtual runtime: 256 and 1,024 nodes with identifiers of 4 and 5 digits in base 4, every identifier a
node's, 1 ms between nodes; at full size there are 64 live actors besides. docs/protocols/irbr.md says how each chart is
made and what the text leaves open. The text has no numbers to stand beside the measured ones, only which protocol is
best, and those are the criteria.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from murmuration.papers.irbr import plots
from murmuration.papers.irbr.live import CHURN_S, END_S, FOUND_S, KILL_S, IrbrLiveRun, measure_irbr_live
from murmuration.papers.irbr.plan import IrbrPlan, measure_pastry
from murmuration.papers.irbr.run import (
    FOUND_US,
    KILL_US,
    PROTOCOLS,
    PUBLISH_UNTIL_US,
    RESETS,
    ROUTED,
    TEXT_RPF,
    CostSpec,
    FaultSpec,
    OperationCost,
    Resilience,
)
from murmuration.papers.irbr.spread import Ratio, messages, ratios, spread_table, wanted
from murmuration.papers.lab.paper_runs import PaperRuns
from murmuration.papers.lab.results import Figure, PaperResult, ResultTable, TableCell

_REPAIRED_US = FOUND_US + 500_000
"""By when those that were found dead have been replaced."""
_SETTLING_US = 500_000
"""The half second in which the kill falls counts for neither side."""


class IrbrPaper:
    """See `murmuration.papers.lab.results.Paper`."""

    name = "irbr"
    title = "Reliable content-based routing over structured peer-to-peer networks: identifier ranges"
    about = (
        "Identifier range based routing (IRBR), Scribe with content filters and reverse path forwarding (RPF) run on"
        " the same Pastry overlay. The text has charts without numbers: what is compared is which protocol is best."
        " Operations are issued one at a time in virtual time; every message of the routing protocol counts as one,"
        " those of Pastry do not."
    )

    def reproduce(self, runs: PaperRuns, quick: bool, seeds: int) -> PaperResult:
        """Measure everything. What operations cost is judged by the mean of all seeds that were measured, which are
        more than `seeds`; failures by the first."""
        make = IrbrPlan.quick if quick else IrbrPlan.full
        plans = [make(seed) for seed in range(1, seeds + 1)]
        outcomes = runs.spread(
            measure_pastry,
            [spec for plan in plans for spec in plan.specs()],
            lambda spec: OperationCost if isinstance(spec, CostSpec) else Resilience,
        )
        live = runs.one_by_one(measure_irbr_live, [spec for plan in plans for spec in plan.live], lambda _: IrbrLiveRun)
        costs = {cost.spec: cost for cost in outcomes.values() if isinstance(cost, OperationCost)}
        failures = {run.spec: run for run in outcomes.values() if isinstance(run, Resilience)}
        first, result = plans[0], PaperResult(scaled_down=quick)
        subscribing, publishing, failing = draw(first, costs, failures, runs.folder)
        result.tables = [
            cost_table([costs[spec] for plan in plans for spec in plan.subscribing], "subscribe", subscribing),
            cost_table(
                [costs[spec] for plan in plans for spec in (*plan.publishing, *plan.large)], "publish", publishing
            ),
            failure_table([failures[spec] for plan in plans for spec in plan.faults], failing),
        ]
        compared = ratios(costs.values(), (TEXT_RPF, "rpf", *ROUTED, "scribe"))
        several = [ratio for ratio in compared if len(ratio.seeds) > 1]
        drawn = Figure(plots.ratios(several, runs.folder), "IRBR's messages over those of the baselines, by seed")
        result.tables.insert(2, spread_table(compared, plots.PROTOCOL_NAMES, [drawn]))
        judge_operations(result, first, compared, costs)
        judge_failures(result, first, failures)
        if live:
            add_live_nodes(result, list(live.values()), runs.folder)
        return result


def draw(
    plan: IrbrPlan, costs: Mapping[CostSpec, OperationCost], runs: Mapping[FaultSpec, Resilience], folder: Path
) -> tuple[list[Figure], list[Figure], list[Figure]]:
    """The figures of subscribing, of publishing and of failures."""
    subscribing, publishing = [], []
    for nodes in dict.fromkeys(spec.nodes for spec in plan.subscribing):
        subscribed = [costs[spec] for spec in plan.subscribing if spec.nodes == nodes]
        published = [costs[spec] for spec in plan.publishing if spec.nodes == nodes]
        subscribing.append(Figure(plots.subscribing(subscribed, nodes, folder), f"Subscribing, {nodes:,} nodes"))
        publishing.append(Figure(plots.publishing(published, nodes, folder), f"Publishing, {nodes:,} nodes"))
    found = [runs[spec] for spec in plan.faults]
    large = [run for run in found if run.spec.nodes == plan.nodes]
    drawn = plots.delivery_over_time(large, plan.nodes, folder)
    failing = [Figure(drawn, f"Delivery rate by time of publication, {plan.nodes:,} nodes")]
    small = [run for run in found if run.spec.nodes != plan.nodes]
    if small:
        drawn = plots.delivery_by_share(small, small[0].spec.nodes, folder)
        failing.append(Figure(drawn, f"Delivery rate against the killed share, {small[0].spec.nodes:,} nodes"))
    return subscribing, publishing, failing


def cost_table(costs: Sequence[OperationCost], what: str, figures: Sequence[Figure]) -> ResultTable:
    """Every point of the charts, with the rates wanted and reached."""
    rows = [
        (
            cost.spec.nodes, plots.PROTOCOL_NAMES[cost.spec.routing], _rates(cost), at,
            f"{cost.subscribe[number]:.1f}",
            f"{cost.publish[number]:.1f}" if cost.publish else "-",
            f"{cost.interested[number]:.1f}" if cost.interested else "-",
            f"{cost.missing} / {cost.duplicate} / {cost.spurious}",
            cost.spec.seed,
        )
        for cost in costs
        for number, at in enumerate(cost.spec.checkpoints)
    ]  # fmt: skip
    columns = (
        "nodes", "protocol", "rate: wanted | reached", "subscriptions", "messages a subscribe", "messages a publish",
        "interested", "missing / duplicate / spurious", "seed",
    )  # fmt: skip
    return ResultTable(f"{what}_operations", f"Messages a {what} operation", columns, rows, figures)


def _rates(cost: OperationCost) -> str:
    wanted = cost.spec.rates
    if wanted.covering is not None:
        return f"covering {100 * wanted.covering:.1f} | {100 * cost.covering:.1f} %"
    return f"matching {100 * (wanted.matching or 0):.1f} | {100 * cost.matching:.1f} %"


def failure_table(runs: Sequence[Resilience], figures: Sequence[Figure]) -> ResultTable:
    """Delivery rates to nodes that stayed up, of events that such nodes published."""
    rows = [
        (
            run.spec.nodes, plots.PROTOCOL_NAMES[run.spec.routing],
            f"{run.spec.churn_per_s:g} a second" if run.spec.churn_per_s else f"{100 * run.spec.killed:.0f} % at once",
            f"{100 * run.rate(1_000_000, KILL_US):.2f} %", f"{100 * before(run):.2f} %", f"{100 * after(run):.3f} %",
            run.duplicate, run.spec.seed,
        )
        for run in runs
    ]  # fmt: skip
    columns = ("nodes", "protocol", "killed", "before the kill", "until found", "once repaired", "duplicate", "seed")
    return ResultTable("failures", "Delivery rate among nodes that stayed up", columns, rows, figures)


def before(run: Resilience) -> float:
    """Delivery rate from the kill until the failures are found."""
    return run.rate(KILL_US + _SETTLING_US, FOUND_US)


def after(run: Resilience) -> float:
    """Delivery rate once they have been found and repaired."""
    return run.rate(_REPAIRED_US, PUBLISH_UNTIL_US)


def add_live_nodes(result: PaperResult, runs: Sequence[IrbrLiveRun], folder: Path) -> None:
    """Delivery rates of pairs that stayed up on live actors, and what the judge counted of all pairs."""
    spans = ((0, KILL_S), (KILL_S, FOUND_S), (FOUND_S, CHURN_S), (CHURN_S, END_S))
    rows: list[Sequence[TableCell]] = [
        (
            run.spec.trace, plots.PROTOCOL_NAMES[run.spec.routing],
            *(f"{100 * run.rate(*span):.2f} %" for span in spans),
            f"{sum(run.made):,} of {sum(run.required):,}", run.duplicate, run.spurious,
            f"{run.judged['missing']:,} of {run.judged['required']:,}", f"{len(run.kills)} / {len(run.starts)}",
            run.spec.seed,
        )
        for run in runs
    ]  # fmt: skip
    columns = (
        "churn of", "protocol", "before the kill", "until found", "repaired", "churn", "pairs that stayed up",
        "duplicate", "spurious", "missing of all", "kills / starts", "seed",
    )  # fmt: skip
    figures = []
    for trace in dict.fromkeys(run.spec.trace for run in runs):
        found = [run for run in runs if (run.spec.trace, run.spec.seed) == (trace, 1)]
        figures.append(Figure(plots.live_delivery(found, trace, folder), f"64 live actors, churn {trace}"))
        rates = {run.spec.routing: 100 * run.rate(KILL_S, FOUND_S) for run in found}
        text = ", ".join(f"{plots.PROTOCOL_NAMES[routing]} {rate:.1f}" for routing, rate in rates.items())
        name = f"64 live nodes, churn {trace}: IRBR delivers most until detection (%)"
        result.judge(name, "same order", text, rates["irbr"] >= max(rates.values()))
    title = "64 live actors: 13 killed at once, then 20 that come and go"
    result.tables.append(ResultTable("live", title, columns, rows, figures))


def judge_operations(
    result: PaperResult, plan: IrbrPlan, compared: Sequence[Ratio], costs: Mapping[CostSpec, OperationCost]
) -> None:
    """Which protocol sends the fewest messages, in the mean of the seeds, and whether every event arrives."""
    for ratio in compared:
        if ratio.nodes != plan.nodes:
            continue
        note = f"{plan.nodes:,} nodes, {ratio.words}"
        other, rate = plots.PROTOCOL_NAMES[ratio.other], wanted(ratio.rates)
        if ratio.rates.covering is None:
            name = f"publish messages of IRBR over those of {other}, matching {100 * rate:g} %"
            result.judge(name, "below 1", round(ratio.mean, 3), ratio.met, note)
        elif ratio.other != "scribe":
            name = f"subscribe messages of IRBR over those of {other}, covering {100 * rate:g} %"
            met = ratio.met if rate >= 0.05 else None
            result.judge(name, "below 1 from 5 %", round(ratio.mean, 3), met, note)
    for spec in plan.subscribing:
        if (spec.routing, spec.nodes) == ("scribe", plan.nodes):
            fewest = messages(costs[spec]) / messages(costs[replace(spec, routing="irbr")])
            name = f"subscribe messages of Scribe over those of IRBR, covering {100 * wanted(spec.rates):g} %"
            note = f"{plan.nodes:,} nodes, seed {spec.seed}"
            result.judge(name, "below 1 (Scribe fewest)", round(fewest, 3), fewest < 1, note, at_any_size=True)
    wrong = sum(cost.missing + cost.duplicate + cost.spurious for cost in costs.values())
    required = sum(cost.required for cost in costs.values())
    name = "missing, duplicate and spurious without failures"
    result.judge(name, "0", wrong, wrong == 0, f"of {required:,} required", at_any_size=True)


def judge_failures(result: PaperResult, plan: IrbrPlan, runs: Mapping[FaultSpec, Resilience]) -> None:
    """What a fifth of the nodes, killed at once, costs each protocol."""
    note = f"{plan.nodes:,} nodes"
    killed = {spec.routing: runs[spec] for spec in plan.faults if (spec.nodes, spec.killed) == (plan.nodes, 0.2)}
    irbr = killed["irbr"]
    rate = 100 * after(irbr)
    name = "IRBR delivers after detection, 20 % killed (%)"
    result.judge(name, "at least 99.9", round(rate, 3), rate >= 99.9, note, at_any_size=True)
    for other in ("rpf", "scribe", *RESETS):
        more = 100 * (before(irbr) - before(killed[other]))
        name = f"IRBR delivers more than {plots.PROTOCOL_NAMES[other]} until detection, 20 % killed (points)"
        compared = other in PROTOCOLS
        result.judge(name, "above 0" if compared else "-", round(more, 2), more > 0 if compared else None, note)
