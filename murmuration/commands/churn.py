"""`murmur churn`: what a trace and the generator beside it look like, as numbers and as a picture."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from murmur_pubsub.errors import InputError
from murmur_pubsub.whole_files import whole
from murmuration.commands.console import RunProgress
from murmuration.commands.ending import result_at
from murmuration.deployment.churn import read_availability
from workloads.churn.fit import fit
from workloads.churn.generator import GeneratedChurn, generate
from workloads.churn.held_out import held_out
from workloads.churn.sessions import DAY_S, Availability
from workloads.churn.statistics import describe, side_by_side

_COLOURS = ("#2563a6", "#c2601b")


def show_churn(
    path: Path | None,
    nodes: int | None,
    days: float | None,
    seeds: Sequence[int],
    keep_outages: bool,
    picture: Path | None,
    only_fit: bool,
    fit_days: float | None,
) -> None:
    """What the command was asked for: the tables, the days held out, or both columns."""
    if path is None and (only_fit or fit_days is not None):
        option = "--fit" if only_fit else "--fit-days"
        raise InputError(option, "no trace", "an .avt availability trace to fit the generator to")
    if path is not None and only_fit:
        print_fit(path)
    elif path is not None and fit_days is not None:
        judge_churn(path, fit_days, seeds, keep_outages, picture)
    else:
        compare_churn(path, nodes, days, seeds, keep_outages, picture)


def compare_churn(
    path: Path | None,
    nodes: int | None,
    days: float | None,
    seeds: Sequence[int],
    keep_outages: bool,
    picture: Path | None,
) -> None:
    """Print a column for the trace and one for each seed, and draw the curves of the first two; raises `InputError`
    for a trace or numbers that cannot be used."""
    shown: dict[str, Availability] = {}
    begin_s = 0
    with RunProgress(quiet=False) as progress:
        if path is not None:
            progress.step("reading the trace", 0, 0)
            trace = shown[path.name] = read_availability(path, keep_outages)
            nodes = len(trace.seen.sessions) if nodes is None else nodes
            days = (trace.end_s - trace.begin_s) / DAY_S if days is None else days
            begin_s = trace.begin_s
        wanted = GeneratedChurn(2_000 if nodes is None else nodes, 25.0 if days is None else days, begin_s=begin_s)
        for done, seed in enumerate(seeds):
            progress.step("generating churn", done, len(seeds))
            shown[f"generated, seed {seed}"] = generate(wanted, seed)
    _show(shown, picture)


def judge_churn(path: Path, fit_days: float, seeds: Sequence[int], keep_outages: bool, picture: Path | None) -> None:
    """The same with tables fitted to the trace's first days alone: those days, then the days that follow, which are
    drawn."""
    with RunProgress(quiet=False) as progress:
        progress.step("reading the trace", 0, 0)
        trace = read_availability(path, keep_outages)
        progress.step("generating churn", 0, 0)
        first, following = held_out(trace, fit_days, seeds)
    generated = [f"generated, seed {seed}" for seed in seeds]
    _show(dict(zip([f"{path.name}, {fit_days:g} days fitted", *generated], first, strict=True)), None)
    _show(dict(zip([f"{path.name}, days held out", *generated], following, strict=True)), picture)


def _show(shown: Mapping[str, Availability], picture: Path | None) -> None:
    table = Table(box=None, header_style="bold")
    table.add_column("")
    for name in shown:
        table.add_column(name, justify="right")
    for row in side_by_side({name: describe(each) for name, each in shown.items()}):
        table.add_row(*row)
    Console().print(table)
    if picture is not None:
        draw_populations(shown, picture)
        print(f"population: {picture}")


def print_fit(path: Path) -> None:
    """The generator's tables for this trace, as Python."""
    with RunProgress(quiet=False) as progress:
        progress.step("fitting to the trace", 0, 0)
        tables = fit(read_availability(path))
    print("SKYPE = ChurnTables(")
    for field in dataclasses.fields(tables):
        print(f"    {field.name}={getattr(tables, field.name)},")
    print(")")


def draw_populations(shown: Mapping[str, Availability], picture: Path) -> None:
    """The population of each over the days of its window."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.2), layout="constrained")
    axes = figure.subplots()
    for (name, trace), colour in zip(shown.items(), _COLOURS, strict=False):
        times = np.arange(trace.begin_s, trace.end_s, 1_800)
        axes.plot((times - trace.begin_s) / DAY_S, trace.population(times.tolist()), color=colour, lw=1.1, label=name)
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.set_xlabel("days")
    axes.set_ylabel("nodes up")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, loc="lower right")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    try:
        with result_at(picture, picture), whole(picture) as draft:
            figure.savefig(draft, dpi=110)
    except ValueError as error:
        raise InputError(f"--out {picture}", str(error), "a PNG file") from None
