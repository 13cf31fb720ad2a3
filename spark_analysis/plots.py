"""The figures of a report, each a chart made from one or two tables of the analysis.

A figure of an empty table is None, and the report says in words why there is none.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from murmur_page.graph_layout import positions
from spark_analysis import wording
from spark_analysis.charts import Axis, Panel, Readings, chart, thinned
from spark_analysis.look import BLUE, GREY, ORANGE, RED

NAMED_BROKERS_MAX = 48
DRAWN_BROKERS_MAX = 600
_BARS_NAMED_MAX = 24
_PALE, _PASSED, _ENTERED = "#b9cfe6", "#e3a77c", "#d5dae0"
_LOW, _HIGH = (0xFF, 0xF7, 0xE3), (0x8A, 0x3A, 0x06)


def delay_cdf(cdf: pd.DataFrame, summary: Mapping[str, Any], what: str) -> str | None:
    """The CDF of a delay with its median and 99th percentile marked."""
    if cdf.empty:
        return None
    unit_us, unit = (1_000, "ms") if summary["p99_us"] < 5_000_000 else (1_000_000, "s")
    cdf = cdf.iloc[thinned(len(cdf))]
    delays, shares = cdf["delay_us"].to_numpy() / unit_us, 100 * cdf["share"].to_numpy()
    words = f"{what} ({unit})"
    if delays[-1] > 20 * max(summary["p50_us"] / unit_us, 1e-3):
        across = Axis.of_powers(delays[delays > 0][0] / 1.3, 1.05 * delays[-1], words)
    else:
        across = Axis.of(0, 1.05 * delays[-1], words)
    panel = Panel(across, Axis.of(0, 100, "share no later (%)"), 210)
    panel.curve(np.r_[delays[0], delays], np.r_[0, shares], steps=True)
    for name, height in (("p50", 50), ("p99", 99)):
        at = summary[f"{name}_us"] / unit_us
        panel.dots([at], [height], ORANGE, 8)
        side = "before" if across.places([at])[0] > 0.6 else "after"
        panel.note(at, height, f"{name} {wording.duration(summary[f'{name}_us'])}", side, ORANGE)
    at = [wording.duration(each) for each in cdf["delay_us"]]
    return chart([panel], Readings(delays, at, [("no later:", _shares(shares))]), f"CDF of {what}")


def hop_cdf(cdf: pd.DataFrame) -> str | None:
    """How many brokers deliveries passed after the first: the share of each number, and their CDF."""
    if cdf.empty:
        return None
    hops = cdf["hops"].to_numpy()
    own, most = 100 * cdf["count"] / cdf["count"].sum(), 100 * cdf["share"]
    across = Axis.of(-0.6, hops[-1] + 0.6, "brokers after the first (hops)", 10, whole=True)
    key = ((_PALE, "with this number"), (BLUE, "with at most this number"))
    panel = Panel(across, Axis.of(0, 100, "share of deliveries (%)"), 210, key)
    panel.bars(hops - 0.35, hops + 0.35, np.zeros(len(hops)), own, _PALE)
    panel.curve(hops, most, dots=6)
    readings = Readings(
        hops, [f"hops: {each}" for each in hops],
        [("with this number:", _shares(own)), ("with at most this number:", _shares(most))],
    )  # fmt: skip
    return chart([panel], readings, "Hop count of deliveries")


def load_cdf(cdf: pd.DataFrame) -> str | None:
    """Which part of the brokers has at most a load."""
    if cdf.empty or not cdf["load"].any():
        return None
    cdf = cdf.iloc[thinned(len(cdf))]
    loads, shares = 100 * cdf["load"].to_numpy(), 100 * cdf["share"].to_numpy()
    across = Axis.of(0, max(101, 1.03 * loads.max()), "share of all events that reach a broker (%)", 10)
    panel = Panel(across, Axis.of(0, 100, "brokers with no more (%)"), 210)
    panel.curve(np.r_[0, loads], np.r_[0, shares], steps=True)
    return chart([panel], Readings(loads, _shares(loads), [("brokers with no more:", _shares(shares))]), "Load CDF")


def load_by_broker(brokers: pd.DataFrame) -> str | None:
    """The load of each broker, split into events wanted there and events only passed on, highest first."""
    if brokers.empty or not brokers["events"].any():
        return None
    ranked = brokers.sort_values(["events", "node"], ascending=[False, True])
    scale = 100 * ranked["load"] / ranked["events"].clip(lower=1)
    places = np.arange(1, len(ranked) + 1)
    entered = ranked["events"] - ranked["interested"] - ranked["pure_forwarder"]
    parts = (
        ("delivered there", ranked["interested"] * scale, BLUE),
        ("only passed on", ranked["pure_forwarder"] * scale, _PASSED),
        ("published there, wanted elsewhere", entered * scale, _ENTERED),
    )
    few = len(ranked) <= _BARS_NAMED_MAX
    marks = list(zip(places.tolist(), ranked["name"], strict=True)) if few else []
    words = "broker" if marks else "brokers, highest load first"
    across = Axis(0.4, len(ranked) + 0.6, words, marks)
    up = Axis.of(0, 105 * ranked["load"].max(), "share of all events (%)")
    panel = Panel(across, up, 210, [(colour, name) for name, _, colour in parts])
    wide = 0.4 if few else 0.5
    bottom = np.zeros(len(ranked))
    for _, part, colour in parts:
        panel.bars(places - wide, places + wide, bottom, bottom + part, colour)
        bottom = bottom + part
    series = [(f"{name}:", _shares(part)) for name, part, _ in parts]
    return chart([panel], Readings(places, list(ranked["name"]), series), "Load by broker")


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
    width_us = summary["bucket_us"]
    begin_us, end_us = int(traffic["bucket_us"].min()), max(traffic["bucket_us"].max(), summary["last_us"])
    buckets = np.arange(begin_us, end_us + width_us, width_us)
    filled = traffic.set_index("bucket_us").reindex(buckets, fill_value=0)
    unit_us, unit = (1e6, "s") if end_us < 7_200e6 else (3_600e6, "h")
    across = Axis.of(begin_us / unit_us, (buckets[-1] + width_us) / unit_us, f"emulated time ({unit})", 10)
    edges = np.r_[buckets, buckets[-1] + width_us] / unit_us
    shown = [("published", "publications (1/s)", BLUE), ("delivered", "deliveries (1/s)", BLUE)]
    if filled["sent"].any():
        shown.append(("sent", "messages sent (1/s)", GREY))
    panels, series = [], []
    for column, words, colour in shown:
        rates = filled[column] / (width_us / 1e6)
        high, peak_us = _height(rates, phases)
        panel = Panel(across, Axis.of(0, high, words, 4), 84)
        panel.curve(edges, np.r_[rates, rates.iloc[-1]], colour, steps=True, filled=True, width=1.3)
        if peak_us is not None:
            panel.note(
                (peak_us + width_us) / unit_us, 0.9 * high, f"before: up to {rates.max():,.0f}", "after", "#55606b"
            )
        panels.append(panel)
        series.append((f"{words.split(' (')[0]}:", [wording.rate(each) for each in rates]))
    if not delivery_rate.empty:
        rate = 100 * delivery_rate["delivery_rate"]
        panel = Panel(across, Axis.of(min(90, 0.95 * rate.min()), 100, "delivery rate (%)", 4), 84)
        panel.curve((delivery_rate["bucket_us"] + width_us / 2) / unit_us, rate, ORANGE, dots=4, width=1.1)
        panels.append(panel)
        at = dict(zip(delivery_rate["bucket_us"], delivery_rate["delivery_rate"], strict=True))
        series.append(("delivery rate:", [wording.share(at[each]) if each in at else "" for each in buckets.tolist()]))
    begins = phases.loc[phases["begin_us"].between(begin_us, end_us)]
    if len(faults):
        _draw_faults(panels, across, faults, end_us, unit_us)
        series.append(("in force:", _in_force(faults, buckets.tolist(), width_us)))
    for panel in panels:
        panel.rules(begins["begin_us"] / unit_us)
    _name_phases(panels[0], begins, unit_us)
    stretches = [f"{each / unit_us:,.3f} to {(each + width_us) / unit_us:,.3f} {unit}" for each in buckets]
    middles = (buckets + width_us / 2) / unit_us
    return chart(panels, Readings(middles, stretches, series), "Rates over time")


_FAULTS_DRAWN_MAX = 300
"""Above it they are counted instead of drawn one by one."""
_FAULTS_NAMED_MAX = 3


def _verb(fault: str) -> str:
    """The kind of a fault from its text, as `murmur_pubsub.faults.Fault` writes it: "kill b1 (step 3)"."""
    words = fault.split(" ")
    return " ".join(words[:2]) if words[0] in ("change", "lose") else words[0]


def _draw_faults(panels: list[Panel], across: Axis, faults: pd.DataFrame, end_us: int, unit_us: float) -> None:
    """A panel with a bar for each fault, and its shade over the others."""
    begins, ends = _times(faults, end_us)
    if len(faults) > _FAULTS_DRAWN_MAX:
        times = np.sort(np.r_[begins, ends])
        in_force = np.searchsorted(np.sort(begins), times, "right") - np.searchsorted(np.sort(ends), times, "right")
        counted = Panel(across, Axis.of(0, in_force.max(), "faults in force", whole=True), 84)
        drawn = thinned(len(times))
        counted.curve(times[drawn] / unit_us, in_force[drawn], RED, steps=True, width=0.9)
        panels.append(counted)
        return
    lanes = list(dict.fromkeys(map(_verb, faults["fault"])))
    lane = np.array([lanes.index(_verb(each)) for each in faults["fault"]])
    for panel in panels:
        low, high = (np.full(len(faults), each) for each in (panel.y.low, panel.y.high))
        panel.bars(begins / unit_us, ends / unit_us, low, high, RED, "0.06")
    names = Axis(len(lanes) - 0.4, -0.6, "faults", list(enumerate(lanes)))
    panel = Panel(across, names, 12 + 18 * len(lanes))
    shortest = (across.high - across.low) / 300
    panel.bars(begins / unit_us, np.maximum(ends / unit_us, begins / unit_us + shortest), lane + 0.35, lane - 0.35, RED)
    panels.append(panel)


def _times(faults: pd.DataFrame, end_us: int) -> tuple["np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]:
    """When each was in force; one that was not undone, to the end."""
    ends = faults["until_us"].astype("Float64").fillna(end_us)
    return faults["from_us"].to_numpy(float), ends.to_numpy(float)


def _in_force(faults: pd.DataFrame, buckets: Sequence[int], width_us: int) -> list[str]:
    """The faults that were in force in each stretch of the run."""
    begins, ends = _times(faults, int(buckets[-1]) + width_us)
    texts = [str(each) for each in faults["fault"]]
    said = []
    for bucket in buckets:
        here = np.flatnonzero((begins < bucket + width_us) & (ends >= bucket)).tolist()
        named = ", ".join(texts[each] for each in here[:_FAULTS_NAMED_MAX])
        more = len(here) - _FAULTS_NAMED_MAX
        said.append(f"{named} and {more} more" if more > 0 else named)
    return said


def _height(rates: "pd.Series[float]", phases: pd.DataFrame) -> tuple[float, float | None]:
    """How high a panel is. A burst before publishing that would flatten the rest is cut off: when its peak was."""
    publishing = phases.loc[phases["phase"] == "publishing", "begin_us"]
    after = rates[rates.index > (publishing.iloc[0] if len(publishing) else rates.index[0])]
    highest, usual = float(rates.max()), float(after.max()) if len(after) else 0.0
    if not usual or highest <= 4 * usual:
        return 1.12 * highest or 1.0, None
    return 1.6 * usual, float(rates.index[int(rates.to_numpy().argmax())])


def _name_phases(panel: Panel, phases: pd.DataFrame, unit_us: float) -> None:
    """The name of each phase where it begins; names that would collide share a label."""
    labels: list[tuple[float, list[str]]] = []
    for name, begin_us in zip(phases["phase"], phases["begin_us"], strict=True):
        place = panel.x.places([begin_us / unit_us])[0]
        if labels and place - panel.x.places([labels[-1][0]])[0] < 0.3:
            labels[-1][1].append(str(name))
        else:
            labels.append((begin_us / unit_us, [str(name)]))
    for at, names in labels:
        side = "over-end" if panel.x.places([at])[0] > 0.6 else "over"
        panel.note(at, panel.y.high, ", ".join(names), side)


def overlay_graph(names: Sequence[str], edges: Sequence[tuple[str, str]], brokers: pd.DataFrame) -> str | None:
    """The overlay, each broker coloured by its load."""
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(names)
    graph.add_edges_from(edge for edge in edges if edge[0] in graph and edge[1] in graph)
    if not edges or len(graph) > DRAWN_BROKERS_MAX:
        return None
    load = dict(zip(brokers["name"], brokers["load"], strict=True))
    where = positions(graph)
    xs, ys = (np.array([where[name][axis] for name in graph]) for axis in (0, 1))
    room = 0.07 * max(np.ptp(xs), np.ptp(ys), 1e-9)
    few = len(graph) <= NAMED_BROKERS_MAX
    across, up = (Axis(each.min() - room, each.max() + room, "", []) for each in (xs, ys))
    most = max(load.values(), default=0.0)
    key = [(_shade(0), "0 % of all events"), (_shade(1), f"{wording.share(most)}")]
    panel = Panel(across, up, 430, key)
    panel.lines([(where[a], where[b]) for a, b in graph.edges], "#b3bbc4")
    panel.dots(xs, ys, "#6b4a2b", 27 if few else 11)
    shades: dict[str, list[str]] = {}
    for name in graph:
        shades.setdefault(_shade(load.get(name, 0.0) / most if most else 0.0), []).append(name)
    for shade, members in shades.items():
        placed = np.array([where[name] for name in members])
        panel.dots(placed[:, 0], placed[:, 1], shade, 25 if few else 9)
    if few:
        for name in graph:
            light = load.get(name, 0.0) > 0.55 * most
            panel.note(*where[name], name, "in", "#ffffff" if light else "")
    readings = Readings(xs, list(graph), [("load:", [wording.share(load.get(name, 0.0)) for name in graph])], ys)
    return chart([panel], readings, "Overlay, brokers coloured by load")


_SHADES = 8


def _shade(share: float) -> str:
    """One of a few colours from light to dark."""
    step = round(share * _SHADES) / _SHADES
    return "#" + "".join(f"{round(a + step * (b - a)):02x}" for a, b in zip(_LOW, _HIGH, strict=True))


def _shares(values: Any) -> list[str]:
    return [wording.share(each / 100) for each in values]
