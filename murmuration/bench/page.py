"""The page of the table of all systems: one HTML file that needs nothing else, made from the table of played cells."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from murmur_pubsub.whole_files import write_text
from murmuration.bench.matrix import EVENTS_PER_BROKER, FAULTS, PUBLISHING_S, WORKLOADS
from murmuration.bench.plan import BenchPlan
from murmuration.registry import routing_named
from murmuration.version import own_version
from routing.protocol import RunsOn
from spark_analysis.charts import Axis, Panel, Readings, chart
from spark_analysis.report import figure_script, fill_template
from spark_analysis.sweep_plots import Measure
from spark_analysis.sweep_report import spread

SYSTEM = ["routing", "reliability"]
MEASURES = (
    Measure("delivery_rate", "delivered", "% of required", 0.01),
    Measure("rate_present", "of present", "% of required", 0.01),
    Measure("duplicates", "twice", "% of delivered", 0.01),
    Measure("hops", "hops", "mean"),
    Measure("overhead", "overhead", "% of copies", 0.01),
    Measure("delay_p50_us", "delay", "ms, median", 1e3),
    Measure("delay_p99_us", "delay", "ms, 99 %", 1e3),
    Measure("event_messages", "messages with it", "an event"),
    Measure("messages", "all messages", "an event"),
    Measure("message_bytes", "bytes", "kB an event", 1e3),
    Measure("recovery_us", "recovery", "s", 1e6),
)
_RATES = ("delivery_rate", "rate_present")
_IN_PEACE = ("hops", "overhead", "delay_p50_us", "delay_p99_us", "event_messages", "messages")
_COLOURS = {"best_effort": "#9cc3ea", "epidemic": "#f4bd8e", "gryphon": "#a5d6ad", "durable": "#cbb3e3"}
_OTHERS = "#c9ced3"


class Overview(NamedTuple):
    """One table of all systems: titles of its columns, and for each system its name and cells."""

    titles: Sequence[tuple[str, str]]
    rows: Sequence[tuple[str, Sequence[str]]]


def overview(table: pd.DataFrame) -> Overview:
    """Means over workloads and seeds: what was delivered under each fault; what it took with none; and recovery."""
    by_name = {measure.column: measure for measure in MEASURES}
    faults = [name for name in FAULTS if name in set(table["fault"])]
    columns = [("delivery_rate", fault) for fault in faults]
    columns += [("rate_present", fault) for fault in faults if fault not in ("none", "loss")]
    columns += [(name, "none") for name in _IN_PEACE if "none" in faults]
    columns += [("recovery_us", "killed")] if "killed" in faults else []
    titles = [
        (by_name[name].title, f"%; {fault}" if name in _RATES else f"{by_name[name].axis}; {fault}")
        for name, fault in columns
    ]
    rows = []
    for (routing, reliability), runs in table.groupby(SYSTEM, sort=False):
        cells = [
            number(float((_means(runs[runs["fault"] == fault], name) / by_name[name].unit).mean()))
            for name, fault in columns
        ]
        rows.append((f"{routing}/{reliability}", cells))
    return Overview(titles, rows)


def _means(runs: pd.DataFrame, name: str) -> "pd.Series[float]":
    """Of each workload, over its seeds: where some workloads have more seeds than others, each counts as one."""
    return runs[["workload", name]].dropna().astype({name: float}).groupby("workload", sort=False)[name].mean()


def write_page(
    folder: Path, table: pd.DataFrame, plan: BenchPlan, cards: Sequence[Mapping[str, Any]], brokers: int
) -> Path:
    """Write `FOLDER/bench.html`; `cards`: of the workloads and seeds that are in the table."""
    verdicts = table["verdict"].value_counts()
    page = fill_template(
        "bench.html.j2",
        Path(__file__).parent,
        murmur=own_version(),
        brokers=brokers,
        seeds=int(table["seed"].nunique()),
        planned=len(plan.cells),
        played=len(table),
        verdicts={each: int(verdicts.get(each, 0)) for each in ("valid", "invalid", "unknown")},
        cpu_h=f"{table['cpu_s'].sum() / 3600:.2f}",
        overview=overview(table),
        charts=_charts(table),
        colours={name: _colour(name) for name in dict.fromkeys(table["reliability"])},
        measures=MEASURES,
        sections=_sections(table),
        wrong=table[table["verdict"] != "valid"].to_dict("records"),
        reasons=plan.reasons,
        workloads={name: WORKLOADS[name].about for name in dict.fromkeys(table["workload"])},
        faults={name: FAULTS[name].about for name in dict.fromkeys(table["fault"])},
        structured=[name for name in dict.fromkeys(table["routing"]) if _is_structured(name)],
        linked=[name for name in dict.fromkeys(table["routing"]) if not _is_structured(name)],
        events=EVENTS_PER_BROKER * brokers,
        seconds=PUBLISHING_S,
        cards=[(card, json.dumps(card["generator"])) for card in cards],
        **figure_script(),
    )
    path = folder / "bench.html"
    write_text(path, page)
    return path


def number(value: float) -> str:
    """Three digits, or all before the point; a dash for what was not measured."""
    if pd.isna(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"


def _is_structured(routing: str) -> bool:
    return routing_named(routing).runs_on is RunsOn.STRUCTURED


def _colour(reliability: str) -> str:
    return _COLOURS.get(reliability, _OTHERS)


def _sections(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Each workload under each fault: of every system the means over seeds, with the least and the greatest."""
    found = []
    for (workload, fault), cells in table.groupby(["workload", "fault"], sort=False):
        rows = [
            {
                "system": f"{routing}/{reliability}",
                "runs": len(runs),
                "valid": int((runs["verdict"] == "valid").sum()),
                "cells": [
                    spread(runs[measure.column].dropna().astype(float) / measure.unit, number, "–")
                    for measure in MEASURES
                ],
                "again": f"{workload}/{fault}/{routing}/{reliability}/{runs['seed'].iloc[0]}",
            }
            for (routing, reliability), runs in cells.groupby(SYSTEM, sort=False)
        ]
        found.append({"workload": workload, "fault": fault, "rows": rows})
    return found


def _charts(table: pd.DataFrame) -> list[tuple[str, str]]:
    """What is delivered under each fault against what that takes; in peace, where all is delivered, how late it is."""
    systems = list(dict.fromkeys(table[SYSTEM].itertuples(index=False, name=None)))
    found = []
    for fault in dict.fromkeys(table["fault"]):
        runs = table[table["fault"] == fault]
        shown = runs[[*SYSTEM, "workload", "messages", "rate_present", "delay_p99_us"]]
        of_workloads = shown.groupby([*SYSTEM, "workload"], sort=False).mean(numeric_only=True)
        means = of_workloads.groupby(SYSTEM, sort=False).mean().dropna()
        means = means[means["messages"] > 0]
        if means.empty:
            continue
        peace = fault == "none"
        ys = means["delay_p99_us"] / 1e3 if peace else 100 * means["rate_present"]
        words = "delay of the slowest hundredth (ms)" if peace else "delivered (% of required)"
        room = 0.08 * (ys.max() - ys.min()) or 1
        across = Axis.of_powers(means["messages"].min() / 1.3, means["messages"].max() * 1.3, "messages an event")
        most = ys.max() + room if peace else min(100.0, ys.max() + room)
        panel = Panel(across, Axis.of(max(0.0, ys.min() - room), most, words), 300)
        names, said = [], []
        for system, x, y in zip(means.index, means["messages"], ys, strict=True):
            panel.dots([x], [y], _colour(system[1]), 17)
            panel.note(x, y, str(systems.index(system) + 1), "in")
            names.append("/".join(system))
            said.append(f"{number(y)} {'ms' if peace else '%'}, {number(x)} messages an event")
        readings = Readings(means["messages"].to_list(), names, [("", said)], ys.to_list())
        found.append((f"{fault}: {FAULTS[fault].about}", chart([panel], readings, f"All systems, {fault}")))
    return found
