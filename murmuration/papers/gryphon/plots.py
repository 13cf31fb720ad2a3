"""Plots of the guaranteed-delivery paper's figures: latency and cumulative nack range against send time."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from murmuration.papers.gryphon.cost import Kept
from murmuration.papers.gryphon.run import FailureRun
from murmuration.papers.lab.plotting import panels, save

_COLOURS = {"s1": "#1f77b4", "s2": "#2ca02c", "b2": "#d62728", "s3": "#9467bd", "s4": "#8c564b", "s5": "#e377c2"}
_MARKERS = {"s1": "o", "s2": "s", "b2": "^", "s3": "v", "s4": "D", "s5": "P"}


def failure(seen: FailureRun, number: int, folder: Path) -> Path:
    """Figure 6, 7 or 8: latency of one subscriber (and another's beside it), and the nacks, zoomed in to where they
    are; faults are marked."""
    figure, (above, below) = panels(2, width=5.8)
    for name, series in seen.latencies.items():
        above.plot(
            [sent_ms / 1e3 for sent_ms, _ in series], [late_ms for _, late_ms in series], linestyle="none",
            marker=_MARKERS[name], markersize=2.5, color=_COLOURS[name], label=f"a subscriber at {name}",
        )  # fmt: skip
    _mark(above, seen.faults, words=True)
    above.set(xlabel="send time of the message (s)", ylabel="latency (ms)", xlim=(0, None), ylim=(0, None))
    drawn = False
    for place, (name, nacks) in enumerate(seen.nacks.items()):
        if nacks:
            drawn = True
            below.plot(  # those that lie on one another are seen by their size
                [at_ms / 1e3 for at_ms, _ in nacks], list(accumulate(ticks for _, ticks in nacks)),
                marker=_MARKERS[name], markersize=9 - 2 * place, color=_COLOURS[name], drawstyle="steps-post",
                label=f"nacks of {name}", fillstyle="none",
            )  # fmt: skip
    if drawn:
        low, high = below.get_xlim()
        near = [(at, text) for at, text in seen.faults if low <= at / 1e3 <= high]
        _mark(below, near, words=False)
        below.legend(frameon=False, loc="lower right")
    else:
        below.text(0.5, 0.5, "no nacks", transform=below.transAxes, ha="center")
        below.set(xticks=[], yticks=[])
    below.set(xlabel="time of the nack (s)", ylabel="ticks asked for, cumulative (ms)", ylim=(0, None))
    above.legend(frameon=False, loc="center right")
    figure.suptitle(f"{seen.test.title} ({'live' if seen.test.runtime == 'ray' else 'virtual time'})")
    return save(figure, folder, f"figure_{number}_{seen.test.name}")


def memory(kept: Mapping[str, Sequence[Kept]], folder: Path) -> Path:
    """Messages kept over time, with a slow subscriber and without."""
    figure, axes = panels(len(kept), width=5.8, share_y=True)
    for each, (title, series) in zip(axes, kept.items(), strict=True):
        times = [point.at_s for point in series]
        each.plot(times, [point.log for point in series], color="#444444", label="p1: log not yet acknowledged")
        each.plot(times, [point.subscribers_broker for point in series], color="#1f77b4", label="s1: cache")
        each.plot(times, [point.intermediate for point in series], color="#d62728", label="b1 and b2: caches")
        each.plot(
            times, [point.outstanding for point in series], color="#2ca02c", ls="--", label="slow client: to hand back"
        )
        each.set(xlabel="time (s)", ylabel="messages kept", title=title)
    axes[0].set_ylim(bottom=0)
    axes[0].legend(frameon=False)
    return save(figure, folder, "memory")


def _mark(axes: Any, faults: Sequence[tuple[float, str]], words: bool) -> None:
    for at_ms, text in faults:
        axes.axvline(at_ms / 1e3, color="#888888", linestyle=":", linewidth=1)
        if words:
            axes.annotate(
                f" {text} ", (at_ms / 1e3, 0.98), xycoords=("data", "axes fraction"), rotation=90, fontsize=8,
                color="#444444", ha="left", va="top", bbox={"color": "white", "alpha": 0.7, "pad": 0.5},
            )  # fmt: skip
