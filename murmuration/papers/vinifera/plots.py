"""The Vinifera paper's figures: Vinifera in blue, the baseline in red; skewed interests solid, random dashed."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from murmuration.papers.lab.plotting import panels as frame
from murmuration.papers.lab.plotting import save
from murmuration.papers.vinifera.live import ViniferaLiveRun
from murmuration.papers.vinifera.run import SHARES, ChurnRun, Routing, StaticRun, StaticSpec
from murmuration.papers.vinifera.workload import Model

COLOURS = {"vinifera": "#1f77b4", "ferry": "#d62728"}
SYSTEM_NAMES = {"vinifera": "Vinifera", "ferry": "baseline"}
_LINES: Mapping[Model, str] = {"skewed": "-", "random": "--", "social": ":"}
Curves = Mapping[tuple[Routing, Model], Sequence[tuple[float, Sequence[StaticRun]]]]
"""(routing, model) to its points: x and the runs of all seeds."""


def _save(figure: Any, axes: Any, folder: Path, name: str) -> Path:
    handles, labels = axes.get_legend_handles_labels()
    size = "medium" if len(figure.axes) > 1 else "small"
    columns = min(4, 2 * len(figure.axes))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=size)
    return save(figure, folder, name)


def against(
    curves: Curves,
    measures: Sequence[tuple[str, Callable[[StaticRun], float]]],
    label: str,
    folder: Path,
    name: str,
    logarithmic: bool = False,
) -> Path:
    """One panel a measure; with several seeds their mean and deviation."""
    figure, panels = frame(len(measures))
    for axes, (title, value) in zip(panels, measures, strict=True):
        for (routing, model), points in curves.items():
            found = [(x, [value(run) for run in runs]) for x, runs in points if runs]
            if not found:
                continue
            axes.errorbar(
                [x for x, _ in found], [mean(each) for _, each in found],
                [stdev(each) if len(each) > 1 else 0.0 for _, each in found], color=COLOURS[routing],
                linestyle=_LINES[model], marker="o", markersize=4, capsize=3, label=f"{SYSTEM_NAMES[routing]}, {model}",
            )  # fmt: skip
        axes.set(xlabel=label, ylabel=title)
        axes.set_ylim(0, 1.05 * axes.get_ylim()[1])
        ticks = sorted({x for points in curves.values() for x, runs in points if runs})
        if logarithmic:
            axes.set_xscale("log", base=2)
        axes.set_xticks(ticks, [f"{x:,g}" for x in ticks], minor=False)
        axes.minorticks_off()
    return _save(figure, panels[0], folder, name)


_VARIANTS = {
    ("vinifera", "none", False): ("Vinifera, waits for rendezvous nodes", "#2ca02c"),
    ("vinifera", "friends", False): ("Vinifera, friends told (ours)", "#9467bd"),
    ("ferry", "tree", True): ("baseline, pruned (ours)", "#ff7f0e"),
}


def _variant(spec: StaticSpec) -> tuple[str, str]:
    """What a run is called beside others, and its colour."""
    usual = SYSTEM_NAMES[spec.routing], COLOURS[spec.routing]
    return _VARIANTS.get((spec.routing, spec.spread, spec.prune), usual)


def name_of(spec: StaticSpec) -> str:
    """What a run is called beside others."""
    return _variant(spec)[0]


def hit_ratio_by_rate(runs: Sequence[StaticRun], folder: Path) -> Path:
    """Figure 4(f): hit ratio against the publication rate; one panel a model."""
    models = list(dict.fromkeys(run.spec.model for run in runs))
    figure, panels = frame(len(models))
    for axes, model in zip(panels, models, strict=True):
        for run in (each for each in runs if each.spec.model == model):
            name, colour = _variant(run.spec)
            axes.plot(run.spec.rates, run.hit_ratios, color=colour, marker="o", markersize=4, label=name)
        axes.set(xlabel="publication rate (X)", ylabel="hit ratio", title=f"{model} interests")
        axes.set_xticks(runs[0].spec.rates)
        axes.set_ylim(0, 1.05)
    return _save(figure, panels[0], folder, "figure_4f")


def load_distribution(runs: Sequence[StaticRun], folder: Path) -> Path:
    """Figure 4(e): share of nodes that relay at most so many of the events; one panel a model."""
    models = list(dict.fromkeys(run.spec.model for run in runs))
    figure, panels = frame(len(models))
    styles = dict(zip(sorted({run.spec.attributes for run in runs}), ("-", "--", "-.", ":"), strict=False))
    for axes, model in zip(panels, models, strict=True):
        for run in (each for each in runs if each.spec.model == model):
            count = run.spec.attributes
            label = f"{SYSTEM_NAMES[run.spec.routing]}, {count} attribute{'s' if count > 1 else ''}"
            axes.step(
                [100 * at for at in SHARES], run.load, where="post", color=COLOURS[run.spec.routing],
                linestyle=styles[count], label=label,
            )  # fmt: skip
        axes.set(
            xlabel="load: relayed without interest, % of events", ylabel="share of nodes", title=f"{model} interests"
        )
        axes.set_ylim(0, 1.02)
    return _save(figure, panels[0], folder, "figure_4e")


def over_time(
    runs: Sequence[ChurnRun | ViniferaLiveRun],
    folder: Path,
    name: str,
    bins_a_point: int,
    unit: str = "hours",
    bin: float = 1,
) -> Path:
    """Figure 5: hit ratio, overhead and hops over time, the population drawn behind. `bin`: how long each is."""
    figure, panels = frame(3)
    measures = (
        ("hit ratio", "delivered", "interested"),
        ("traffic overhead", "uninterested", "received"),
        ("path length (hops)", "hops", "delivered"),
    )
    for axes, (title, above, below) in zip(panels, measures, strict=True):
        behind = axes.twinx()
        axes.set_zorder(behind.get_zorder() + 1)
        axes.patch.set_visible(False)
        ends = [bin * (at + 1) for at in range(len(runs[0].population))]
        behind.fill_between(ends, runs[0].population, color="#000000", alpha=0.10, linewidth=0)
        behind.set_ylim(0, 1.25 * max(runs[0].population))
        behind.set_ylabel("nodes up (grey)")
        for run in runs:
            points = []
            for begin in range(0, len(run.population), bins_a_point):
                part = slice(begin, begin + bins_a_point)
                total = sum(getattr(run, below)[part])
                if total:
                    points.append((bin * (begin + bins_a_point / 2), sum(getattr(run, above)[part]) / total))
            axes.plot(
                [x for x, _ in points], [y for _, y in points], color=COLOURS[run.spec.routing],
                linestyle=_LINES[run.spec.model], label=f"{SYSTEM_NAMES[run.spec.routing]}, {run.spec.model}",
            )  # fmt: skip
        axes.set(xlabel=unit, ylabel=title)
        axes.set_ylim(0, 1.05 * axes.get_ylim()[1])
    return _save(figure, panels[0], folder, name)
