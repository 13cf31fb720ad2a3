"""`murmur paper multipath`: the tables and figures of opportunistic multipath forwarding, beside the paper's.

Runs are on the virtual runtime, at the paper's size unless `quick` is asked for: C1 has 120 brokers, C2 250, C3 500,
CPL 21, each a balanced tree of degree 3, 1 ms between brokers, Δ = 4. Links are learned from traffic before the
measurement begins. C1/DT1 then runs on live brokers as well (`live`). docs/protocols/multipath.md says how each
figure is made and what the text leaves open.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from murmur_pubsub.progress import Progress
from murmuration.papers.lab.framework import Bar, PaperResult, ResultTable
from murmuration.papers.lab.judged_run import RUNTIMES
from murmuration.papers.lab.run_cache import carry_out
from murmuration.papers.multipath import plots as plots
from murmuration.papers.multipath.cost import COST_POINTS, Cost, Covering, measure_cost, measure_covering
from murmuration.papers.multipath.live import LiveSpec, compare
from murmuration.papers.multipath.run import Measures, RunSpec, measure
from routing.multipath.parameters import STRATEGIES, Strategy
from workloads.multipath_datasets import PUBLISHED

_OVERLOAD_CAP = 400
"""Publications a second that a broker's uplink carries in the overload runs: at 1,200 published a second S0 is then
far beyond it (the paper's limit was that of its hosts)."""

_CPL_PAYLOAD = 300
"""Bytes of a publication on PlanetLab: the text names none; with these S0 is short of its uplinks and S1 is not."""

TABLE_2 = {
    ("DT1", "S0"): (348_000, 559_000, 38), ("DT1", "S1"): (348_000, 348_000, 50),
    ("DT1", "S2"): (348_000, 216_000, 61), ("DT1", "SH"): (348_000, 195_000, 64),
    ("DT2", "S0"): (1_034_000, 1_010_000, 50), ("DT2", "S1"): (1_034_000, 687_000, 60),
    ("DT2", "S2"): (1_034_000, 325_000, 76), ("DT2", "SH"): (1_034_000, 300_000, 77),
}  # fmt: skip
"""(dataset, strategy) to deliveries, pure forwarders and yield in per cent."""
FIGURE_10 = {"S0": 14.0, "S1": 12.5, "S2": 9.3, "SH": 9.3}
FIGURE_11 = {"S0": 3_400, "S1": 2_850, "S2": 2_200, "SH": 2_200}
FIGURE_12 = {5: (100, 100), 10: (112, 134)}
FIGURE_14 = {"S1": (234_000, 5.93), "S2": (209_000, 3.38), "SH": (238_000, 5.80)}
FACEBOOK = {"S1": 37, "S2": 115}

Job = tuple[str, RunSpec | tuple[str, int, int] | tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Plan:
    """The runs, by what they are for."""

    low_rate: Sequence[RunSpec]
    overload: Sequence[RunSpec]
    capped: Sequence[RunSpec]
    planetlab: Sequence[RunSpec]
    facebook: Sequence[RunSpec]
    covering: Sequence[tuple[int, int]]
    cost: Sequence[tuple[str, int, int]]

    def jobs(self) -> list[Job]:
        """Everything."""
        runs = [*self.overload, *self.low_rate, *self.facebook, *self.capped, *self.planetlab]
        return [
            *(("run", spec) for spec in sorted(runs, key=lambda spec: -spec.brokers)),
            *(("covering", point) for point in self.covering),
            *(("cost", point) for point in self.cost),
        ]


def full_plan(seed: int) -> Plan:
    """Every figure at the paper's size."""
    overload = [
        RunSpec(
            dataset, brokers, strategy, fanout=fanout, rate_per_s=1_200, seconds=10, warm_s=160,
            uplink_messages_per_s=_OVERLOAD_CAP, check=False, seed=seed,
        )
        for dataset, brokers, fanouts in (("DT1", 120, (5, 20, 35)), ("DT2", 120, (35,)), ("DT3", 250, (35,)))
        for strategy in STRATEGIES
        for fanout in (fanouts if strategy != "S0" else (35,))
    ]  # fmt: skip
    return Plan(
        [RunSpec(dataset, 120, strategy, seed=seed) for dataset in ("DT1", "DT2") for strategy in STRATEGIES],
        overload,
        [
            RunSpec("DT1", 120, strategy, rate_per_s=120, seconds=300, uplink_messages_per_s=150, check=False,
                    seed=seed)
            for strategy in ("S1", "S2", "SH")
        ],
        [
            RunSpec(dataset, 21, strategy, fanout=15, rate_per_s=55, seconds=300, warm_s=120, warm_rate_per_s=10,
                    uplink_bytes_per_s=10_000, payload_bytes=_CPL_PAYLOAD, check=False, seed=seed)
            for dataset in ("DT4", "DT5")
            for strategy in STRATEGIES
        ],
        [
            RunSpec("DT-FB", 120, strategy, fanout=20, rate_per_s=60, seconds=300, warm_s=160, warm_rate_per_s=20,
                    uplink_messages_per_s=_OVERLOAD_CAP * 60 // 1_200, check=False, seed=seed)
            for strategy in ("S0", "S1", "S2")
        ],
        [(500, fanout) for fanout in (5, 10, 15, 20, 25)],
        COST_POINTS,
    )  # fmt: skip


def quick_plan(seed: int) -> Plan:
    """Under 50 s: C1 with less traffic, and no runs of the large networks."""
    return Plan(
        [
            RunSpec("DT1", 120, strategy, seconds=15, warm_s=90, warm_rate_per_s=25, round_s=10, seed=seed)
            for strategy in STRATEGIES
        ],
        [
            RunSpec("DT1", 120, strategy, rate_per_s=1_200, seconds=2, warm_s=90, warm_rate_per_s=25, round_s=10,
                    uplink_messages_per_s=_OVERLOAD_CAP, queue_messages=200, check=False, seed=seed)
            for strategy in ("S0", "S2")
        ],
        [],
        [
            RunSpec("DT4", 21, strategy, fanout=15, rate_per_s=55, seconds=60, warm_s=60, warm_rate_per_s=10,
                    round_s=10, uplink_bytes_per_s=10_000, payload_bytes=_CPL_PAYLOAD, check=False, seed=seed)
            for strategy in ("S0", "S2")
        ],
        [],
        [],
        [("DT1", 120, 35)],
    )  # fmt: skip


ACTIONS: dict[str, tuple[Callable[..., Measures | Covering | list[Cost]], Any]] = {
    "run": (measure, Measures), "covering": (measure_covering, Covering), "cost": (measure_cost, list[Cost]),
}  # fmt: skip
"""Kind of job to what carries it out, and what it gives."""


def do_job(job: Job) -> Measures | Covering | list[Cost]:
    """One job, in a process of its own."""
    kind, point = job
    return ACTIONS[kind][0](point)


class MultipathPaper:
    """See `murmuration.papers.lab.framework.Paper`."""

    name = "multipath"
    title = "Opportunistic multipath forwarding in content-based publish/subscribe overlays (Middleware 2012)"

    def reproduce(self, folder: Path, quick: bool, seeds: int, progress: Progress) -> PaperResult:
        """Measure everything; with several seeds, each bar is of the first and the others are in the table of runs."""
        plans = [quick_plan(seed) if quick else full_plan(seed) for seed in range(1, seeds + 1)]
        jobs = [job for plan in plans for job in plan.jobs()]
        results = carry_out(do_job, jobs, folder, progress, lambda job: ACTIONS[job[0]][1])
        runs = {job[1]: result for job, result in results.items() if isinstance(result, Measures)}
        plan = plans[0]
        result = PaperResult()
        result.tables.append(dataset_table(runs))
        low = [runs[spec] for spec in plan.low_rate]
        low_rate_results(result, low, folder, quick)
        throughput_results(result, [runs[spec] for spec in plan.overload], folder, quick)
        if plan.capped:
            capped_results(result, [runs[spec] for spec in plan.capped], folder)
        planetlab_results(result, [runs[spec] for spec in plan.planetlab], folder)
        if plan.facebook:
            facebook_results(result, [runs[spec] for spec in plan.facebook])
        if plan.covering:
            points = [results["covering", point] for point in plan.covering]
            covering_results(result, [point for point in points if isinstance(point, Covering)], folder)
        costs = [results["cost", point] for point in plan.cost]
        cost_results(result, [cost for each in costs if isinstance(each, list) for cost in each], folder)
        result.tables.append(run_table(runs))
        if not quick:
            live = [LiveSpec(runtime, strategy) for strategy in STRATEGIES for runtime in RUNTIMES]
            compare(result, live, folder, progress)
        return result


def dataset_table(runs: Mapping[Any, Measures]) -> ResultTable:
    """What was generated, beside the published counts."""
    rows = []
    for name, (subscriptions, share) in PUBLISHED.items():
        found = next((each.dataset for each in runs.values() if each.spec.dataset == name), None)
        if found is not None:
            rows.append(
                (name, f"{subscriptions:,} | {found['subscriptions']:,}", f"{share} | {found['matching share']}",
                 found.get("matching brokers a publication", "-"))
            )  # fmt: skip
    columns = ("dataset", "subscriptions: paper | generated", "matching share: paper | generated", "brokers matched")
    return ResultTable("figure_8_datasets", "Figure 8a: datasets", columns, rows)


def low_rate_results(result: PaperResult, runs: list[Measures], folder: Path, quick: bool) -> None:
    """Table 2, Figures 9, 10 and 11, and their bars."""
    by = {(each.spec.dataset, each.spec.strategy): each for each in runs}
    rows = []
    for key, each in by.items():
        deliveries, pure, share = TABLE_2[key]
        rows.append(
            (*key, f"{deliveries:,} | {each.deliveries:,}", f"{pure:,} | {each.pure_forwards:,}",
             f"{share} % | {100 * each.system_yield:.1f} %", f"{each.mean_hops:.2f}", f"{each.mean_delay_ms:.1f}",
             f"{each.traffic_per_s:,.0f}", f"{_load_share(each):.2f} %",
             f"{each.missing} / {each.duplicate} / {each.spurious}")
        )  # fmt: skip
    result.tables.append(
        ResultTable(
            "table_2_yield", "Table 2 (paper | measured): yield at fanout 35, 60 publications a second",
            ("dataset", "strategy", "deliveries", "pure forwarders", "yield", "mean hops", "mean delay ms",
             "publications sent/s", "load exchange, bytes", "missing / duplicate / spurious"),
            rows,
        )
    )  # fmt: skip
    result.figures.append(plots.path_lengths(by, folder))
    result.figures.append(plots.yields(by, TABLE_2, folder))
    delays = "DT2" if ("DT2", "S0") in by else "DT1"
    chosen = {strategy: by[delays, strategy] for strategy in STRATEGIES}
    result.tables.append(
        ResultTable(
            "figures_10_and_11", f"Figures 10 and 11 (paper, DT2 | measured, {delays}): mean delay and traffic",
            ("strategy", "mean delay ms", "of S0: paper | measured", "publications sent/s", "of S0: paper | measured"),
            [
                (
                    strategy, f"{FIGURE_10[strategy]} | {each.mean_delay_ms:.1f}",
                    f"{FIGURE_10[strategy] / FIGURE_10['S0']:.2f} | "
                    f"{each.mean_delay_ms / chosen['S0'].mean_delay_ms:.2f}",
                    f"{FIGURE_11[strategy]:,} | {each.traffic_per_s:,.0f}",
                    f"{FIGURE_11[strategy] / FIGURE_11['S0']:.2f} | "
                    f"{each.traffic_per_s / chosen['S0'].traffic_per_s:.2f}",
                )
                for strategy, each in chosen.items()
            ],
        )
    )  # fmt: skip
    result.figures.append(plots.pair_delays(chosen, FIGURE_10, folder))
    result.figures.append(plots.traffic(chosen, FIGURE_11, folder))
    _low_rate_bars(result, by, delays, quick)


def _low_rate_bars(result: PaperResult, by: dict[tuple[str, Strategy], Measures], delays: str, quick: bool) -> None:
    note = "scaled down: judged at full size only" if quick else ""

    def bar(name: str, paper: str, measured: float | str, met: bool) -> None:
        result.bars.append(Bar(name, paper, measured, None if quick else met, note))

    for dataset in dict.fromkeys(dataset for dataset, _ in by):
        measured = {strategy: 100 * by[dataset, strategy].system_yield for strategy in STRATEGIES}
        paper = {strategy: TABLE_2[dataset, strategy][2] for strategy in STRATEGIES}
        bar(
            f"yield of S0, {dataset}", f"{paper['S0']} %, within 10 points", round(measured["S0"], 1),
            abs(measured["S0"] - paper["S0"]) <= 10,
        )  # fmt: skip
        for strategy in STRATEGIES[1:]:
            bar(
                f"yield of {strategy}, {dataset}", f"at least {paper[strategy]} %", round(measured[strategy], 1),
                measured[strategy] >= paper[strategy],
            )  # fmt: skip
        ordered = measured["S0"] < measured["S1"] < measured["S2"] <= measured["SH"] + 0.5
        ranked: list[Strategy] = sorted(STRATEGIES, key=measured.__getitem__)
        bar(f"order of yields, {dataset}", "S0 < S1 < S2 <= SH", " < ".join(ranked), ordered)
    cut = 1 - by["DT1", "S2"].pure_forwards / by["DT1", "S0"].pure_forwards
    bar("pure forwarders that S2 saves, DT1", "61 %; at least 60 %", round(100 * cut, 1), cut >= 0.6)
    first, second = by[delays, "S0"], by[delays, "S2"]
    slower, busier = second.mean_delay_ms / first.mean_delay_ms, second.traffic_per_s / first.traffic_per_s
    bar(f"mean delay S2/S0, {delays}", "0.66; at most 0.75", round(slower, 2), slower <= 0.75)
    bar(f"traffic S2/S0, {delays}", "0.65; at most 0.7", round(busier, 2), busier <= 0.7)
    share = max(_load_share(each) for each in by.values())
    bar("load exchange, share of bytes", "under 2 %", round(share, 2), share < 2)
    wrong = sum(each.missing + each.duplicate + each.spurious for each in by.values())
    required = sum(each.required for each in by.values())
    result.bars.append(
        Bar("missing, duplicate and spurious deliveries", "0", wrong, wrong == 0 and required > 0,
            f"of {required:,} that had to be made, while soft links change")
    )  # fmt: skip


def throughput_results(result: PaperResult, runs: list[Measures], folder: Path, quick: bool) -> None:
    """Figure 13 (a) and (b)."""
    base = {each.spec.dataset: each for each in runs if each.spec.strategy == "S0"}
    rows = []
    best: dict[str, float] = {}
    for each in runs:
        ratio = each.deliveries / base[each.spec.dataset].deliveries
        if each.spec.strategy == "S2":
            best[each.spec.dataset] = max(best.get(each.spec.dataset, 0.0), ratio)
        rows.append(
            (each.spec.dataset, each.spec.strategy, each.spec.fanout if each.spec.strategy != "S0" else "-",
             each.deliveries, f"{100 * (ratio - 1):+.0f} %", f"{each.mean_hops:.2f}",
             f"{each.deliveries / each.spec.seconds:,.0f}")
        )  # fmt: skip
    result.tables.append(
        ResultTable(
            "figure_13_throughput",
            f"Figure 13 (a, b): deliveries in {runs[0].spec.seconds:.0f} s at 1,200 publications a second, uplinks of "
            f"{_OVERLOAD_CAP} publications a second (paper: up to +115 % over S0, growing with fanout)",
            ("dataset", "strategy", "fanout", "deliveries", "over S0", "mean hops", "deliveries/s"), rows,
        )
    )  # fmt: skip
    result.figures.append(plots.throughput(runs, folder))
    note = "scaled down: judged at full size only" if quick else ""
    met = best["DT1"] >= 1.8
    result.bars.append(
        Bar("overload throughput S2/S0, DT1", "2.15; at least 1.8", round(best["DT1"], 2), None if quick else met, note)
    )
    for dataset in [each for each in best if each != "DT1"]:
        result.bars.append(
            Bar(
                f"overload throughput S2/S0, {dataset}",
                "up to 2.15",
                round(best[dataset], 2),
                None,
                "no bar of its own",
            )
        )


def capped_results(result: PaperResult, runs: list[Measures], folder: Path) -> None:
    """Figure 14."""
    by = {each.spec.strategy: each for each in runs}
    rows = []
    for strategy, each in by.items():
        deliveries, hops = FIGURE_14.get(strategy, (0, 0.0))
        rows.append(
            (strategy, f"{deliveries or '-':,} | {each.deliveries:,}" if deliveries else f"- | {each.deliveries:,}",
             f"{hops or '-'} | {each.mean_hops:.2f}")
        )  # fmt: skip
    title = "Figure 14 (paper | measured): C1/DT1, 120 publications a second for 300 s, uplinks of 150 a second"
    result.tables.append(ResultTable("figure_14_capped", title, ("strategy", "deliveries", "mean hops"), rows))
    result.figures.append(plots.capped(by, FIGURE_14, folder))
    more = by["SH"].deliveries / by["S2"].deliveries
    result.bars.append(Bar("deliveries SH/S2 with capped uplinks", "1.14", round(more, 2), None, "no bar of its own"))


def planetlab_results(result: PaperResult, runs: list[Measures], folder: Path) -> None:
    """Figure 13 (c)."""
    base = {each.spec.dataset: each for each in runs if each.spec.strategy == "S0"}
    rows = []
    for each in runs:
        rows.append(
            (each.spec.dataset, each.spec.strategy, each.deliveries,
             f"{100 * (each.deliveries / base[each.spec.dataset].deliveries - 1):+.0f} %",
             f"{100 * each.deliveries / each.required:.0f} %", f"{each.mean_hops:.2f}")
        )  # fmt: skip
    result.tables.append(
        ResultTable(
            "figure_13c_planetlab",
            "Figure 13 (c): CPL, 55 publications a second, uplinks of 10 KB/s (paper: with DT4 S1 and S2 reach full "
            "delivery, S0 does not; with DT5 S0 delivers least, S1 and S2 much more but not all)",
            ("dataset", "strategy", "deliveries", "over S0", "of all that match", "mean hops"), rows,
        )
    )  # fmt: skip
    result.figures.append(plots.planetlab(runs, folder))


def facebook_results(result: PaperResult, runs: list[Measures]) -> None:
    """DT-FB."""
    by = {each.spec.strategy: each for each in runs}
    rows = [
        (strategy, each.deliveries, f"{FACEBOOK.get(strategy, 0):+d} % | "
         f"{100 * (each.deliveries / by['S0'].deliveries - 1):+.0f} %", f"{100 * each.system_yield:.1f} %")
        for strategy, each in by.items()
    ]  # fmt: skip
    graph = by["S0"].dataset["graph"]
    result.tables.append(
        ResultTable(
            "facebook", f"DT-FB ({graph} graph), 60 publications a second, fanout 20, uplinks of "
            f"{by['S0'].spec.uplink_messages_per_s} a second: deliveries in {by['S0'].spec.seconds:.0f} s",
            ("strategy", "deliveries", "over S0: paper | measured", "yield"), rows,
        )
    )  # fmt: skip


def covering_results(result: PaperResult, points: list[Covering], folder: Path) -> None:
    """Figure 12."""
    first = points[0]
    rows = []
    for point in points:
        size, predicates = FIGURE_12.get(point.fanout, (0, 0))
        rows.append(
            (point.fanout, f"{point.soft_links:.1f}", f"{point.set_size:.0f}",
             f"{size or '-'} | {100 * point.set_size / first.set_size:.0f}",
             f"{predicates or '-'} | {100 * point.predicates / first.predicates:.0f}",
             f"{100 * point.evaluations / first.evaluations:.0f}")
        )  # fmt: skip
    result.tables.append(
        ResultTable(
            "figure_12_covering", "Figure 12 (paper | measured, fanout 5 = 100): C3/DT-C, brokers that are not leaves",
            ("fanout", "soft links a broker", "covering set", "covering set size", "predicate evaluations",
             "evaluations until one fails"), rows,
        )
    )  # fmt: skip
    result.figures.append(plots.covering(points, folder))


def cost_results(result: PaperResult, costs: list[Cost], folder: Path) -> None:
    """Rebuild and forwarding times."""
    rows: list[Sequence[str | int | float]] = [
        (cost.dataset, cost.subscriptions, cost.links, f"{cost.wom_us / 1e3:.3f}", f"{cost.wst_us / 1e3:.3f}",
         f"{cost.covering_wst_us / 1e3:.0f}", *(f"{cost.forward_us[name]:.1f}" for name in ("S0", "S1", "S2")))
        for cost in costs
    ]  # fmt: skip
    result.tables.append(
        ResultTable(
            "cost", "Cost at one broker (paper: WOM 0.8 ms, WST 17 ms at 6,500 subscriptions, forwarding unchanged)",
            ("dataset", "subscriptions", "links", "WOM ms", "WST ms", "covering WST ms", "forward us S0", "S1", "S2"),
            rows,
        )
    )  # fmt: skip
    result.figures.append(plots.cost(costs, folder))
    most = max(cost.wom_us for cost in costs) / 1e3
    result.bars.append(Bar("WOM rebuild, ms", "0.8", round(most, 3), None, "the most of all points; no bar of its own"))
    at_paper = max(cost.wst_us for cost in costs if cost.dataset == "DT1") / 1e3
    result.bars.append(
        Bar("WST rebuild at 6,500 subscriptions, ms", "17", round(at_paper, 3), None, "no bar of its own")
    )


def run_table(runs: Mapping[Any, Measures]) -> ResultTable:
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


def _load_share(measures: Measures) -> float:
    """Per cent of all bytes between brokers that load exchange is."""
    publications = measures.publication_bytes * (measures.deliveries + measures.pure_forwards)
    return 100 * measures.load_bytes / max(1, publications + measures.load_bytes)
