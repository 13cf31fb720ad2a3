"""The figures of a report, each as an SVG data URI made from one or two tables of the analysis.

One look for all: a white ground, one blue, thin axes left and below, a faint grid, and a unit on every axis.
A figure of an empty table is None, and the report says in words why there is none.
"""

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import networkx as nx
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from murmur_page.graph_layout import positions
from spark_analysis import wording

BLUE, ORANGE, GREY, INK, RED = "#2563a6", "#c2601b", "#8a9199", "#1c2733", "#b3261e"
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "axes.labelsize": 8.5,
    "axes.edgecolor": "#9aa3ad",
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e7eb",
    "grid.linewidth": 0.7,
    "text.color": INK,
    "xtick.color": "#55606b",
    "ytick.color": "#55606b",
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "svg.hashsalt": "murmur",
}
_LABEL_GROUND: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.2}
NAMED_BROKERS_MAX = 48
DRAWN_BROKERS_MAX = 600
HALF_WIDTH, FULL_WIDTH = 5.3, 10.8


def picture(figure: Figure) -> str:
    """The figure as a data URI."""
    out = io.BytesIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(out.getvalue()).decode()


def _axes(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def delay_cdf(cdf: pd.DataFrame, summary: Mapping[str, Any], what: str) -> str | None:
    """The CDF of a delay with its median and 99th percentile marked."""
    if cdf.empty:
        return None
    with mpl.rc_context(STYLE):
        figure, axes = _axes(HALF_WIDTH, 2.9)
        unit_us, unit = (1_000, "ms") if summary["p99_us"] < 5_000_000 else (1_000_000, "s")
        delays = cdf["delay_us"].to_numpy() / unit_us
        axes.step(np.r_[delays[0], delays], np.r_[0, 100 * cdf["share"]], where="post", color=BLUE, linewidth=1.6)
        wide = delays[-1] > 20 * max(summary["p50_us"] / unit_us, 1e-3) and delays[0] > 0
        axes.set_xscale("log" if wide else "linear")
        if wide:
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        else:
            axes.set_xlim(0, 1.05 * delays[-1] or 1)
        axes.set_ylim(0, 101)
        for name, height in (("p50", 50), ("p99", 99)):
            at = summary[f"{name}_us"] / unit_us
            axes.plot([at], [height], "o", color=ORANGE, markersize=4.5, zorder=3)
            left = not wide and at > 0.6 * delays[-1]
            axes.annotate(
                f"{name}  {wording.duration(summary[f'{name}_us'])}",
                (at, height), xytext=(-7 if left else 7, -9), textcoords="offset points",
                ha="right" if left else "left", va="center", color=ORANGE, bbox=_LABEL_GROUND,
            )  # fmt: skip
        axes.set_xlabel(f"{what} ({unit}{', logarithmic' if wide else ''})")
        axes.set_ylabel("share no later (%)")
        return picture(figure)


def hop_cdf(cdf: pd.DataFrame) -> str | None:
    """How many brokers deliveries passed after the first: the share of each number, and their CDF."""
    if cdf.empty:
        return None
    with mpl.rc_context(STYLE):
        figure, axes = _axes(HALF_WIDTH, 2.9)
        hops = cdf["hops"].to_numpy()
        axes.bar(hops, 100 * cdf["count"] / cdf["count"].sum(), width=0.7, color="#b9cfe6", label="with this number")
        axes.plot(
            hops,
            100 * cdf["share"],
            color=BLUE,
            linewidth=1.6,
            marker="o",
            markersize=3.5,
            label="with at most this number",
        )
        axes.set_ylim(0, 104)
        axes.set_xlim(-0.6, hops[-1] + 0.6)
        axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(integer=True))
        axes.grid(axis="x", visible=False)
        axes.set_xlabel("brokers after the first (hops)")
        axes.set_ylabel("share of deliveries (%)")
        axes.legend(frameon=False, loc="center right")
        return picture(figure)


def load_cdf(cdf: pd.DataFrame) -> str | None:
    """Which part of the brokers has at most a load."""
    if cdf.empty or not cdf["load"].any():
        return None
    with mpl.rc_context(STYLE):
        figure, axes = _axes(HALF_WIDTH, 2.9)
        axes.step(np.r_[0, 100 * cdf["load"]], np.r_[0, 100 * cdf["share"]], where="post", color=BLUE, linewidth=1.6)
        axes.set_xlim(0, max(101, 103 * cdf["load"].max()))
        axes.set_ylim(0, 101)
        axes.set_xlabel("load: share of all events that reach a broker (%)")
        axes.set_ylabel("brokers with no more (%)")
        return picture(figure)


def load_by_broker(brokers: pd.DataFrame) -> str | None:
    """The load of each broker, split into events wanted there and events only passed on, highest first."""
    if brokers.empty or not brokers["events"].any():
        return None
    with mpl.rc_context(STYLE):
        figure, axes = _axes(FULL_WIDTH, 2.9)
        ranked = brokers.sort_values(["events", "node"], ascending=[False, True])
        scale = 100 * ranked["load"] / ranked["events"].clip(lower=1)
        places = np.arange(1, len(ranked) + 1)
        wanted = ranked["interested"] * scale
        axes.bar(places, wanted, width=0.8, color=BLUE, label="delivered there")
        axes.bar(
            places,
            ranked["pure_forwarder"] * scale,
            bottom=wanted,
            width=0.8,
            color="#e3a77c",
            label="only passed on",
        )
        entered = (ranked["events"] - ranked["interested"] - ranked["pure_forwarder"]) * scale
        passed = ranked["pure_forwarder"] * scale
        axes.bar(
            places,
            entered,
            bottom=wanted + passed,
            width=0.8,
            color="#d5dae0",
            label="published there, wanted elsewhere",
        )
        axes.set_xlim(0.2, len(ranked) + 0.8)
        if len(ranked) <= NAMED_BROKERS_MAX:
            axes.set_xticks(places, list(ranked["name"]), rotation=90 if len(ranked) > 20 else 0)
            axes.tick_params(axis="x", length=0)
            axes.set_xlabel("broker")
        else:
            axes.set_xlabel("brokers, highest load first (rank)")
        axes.grid(axis="x", visible=False)
        axes.set_ylabel("share of all events (%)")
        axes.legend(frameon=False, loc="upper right", ncols=3, bbox_to_anchor=(1, 1.14))
        return picture(figure)


def course(
    traffic: pd.DataFrame,
    delivery_rate: pd.DataFrame,
    phases: pd.DataFrame,
    faults: pd.DataFrame,
    summary: Mapping[str, Any],
) -> str | None:
    """Publications, deliveries, messages and the delivery rate over the run, with its phases and faults."""
    if traffic.empty:
        return None
    width_us = int(summary["bucket_us"])
    begin_us, end_us = int(traffic["bucket_us"].min()), int(summary["last_us"])
    buckets = np.arange(begin_us, end_us + width_us, width_us)
    filled = traffic.set_index("bucket_us").reindex(buckets, fill_value=0)
    panels: list[tuple[str, pd.Series, str]] = [
        ("publications\n(1/s)", filled["published"] / (width_us / 1e6), BLUE),
        ("deliveries\n(1/s)", filled["delivered"] / (width_us / 1e6), BLUE),
    ]
    if filled["sent"].any():
        panels.append(("messages sent\n(1/s)", filled["sent"] / (width_us / 1e6), GREY))
    with mpl.rc_context(STYLE):
        rows = len(panels) + (not delivery_rate.empty)
        lanes = _lanes(faults)
        lane_height = 1.15 if len(faults) > _FAULTS_DRAWN_MAX else 0.3 + 0.16 * len(lanes)
        heights = [1.15] * rows + [lane_height] * bool(lanes)
        figure = Figure(figsize=(FULL_WIDTH, 0.5 + sum(heights)), layout="constrained")
        stacked = list(np.atleast_1d(figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)))
        seconds = np.r_[buckets, buckets[-1] + width_us] / 1e6
        for axes, (label, series, colour) in zip(stacked, panels, strict=False):
            axes.stairs(series.to_numpy(), seconds, color=colour, fill=True, alpha=0.18)
            axes.stairs(series.to_numpy(), seconds, color=colour, linewidth=1.3)
            _limit(axes, series, phases, width_us)
            axes.set_ylabel(label)
            axes.yaxis.set_major_formatter(mpl.ticker.FuncFormatter(lambda value, _: f"{value:,.10g}"))
            axes.yaxis.set_major_locator(mpl.ticker.MaxNLocator(4))
        if not delivery_rate.empty:
            axes = stacked[rows - 1]
            middles = (delivery_rate["bucket_us"] + width_us / 2) / 1e6
            axes.plot(
                middles,
                100 * delivery_rate["delivery_rate"],
                color=ORANGE,
                marker="o",
                markersize=2.5,
                linewidth=1.1,
            )
            axes.set_ylim(min(90, 95 * delivery_rate["delivery_rate"].min()), 101)
            axes.set_ylabel("delivery rate\n(%)")
        _mark_phases(stacked, phases, seconds[0], seconds[-1])
        if lanes:
            _mark_faults(stacked, faults, lanes, seconds[-1])
        stacked[-1].set_xlim(seconds[0], seconds[-1])
        stacked[-1].set_xlabel("emulated time (s)")
        figure.align_ylabels(stacked)
        return picture(figure)


def _lanes(faults: pd.DataFrame) -> list[str]:
    """What faults there were, in the order of their first: "kill", "cut", …"""
    return list(dict.fromkeys(_verb(fault) for fault in faults["fault"]))


_FAULTS_DRAWN_MAX = 300
"""Above it they are counted instead of drawn one by one."""


def _verb(fault: str) -> str:
    """The kind of a fault from its text, as `murmur_pubsub.faults.Fault` writes it: "kill b1 (step 3)"."""
    words = fault.split(" ")
    return " ".join(words[:2]) if words[0] in ("change", "lose") else words[0]


def _mark_faults(stacked: Sequence[Axes], faults: pd.DataFrame, lanes: Sequence[str], end: float) -> None:
    """A bar for each fault in the lowest panel, and its shadow over the others."""
    lowest = stacked[-1]
    begins = faults["from_us"].astype(float) / 1e6
    ends = faults["until_us"].astype("Float64").fillna(end * 1e6).astype(float) / 1e6
    if len(faults) > _FAULTS_DRAWN_MAX:
        times = np.sort(np.r_[begins, ends])
        in_force = np.searchsorted(np.sort(begins), times, "right") - np.searchsorted(np.sort(ends), times, "right")
        lowest.step(times, in_force, where="post", color=RED, linewidth=0.9)
        lowest.set_ylim(bottom=0)
        lowest.set_ylabel("faults\nin force")
        return
    for text, begin, until in zip(faults["fault"], begins, ends, strict=True):
        lane = lanes.index(_verb(text))
        lowest.barh(lane, max(until - begin, end / 500), left=begin, height=0.7, color=RED)
        for axes in stacked[:-1]:
            axes.axvspan(begin, until, color=RED, alpha=0.06, linewidth=0)
    lowest.set_yticks(range(len(lanes)), lanes, fontsize=7.5)
    lowest.set_ylim(len(lanes) - 0.4, -0.6)
    lowest.set_ylabel("faults")
    lowest.grid(visible=False)


def _limit(axes: Axes, series: "pd.Series[float]", phases: pd.DataFrame, width_us: int) -> None:
    """The height of a panel: a burst before publishing that would flatten the rest is cut off and named."""
    publishing = phases.loc[phases["phase"] == "publishing", "begin_us"]
    after = series[series.index > (publishing.iloc[0] if len(publishing) else series.index[0])]
    highest, usual = float(series.max()), float(after.max()) if len(after) else 0.0
    if not usual or highest <= 4 * usual:
        axes.set_ylim(0, 1.12 * highest or 1)
        return
    peak_us = float(series.index[int(series.to_numpy().argmax())])
    axes.set_ylim(0, 1.6 * usual)
    axes.annotate(
        f"before: up to {highest:,.0f}", ((peak_us + width_us) / 1e6, 1.45 * usual), xytext=(4, 0),
        textcoords="offset points", va="center", fontsize=7.5, color="#55606b", bbox=_LABEL_GROUND,
    )  # fmt: skip


def _mark_phases(stacked: Sequence[Axes], phases: pd.DataFrame, begin: float, end: float) -> None:
    """A dashed line where a phase begins, and its name above; names that would collide share a label."""
    labels: list[tuple[float, list[str]]] = []
    for name, begin_us in zip(phases["phase"], phases["begin_us"], strict=True):
        at = begin_us / 1e6
        if not begin <= at <= end:
            continue
        for axes in stacked:
            axes.axvline(at, color=GREY, linewidth=0.8, linestyle=(0, (3, 2)))
        if labels and at - labels[-1][0] < 0.1 * (end - begin):
            labels[-1][1].append(str(name))
        else:
            labels.append((at, [str(name)]))
    for at, names in labels:
        late = at > begin + 0.75 * (end - begin)
        stacked[0].annotate(
            ", ".join(names), (at, 1.0), xytext=(2 if late else 0, 4), textcoords="offset points",
            xycoords=stacked[0].get_xaxis_transform(), color="#55606b", fontsize=7.5,
            ha="right" if late else "left", va="bottom", annotation_clip=False,
        )  # fmt: skip


def overlay_graph(names: Sequence[str], edges: Sequence[tuple[str, str]], brokers: pd.DataFrame) -> str | None:
    """The overlay, each broker coloured by its load."""
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(names)
    graph.add_edges_from(edge for edge in edges if edge[0] in graph and edge[1] in graph)
    if not edges or len(graph) > DRAWN_BROKERS_MAX:
        return None
    load = dict(zip(brokers["name"], 100 * brokers["load"], strict=True))
    with mpl.rc_context(STYLE):
        few = len(graph) <= NAMED_BROKERS_MAX
        figure, axes = _axes(FULL_WIDTH, 5.0 if few else 6.4)
        where = positions(graph)
        nx.draw_networkx_edges(graph, where, ax=axes, edge_color="#b3bbc4", width=1.0)
        colours = [load.get(name, 0.0) for name in graph]
        drawn = nx.draw_networkx_nodes(
            graph, where, ax=axes, node_color=colours, cmap="YlOrBr", vmin=0, vmax=max(1.0, *colours),
            node_size=430 if few else 90, edgecolors="#6b4a2b", linewidths=0.6,
        )  # fmt: skip
        if few:
            dark = 0.6 * max(1.0, *colours)
            for light, colour in ((True, INK), (False, "white")):
                chosen = {name: name for name in graph if (load.get(name, 0.0) <= dark) is light}
                nx.draw_networkx_labels(graph, where, chosen, ax=axes, font_size=7, font_color=colour)
        axes.set_axis_off()
        axes.margins(0.04)
        bar = figure.colorbar(drawn, ax=axes, shrink=0.6, pad=0.01)
        bar.set_label("share of all events (%)")
        bar.outline.set_visible(False)
        return picture(figure)
