"""`murmur paper irbr`: identifier range based routing beside Scribe and reverse path forwarding, on one Pastry.

Runs are on the virtual runtime: 256 and 1,024 nodes with identifiers of 4 and 5 digits in base 4, every identifier a
node's, 1 ms between nodes; at full size there are 64 live actors besides. docs/protocols/irbr.md says how each chart is
made and what the text leaves open. The text has no numbers to stand beside the measured ones, only which protocol is
best, and those are the bars.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from murmur_pubsub.progress import Progress
from murmuration.papers.irbr import plots as plots
from murmuration.papers.irbr.live import CHURN_S, END_S, FOUND_S, KILL_S, Live, LiveSpec, measure_live
from murmuration.papers.irbr.run import (
    FOUND_US,
    KILL_US,
    PUBLISH_UNTIL_US,
    RESETS,
    ROUTED,
    ROUTINGS,
    Cost,
    CostSpec,
    FaultSpec,
    Resilience,
    measure_cost,
    measure_resilience,
)
from murmuration.papers.irbr.workload import Rates
from murmuration.papers.lab.framework import Bar, PaperResult, ResultTable
from murmuration.papers.lab.real_data import Trace, find_real
from murmuration.papers.lab.run_cache import carry_out

BAR_NODES = 1_024
"""The size that the bars are about: fewer nodes may show another order."""
_REPAIRED_US = FOUND_US + 500_000
"""By when those that were found dead have been replaced."""
_SETTLING_US = 500_000
"""The half second in which the kill falls counts for neither side."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The runs, by what they are for; `nodes` is the size that the bars are about. `live`: on actors."""

    nodes: int
    subscribing: Sequence[CostSpec]
    publishing: Sequence[CostSpec]
    faults: Sequence[FaultSpec]
    live: Sequence[LiveSpec]


def full_plan(seed: int) -> Plan:
    """The sheet's sizes and rates."""
    traces: tuple[Trace, ...] = ("generated", "skype") if find_real("skype.avt") else ("generated",)
    sizes = {256: (32, 64, 128, 256, 512), 1_024: (64, 128, 256, 512)}
    return Plan(
        1_024,
        [
            CostSpec(routing, nodes, Rates(covering=rate), at, 0, seed)
            for nodes, at in sizes.items()
            for rate in (0.01, 0.05, 0.2)
            for routing in ROUTINGS
        ],
        [
            CostSpec(routing, nodes, Rates(matching=rate), at[:-1], 40, seed)
            for nodes, at in sizes.items()
            for rate in (0.01, 0.1, 0.5)
            for routing in (*ROUTINGS, *ROUTED)
        ],
        [
            *(FaultSpec(routing, 256, share, seed=seed) for share in (0.05, 0.1, 0.2, 0.3) for routing in ROUTINGS),
            *(FaultSpec(routing, 1_024, 0.2, seed=seed) for routing in (*ROUTINGS, *RESETS)),
            *(FaultSpec(routing, 1_024, 0.0, churn_per_s=10, seed=seed) for routing in ROUTINGS),
        ],
        [LiveSpec(routing, seed, trace) for trace in traces for routing in ROUTINGS],
    )


def quick_plan(seed: int) -> Plan:
    """Under 50 s: 64 nodes."""
    at = (16, 32, 64, 128)
    return Plan(
        64,
        [CostSpec(each, 64, Rates(covering=rate), at, 0, seed) for rate in (0.2,) for each in ROUTINGS],
        [
            CostSpec(each, 64, Rates(matching=rate), at[:3], 20, seed)
            for rate in (0.1, 0.5)
            for each in (*ROUTINGS, *ROUTED)
        ],
        [FaultSpec(each, 64, 0.2, rate_per_s=40, matching=0.2, seed=seed) for each in (*ROUTINGS, *RESETS)],
        [],
    )


def measure(spec: CostSpec | FaultSpec) -> Cost | Resilience:
    """One run, in a process of its own."""
    return measure_cost(spec) if isinstance(spec, CostSpec) else measure_resilience(spec)


class IrbrPaper:
    """See `murmuration.papers.lab.framework.Paper`."""

    name = "irbr"
    title = "Reliable content-based routing over structured peer-to-peer networks: identifier ranges"

    def reproduce(self, folder: Path, quick: bool, seeds: int, progress: Progress) -> PaperResult:
        """Measure everything; with several seeds the bars are of the first and the others are in the tables."""
        plans = [quick_plan(seed) if quick else full_plan(seed) for seed in range(1, seeds + 1)]
        specs: list[CostSpec | FaultSpec] = []
        for plan in plans:
            specs += sorted((*plan.faults, *plan.publishing, *plan.subscribing), key=lambda spec: -spec.nodes)
        outcomes = carry_out(
            measure, specs, folder, progress, lambda spec: Cost if isinstance(spec, CostSpec) else Resilience
        )
        costs = {cost.spec: cost for cost in outcomes.values() if isinstance(cost, Cost)}
        runs = {run.spec: run for run in outcomes.values() if isinstance(run, Resilience)}
        on_actors = [spec for plan in plans for spec in plan.live]
        live = list(carry_out(measure_live, on_actors, folder, progress, lambda _: Live, workers=1).values())
        result = PaperResult()
        subscribing = [costs[spec] for plan in plans for spec in plan.subscribing]
        publishing = [costs[spec] for plan in plans for spec in plan.publishing]
        failures = [runs[spec] for plan in plans for spec in plan.faults]
        result.tables += [cost_table(subscribing, "subscribe"), cost_table(publishing, "publish")]
        result.tables.append(failure_table(failures))
        plan = plans[0]
        for nodes in dict.fromkeys(spec.nodes for spec in plan.subscribing):
            subscribed = [costs[spec] for spec in plan.subscribing if spec.nodes == nodes]
            published = [costs[spec] for spec in plan.publishing if spec.nodes == nodes]
            result.figures.append(plots.subscribing(subscribed, nodes, folder))
            result.figures.append(plots.publishing(published, nodes, folder))
        first = [runs[spec] for spec in plan.faults]
        result.figures.append(
            plots.delivery_over_time([run for run in first if run.spec.nodes == plan.nodes], plan.nodes, folder)
        )
        others = [run for run in first if run.spec.nodes != plan.nodes]
        if others:
            result.figures.append(plots.delivery_by_share(others, others[0].spec.nodes, folder))
        set_bars(result, plan, costs, runs)
        if live:
            result.tables.append(live_table(live))
            for trace in dict.fromkeys(run.spec.trace for run in live):
                found = [run for run in live if (run.spec.trace, run.spec.seed) == (trace, 1)]
                result.figures.append(plots.live_delivery(found, trace, folder))
                result.bars.append(live_bar(found, trace))
        return result


def cost_table(costs: Sequence[Cost], what: str) -> ResultTable:
    """Every point of the charts, with the rates wanted and reached."""
    rows = [
        (
            cost.spec.nodes, plots.NAMES[cost.spec.routing], _rates(cost), at,
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
    return ResultTable(f"{what}_operations", f"Messages a {what} operation", columns, rows)


def _rates(cost: Cost) -> str:
    wanted = cost.spec.rates
    if wanted.covering is not None:
        return f"covering {100 * wanted.covering:.1f} | {100 * cost.covering:.1f} %"
    return f"matching {100 * (wanted.matching or 0):.1f} | {100 * cost.matching:.1f} %"


def failure_table(runs: Sequence[Resilience]) -> ResultTable:
    """Delivery rates to nodes that stayed up, of events that such nodes published."""
    rows = [
        (
            run.spec.nodes, plots.NAMES[run.spec.routing],
            f"{run.spec.churn_per_s:g} a second" if run.spec.churn_per_s else f"{100 * run.spec.killed:.0f} % at once",
            f"{100 * run.rate(1_000_000, KILL_US):.2f} %", f"{100 * before(run):.2f} %", f"{100 * after(run):.3f} %",
            run.duplicate, run.spec.seed,
        )
        for run in runs
    ]  # fmt: skip
    columns = ("nodes", "protocol", "killed", "before the kill", "until found", "once repaired", "duplicate", "seed")
    return ResultTable("failures", "Delivery rate among nodes that stayed up", columns, rows)


def before(run: Resilience) -> float:
    """Delivery rate from the kill until the failures are found."""
    return run.rate(KILL_US + _SETTLING_US, FOUND_US)


def after(run: Resilience) -> float:
    """Delivery rate once they have been found and repaired."""
    return run.rate(_REPAIRED_US, PUBLISH_UNTIL_US)


def live_table(runs: Sequence[Live]) -> ResultTable:
    """Delivery rates of pairs that stayed up on live actors, and what the judge counted of all pairs."""
    spans = ((0, KILL_S), (KILL_S, FOUND_S), (FOUND_S, CHURN_S), (CHURN_S, END_S))
    rows: list[Sequence[str | int | float]] = [
        (
            run.spec.trace, plots.NAMES[run.spec.routing],
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
    return ResultTable("live", "64 live actors: 13 killed at once, then 20 that come and go", columns, rows)


def live_bar(runs: Sequence[Live], trace: Trace) -> Bar:
    """Until the failures are found."""
    rates = {run.spec.routing: 100 * run.rate(KILL_S, FOUND_S) for run in runs}
    text = ", ".join(f"{plots.NAMES[routing]} {rate:.1f}" for routing, rate in rates.items())
    name = f"64 live nodes, churn {trace}: IRBR delivers most until detection (%)"
    return Bar(name, "same order", text, rates["irbr"] >= max(rates.values()))


def set_bars(result: PaperResult, plan: Plan, costs: dict[CostSpec, Cost], runs: dict[FaultSpec, Resilience]) -> None:
    """The stated results and the bars set for the reproduction."""
    publishing = [costs[spec] for spec in plan.publishing if spec.nodes == plan.nodes]
    subscribing = [costs[spec] for spec in plan.subscribing if spec.nodes == plan.nodes]
    full = plan.nodes == BAR_NODES
    note = f"{plan.nodes:,} nodes" + ("" if full else f"; the bar is of {BAR_NODES:,}")
    for cost in publishing:
        if cost.spec.routing != "irbr":
            continue
        for other in ("rpf_routed", "scribe_routed", "rpf", "scribe"):
            beside = _beside(publishing, cost, other)
            ratio = sum(cost.publish) / sum(beside.publish)
            name = f"publish messages of IRBR over those of {plots.NAMES[other]}, {_rates(cost)}"
            result.bars.append(Bar(name, "below 1", round(ratio, 3), ratio < 1 if full else None, note))
    for cost in subscribing:
        if cost.spec.routing == "irbr":
            ratio = sum(_weighted(cost)) / sum(_weighted(_beside(subscribing, cost, "rpf")))
            name = f"subscribe messages of IRBR over those of RPF, {_rates(cost)}"
            met = ratio < 1 if full and (cost.spec.rates.covering or 0) >= 0.05 else None
            result.bars.append(Bar(name, "below 1 from 5 %", round(ratio, 3), met, note))
            fewest = sum(_weighted(_beside(subscribing, cost, "scribe"))) / sum(_weighted(cost))
            name = f"subscribe messages of Scribe over those of IRBR, {_rates(cost)}"
            result.bars.append(Bar(name, "below 1 (Scribe fewest)", round(fewest, 3), fewest < 1, note))
    all_costs = list(costs.values())
    wrong = sum(cost.missing + cost.duplicate + cost.spurious for cost in all_costs)
    required = sum(cost.required for cost in all_costs)
    result.bars.append(
        Bar("missing, duplicate and spurious without failures", "0", wrong, wrong == 0, f"of {required:,} required")
    )
    killed = {spec.routing: runs[spec] for spec in plan.faults if (spec.nodes, spec.killed) == (plan.nodes, 0.2)}
    irbr = killed["irbr"]
    rate = 100 * after(irbr)
    result.bars.append(
        Bar("IRBR delivers after detection, 20 % killed (%)", "at least 99.9", round(rate, 3), rate >= 99.9, note)
    )
    for other in ("rpf", "scribe", *RESETS):
        more = 100 * (before(irbr) - before(killed[other]))
        name = f"IRBR delivers more than {plots.NAMES[other]} until detection, 20 % killed (points)"
        met = more > 0 if full and other in ROUTINGS else None
        result.bars.append(Bar(name, "above 0" if other in ROUTINGS else "-", round(more, 2), met, note))


def _beside(costs: Sequence[Cost], cost: Cost, routing: str) -> Cost:
    return next(each for each in costs if each.spec.routing == routing and each.spec.rates == cost.spec.rates)


def _weighted(cost: Cost) -> list[float]:
    """Messages of all subscribe operations up to each checkpoint since the one before."""
    bounds = (0, *cost.spec.checkpoints)
    return [mean * (bounds[at + 1] - bounds[at]) for at, mean in enumerate(cost.subscribe)]
