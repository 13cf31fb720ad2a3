"""`murmur paper vinifera`: subscription-aware rendezvous routing beside a baseline like Ferry.

Runs are on the virtual runtime; at full size churn is also replayed on live actors. docs/protocols/vinifera.md says how
each figure is made, what the text leaves open and how long the full size takes. Every finished run is kept in the
folder: `--out` with the same folder goes on.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev

from murmur_pubsub.progress import Progress
from murmuration.papers.lab.framework import Bar, PaperResult, ResultTable
from murmuration.papers.lab.run_cache import carry_out
from murmuration.papers.vinifera import plots as plots
from murmuration.papers.vinifera.live import BIN_S, Live, measure_live
from murmuration.papers.vinifera.plan import MODELS, ROUTINGS, Outcome, Plan, Spec, full_plan, quick_plan
from murmuration.papers.vinifera.run import Churn, Routing, Static, StaticSpec, measure
from murmuration.papers.vinifera.workload import Model

Runs = Mapping[Spec, Outcome]
BAR_NODES = 1_000
_MEASURES = (("traffic overhead", lambda run: run.overhead), ("path length (hops)", lambda run: run.path))
_COLUMNS = ("traffic overhead: paper", "measured", "relays", "copies", "hops: paper", "measured hops", "hit ratio")
PAPER: Mapping[tuple[str, str, str], tuple[str, str]] = {
    ("friends", "skewed", "0"): ("22 %", "-"), ("friends", "skewed", "8"): ("under 10 %", "about 3"),
    ("friends", "random", "0"): ("about 80 %", "-"), ("friends", "random", "8"): ("58 to 60 %", "-"),
    ("size", "vinifera", "random"): ("60 %", "a third of the baseline's"),
    ("size", "vinifera", "skewed"): ("about 10 %", "a third of the baseline's"),
    ("size", "ferry", "random"): ("over 80 %", "-"), ("size", "ferry", "skewed"): ("32 to 40 %", "about 7"),
}  # fmt: skip
"""What the text says, as (overhead, hops)."""


class ViniferaPaper:
    """See `murmuration.papers.lab.framework.Paper`."""

    name = "vinifera"
    title = "Subscription awareness meets rendezvous routing: Vinifera (AP2PS 2012)"

    def reproduce(self, folder: Path, quick: bool, seeds: int, progress: Progress) -> PaperResult:
        """Measure everything; the full size takes at least three seeds."""
        plan = quick_plan(seeds) if quick else full_plan(seeds)
        runs = carry_out(
            measure, plan.specs(), folder, progress, lambda spec: Static if isinstance(spec, StaticSpec) else Churn
        )
        live = list(carry_out(measure_live, plan.live, folder, progress, lambda _: Live, workers=1).values())
        result = PaperResult()
        figure_3(result, plan, runs, folder)
        by_size(result, plan, runs, folder)
        by_attributes(result, plan, runs, folder)
        by_rate(result, plan, runs, folder)
        figure_5(result, plan, runs, folder)
        by_resets(result, plan, runs)
        others(result, plan, runs)
        bars(result, plan, runs)
        if live:
            on_actors(result, live, folder)
        return result


def static(runs: Runs, spec: StaticSpec) -> Static:
    """The outcome of a run without failures."""
    found = runs[spec]
    assert isinstance(found, Static)
    return found


def _row(found: Sequence[Static], paper: tuple[str, str]) -> tuple[str, ...]:
    def shown(values: Sequence[float], scale: float = 1, unit: str = "") -> str:
        spread = f" ± {scale * stdev(values):.1f}" if len(values) > 1 else ""
        return f"{scale * mean(values):.1f}{spread}{unit}"

    return (
        paper[0], shown([run.overhead for run in found], 100, " %"), f"{mean(run.relays for run in found):.2f}",
        f"{mean(run.copies for run in found):.2f}", paper[1], shown([run.path for run in found]),
        f"{mean(run.hit_ratio for run in found):.4f}",
    )  # fmt: skip


def _seeds(plan: Plan) -> range:
    return range(1, plan.seeds + 1)


def figure_3(result: PaperResult, plan: Plan, runs: Runs, folder: Path) -> None:
    """Overhead and path length against the number of friend links."""
    rows = []
    curves: dict[tuple[Routing, Model], list[tuple[float, list[Static]]]] = {}
    for model in MODELS:
        points = [
            (float(k), [static(runs, plan.by_friends(model, k, seed)) for seed in _seeds(plan)]) for k in plan.friends
        ]
        flat = [static(runs, plan.static("ferry", model, seed)) for seed in _seeds(plan)]
        curves["vinifera", model] = points
        curves["ferry", model] = [(float(k), flat) for k in plan.friends]
        for friends, found in points:
            rows.append(
                (model, f"{friends:g}", *_row(found, PAPER.get(("friends", model, f"{friends:g}"), ("-", "-"))))
            )
        rows.append((model, "baseline", *_row(flat, PAPER["size", "ferry", model])))
    title = f"Figure 3: {plan.base.nodes:,} nodes, {plan.seeds} seeds (mean ± deviation)"
    result.tables.append(ResultTable("figure_3", title, ("interests", "friend links", *_COLUMNS), rows))
    result.figures.append(plots.lines(curves, _MEASURES, "friend links (of 8)", folder, "figure_3"))


def by_size(result: PaperResult, plan: Plan, runs: Runs, folder: Path) -> None:
    """Figures 4(a) and (b), and what a node has to do."""
    curves = {
        (routing, model): [
            (float(nodes), [static(runs, plan.by_size(routing, model, nodes))]) for nodes in plan.sizes_of(routing)
        ]
        for model in MODELS
        for routing in ROUTINGS
    }
    rows = [
        (plots.NAMES[routing], model, f"{nodes:,.0f}", *_row(found, PAPER["size", routing, model]),
         f"{found[0].messages:.1f}", f"{found[0].degree}")
        for (routing, model), points in curves.items()
        for nodes, found in points
    ]  # fmt: skip
    columns = ("system", "interests", "nodes", *_COLUMNS, "messages a node and cycle", "largest degree")
    result.tables.append(ResultTable("figure_4ab", "Figures 4(a) and (b): against the number of nodes", columns, rows))
    measures = (*_MEASURES, ("messages a node and cycle", lambda run: run.messages))
    result.figures.append(plots.lines(curves, measures, "nodes", folder, "figure_4ab", logarithmic=True))


def by_attributes(result: PaperResult, plan: Plan, runs: Runs, folder: Path) -> None:
    """Figures 4(c), (d) and (e)."""
    curves = {
        (routing, model): [
            (float(count), [static(runs, plan.by_attributes(routing, model, count))]) for count in plan.attributes
        ]
        for model in MODELS
        for routing in ROUTINGS
    }
    shown = dict.fromkeys([found[0].spec for points in curves.values() for _, found in points] + plan.loaded())
    rows = [
        (plots.NAMES[run.spec.routing], run.spec.model, f"{run.spec.attributes}", f"{run.spec.nodes:,}",
         *_row([run], ("-", "-")), f"{100 * run.most:.1f} %", f"{100 * run.load[4]:.1f} %")
        for run in (static(runs, spec) for spec in shown)
    ]  # fmt: skip
    columns = ("system", "interests", "attributes", "nodes", *_COLUMNS, "largest load", "nodes with load up to 20 %")
    title = "Figures 4(c), (d), (e): against attributes"
    result.tables.append(ResultTable("figure_4cde", title, columns, rows))
    result.figures.append(plots.lines(curves, _MEASURES, "attributes", folder, "figure_4cd"))
    few = [found[0] for points in curves.values() for count, found in points if count <= 3]
    result.figures.append(plots.load(few, folder))


def by_rate(result: PaperResult, plan: Plan, runs: Runs, folder: Path) -> None:
    """Figure 4(f)."""
    found = [static(runs, spec) for spec in plan.by_rate()]
    rows = [
        (plots.name_of(run.spec), run.spec.model, f"{run.copies + run.relays:.1f}",
         *(f"{100 * each:.0f} %" for each in run.hit_ratios))
        for run in found
    ]  # fmt: skip
    title = f"Figure 4(f): events published in a cycle, of which a node takes X = {plan.capacity} messages"
    columns = ("system", "interests", "messages a delivery", *(f"hit ratio at {rate:g} X" for rate in plan.rates))
    result.tables.append(ResultTable("figure_4f", title, columns, rows))
    result.figures.append(plots.rates(found, folder))


def figure_5(result: PaperResult, plan: Plan, runs: Runs, folder: Path) -> None:
    """Churn."""
    rows = []
    for trace in dict.fromkeys(spec.trace for spec in plan.churn):
        found = [churn(runs, spec) for spec in plan.churn if spec.trace == trace]
        hours = len(found[0].population)
        result.figures.append(plots.churn(found, folder, f"figure_5_{trace}", max(1, hours // 80)))
        for run in found:
            crowd = run.flash_crowd()
            rest = set(range(hours)) - crowd
            rows.append(
                (trace, plots.NAMES[run.spec.routing], run.spec.model, f"{hours}", f"{run.spec.cycle_s} s",
                 f"{mean(run.population):,.0f}", _ratio(run.hit_ratio(rest)), f"{len(crowd)}",
                 _ratio(run.hit_ratio(crowd)), f"{100 * sum(run.uninterested) / max(1, sum(run.received)):.1f} %",
                 f"{sum(run.hops) / max(1, sum(run.delivered)):.1f}", f"{run.duplicate}", f"{run.cpu_s / 60:.1f} min")
            )  # fmt: skip
    columns = (
        "trace", "system", "interests", "hours", "cycle", "nodes up", "hit ratio outside flash crowds",
        "hours of flash crowds", "hit ratio in them", "traffic overhead", "hops", "duplicates", "took",
    )  # fmt: skip
    result.tables.append(ResultTable("figure_5", "Figure 5: churn", columns, rows))


def by_resets(result: PaperResult, plan: Plan, runs: Runs) -> None:
    """What hearing of closed connections is worth to either system."""
    found = [churn(runs, spec) for spec in plan.resets]
    rows = [
        (plots.NAMES[run.spec.routing], "heartbeats and closed connections" if run.spec.resets else "heartbeats alone",
         f"{mean(run.population):,.0f}", f"{sum(run.joined):,}", f"{sum(run.interested):,}",
         f"{sum(run.delivered) / max(1, sum(run.interested)):.4f}")
        for run in found
    ]  # fmt: skip
    title = f"Both systems under {24 * plan.resets[0].days:g} hours of generated churn, a cycle of 900 s"
    columns = ("system", "hears of failures by", "nodes up", "joined", "to be delivered", "hit ratio")
    result.tables.append(ResultTable("resets", title, columns, rows))


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def churn(runs: Runs, spec: Spec) -> Churn:
    """The outcome of a run under churn."""
    found = runs[spec]
    assert isinstance(found, Churn)
    return found


def others(result: PaperResult, plan: Plan, runs: Runs) -> None:
    """What the paper has no figure of: the friendship graph, and routing over own links alone."""
    shown: list[tuple[str, StaticSpec]] = []
    if plan.social:
        shown += [(f"friendship graph, {each}", plan.static(each, "social", nodes=plan.social)) for each in ROUTINGS]
    shown += [(f"own links alone, {model}", plan.without_inbound(model)) for model in MODELS]
    rows = [(name, *_row([static(runs, spec)], ("-", "-"))) for name, spec in shown]
    result.tables.append(
        ResultTable("others", "A friendship graph; Vinifera over its own links alone", ("run", *_COLUMNS), rows)
    )


def bars(result: PaperResult, plan: Plan, runs: Runs) -> None:
    """The sheet's."""
    full = plan.base.nodes == BAR_NODES
    note = f"{plan.base.nodes:,} nodes" + ("" if full else f"; the bar is of {BAR_NODES:,}")

    def ratio(model: Model, value: str) -> float:
        own, other = (
            mean(float(getattr(static(runs, plan.static(routing, model, seed)), value)) for seed in _seeds(plan))
            for routing in ROUTINGS
        )
        return round(own / max(1e-9, other), 3)

    def bar(name: str, paper: str, measured: float | str, met: bool | None, more: str = note) -> None:
        result.bars.append(Bar(name, paper, measured, met if full else None, more))

    overhead, path, random = ratio("skewed", "overhead"), ratio("skewed", "path"), ratio("random", "overhead")
    bar("skewed: traffic overhead over the baseline's", "a sixth to a third; at most 0.333", overhead,
        overhead <= 1 / 3, f"{note}; relays for each delivery: {ratio('skewed', 'relays')}")  # fmt: skip
    bar("skewed: path length over the baseline's", "a third; at most 0.5", path, path <= 0.5)
    bar("random: traffic overhead over the baseline's", "0.75; at most 0.8", random, random <= 0.8,
        f"{note}; relays for each delivery: {ratio('random', 'relays')}")  # fmt: skip
    for run in (static(runs, spec) for spec in plan.loaded()):
        light = f"{note}; {100 * run.load[4]:.1f} % of them up to 0.2 (paper: over 95 %)"
        name = f"{run.spec.model}: largest load with 3 attributes"
        bar(name, "30 %; at most 0.3", round(run.most, 3), run.most <= 0.3, light)
    wrong = [each for each in runs.values() if isinstance(each, Static)]
    perfect = all(run.hit_ratio == 1 and not run.duplicate for run in wrong)
    result.bars.append(Bar("every event once without failures", "yes", "yes" if perfect else "no", perfect,
                           f"{len(wrong)} runs"))  # fmt: skip
    for trace in dict.fromkeys(spec.trace for spec in plan.churn):
        played = {spec.routing: churn(runs, spec) for spec in plan.churn if spec.trace == trace}
        own, other = played["vinifera"], played.get("ferry")
        crowd = own.flash_crowd()
        rest = set(range(len(own.population))) - crowd
        outside, within = own.hit_ratio(rest), own.hit_ratio(crowd)
        up = f"{mean(own.population):,.0f} nodes up, {sum(own.joined):,} joined"
        beside = None if other is None else other.hit_ratio(rest)
        if outside is not None:
            bar(f"churn, {trace}: hit ratio outside flash crowds", "close to 1; at least 0.99", round(outside, 4),
                outside >= 0.99, up)  # fmt: skip
        if outside is not None and beside is not None:
            bar(f"churn, {trace}: baseline's hit ratio lower", "clearly", round(outside - beside, 4),
                outside > beside + 0.01, up)  # fmt: skip
        if within is not None:
            bar(f"churn, {trace}: hit ratio in flash crowds", "slightly lower; at least 0.95", round(within, 4),
                within >= 0.95, up)  # fmt: skip


def on_actors(result: PaperResult, runs: Sequence[Live], folder: Path) -> None:
    """Churn on live actors."""
    rows = [
        (
            run.spec.trace, plots.NAMES[run.spec.routing], f"{run.kills} / {run.starts}", f"{mean(run.population):.1f}",
            f"{sum(run.delivered):,} of {sum(run.interested):,}", run.missed,
            f"{100 * sum(run.uninterested) / max(1, sum(run.received)):.1f} %",
            f"{sum(run.hops) / max(1, sum(run.delivered)):.1f}",
            f"{run.judged['missing']:,} of {run.judged['required']:,}", run.judged["duplicate"],
            run.judged["spurious"],
        )
        for run in runs
    ]  # fmt: skip
    columns = (
        "trace", "system", "kills / starts", "brokers up", "pairs that stayed up", "missed", "traffic overhead", "hops",
        "missing of all", "duplicate", "spurious",
    )  # fmt: skip
    result.tables.append(ResultTable("live", "48 live actors, 32 of them under churn", columns, rows))
    for trace in dict.fromkeys(run.spec.trace for run in runs):
        shown = [run for run in runs if run.spec.trace == trace]
        result.figures.append(plots.churn(shown, folder, f"live_{trace}", 2, "seconds", BIN_S))
        (own,) = (run for run in shown if run.spec.routing == "vinifera")
        note = f"pairs of brokers that stayed up: {sum(own.interested):,}"
        name = f"a live replay of churn without a miss, {trace}"
        result.bars.append(Bar(name, "no miss", own.missed, own.missed == 0 and sum(own.interested) > 0, note))
