"""Plots of the runs in which brokers are short of time or of uplink, and of filled links."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from murmuration.papers.lab.plotting import panels, save
from murmuration.papers.multipath.overload import OverloadMeasures, OverloadSpec
from murmuration.papers.multipath.plots import COLOURS, MARKERS, PAPER
from routing.multipath.parameters import Strategy

_Runs = Mapping[OverloadSpec, OverloadMeasures]
_Gains = Mapping[tuple[str, int, int, Strategy], Sequence[float]]
_Growths = Mapping[tuple[tuple[int, ...], int], Sequence[tuple[float, float, float]]]
_WITH_LINKS: tuple[Strategy, ...] = ("S1", "S2")


def processing(runs: _Runs, gains: _Gains, folder: Path) -> Path:
    """Figure 13 (a) and (b): what is delivered more than by S0, at each fanout."""
    datasets = list(dict.fromkeys(spec.dataset for spec in runs))
    figure, axes = panels(len(datasets), share_y=True)
    for each, dataset in zip(axes, datasets, strict=True):
        work_us = min(spec.work_us for spec in runs if spec.dataset == dataset)
        fanouts = sorted({fanout for *of, fanout, _ in gains if of == [dataset, work_us]})
        for strategy, aside in zip(_WITH_LINKS, (-0.2, 0.2), strict=True):
            found = [[100 * gain for gain in gains[dataset, work_us, fanout, strategy]] for fanout in fanouts]
            places = [place + aside for place in range(len(fanouts))]
            each.bar(places, [mean(values) for values in found], 0.4, yerr=_reach(found), capsize=4,
                     color=COLOURS[strategy], label=strategy)  # fmt: skip
        each.axhline(115, color=PAPER, linestyle=":", label="paper, up to +115 %")
        each.set_xticks(range(len(fanouts)), [str(fanout) for fanout in fanouts])
        each.set(
            xlim=(-1, len(fanouts)), xlabel="fanout", title=f"Figure 13: {dataset}, {work_us / 1e3:g} ms a message"
        )
    axes[0].set(ylabel="deliveries over S0 (%)")
    axes[0].legend(frameon=False, loc="upper left")
    return save(figure, folder, "figure_13_processing")


def caps(runs: _Runs, folder: Path) -> Path:
    """Figure 14 at several caps: deliveries and path lengths."""
    figure, axes = panels(2)
    shown = sorted({spec.uplink_messages_per_s or 0 for spec in runs})
    for strategy in ("S1", "S2", "SH"):
        of_cap = [
            [each for spec, each in runs.items() if (spec.uplink_messages_per_s, spec.strategy) == (cap, strategy)]
            for cap in shown
        ]
        shares = [[100 * each.share for each in found] for found in of_cap]
        hops = [[each.mean_hops for each in found] for found in of_cap]
        for panel, values in zip(axes, (shares, hops), strict=True):
            panel.errorbar(shown, [mean(each) for each in values], yerr=_reach(values), capsize=4, label=strategy,
                           color=COLOURS[strategy], marker=MARKERS[strategy])  # fmt: skip
    for panel in axes:
        panel.set(xlabel="uplink of each broker (publications a second)", xticks=shown, ylim=(0, None))
    axes[0].set(ylabel="% of all that match delivered", title="Figure 14 at several caps")
    axes[1].set(ylabel="mean path length (hops)")
    axes[0].legend(frameon=False)
    return save(figure, folder, "figure_14_caps")


def filled(grown: _Growths, folder: Path) -> Path:
    """Figure 12: one panel for each shape of the dataset."""
    shapes = list(dict.fromkeys(ranges for ranges, _ in grown))
    figure, axes = panels(len(shapes), width=4.6, share_y=True)
    for panel, shape in zip(axes, shapes, strict=True):
        fanouts = sorted(fanout for ranges, fanout in grown if ranges == shape)
        for place, (label, marker) in enumerate((("covering set size", "o"), ("predicate evaluations", "s"))):
            values = [[100 * each[place] for each in grown[shape, fanout]] for fanout in fanouts]
            panel.errorbar(fanouts, [mean(each) for each in values], yerr=_reach(values), capsize=4, marker=marker,
                           color=f"C{place}", label=label)  # fmt: skip
            panel.plot([5, 10], [100, (112, 134)[place]], marker + ":", color=PAPER, label=f"paper: {label}")
        panel.set(xlabel="fanout", ylabel="% of fanout 5", xticks=fanouts,
                  title=f"families of {len(shape)}, {1 + shape[0]} to {1 + shape[-1]} predicates")  # fmt: skip
    axes[0].legend(frameon=False, fontsize=8)
    figure.suptitle("Figure 12: C3/DT-C, links filled by gain")
    return save(figure, folder, "figure_12_filled")


def _reach(values: Sequence[Sequence[float]]) -> Any:
    """How far the least and the most are from each mean; None where each is of one seed."""
    if all(len(each) == 1 for each in values):
        return None
    return [[mean(each) - min(each) for each in values], [max(each) - mean(each) for each in values]]
