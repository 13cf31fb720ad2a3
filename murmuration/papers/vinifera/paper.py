"""`murmur paper vinifera`: subscription-aware rendezvous routing beside a baseline like Ferry.

Runs are on the virtual runtime; at full size churn is also replayed on live actors. docs/protocols/vinifera.md says how
each figure is made, what the text leaves open and how long the full size takes. Every finished run is kept in the
folder: `--out` with the same folder goes on.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev

from murmuration.papers.lab.paper_runs import PaperRuns
from murmuration.papers.lab.results import Figure, PaperResult, ResultTable
from murmuration.papers.vinifera import plots
from murmuration.papers.vinifera.live import CHURN_BIN_S, ViniferaLiveRun, measure_vinifera_live
from murmuration.papers.vinifera.plan import MEANS, MODELS, SYSTEMS, ViniferaPlan, ViniferaRun, ViniferaSpec
from murmuration.papers.vinifera.run import ChurnRun, ChurnSpec, Routing, StaticRun, StaticSpec, measure_overlay
from murmuration.papers.vinifera.workload import Model

ViniferaRuns = Mapping[ViniferaSpec, ViniferaRun]
_MEASURES = (("traffic overhead", lambda run: run.overhead), ("path length (hops)", lambda run: run.path))
_COLUMNS = ("traffic overhead: paper", "measured", "relays", "copies", "hops: paper", "measured hops", "hit ratio")
_PAPER: Mapping[tuple[str, str, str], tuple[str, str]] = {
    ("friends", "skewed", "0"): ("22 %", "-"), ("friends", "skewed", "8"): ("under 10 %", "about 3"),
    ("friends", "random", "0"): ("about 80 %", "-"), ("friends", "random", "8"): ("58 to 60 %", "-"),
    ("size", "vinifera", "random"): ("60 %", "a third of the baseline's"),
    ("size", "vinifera", "skewed"): ("about 10 %", "a third of the baseline's"),
    ("size", "ferry", "random"): ("over 80 %", "-"), ("size", "ferry", "skewed"): ("32 to 40 %", "about 7"),
}  # fmt: skip
"""What the text says, as (overhead, hops)."""


class ViniferaPaper:
    """See `murmuration.papers.lab.results.Paper`."""

    name = "vinifera"
    title = "Subscription awareness meets rendezvous routing: Vinifera (AP2PS 2012)"
    about = (
        "Nodes gossip about their interests and link to those that are alike, their friends; the baseline is like Ferry"
        " and has no friends. Traffic overhead is the share of messages with an event that come to a node without"
        " interest in it. Every event has to reach all nodes that want it and are up. Runs are in virtual time, but for"
        " the table of live actors."
    )

    def reproduce(self, runs: PaperRuns, quick: bool, seeds: int) -> PaperResult:
        """Measure everything; the full size takes at least three seeds."""
        plan = ViniferaPlan.quick(seeds) if quick else ViniferaPlan.full(seeds)
        found = runs.spread(
            measure_overlay, plan.specs(), lambda spec: StaticRun if isinstance(spec, StaticSpec) else ChurnRun
        )
        live = runs.one_by_one(measure_vinifera_live, plan.live, lambda _: ViniferaLiveRun)
        result, folder = PaperResult(scaled_down=quick), runs.folder
        result.tables = [
            friends_table(plan, found, folder),
            size_table(plan, found, folder),
            attributes_table(plan, found, folder),
            rate_table(plan, found, folder),
            churn_table(plan, found, folder),
            resets_table(plan, found),
            variants_table(plan, found),
            social_table(plan, found),
        ]
        judge_static(result, plan, found)
        judge_churn(result, plan, found)
        if live:
            add_live_actors(result, list(live.values()), folder)
        return result


def static_run(runs: ViniferaRuns, spec: StaticSpec) -> StaticRun:
    """The outcome of a run without failures."""
    found = runs[spec]
    assert isinstance(found, StaticRun)
    return found


def _row(found: Sequence[StaticRun], paper: tuple[str, str]) -> tuple[str, ...]:
    def shown(values: Sequence[float], scale: float = 1, unit: str = "") -> str:
        spread = f" ± {scale * stdev(values):.1f}" if len(values) > 1 else ""
        return f"{scale * mean(values):.1f}{spread}{unit}"

    return (
        paper[0], shown([run.overhead for run in found], 100, " %"), f"{mean(run.relays for run in found):.2f}",
        f"{mean(run.copies for run in found):.2f}", paper[1], shown([run.path for run in found]),
        f"{mean(run.hit_ratio for run in found):.4f}",
    )  # fmt: skip


def _seeds(plan: ViniferaPlan) -> range:
    return range(1, plan.seeds + 1)


def friends_table(plan: ViniferaPlan, runs: ViniferaRuns, folder: Path) -> ResultTable:
    """Overhead and path length against the number of friend links."""
    rows = []
    curves: dict[tuple[Routing, Model], list[tuple[float, list[StaticRun]]]] = {}
    for model in MODELS:
        points = [
            (float(k), [static_run(runs, plan.by_friends(model, k, seed)) for seed in _seeds(plan)])
            for k in plan.friends
        ]
        flat = [static_run(runs, plan.static("ferry", model, seed)) for seed in _seeds(plan)]
        curves["vinifera", model] = points
        curves["ferry", model] = [(float(k), flat) for k in plan.friends]
        for friends, found in points:
            rows.append(
                (model, f"{friends:g}", *_row(found, _PAPER.get(("friends", model, f"{friends:g}"), ("-", "-"))))
            )
        rows.append((model, "baseline", *_row(flat, _PAPER["size", "ferry", model])))
    title = f"Figure 3: {plan.base.nodes:,} nodes, {plan.seeds} seeds (mean ± deviation)"
    drawn = plots.against(curves, _MEASURES, "friend links (of 8)", folder, "figure_3")
    columns = ("interests", "friend links", *_COLUMNS)
    return ResultTable("figure_3", title, columns, rows, [Figure(drawn, "Figure 3: against friend links")])


def size_table(plan: ViniferaPlan, runs: ViniferaRuns, folder: Path) -> ResultTable:
    """Figures 4(a) and (b), and what a node has to do."""
    curves = {
        (routing, model): [
            (float(nodes), [static_run(runs, plan.by_size(routing, model, nodes))]) for nodes in plan.sizes_of(routing)
        ]
        for model in MODELS
        for routing in SYSTEMS
    }
    rows = [
        (plots.SYSTEM_NAMES[routing], model, f"{nodes:,.0f}", *_row(found, _PAPER["size", routing, model]),
         f"{found[0].messages:.1f}", f"{found[0].degree}")
        for (routing, model), points in curves.items()
        for nodes, found in points
    ]  # fmt: skip
    columns = ("system", "interests", "nodes", *_COLUMNS, "messages a node and cycle", "largest degree")
    measures = (*_MEASURES, ("messages a node and cycle", lambda run: run.messages))
    drawn = plots.against(curves, measures, "nodes", folder, "figure_4ab", logarithmic=True)
    title = "Figures 4(a) and (b): against the number of nodes"
    return ResultTable("figure_4ab", title, columns, rows, [Figure(drawn, title)])


def attributes_table(plan: ViniferaPlan, runs: ViniferaRuns, folder: Path) -> ResultTable:
    """Figures 4(c), (d) and (e)."""
    curves = {
        (routing, model): [
            (float(count), [static_run(runs, plan.by_attributes(routing, model, count))]) for count in plan.attributes
        ]
        for model in MODELS
        for routing in SYSTEMS
    }
    shown = dict.fromkeys([found[0].spec for points in curves.values() for _, found in points])
    shown |= dict.fromkeys([*plan.loaded(), *plan.balanced()])
    rows = [
        (plots.SYSTEM_NAMES[run.spec.routing], run.spec.model, f"{run.spec.attributes}", f"{run.spec.nodes:,}",
         f"{run.spec.cycles + run.spec.balancing}", *_row([run], ("-", "-")),
         f"{100 * run.most:.1f} %", f"{100 * run.load[0]:.1f} %", f"{100 * run.load[4]:.1f} %", f"{run.moved}",
         f"{run.messages:.1f}", f"{run.cpu_s:.0f} s")
        for run in (static_run(runs, spec) for spec in shown)
    ]  # fmt: skip
    columns = (
        "system", "interests", "attributes", "nodes", "cycles before", *_COLUMNS, "largest load", "nodes without load",
        "nodes with load up to 20 %", "nodes moved", "messages a node and cycle", "took",
    )  # fmt: skip
    title = "Figures 4(c), (d), (e): against attributes"
    few = [found[0] for points in curves.values() for count, found in points if count <= 3]
    figures = [
        Figure(plots.against(curves, _MEASURES, "attributes", folder, "figure_4cd"), "Figures 4(c) and (d)"),
        Figure(plots.load_distribution(few, folder), "Figure 4(e): distribution of load"),
    ]
    return ResultTable("figure_4cde", title, columns, rows, figures)


def rate_table(plan: ViniferaPlan, runs: ViniferaRuns, folder: Path) -> ResultTable:
    """Figure 4(f)."""
    found = [static_run(runs, spec) for spec in plan.by_rate()]
    rows = [
        (plots.name_of(run.spec), run.spec.model, f"{run.copies + run.relays:.1f}",
         *(f"{100 * each:.0f} %" for each in run.hit_ratios))
        for run in found
    ]  # fmt: skip
    title = f"Figure 4(f): events published in a cycle, of which a node takes X = {plan.capacity} messages"
    columns = ("system", "interests", "messages a delivery", *(f"hit ratio at {rate:g} X" for rate in plan.rates))
    drawn = plots.hit_ratio_by_rate(found, folder)
    return ResultTable("figure_4f", title, columns, rows, [Figure(drawn, "Figure 4(f): hit ratio against the rate")])


def churn_table(plan: ViniferaPlan, runs: ViniferaRuns, folder: Path) -> ResultTable:
    """Churn."""
    found = [churn_run(runs, spec) for spec in plan.churn]
    trace, hours = found[0].spec.trace, len(found[0].population)
    rows = []
    for run in found:
        crowd = run.flash_crowd()
        rest = set(range(hours)) - crowd
        rows.append(
            (trace, plots.SYSTEM_NAMES[run.spec.routing], _means(run.spec), run.spec.model, f"{hours}",
             f"{run.spec.cycle_s} s", f"{mean(run.population):,.0f}", _ratio(run.hit_ratio(rest)), f"{len(crowd)}",
             _ratio(run.hit_ratio(crowd)), f"{100 * sum(run.uninterested) / max(1, sum(run.received)):.1f} %",
             f"{sum(run.hops) / max(1, sum(run.delivered)):.1f}", f"{run.duplicate}",
             f"{run.cpu_s / 60:.1f} min" if run.cpu_s else "-")
        )  # fmt: skip
    columns = (
        "trace", "system", "hears of failures by", "interests", "hours", "cycle", "nodes up",
        "hit ratio outside flash crowds", "hours of flash crowds", "hit ratio in them", "traffic overhead",
        "hops", "duplicates", "took",
    )  # fmt: skip
    figures = [
        Figure(
            plots.over_time(same, folder, f"figure_5_{trace}{'_closed' * same[0].spec.resets}", max(1, hours // 80)),
            f"Figure 5: churn, {trace}; failures are heard of by {_means(same[0].spec)}",
        )
        for same in _by_means(found)
    ]
    return ResultTable("figure_5", "Figure 5: churn", columns, rows, figures)


def resets_table(plan: ViniferaPlan, runs: ViniferaRuns) -> ResultTable:
    """What hearing of closed connections is worth to either system."""
    found = [churn_run(runs, spec) for spec in plan.resets]
    rows = [
        (plots.SYSTEM_NAMES[run.spec.routing], _means(run.spec), f"{mean(run.population):,.0f}",
         f"{sum(run.joined):,}", f"{sum(run.interested):,}",
         f"{sum(run.delivered) / max(1, sum(run.interested)):.4f}")
        for run in found
    ]  # fmt: skip
    title = f"Both systems under {24 * plan.resets[0].days:g} hours of generated churn, a cycle of 900 s"
    columns = ("system", "hears of failures by", "nodes up", "joined", "to be delivered", "hit ratio")
    return ResultTable("resets", title, columns, rows)


def _by_means(runs: Sequence[ChurnRun]) -> list[list[ChurnRun]]:
    return [[run for run in runs if run.spec.resets is resets] for resets in MEANS]


def _means(spec: ChurnSpec) -> str:
    return "heartbeats and closed connections" if spec.resets else "heartbeats alone"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def churn_run(runs: ViniferaRuns, spec: ViniferaSpec) -> ChurnRun:
    """The outcome of a run under churn."""
    found = runs[spec]
    assert isinstance(found, ChurnRun)
    return found


def variants_table(plan: ViniferaPlan, runs: ViniferaRuns) -> ResultTable:
    """Both systems with other means than the figures' two, each of which they may have too."""
    rows = []
    for model in MODELS:
        named = [(name, [plan.static(name, model, seed) for seed in _seeds(plan)]) for name in SYSTEMS]
        shown = {plots.SYSTEM_NAMES[name]: specs for name, specs in named}
        shown |= {name: [plan.variants(model, seed)[name] for seed in _seeds(plan)] for name in plan.variants(model, 1)}
        for name, specs in shown.items():
            rows.append((name, model, *_row([static_run(runs, spec) for spec in specs], ("-", "-"))))
    title = f"Both systems with other means: {plan.base.nodes:,} nodes, {plan.seeds} seeds (mean ± deviation)"
    return ResultTable("variants", title, ("system", "interests", *_COLUMNS), rows)


def social_table(plan: ViniferaPlan, runs: ViniferaRuns) -> ResultTable:
    """What the paper has no figure of: the friendship graph."""
    shown = [plan.static(each, "social", nodes=plan.social) for each in SYSTEMS] if plan.social else []
    rows = [(plots.SYSTEM_NAMES[spec.routing], *_row([static_run(runs, spec)], ("-", "-"))) for spec in shown]
    return ResultTable("social", "A friendship graph", ("system", *_COLUMNS), rows)


def judge_static(result: PaperResult, plan: ViniferaPlan, runs: ViniferaRuns) -> None:
    """Overhead, paths and load without failures."""
    note = f"{plan.base.nodes:,} nodes"

    def ratio(model: Model, value: str) -> float:
        own, other = (
            mean(float(getattr(static_run(runs, plan.static(routing, model, seed)), value)) for seed in _seeds(plan))
            for routing in SYSTEMS
        )
        return round(own / max(1e-9, other), 3)

    def relays(model: Model) -> str:
        return f"{note}; relays for each delivery: {ratio(model, 'relays')}"

    overhead, path, random = ratio("skewed", "overhead"), ratio("skewed", "path"), ratio("random", "overhead")
    name = "traffic overhead over the baseline's"
    paper = "a sixth to a third; at most 0.333"
    result.judge(f"skewed: {name}", paper, overhead, overhead <= 1 / 3, relays("skewed"))
    result.judge("skewed: path length over the baseline's", "a third; at most 0.5", path, path <= 0.5, note)
    result.judge(f"random: {name}", "0.75; at most 0.8", random, random <= 0.8, relays("random"))
    for run in (static_run(runs, spec) for spec in plan.balanced()[: len(MODELS)]):
        light = f"{note}; {100 * run.load[4]:.1f} % of them up to 0.2 (paper: over 95 %)"
        name = f"{run.spec.model}: largest load with 3 attributes"
        result.judge(name, "30 %; at most 0.3", round(run.most, 3), run.most <= 0.3, light)
    found = [each for each in runs.values() if isinstance(each, StaticRun)]
    perfect = all(run.hit_ratio == 1 and not run.duplicate for run in found)
    name = "every event once without failures"
    result.judge(name, "yes", "yes" if perfect else "no", perfect, f"{len(found)} runs", at_any_size=True)


def judge_churn(result: PaperResult, plan: ViniferaPlan, runs: ViniferaRuns) -> None:
    """Hit ratios in and outside flash crowds."""
    for own, other in _by_means([churn_run(runs, spec) for spec in plan.churn]):
        trace, crowd = own.spec.trace, own.flash_crowd()
        rest = set(range(len(own.population))) - crowd
        outside, beside, within = own.hit_ratio(rest), other.hit_ratio(rest), own.hit_ratio(crowd)
        churn = f"churn, {trace}, {_means(own.spec)}"
        note = f"{mean(own.population):,.0f} nodes up, {sum(own.joined):,} joined"
        if outside is not None and beside is not None:
            name, paper = f"{churn}: hit ratio outside flash crowds", "close to 1; at least 0.99"
            result.judge(name, paper, round(outside, 4), outside >= 0.99, note)
            name = f"{churn}: baseline's hit ratio lower"
            result.judge(name, "clearly", round(outside - beside, 4), outside > beside + 0.01, note)
        if within is not None:
            name, paper = f"{churn}: hit ratio in flash crowds", "slightly lower; at least 0.95"
            result.judge(name, paper, round(within, 4), within >= 0.95, note)


def add_live_actors(result: PaperResult, runs: Sequence[ViniferaLiveRun], folder: Path) -> None:
    """Churn on live actors."""
    rows = [
        (
            run.spec.trace, plots.SYSTEM_NAMES[run.spec.routing], f"{run.kills} / {run.starts}",
            f"{mean(run.population):.1f}",
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
    figures = []
    for trace in dict.fromkeys(run.spec.trace for run in runs):
        shown = [run for run in runs if run.spec.trace == trace]
        drawn = plots.over_time(shown, folder, f"live_{trace}", 2, "seconds", CHURN_BIN_S)
        figures.append(Figure(drawn, f"Live actors under churn, {trace}"))
        (own,) = (run for run in shown if run.spec.routing == "vinifera")
        note = f"pairs of brokers that stayed up: {sum(own.interested):,}"
        name = f"a live replay of churn without a miss, {trace}"
        result.judge(name, "no miss", own.missed, own.missed == 0 and sum(own.interested) > 0, note)
    result.tables.append(ResultTable("live", "48 live actors, 32 of them under churn", columns, rows, figures))
