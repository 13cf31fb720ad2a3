"""Plots of the guaranteed-delivery paper: latency and nacks around a failure, deliveries a second, messages kept."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from murmuration.papers.gryphon.memory import Kept
from murmuration.papers.gryphon.run import FailureRun
from murmuration.papers.gryphon.throughput import BEHIND_B1, UNTOUCHED
from murmuration.papers.lab.plotting import panels, save

_COLOURS = {"s1": "#1f77b4", "s2": "#2ca02c", "b2": "#d62728", "s3": "#9467bd", "s4": "#8c564b", "s5": "#e377c2"}
_MARKERS = {"s1": "o", "s2": "s", "b2": "^", "s3": "v", "s4": "D", "s5": "P"}
_LONG_MS = 10_000.0
_AT_ONCE_MS = 500.0


def failure(seen: FailureRun, folder: Path) -> Path:
    """Figure 6, 7 or 8: latency of one subscriber (and another's beside it), and the nacks, zoomed in to where they
    are; faults are marked. Where messages waited for long, a panel between is zoomed in to when these were sent."""
    late = [sent_ms for series in seen.latencies.values() for sent_ms, late_ms in series if late_ms > _LONG_MS]
    figure, axes = panels(3 if late else 2, width=5.8)
    above, below = axes[0], axes[-1]
    for each in axes[:-1]:
        _draw_latencies(each, seen)
        each.set(xlabel="send time of the message (s)", ylabel="latency (ms)")
        _leave_room(each)
    above.set(xlim=(0, None))
    _mark(above, seen.faults, words=True)
    if late:
        axes[1].set(title="zoomed in", xlim=(min(late) / 1e3 - 1, max(late) / 1e3 + 1))
        _mark_near(axes[1], seen.faults)
    _draw_nacks(below, seen)
    above.legend(frameon=False, loc="center right")
    figure.suptitle(f"{seen.test.title} ({_where(seen)})")
    return save(figure, folder, f"failure_{seen.test.name}")


def _where(seen: FailureRun) -> str:
    return "live" if seen.test.runtime == "ray" else "virtual time"


def _draw_latencies(axes: Any, seen: FailureRun) -> None:
    for name, series in seen.latencies.items():
        axes.plot(
            [sent_ms / 1e3 for sent_ms, _ in series], [late_ms for _, late_ms in series], linestyle="none",
            marker=_MARKERS[name], markersize=2.5, color=_COLOURS[name], label=f"a subscriber at {name}",
        )  # fmt: skip


def _draw_nacks(axes: Any, seen: FailureRun) -> None:
    drawn = False
    for place, (name, nacks) in enumerate(seen.nacks.items()):
        if nacks:
            drawn = True
            axes.plot(  # those that lie on one another are seen by their size
                [at_ms / 1e3 for at_ms, _ in nacks], list(accumulate(ticks for _, ticks in nacks)),
                marker=_MARKERS[name], markersize=11 - 2 * place, color=_COLOURS[name], drawstyle="steps-post",
                label=f"nacks of {name}", fillstyle="none",
            )  # fmt: skip
    if drawn:
        _mark_near(axes, seen.faults)
        axes.legend(frameon=False)
    else:
        axes.text(0.5, 0.5, "no nacks", transform=axes.transAxes, ha="center")
        axes.set(xticks=[], yticks=[])
    axes.set(xlabel="time of the nack (s)", ylabel="ticks asked for, cumulative (ms)", ylim=(0, None))


def throughput(seen: FailureRun, folder: Path) -> Path:
    """Deliveries in each second at the subscribers' brokers behind b1, and at the others; faults are marked."""
    figure, (behind, untouched) = panels(2, width=5.8, share_y=True)
    for axes, brokers, title in (
        (behind, BEHIND_B1, "ways lead by b1 and b2"),
        (untouched, UNTOUCHED, "ways lead by b3 and b4"),
    ):
        for place, broker in enumerate(brokers):
            counts = seen.deliveries[broker]
            axes.stairs(
                counts, range(len(counts) + 1), baseline=None, color=_COLOURS[broker], label=f"at {broker}",
                linewidth=3 - place,
            )  # fmt: skip
        axes.set(xlabel="time (s)", ylabel="deliveries in each second", title=title)
        axes.legend(frameon=False, loc="lower center", ncols=3)
    _leave_room(behind)
    for axes in (behind, untouched):
        _mark(axes, seen.faults, words=axes is behind)
    figure.suptitle(f"{seen.test.title} ({_where(seen)})")
    return save(figure, folder, "throughput")


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


def _mark_near(axes: Any, faults: Sequence[tuple[float, str]]) -> None:
    low, high = axes.get_xlim()
    _mark(axes, [(at_ms, text) for at_ms, text in faults if low <= at_ms / 1e3 <= high], words=False)


def _leave_room(axes: Any) -> None:
    """Above what is drawn, for the words of the faults."""
    axes.set_ylim(0, 1.3 * axes.get_ylim()[1])


def _mark(axes: Any, faults: Sequence[tuple[float, str]], words: bool) -> None:
    for at_ms, text in _together(faults):
        axes.axvline(at_ms / 1e3, color="#888888", linestyle=":", linewidth=1)
        if words:
            axes.annotate(
                f" {text} ", (at_ms / 1e3, 0.98), xycoords=("data", "axes fraction"), rotation=90, fontsize=8,
                color="#444444", ha="left", va="top", bbox={"color": "white", "alpha": 0.7, "pad": 0.5},
            )  # fmt: skip


def _together(faults: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """Faults in words; those that came at about one time in one line, and several of one kind by their number."""
    found: list[tuple[float, list[str]]] = []
    for at_ms, text in faults:
        if found and at_ms - found[-1][0] < _AT_ONCE_MS:
            found[-1][1].append(text)
        else:
            found.append((at_ms, [text]))
    return [(at_ms, ", ".join(_counted(texts))) for at_ms, texts in found]


def _counted(texts: Sequence[str]) -> list[str]:
    by_kind: dict[str, list[str]] = {}
    for text in texts:
        by_kind.setdefault(text.split()[0], []).append(text)
    return [same[0] if len(same) == 1 else f"{kind} {len(same)} links" for kind, same in by_kind.items()]
