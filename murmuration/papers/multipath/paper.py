"""`murmur paper multipath`: the tables and figures of opportunistic multipath forwarding, beside the paper's.

Runs are on the virtual runtime, at the paper's size unless `quick` is asked for (`plan`), 1 ms between brokers, Δ = 4.
Links are learned from traffic before the measurement begins. C1/DT1 then runs on live brokers as well (`live`).
docs/protocols/multipath.md says how each figure is made and what the text leaves open.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from murmuration.papers.lab.judged_run import RUNTIMES
from murmuration.papers.lab.paper_runs import PaperRuns
from murmuration.papers.lab.results import Beside, Figure, PaperResult, ResultTable, TableCell
from murmuration.papers.multipath import plots
from murmuration.papers.multipath.cost import CoveringSize, ForwardingCost
from murmuration.papers.multipath.live import LiveBrokers, LiveBrokersSpec, add_live_brokers, measure_live_brokers
from murmuration.papers.multipath.moves import MovesMeasures
from murmuration.papers.multipath.overload import OverloadMeasures
from murmuration.papers.multipath.overload_results import (
    FACEBOOK,
    FIGURE_12,
    capped_sweep_results,
    facebook_processing_results,
    filled_results,
    processing_results,
)
from murmuration.papers.multipath.plan import OVERLOAD_CAP, RESULT_TYPES, MultipathPlan, do_job
from murmuration.papers.multipath.run import MultipathMeasures
from routing.multipath.parameters import STRATEGIES, Strategy
from workloads.multipath_datasets import PUBLISHED

TABLE_2 = {
    ("DT1", "S0"): (348_000, 559_000, 38), ("DT1", "S1"): (348_000, 348_000, 50),
    ("DT1", "S2"): (348_000, 216_000, 61), ("DT1", "SH"): (348_000, 195_000, 64),
    ("DT2", "S0"): (1_034_000, 1_010_000, 50), ("DT2", "S1"): (1_034_000, 687_000, 60),
    ("DT2", "S2"): (1_034_000, 325_000, 76), ("DT2", "SH"): (1_034_000, 300_000, 77),
}  # fmt: skip
"""(dataset, strategy) to deliveries, pure forwarders and yield in per cent."""
FIGURE_10 = {"S0": 14.0, "S1": 12.5, "S2": 9.3, "SH": 9.3}
FIGURE_11 = {"S0": 3_400, "S1": 2_850, "S2": 2_200, "SH": 2_200}
FIGURE_14 = {"S1": (234_000, 5.93), "S2": (209_000, 3.38), "SH": (238_000, 5.80)}


class MultipathPaper:
    """See `murmuration.papers.lab.results.Paper`."""

    name = "multipath"
    title = "Opportunistic Multipath Forwarding in Content-Based Publish/Subscribe Overlays (Middleware 2012)"
    about = (
        "Brokers form a tree, and beside its links they open soft links to brokers nearby, where that saves the most"
        " forwarding. S0 has no soft links; S1, S2 and SH differ in how they choose the way of a publication. A"
        " publication that comes to a broker with a matching subscriber is a delivery, at any other broker it is a pure"
        " forwarding; the yield is the share of deliveries. Runs are in virtual time, but for the table of live"
        " brokers. Wall-clock times are this host's."
    )

    def reproduce(self, runs: PaperRuns, quick: bool, seeds: int) -> PaperResult:
        """Measure everything; with several seeds tables and criteria are of the first, the others are in the last
        table. But those of brokers that are short of time, of several caps and of filled links are over all seeds."""
        make = MultipathPlan.quick if quick else MultipathPlan.full
        plans = [make(seed) for seed in range(1, seeds + 1)]
        results = runs.spread(do_job, [job for plan in plans for job in plan.jobs()], lambda job: RESULT_TYPES[job[0]])
        live: dict[LiveBrokersSpec, LiveBrokers] = {}
        if not quick:
            specs = [LiveBrokersSpec(runtime, strategy) for strategy in STRATEGIES for runtime in RUNTIMES]
            live = runs.one_by_one(measure_live_brokers, specs, lambda _: LiveBrokers)
        measured = {job[1]: found for job, found in results.items() if isinstance(found, MultipathMeasures)}
        plan, folder, result = plans[0], runs.folder, PaperResult(scaled_down=quick)
        result.tables.append(dataset_table(measured))
        low_rate_results(result, [measured[spec] for spec in plan.low_rate], folder)
        short = {job[1]: found for job, found in results.items() if isinstance(found, OverloadMeasures)}
        if plan.processing:
            processing_results(result, {spec: short[spec] for each in plans for spec in each.processing}, folder)
        throughput_results(result, [measured[spec] for spec in plan.overload], folder)
        if plan.capped:
            capped_results(result, [measured[spec] for spec in plan.capped], folder)
        if plan.caps:
            capped_sweep_results(result, {spec: short[spec] for each in plans for spec in each.caps}, folder)
        planetlab_results(result, [measured[spec] for spec in plan.planetlab], folder)
        if plan.facebook_processing:
            facebook_processing_results(
                result, {spec: short[spec] for each in plans for spec in each.facebook_processing}
            )
        if plan.facebook:
            facebook_results(result, [measured[spec] for spec in plan.facebook])
        moved = [results["moves", spec] for spec in plan.moves]
        moves_results(result, [each for each in moved if isinstance(each, MovesMeasures)])
        if plan.covering:
            points = [results["covering", point] for point in plan.covering]
            covering_results(result, [point for point in points if isinstance(point, CoveringSize)], folder)
        if plan.filled:
            filled = {spec: results["filled", spec] for each in plans for spec in each.filled}
            sizes = {spec: found for spec, found in filled.items() if isinstance(found, CoveringSize)}
            filled_results(result, sizes, folder)
        costs = [results["cost", point] for point in plan.cost]
        cost_results(result, [cost for each in costs if isinstance(each, list) for cost in each], folder)
        result.tables.append(run_table(measured))
        if live:
            add_live_brokers(result, live, folder)
        return result


def dataset_table(runs: Mapping[Any, MultipathMeasures]) -> ResultTable:
    """What was generated, beside the published counts."""
    rows: list[Sequence[TableCell]] = []
    for name, (subscriptions, share) in PUBLISHED.items():
        found = next((each.dataset for each in runs.values() if each.spec.dataset == name), None)
        if found is not None:
            rows.append((
                name, Beside(f"{subscriptions:,}", f"{found['subscriptions']:,}"),
                Beside(str(share), str(found["matching share"])), found.get("matching brokers a publication", "-"),
            ))  # fmt: skip
    columns = ("dataset", "subscriptions: paper | generated", "matching share: paper | generated", "brokers matched")
    return ResultTable("figure_8_datasets", "Figure 8a: datasets", columns, rows)


def low_rate_results(result: PaperResult, runs: Sequence[MultipathMeasures], folder: Path) -> None:
    """Table 2, Figures 9, 10 and 11, and their criteria."""
    by = {(each.spec.dataset, each.spec.strategy): each for each in runs}
    rows = [
        (
            *key, Beside(f"{TABLE_2[key][0]:,}", f"{each.deliveries:,}"),
            Beside(f"{TABLE_2[key][1]:,}", f"{each.pure_forwards:,}"),
            Beside(f"{TABLE_2[key][2]} %", f"{100 * each.system_yield:.1f} %"), f"{each.mean_hops:.2f}",
            f"{each.mean_delay_ms:.1f}", f"{each.traffic_per_s:,.0f}", f"{_load_share(each):.2f} %",
            f"{each.missing} / {each.duplicate} / {each.spurious}",
        )
        for key, each in by.items()
    ]  # fmt: skip
    result.tables.append(
        ResultTable(
            "table_2_yield", "Table 2 (paper | measured): yield at fanout 35, 60 publications a second",
            ("dataset", "strategy", "deliveries", "pure forwarders", "yield", "mean hops", "mean delay ms",
             "publications sent/s", "load exchange, bytes", "missing / duplicate / spurious"), rows,
            [Figure(plots.path_lengths(by, folder), "Figure 9: path lengths"),
             Figure(plots.yields(by, TABLE_2, folder), "Table 2: yield")],
        )
    )  # fmt: skip
    delays = "DT2" if ("DT2", "S0") in by else "DT1"
    chosen = {strategy: by[delays, strategy] for strategy in STRATEGIES}
    base = chosen["S0"]
    result.tables.append(
        ResultTable(
            "figures_10_and_11", f"Figures 10 and 11 (paper, DT2 | measured, {delays}): mean delay and traffic",
            ("strategy", "mean delay ms", "of S0: paper | measured", "publications sent/s", "of S0: paper | measured"),
            [
                (
                    strategy, Beside(f"{FIGURE_10[strategy]}", f"{each.mean_delay_ms:.1f}"),
                    Beside(f"{FIGURE_10[strategy] / FIGURE_10['S0']:.2f}",
                           f"{each.mean_delay_ms / base.mean_delay_ms:.2f}"),
                    Beside(f"{FIGURE_11[strategy]:,}", f"{each.traffic_per_s:,.0f}"),
                    Beside(f"{FIGURE_11[strategy] / FIGURE_11['S0']:.2f}",
                           f"{each.traffic_per_s / base.traffic_per_s:.2f}"),
                )
                for strategy, each in chosen.items()
            ],
            [Figure(plots.pair_delays(chosen, FIGURE_10, folder), "Figure 10: delays of pairs of brokers"),
             Figure(plots.traffic_over_time(chosen, FIGURE_11, folder), "Figure 11: traffic over time")],
        )
    )  # fmt: skip
    for dataset in dict.fromkeys(dataset for dataset, _ in by):
        _judge_yields(result, dataset, {strategy: 100 * by[dataset, strategy].system_yield for strategy in STRATEGIES})
    cut = 1 - by["DT1", "S2"].pure_forwards / by["DT1", "S0"].pure_forwards
    result.judge("pure forwarders that S2 saves, DT1", "61 %; at least 60 %", round(100 * cut, 1), cut >= 0.6)
    slower = chosen["S2"].mean_delay_ms / base.mean_delay_ms
    busier = chosen["S2"].traffic_per_s / base.traffic_per_s
    result.judge(f"mean delay S2/S0, {delays}", "0.66; at most 0.75", round(slower, 2), slower <= 0.75)
    result.judge(f"traffic S2/S0, {delays}", "0.65; at most 0.7", round(busier, 2), busier <= 0.7)
    share = max(_load_share(each) for each in by.values())
    result.judge("load exchange, share of bytes", "under 2 %", round(share, 2), share < 2)
    wrong = sum(each.missing + each.duplicate + each.spurious for each in by.values())
    required = sum(each.required for each in by.values())
    result.judge(
        "missing, duplicate and spurious deliveries", "0", wrong, wrong == 0 and required > 0,
        f"of {required:,} that had to be made, while soft links change", at_any_size=True,
    )  # fmt: skip


def _judge_yields(result: PaperResult, dataset: str, measured: Mapping[Strategy, float]) -> None:
    paper = {strategy: TABLE_2[dataset, strategy][2] for strategy in STRATEGIES}
    near = abs(measured["S0"] - paper["S0"]) <= 10
    result.judge(f"yield of S0, {dataset}", f"{paper['S0']} %, within 10 points", round(measured["S0"], 1), near)
    for strategy in STRATEGIES[1:]:
        found, least = measured[strategy], paper[strategy]
        result.judge(f"yield of {strategy}, {dataset}", f"at least {least} %", round(found, 1), found >= least)
    ordered = measured["S0"] < measured["S1"] < measured["S2"] <= measured["SH"] + 0.5
    ranked: list[Strategy] = sorted(STRATEGIES, key=measured.__getitem__)
    result.judge(f"order of yields, {dataset}", "S0 < S1 < S2 <= SH", " < ".join(ranked), ordered)


def throughput_results(result: PaperResult, runs: Sequence[MultipathMeasures], folder: Path) -> None:
    """Figure 13 (a) and (b) with uplinks as the limit, which is ours."""
    base = {each.spec.dataset: each for each in runs if each.spec.strategy == "S0"}
    rows = []
    best: dict[str, float] = {}
    for each in runs:
        ratio = each.deliveries / base[each.spec.dataset].deliveries
        if each.spec.strategy == "S2":
            best[each.spec.dataset] = max(best.get(each.spec.dataset, 0.0), ratio)
        rows.append((
            each.spec.dataset, each.spec.strategy, each.spec.fanout if each.spec.strategy != "S0" else "-",
            each.deliveries, f"{100 * (ratio - 1):+.0f} %", f"{each.mean_hops:.2f}",
            f"{each.deliveries / each.spec.seconds:,.0f}",
        ))  # fmt: skip
    result.tables.append(
        ResultTable(
            "figure_13_throughput",
            f"Ours, uplinks as the limit: deliveries in {runs[0].spec.seconds:.0f} s at 1,200 publications a second, "
            f"uplinks of {OVERLOAD_CAP} publications a second",
            ("dataset", "strategy", "fanout", "deliveries", "over S0", "mean hops", "deliveries/s"), rows,
            [Figure(plots.throughput(runs, folder), "Ours: deliveries with uplinks as the limit")],
        )
    )  # fmt: skip
    name = "overload throughput S2/S0"
    result.judge(f"{name}, DT1", "2.15; at least 1.8", round(best["DT1"], 2), best["DT1"] >= 1.8)
    for dataset, ratio in best.items():
        if dataset != "DT1":
            result.judge(f"{name}, {dataset}", "up to 2.15", round(ratio, 2), None)


def capped_results(result: PaperResult, runs: Sequence[MultipathMeasures], folder: Path) -> None:
    """Figure 14."""
    by = {each.spec.strategy: each for each in runs}
    rows = [
        (strategy, Beside(f"{FIGURE_14[strategy][0]:,}", f"{each.deliveries:,}"),
         Beside(f"{FIGURE_14[strategy][1]}", f"{each.mean_hops:.2f}"))
        for strategy, each in by.items()
    ]  # fmt: skip
    title = "Figure 14 (paper | measured): C1/DT1, 120 publications a second for 300 s, uplinks of 150 a second"
    figure = Figure(plots.capped(by, FIGURE_14, folder), "Figure 14: capped uplinks")
    columns = ("strategy", "deliveries", "mean hops")
    result.tables.append(ResultTable("figure_14_capped", title, columns, rows, [figure]))
    more = by["SH"].deliveries / by["S2"].deliveries
    result.judge("deliveries SH/S2 with capped uplinks", "1.14", round(more, 2), None)


def planetlab_results(result: PaperResult, runs: Sequence[MultipathMeasures], folder: Path) -> None:
    """Figure 13 (c)."""
    base = {each.spec.dataset: each for each in runs if each.spec.strategy == "S0"}
    rows = [
        (each.spec.dataset, each.spec.strategy, each.deliveries,
         f"{100 * (each.deliveries / base[each.spec.dataset].deliveries - 1):+.0f} %",
         f"{100 * each.deliveries / each.required:.0f} %", f"{each.mean_hops:.2f}")
        for each in runs
    ]  # fmt: skip
    result.tables.append(
        ResultTable(
            "figure_13c_planetlab",
            "Figure 13 (c): CPL, 55 publications a second, uplinks of 10 KB/s (paper: with DT4 S1 and S2 reach full "
            "delivery, S0 does not; with DT5 S0 delivers least, S1 and S2 much more but not all)",
            ("dataset", "strategy", "deliveries", "over S0", "of all that match", "mean hops"), rows,
            [Figure(plots.planetlab(runs, folder), "Figure 13 (c): deliveries on CPL")],
        )
    )  # fmt: skip


def facebook_results(result: PaperResult, runs: Sequence[MultipathMeasures]) -> None:
    """DT-FB with uplinks as the limit, which is ours."""
    by = {each.spec.strategy: each for each in runs}
    base = by["S0"]
    rows = [
        (strategy, each.deliveries,
         Beside(f"{FACEBOOK.get(strategy, 0):+d} %", f"{100 * (each.deliveries / base.deliveries - 1):+.0f} %"),
         f"{100 * each.system_yield:.1f} %")
        for strategy, each in by.items()
    ]  # fmt: skip
    result.tables.append(
        ResultTable(
            "facebook", f"Ours, uplinks as the limit: DT-FB ({base.dataset['graph']} graph), 60 publications a second, "
            f"fanout 20, uplinks of {base.spec.uplink_messages_per_s} a second: deliveries in "
            f"{base.spec.seconds:.0f} s",
            ("strategy", "deliveries", "over S0: paper | measured", "yield"), rows,
        )
    )  # fmt: skip


def moves_results(result: PaperResult, runs: Sequence[MovesMeasures]) -> None:
    """Section 6."""
    rows = [
        (each.spec.strategy, each.made, each.refused, each.published, f"{each.required:,}",
         f"{each.missing} / {each.duplicate} / {each.spurious}", "yes" if each.agreed else "no", f"{each.cpu_s:.1f}")
        for each in runs
    ]  # fmt: skip
    result.tables.append(
        ResultTable(
            "section_6_moves", "Section 6: Δ-moves of any brokers, up to four at once, at 30 publications a second",
            ("strategy", "moves made", "refused", "published", "deliveries that had to be made",
             "missing / duplicate / spurious", "brokers agree on a tree", "CPU s"), rows,
        )
    )  # fmt: skip
    wrong = sum(each.missing + each.duplicate + each.spurious for each in runs)
    made = min(each.made for each in runs)
    wanted = max(each.spec.moves for each in runs)
    result.judge(
        f"missing, duplicate and spurious deliveries in {wanted} Δ-moves", "0", wrong,
        wrong == 0 and made >= wanted and all(each.agreed for each in runs),
        f"of {sum(each.required for each in runs):,} that had to be made", at_any_size=True,
    )  # fmt: skip


def covering_results(result: PaperResult, points: Sequence[CoveringSize], folder: Path) -> None:
    """Figure 12."""
    first = points[0]
    rows = []
    for point in points:
        size, predicates = FIGURE_12.get(point.fanout, ("-", "-"))
        rows.append((
            point.fanout, f"{point.soft_links:.1f}", f"{point.set_size:.0f}",
            Beside(f"{size}", f"{100 * point.set_size / first.set_size:.0f}"),
            Beside(f"{predicates}", f"{100 * point.predicates / first.predicates:.0f}"),
            f"{100 * point.evaluations / first.evaluations:.0f}",
        ))  # fmt: skip
    result.tables.append(
        ResultTable(
            "figure_12_covering", "Figure 12 (paper | measured, fanout 5 = 100): C3/DT-C, brokers that are not leaves",
            ("fanout", "soft links a broker", "covering set", "covering set size", "predicate evaluations",
             "evaluations until one fails"), rows,
            [Figure(plots.covering(points, folder), "Figure 12: covering against fanout")],
        )
    )  # fmt: skip


def cost_results(result: PaperResult, costs: Sequence[ForwardingCost], folder: Path) -> None:
    """Rebuild and forwarding times."""
    rows: list[Sequence[TableCell]] = [
        (cost.dataset, cost.subscriptions, cost.links, f"{cost.wom_us / 1e3:.3f}", f"{cost.wst_us / 1e3:.3f}",
         f"{cost.covering_wst_us / 1e3:.0f}", *(f"{cost.forward_us[name]:.1f}" for name in ("S0", "S1", "S2")))
        for cost in costs
    ]  # fmt: skip
    result.tables.append(
        ResultTable(
            "cost", "Cost at one broker (paper: WOM 0.8 ms, WST 17 ms at 6,500 subscriptions, forwarding unchanged)",
            ("dataset", "subscriptions", "links", "WOM ms", "WST ms", "covering WST ms", "forward us S0", "S1", "S2"),
            rows, [Figure(plots.cost(costs, folder), "Rebuilds and forwarding against links")],
        )
    )  # fmt: skip
    most = max(cost.wom_us for cost in costs) / 1e3
    result.judge("WOM rebuild, ms", "0.8", round(most, 3), None, "the most of all points")
    at_paper = max(cost.wst_us for cost in costs if cost.dataset == "DT1") / 1e3
    result.judge("WST rebuild at 6,500 subscriptions, ms", "17", round(at_paper, 3), None)


def run_table(runs: Mapping[Any, MultipathMeasures]) -> ResultTable:
    """Time and memory of each run."""
    rows = [
        (spec.dataset, spec.brokers, spec.strategy, spec.fanout, spec.seed, each.published,
         each.deliveries, each.pure_forwards, f"{each.soft_links:.1f}", f"{each.wall_s:.1f}", f"{each.cpu_s:.1f}",
         f"{each.memory_mb:.0f}")
        for each in runs.values()
        for spec in (each.spec,)
    ]  # fmt: skip
    return ResultTable(
        "runs", "Runs: time and memory of each, in a process of its own",
        ("dataset", "brokers", "strategy", "fanout", "seed", "published", "deliveries", "pure forwarders",
         "soft links a broker", "wall s", "CPU s", "memory MB"), rows,
    )  # fmt: skip


def _load_share(measures: MultipathMeasures) -> float:
    """Per cent of all bytes between brokers that load exchange is."""
    publications = measures.publication_bytes * (measures.deliveries + measures.pure_forwards)
    return 100 * measures.load_bytes / max(1, publications + measures.load_bytes)
