"""Charts of the epidemic paper: all algorithms in each, mean and deviation over the seeds."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from murmuration.papers.epidemic.plan import Chart
from murmuration.papers.epidemic.seeded_runs import SeededRuns
from murmuration.papers.lab.plotting import panels, save
from reliability.epidemic.parameters import Algorithm

LOOKS: Mapping[Algorithm, tuple[str, str, str]] = {
    "none": ("#444444", "o", "-"),
    "push": ("#d62728", "^", "-"),
    "combined-pull": ("#1f77b4", "s", "-"),
    "publisher-pull": ("#2ca02c", "D", "-"),
    "subscriber-pull": ("#9467bd", "v", "-"),
    "random-pull": ("#ff7f0e", "x", "--"),
}
"""Colour, marker and line; the control is dashed."""


def legend(figure: Any, axes: Any) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)


def rate_against(chart: Chart, found: Mapping[Algorithm, Sequence[SeededRuns]], folder: Path) -> Path:
    """Delivery rate against a parameter."""
    figure, (axes,) = panels(width=6.0)
    for algorithm, (colour, marker, line) in LOOKS.items():
        points = found[algorithm]
        axes.errorbar(
            chart.values, [each.rate for each in points], [each.spread for each in points], color=colour,
            marker=marker, linestyle=line, markersize=5, capsize=3, label=algorithm,
        )  # fmt: skip
    _x_axis(axes, chart)
    seeds = len(found["push"][0].runs)
    title = f"against {chart.label}" + (f", {seeds} seeds" if seeds > 1 else "")
    axes.set(ylabel="delivery rate (deviation)" if seeds > 1 else "delivery rate", title=title)
    axes.set_ylim(top=1.01)
    legend(figure, axes)
    return save(figure, folder, f"sweep_{chart.name}")


def _x_axis(axes: Any, chart: Chart) -> None:
    axes.set_xlabel(chart.label)
    if chart.logarithmic:
        axes.set_xscale("log")
    axes.set_xticks(chart.values, [f"{value:g}" for value in chart.values], minor=False)
    axes.minorticks_off()


def gossip_against(
    charts: Sequence[Chart], found: Mapping[str, Mapping[Algorithm, Sequence[SeededRuns]]], folder: Path
) -> Path:
    """Gossip messages for each event message, against every parameter."""
    figure, all_axes = panels(len(charts), width=6.0)
    for axes, chart in zip(all_axes, charts, strict=True):
        for algorithm, (colour, marker, line) in LOOKS.items():
            if algorithm != "none":
                axes.plot(
                    chart.values, [each.gossip_per_event for each in found[chart.name][algorithm]], color=colour,
                    marker=marker, linestyle=line, markersize=5, label=algorithm,
                )  # fmt: skip
        _x_axis(axes, chart)
        axes.set_ylim(bottom=0)
    for axes in all_axes[::3]:
        axes.set_ylabel("gossip messages for each event message")
    legend(figure, all_axes[0])
    return save(figure, folder, "overhead")


def rate_over_time(found: Mapping[Algorithm, SeededRuns], folder: Path) -> Path:
    """Delivery rate of the events of each tenth of a second, over the time in which links break; to the right the same
    without the curve of no recovery, so that the others can be told apart."""
    figure, charts = panels(2, width=6.0)
    over_time(charts[0], found)
    over_time(charts[1], {algorithm: each for algorithm, each in found.items() if algorithm != "none"})
    spec = found["none"].runs[0].spec
    charts[0].set(ylabel="delivery rate", title=f"A link breaks every {spec.reconfigured_every_s:g} s")
    charts[1].set_title("the same, enlarged, without the lowest curve")
    legend(figure, charts[0])
    return save(figure, folder, "reconfiguration")


def over_time(axes: Any, found: Mapping[Algorithm, SeededRuns]) -> None:
    """A curve of each algorithm, and when links begin to break."""
    for algorithm, each in found.items():
        colour, _, line = LOOKS[algorithm]
        spec = each.runs[0].spec
        length = min(len(run.over_time) for run in each.runs) - int(spec.tail_s * 10)
        made = [sum(run.over_time[at][0] for run in each.runs) for at in range(length)]
        due = [sum(run.over_time[at][1] for run in each.runs) for at in range(length)]
        axes.plot(
            [at / 10 for at in range(length)],
            [share / max(1, total) for share, total in zip(made, due, strict=True)],
            color=colour, linestyle=line, linewidth=1.3, label=algorithm,
        )  # fmt: skip
    axes.axvline(spec.learn_s, color="#999999", linestyle=":", linewidth=1)
    axes.text(
        spec.learn_s, 0.02, "links \nbegin to \nbreak ", fontsize=8, color="#666666", va="bottom", ha="right",
        transform=axes.get_xaxis_transform(),
    )  # fmt: skip
    axes.set_xlabel("time of publication (s)")
    axes.margins(y=0.03)
