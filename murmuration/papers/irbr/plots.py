"""Plots of the IRBR paper's charts: the three protocols in each, one panel for each rate."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from murmuration.papers.irbr.live import CHURN_S, END_S, KILL_S, LIVE_BIN_S, IrbrLiveRun
from murmuration.papers.irbr.run import BIN_US, FOUND_US, KILL_US, PUBLISH_FROM_US, OperationCost, Resilience
from murmuration.papers.irbr.spread import Ratio, operation, wanted
from murmuration.papers.lab.plotting import panels, save
from murmuration.papers.lab.real_data import Trace

PROTOCOL_NAMES = {
    "irbr": "IRBR", "rpf": "RPF", "scribe": "Scribe", "rpf_receiver": "RPF, covering at the receiver",
    "rpf_routed": "RPF, routed back",
    "scribe_routed": "Scribe, routed back", "irbr_probes": "IRBR, probes alone",
    "rpf_resets": "RPF, told of failures", "scribe_resets": "Scribe, told of failures",
}  # fmt: skip
_CHURN: dict[Trace, str] = {"generated": "of generated sessions", "skype": "of Skype superpeers"}
_COLOURS = {"irbr": "#d62728", "rpf": "#1f77b4", "scribe": "#2ca02c"}
_MARKERS = {"irbr": "o", "rpf": "s", "scribe": "^", "rpf_receiver": "P", "rpf_routed": "D", "scribe_routed": "v",
            "irbr_probes": "x", "rpf_resets": "D", "scribe_resets": "v"}  # fmt: skip
_STYLES = {"irbr": "-", "rpf": "--", "scribe": ":", "rpf_receiver": "-.", "irbr_probes": (0, (1, 3))}
"""Different styles, for the curves often lie on each other."""


def _line(axes: Any, routing: str, x: Sequence[float], y: Sequence[float]) -> None:
    axes.plot(
        x, y, label=PROTOCOL_NAMES[routing], color=_COLOURS[routing.split("_")[0]], marker=_MARKERS[routing],
        markersize=4, linestyle=_STYLES.get(routing, "-"), zorder=3 if routing == "irbr" else 2,
    )  # fmt: skip


def subscribing(costs: Sequence[OperationCost], nodes: int, folder: Path) -> Path:
    """Mean messages a subscribe operation against subscriptions."""
    rates = list(dict.fromkeys(cost.spec.rates for cost in costs))
    figure, axes = panels(len(rates), width=4.6)
    for each, rate in zip(axes, rates, strict=True):
        chosen = [cost for cost in costs if cost.spec.rates == rate]
        for cost in chosen:
            _line(each, cost.spec.routing, cost.spec.checkpoints, cost.subscribe)
        each.set(xlabel="subscriptions", ylim=(0, None), title=f"covering rate {100 * chosen[0].covering:.1f} %")
    axes[0].set_ylabel("messages a subscribe operation")
    axes[0].legend(frameon=False)
    figure.suptitle(f"Subscribing, {nodes:,} nodes")
    return save(figure, folder, f"subscribe_{nodes}")


def publishing(costs: Sequence[OperationCost], nodes: int, folder: Path) -> Path:
    """Mean messages a publish operation against subscriptions, and the interested nodes, which are the least."""
    rates = list(dict.fromkeys(cost.spec.rates for cost in costs))
    figure, axes = panels(len(rates), width=4.6)
    for each, rate in zip(axes, rates, strict=True):
        chosen = [cost for cost in costs if cost.spec.rates == rate]
        for cost in chosen:
            _line(each, cost.spec.routing, cost.spec.checkpoints, cost.publish)
        first = chosen[0]
        each.plot(first.spec.checkpoints, first.interested, color="#888888", linewidth=1, label="interested nodes")
        each.set(xlabel="subscriptions", ylim=(0, None), title=f"matching rate {100 * first.matching:.1f} %")
    axes[0].set_ylabel("messages a publish operation")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False)
    figure.suptitle(f"Publishing, {nodes:,} nodes")
    return save(figure, folder, f"publish_{nodes}")


def ratios(found: Sequence[Ratio], folder: Path) -> Path:
    """IRBR's messages over those of each baseline: a dot for each seed, and a bar for their mean."""
    figure, (axes,) = panels(width=8.0)
    for row, ratio in enumerate(found):
        colour = _COLOURS[ratio.other.split("_")[0]]
        axes.plot(ratio.ratios, [row] * len(ratio.seeds), ".", color=colour, alpha=0.45, markersize=7)
        axes.plot([ratio.mean], [row], "|", color=colour, markersize=16, markeredgewidth=2)
    axes.axvline(1, color="black", linewidth=0.8, linestyle=":")
    labels = [
        f"{operation(each.rates)}, {100 * wanted(each.rates):g} %: {PROTOCOL_NAMES[each.other]}, {each.nodes:,} nodes"
        for each in found
    ]
    axes.set_yticks(range(len(found)), labels, fontsize=7)
    axes.set(xlabel="messages of IRBR over the baseline's (a dot: one seed; a bar: the mean)", xlim=(0, 1.2))
    axes.xaxis.label.set_size(9)
    axes.invert_yaxis()
    return save(figure, folder, "ratios")


def delivery_over_time(runs: Sequence[Resilience], nodes: int, folder: Path) -> Path:
    """Delivery rate among those that stayed up, by time of publication, for each killed share."""
    kinds = list(dict.fromkeys((run.spec.killed, run.spec.churn_per_s) for run in runs))
    figure, axes = panels(len(kinds), width=4.6)
    for each, kind in zip(axes, kinds, strict=True):
        for run in runs:
            if (run.spec.killed, run.spec.churn_per_s) == kind:
                bins = range(PUBLISH_FROM_US // BIN_US, len(run.required))
                rates = [100 * run.made[at] / max(1, run.required[at]) for at in bins]
                _line(each, run.spec.routing, [(at + 0.5) * BIN_US / 1e6 for at in bins], rates)
        killed, churn = kind
        marks = ((KILL_US, "begins"),) if churn else ((KILL_US, "kill"), (FOUND_US, "found"))
        for at_us, text in marks:
            each.axvline(at_us / 1e6, color="black", linewidth=0.8, linestyle=":")
            each.annotate(text, (at_us / 1e6 + 0.1, 2), fontsize=8)
        title = f"{churn:g} nodes a second come and go" if churn else f"{100 * killed:.0f} % killed at once"
        each.set(xlabel="time of publication (s)", ylim=(0, 103), title=title)
    axes[0].set_ylabel("delivered to nodes that stayed up (%)")
    axes[0].legend(frameon=False, loc="lower right")
    figure.suptitle(f"Failures, {nodes:,} nodes")
    return save(figure, folder, f"failures_{nodes}")


def live_delivery(runs: Sequence[IrbrLiveRun], trace: Trace, folder: Path) -> Path:
    """Delivery rate on live actors among those that no fault touched, by time of publication; kills and starts are
    marked below."""
    figure, (axes,) = panels(1, width=7.5)
    for run in runs:
        x = [(at + 0.5) * LIVE_BIN_S for at in range(END_S // LIVE_BIN_S)]
        rates = [100 * made / max(1, due) for made, due in zip(run.made, run.required, strict=True)]
        _line(axes, run.spec.routing, x, rates[: len(x)])
    for at_s, text in ((KILL_S, "13 killed at once"), (CHURN_S, "churn begins")):
        axes.axvline(at_s, color="black", linewidth=0.8, linestyle=":")
        axes.annotate(text, (at_s + 0.3, 45), fontsize=8, bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})
    first = runs[0]
    axes.plot(first.kills, [3] * len(first.kills), "x", color="#444444", markersize=5, label="a kill")
    axes.plot(first.starts, [8] * len(first.starts), "+", color="#444444", markersize=6, label="a start")
    axes.set(
        xlabel="time of publication (s)", ylabel="delivered to nodes that stayed up (%)", ylim=(0, 103),
        xlim=(0, END_S), title=f"64 live actors, churn {_CHURN[trace]}",
    )  # fmt: skip
    axes.legend(frameon=False, loc="center", bbox_to_anchor=(0.5, 0.27), ncols=2)
    return save(figure, folder, f"live_{trace}")


def delivery_by_share(runs: Sequence[Resilience], nodes: int, folder: Path) -> Path:
    """Delivery rate before the failures are found, against the killed share."""
    figure, axes = panels(width=4.6)
    for routing in PROTOCOL_NAMES:
        chosen = sorted(
            (100 * run.spec.killed, 100 * run.rate(KILL_US + BIN_US, FOUND_US))
            for run in runs
            if run.spec.routing == routing and not run.spec.churn_per_s
        )
        if chosen:
            _line(axes[0], routing, [share for share, _ in chosen], [rate for _, rate in chosen])
    axes[0].set(
        xlabel="nodes killed at once (%)", ylabel="delivered to survivors (%)", ylim=(0, 103),
        title=f"Before the failures are found, {nodes:,} nodes",
    )  # fmt: skip
    axes[0].legend(frameon=False)
    return save(figure, folder, f"killed_share_{nodes}")
