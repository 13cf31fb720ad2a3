"""Pictures of the epidemic paper's comparisons: a point for each algorithm in each case."""

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, stdev

from murmuration.papers.epidemic.plots import LOOKS, legend, over_time
from murmuration.papers.epidemic.run import EpidemicMeasures
from murmuration.papers.epidemic.seeded_runs import Compared
from murmuration.papers.lab.plotting import panels, save

Measure = tuple[str, Callable[[EpidemicMeasures], float]]
"""What is measured of a run, and how it is called."""

_RATE: Measure = ("delivery rate", lambda run: run.rate)
_GOSSIP: Measure = ("gossip messages / event message", lambda run: run.gossip_per_event)
_DELAY: Measure = ("mean delay (ms)", lambda run: run.delay_us / 1e3 / max(1, run.delivered))


def load(found: Compared, label: str, folder: Path) -> Path:
    """Few events beside many: what arrives, and when."""
    return _points(found, label, folder, "load", [_RATE, _DELAY])


def adaptive(found: Compared, label: str, folder: Path) -> Path:
    """What an interval that adapts costs."""
    return _points(found, label, folder, "adaptive", [_GOSSIP])


def policies(found: Compared, label: str, folder: Path) -> Path:
    """What is kept in a small buffer."""
    return _points(found, label, folder, "policies", [_RATE])


def overlapping(found: Compared, label: str, folder: Path) -> Path:
    """Delivery rate by time of publication, a panel for each case."""
    cases = list(dict.fromkeys(label for label, _ in found))
    figure, charts = panels(len(cases), width=6.0)
    for axes, case in zip(charts, cases, strict=True):
        over_time(axes, {algorithm: each for (label, algorithm), each in found.items() if label == case})
        axes.set_title(f"{label}: {case}")
        axes.set_ylim(0, 1.02)
    charts[0].set_ylabel("delivery rate")
    legend(figure, charts[0])
    return save(figure, folder, "overlapping")


def _points(found: Compared, label: str, folder: Path, name: str, measures: Sequence[Measure]) -> Path:
    cases = list(dict.fromkeys(label for label, _ in found))
    algorithms = list(dict.fromkeys(algorithm for _, algorithm in found))
    several = all(len(each.runs) > 1 for each in found.values())
    figure, charts = panels(len(measures), width=6.5)
    for axes, (what, measure) in zip(charts, measures, strict=True):
        for number, algorithm in enumerate(algorithms):
            colour, marker, _ = LOOKS[algorithm]
            values = [[measure(run) for run in found[case, algorithm].runs] for case in cases]
            aside = (number - (len(algorithms) - 1) / 2) * 0.7 / len(algorithms)
            axes.errorbar(
                [at + aside for at in range(len(cases))], [mean(each) for each in values],
                [stdev(each) for each in values] if several else None, color=colour, marker=marker,
                linestyle="none", markersize=6, capsize=3, label=algorithm,
            )  # fmt: skip
        axes.set_xticks(range(len(cases)), [case.replace(", ", ",\n") for case in cases])
        axes.set_xlim(-0.5, len(cases) - 0.5)
        axes.grid(axis="x", visible=False)
        axes.set(xlabel=label, ylabel=f"{what} (deviation)" if several else what)
        if measure is not _RATE[1]:
            axes.set_ylim(bottom=-0.03 * axes.get_ylim()[1])
        for at in range(1, len(cases)):
            axes.axvline(at - 0.5, color="#cccccc", linewidth=0.8)
    legend(figure, charts[0])
    return save(figure, folder, name)
