"""Plots of the multipath paper's figures: measured in colour, the paper's in grey where its numbers are known."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from murmuration.papers.lab.judged_run import Runtime
from murmuration.papers.lab.plotting import panels, save
from murmuration.papers.multipath.cost import CoveringSize, ForwardingCost
from murmuration.papers.multipath.run import MultipathMeasures
from routing.multipath.parameters import STRATEGIES, Strategy

COLOURS = {"S0": "#444444", "S1": "#1f77b4", "S2": "#d62728", "SH": "#2ca02c"}
MARKERS = {"S0": "o", "S1": "s", "S2": "^", "SH": "D"}
_STYLES = {"S0": "-", "S1": "-", "S2": "-", "SH": (0, (4, 3))}
"""SH is dashed: without a shortage of uplink it is S2, and lies on it."""
PAPER = "#bbbbbb"


def path_lengths(by: Mapping[tuple[str, Strategy], MultipathMeasures], folder: Path) -> Path:
    """Figure 9."""
    datasets = list(dict.fromkeys(dataset for dataset, _ in by))
    figure, axes = panels(len(datasets))
    for each, dataset in zip(axes, datasets, strict=True):
        _path_length_cdf(each, {strategy: by[dataset, strategy].hops for strategy in STRATEGIES})
        each.set_title(f"Figure 9: {dataset}")
    return save(figure, folder, "figure_9_path_length")


def live_path_lengths(hops: Mapping[tuple[Runtime, Strategy], Sequence[int]], folder: Path) -> Path:
    """Figure 9 on live brokers and in virtual time."""
    figure, axes = panels(2)
    titles: dict[Runtime, str] = {"ray": "live", "virtual": "virtual time"}
    for each, (runtime, title) in zip(axes, titles.items(), strict=True):
        _path_length_cdf(each, {strategy: hops[runtime, strategy] for strategy in STRATEGIES})
        each.set_title(f"DT1, {title}")
    return save(figure, folder, "live_path_length")


def _path_length_cdf(axes: Any, hops: Mapping[Strategy, Sequence[int]]) -> None:
    for strategy, counts in hops.items():
        longest = max(length for length, count in enumerate(counts) if count)
        shares = [100 * total / sum(counts) for total in itertools.accumulate(counts[: longest + 1])]
        axes.plot(
            shares, color=COLOURS[strategy], marker=MARKERS[strategy], markersize=3, label=strategy,
            linestyle=_STYLES[strategy],
        )  # fmt: skip
    axes.set(xlabel="path length (hops)", ylabel="% of deliveries", ylim=(0, 102))
    axes.legend(frameon=False)


def yields(
    by: Mapping[tuple[str, Strategy], MultipathMeasures],
    paper: Mapping[tuple[str, str], tuple[int, int, int]],
    folder: Path,
) -> Path:
    """Table 2 as bars."""
    datasets = list(dict.fromkeys(dataset for dataset, _ in by))
    figure, axes = panels(len(datasets))
    for each, dataset in zip(axes, datasets, strict=True):
        _beside(
            each,
            [float(paper[dataset, strategy][2]) for strategy in STRATEGIES],
            [100 * by[dataset, strategy].system_yield for strategy in STRATEGIES],
        )
        each.set(ylabel="yield (%)", title=f"Table 2: {dataset}", ylim=(0, 100))
    return save(figure, folder, "table_2_yield")


def _beside(
    axes: Any, paper: Sequence[float], measured: Sequence[float], strategies: Sequence[str] = STRATEGIES
) -> None:
    at = range(len(strategies))
    axes.bar([x - 0.2 for x in at], paper, 0.38, color=PAPER, label="paper")
    axes.bar([x + 0.2 for x in at], measured, 0.38, color=[COLOURS[each] for each in strategies], label="measured")
    for x, first, second in zip(at, paper, measured, strict=True):
        for place, value in ((x - 0.2, first), (x + 0.2, second)):
            text = f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
            axes.annotate(text, (place, value), ha="center", va="bottom", fontsize=8)
    axes.set_xticks(list(at), list(strategies))
    axes.legend(frameon=False, loc="best", fontsize=8)
    axes.margins(y=0.15)


def pair_delays(by: Mapping[Strategy, MultipathMeasures], paper: Mapping[str, float], folder: Path) -> Path:
    """Figure 10."""
    figure, axes = panels()
    base = by["S0"].delays_us
    pairs = sorted(base, key=lambda pair: base[pair][0] / base[pair][1])
    for strategy, run in by.items():
        found = [run.delays_us[pair] for pair in pairs if pair in run.delays_us]
        values = [total / count / 1e3 for total, count in found]
        axes[0].plot(
            values, ".", markersize=1.2, color=COLOURS[strategy], rasterized=True,
            label=f"{strategy}: mean {run.mean_delay_ms:.1f} ms (paper {paper[strategy]} ms)",
        )  # fmt: skip
    axes[0].set(
        xlabel="pairs of publishing and subscribing brokers, by their delay with S0", ylabel="mean delay (ms)",
        title=f"Figure 10: {by['S0'].spec.dataset}", ylim=(0, None),
    )  # fmt: skip
    axes[0].legend(frameon=False, markerscale=8, fontsize=8)
    return save(figure, folder, "figure_10_delay")


def traffic_over_time(by: Mapping[Strategy, MultipathMeasures], paper: Mapping[str, float], folder: Path) -> Path:
    """Figure 11."""
    figure, axes = panels()
    for strategy, run in by.items():
        whole = run.traffic[: int(run.spec.seconds)]
        axes[0].plot(whole, color=COLOURS[strategy], linestyle=_STYLES[strategy], linewidth=0.8, label=strategy)
        if run.spec.dataset == "DT2":
            axes[0].axhline(paper[strategy], color=COLOURS[strategy], linestyle=":", linewidth=1)
    axes[0].set(
        xlabel="time (s)", ylabel="publications sent a second", ylim=(0, None),
        title=f"Figure 11: {by['S0'].spec.dataset} (dotted: the paper's means)",
    )  # fmt: skip
    axes[0].legend(frameon=False, fontsize=8, ncols=4)
    return save(figure, folder, "figure_11_traffic")


def throughput(runs: Sequence[MultipathMeasures], folder: Path) -> Path:
    """Figure 13 (a) and (b): against fanout, or bars where there is one fanout only."""
    datasets = list(dict.fromkeys(run.spec.dataset for run in runs))
    figure, axes = panels(len(datasets))
    for each, dataset in zip(axes, datasets, strict=True):
        chosen = [run for run in runs if run.spec.dataset == dataset]
        fanouts = sorted({run.spec.fanout for run in chosen})
        if len(fanouts) == 1:
            _deliveries(each, chosen)
            each.set(xlabel=f"fanout {fanouts[0]}")
        else:
            for strategy in STRATEGIES:
                points = sorted(
                    (run.spec.fanout, run.deliveries / 1e3) for run in chosen if run.spec.strategy == strategy
                )
                if strategy == "S0":
                    points = [(fanout, points[0][1]) for fanout in fanouts]
                if points:
                    each.plot(
                        *zip(*points, strict=True), color=COLOURS[strategy], marker=MARKERS[strategy], label=strategy
                    )
            each.set(xlabel="fanout", ylabel="deliveries (thousands)", ylim=(0, None))
            each.legend(frameon=False)
        each.set_title(f"Figure 13: {dataset}, {chosen[0].spec.brokers} brokers")
    return save(figure, folder, "figure_13_throughput")


def _deliveries(axes: Any, runs: Sequence[MultipathMeasures]) -> None:
    names = [run.spec.strategy for run in runs]
    axes.bar(names, [run.deliveries / 1e3 for run in runs], color=[COLOURS[name] for name in names])
    axes.set(ylabel="deliveries (thousands)")


def capped(by: Mapping[Strategy, MultipathMeasures], paper: Mapping[str, tuple[int, float]], folder: Path) -> Path:
    """Figure 14."""
    figure, axes = panels(2)
    shown = [strategy for strategy in STRATEGIES if strategy in paper]
    _beside(axes[0], [paper[each][0] / 1e3 for each in shown], [by[each].deliveries / 1e3 for each in shown], shown)
    axes[0].set(ylabel="deliveries (thousands)", title="Figure 14: uplinks of 150 publications a second")
    _beside(axes[1], [paper[each][1] for each in shown], [by[each].mean_hops for each in shown], shown)
    axes[1].set(ylabel="mean path length (hops)")
    return save(figure, folder, "figure_14_capped")


def planetlab(runs: Sequence[MultipathMeasures], folder: Path) -> Path:
    """Figure 13 (c)."""
    datasets = list(dict.fromkeys(run.spec.dataset for run in runs))
    figure, axes = panels(len(datasets))
    for each, dataset in zip(axes, datasets, strict=True):
        chosen = [run for run in runs if run.spec.dataset == dataset]
        _deliveries(each, chosen)
        most = chosen[0].required / 1e3
        each.axhline(most, color="black", linestyle=":", label="all that match")
        each.set(ylim=(0, 1.2 * most), title=f"Figure 13 (c): {dataset}, uplinks of 10 KB/s")
        each.legend(frameon=False, loc="upper left")
    return save(figure, folder, "figure_13c_planetlab")


def covering(points: Sequence[CoveringSize], folder: Path) -> Path:
    """Figure 12."""
    figure, axes = panels()
    fanouts = [point.fanout for point in points]
    first = points[0]
    axes[0].plot(fanouts, [100 * point.set_size / first.set_size for point in points], "o-", label="covering set size")
    axes[0].plot(
        fanouts, [100 * point.predicates / first.predicates for point in points], "s-", label="predicate evaluations"
    )
    axes[0].plot([5, 10], [100, 112], "o:", color=PAPER, label="paper: set size")
    axes[0].plot([5, 10], [100, 134], "s:", color=PAPER, label="paper: evaluations")
    axes[0].set(xlabel="fanout", ylabel="% of fanout 5", title="Figure 12: C3/DT-C")
    axes[0].legend(frameon=False)
    return save(figure, folder, "figure_12_covering")


def cost(costs: Sequence[ForwardingCost], folder: Path) -> Path:
    """Rebuild and forwarding times against links."""
    figure, axes = panels(2)
    for number, dataset in enumerate(dict.fromkeys(each.dataset for each in costs)):
        chosen = [each for each in costs if each.dataset == dataset]
        links, size = [each.links for each in chosen], chosen[0].subscriptions
        colour = f"C{number}"
        axes[0].plot(links, [each.wom_us for each in chosen], "o-", color=colour, label=f"WOM, {size:,} subscriptions")
        axes[0].plot(links, [each.wst_us for each in chosen], "s--", color=colour, label=f"WST, {size:,}")
        for strategy, style in (("S0", ":"), ("S1", "--"), ("S2", "-")):
            times = [each.forward_us[strategy] for each in chosen]
            axes[1].plot(links, times, style, color=colour, label=f"{strategy}, {size:,} subscriptions")
    axes[0].set(xlabel="links", ylabel="rebuild (µs)", ylim=(0, None), title="Rebuilds (paper: 800 and 17,000 µs)")
    axes[1].set(xlabel="links", ylabel="matching and path computation (µs)", ylim=(0, None), title="Forwarding")
    for each in axes:
        each.legend(frameon=False, fontsize=7)
    return save(figure, folder, "cost")
