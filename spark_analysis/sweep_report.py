"""The report of a sweep: one HTML file that needs nothing else, made from its table of judged points."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from murmur_pubsub.whole_files import write_text
from spark_analysis import wording
from spark_analysis.report import figure_script, fill_template
from spark_analysis.sweep_plots import Measure, lines_of, sweep_figure

ROWS_SHOWN = 200
_COUNTS = ("missing", "duplicate", "spurious", "out_of_order")


def measures(table: pd.DataFrame) -> list[Measure]:
    """What is compared, in units that fit the numbers."""
    longest_us = table["delay_p99_us"].max()
    delay_us, delay = (1e3, "ms") if pd.isna(longest_us) or longest_us < 5e6 else (1e6, "s")
    return [
        Measure("delivery_rate", "Delivery rate", "deliveries made / required (%)", 0.01, share=True),
        Measure("delay_p50_us", "Delivery delay, median", f"median delay ({delay})", delay_us),
        Measure("delay_p99_us", "Delivery delay, 99th percentile", f"99th percentile ({delay})", delay_us),
        Measure("hops", "Hops of a delivery", "brokers after the first (mean)"),
        Measure("messages_per_publication", "Messages", "messages per event published"),
        Measure("bytes_per_publication", "Bytes", "kB sent per event published", 1e3),
        Measure("yield", "Yield", "broker visits that were wanted (%)", 0.01, share=True),
    ]


def write_sweep_report(
    folder: Path, table: pd.DataFrame, keys: Sequence[str], name: str, description: str, points: int, text: str
) -> Path:
    """Write `FOLDER/report.html`. `table` has a row for each judged point, `keys` are its parameters, `points` is how
    many there should be, `text` the sweep file."""
    compared = measures(table)
    varied = [key for key in keys if table[key].nunique() > 1]
    figures, constant, absent = [], [], []
    for measure in compared:
        found = table[measure.column].dropna() / measure.unit
        if found.empty:
            absent.append(measure.title)
        elif found.max() - found.min() <= 1e-9 * abs(found.max()):
            constant.append(f"{measure.title.lower()}: {_number(found.iloc[0])} ({measure.axis})")
        else:
            figures.append((measure.title, sweep_figure(table, keys, measure)))
    means = _means(table, keys, compared)
    wrong = table[table["verdict"] != "valid"]
    verdicts = table["verdict"].value_counts()
    page = fill_template(
        "sweep.html.j2",
        name=name,
        description=description,
        points=points,
        judged=len(table),
        verdicts={verdict: int(verdicts.get(verdict, 0)) for verdict in ("valid", "invalid", "unknown")},
        totals={each: int(table[each].sum()) for each in ("published", "required", "delivered", *_COUNTS, "explained")},
        seeds=int(table["seed"].nunique()),
        keys=list(keys),
        varied=varied,
        averaged=sorted({key for across in varied for key in _without_line(table, varied, across)}),
        figures=figures,
        constant=constant,
        absent=absent,
        columns=[measure.title for measure in compared],
        units=[measure.axis for measure in compared],
        means=means[:ROWS_SHOWN],
        means_count=len(means),
        wrong=wrong.head(ROWS_SHOWN).to_dict("records"),
        wrong_count=len(wrong),
        counts=_COUNTS,
        wall=wording.duration(1e6 * float(table["wall_s"].sum())),
        text=text,
        **figure_script(),
    )
    path = folder / "report.html"
    write_text(path, page)
    return path


def _without_line(table: pd.DataFrame, varied: Sequence[str], across: str) -> list[str]:
    drawn = lines_of(table, varied, across)
    return [key for key in varied if key != across and key not in drawn]


def _means(table: pd.DataFrame, keys: Sequence[str], compared: Sequence[Measure]) -> list[dict[str, Any]]:
    """For each setting of the parameters: how many runs, how many of them valid, and each measure over its seeds."""
    rows = []
    for values, runs in table.groupby(list(keys), sort=False):
        cells = [spread(runs[measure.column].dropna() / measure.unit, _number, "none") for measure in compared]
        valid = int((runs["verdict"] == "valid").sum())
        shown = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
        rows.append({"values": shown, "runs": len(runs), "valid": valid, "cells": cells})
    return rows


def spread(found: pd.Series, number: Callable[[float], str], nothing: str) -> tuple[str, str]:
    """The mean in words (`nothing`: of none), and the least and greatest if they differ."""
    if found.empty:
        return nothing, ""
    low, high = number(found.min()), number(found.max())
    return number(found.mean()), "" if low == high else f"{low} to {high}"


def _number(value: float) -> str:
    """At least three digits, and no more than two after the point."""
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"
