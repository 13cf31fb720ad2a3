"""What `murmur bench` says and writes: what is going to be played and how long that takes, the table, its page."""

import json
from collections import Counter
from pathlib import Path

import pandas as pd
import typer
import yaml
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from murmur_pubsub.errors import RunError
from murmur_pubsub.whole_files import check_files, whole, write_text
from murmuration.bench.bench import BenchEnd, BenchRun
from murmuration.bench.costs import Estimate
from murmuration.bench.page import overview, write_page
from murmuration.bench.plan import BenchChoice, cell_named, checked_scenario, plan_bench
from murmuration.commands.console import RunProgress
from murmuration.sweeps.tasks import Cores

_FAILED_SHOWN = 5
_WRITTEN = ("table.csv", "table.parquet", "cards.json", "bench.html")
"""When no cell is left, or the bench is cut short."""
_WIDTH_MIN = 150
"""Of the table: on a narrower terminal its rows go on in the next line, and no figure is cut off."""


class BenchCutShort(RunError):
    """A bench that ended early; the same command goes on with it."""


def print_cell(name: str, brokers: int) -> None:
    """Print the scenario of one cell, which `murmur run` plays; raises `InputError` for one that cannot be."""
    scenario = checked_scenario(cell_named(name, brokers))
    print(yaml.safe_dump(scenario, sort_keys=False, default_flow_style=None, width=110), end="")


def play_bench(choice: BenchChoice, cores: Cores, folder: Path, as_json: bool) -> None:
    """Play what is missing of the table, and write it; exits with 1 if a cell could not be played."""
    plan = plan_bench(choice)
    console = Console(stderr=True, quiet=as_json)
    check_files(folder / name for name in _WRITTEN)
    run = BenchRun(plan, folder, choice.brokers, cores)

    def tell(estimate: Estimate) -> None:
        took = f"about {_words(estimate.cpu_s)} of a core, {_words(estimate.wall_s)} from now"
        console.print(f"{estimate.cells:,} more to play: {took}", highlight=False)

    try:
        with RunProgress(quiet=as_json) as progress:
            end = run.run(progress.step, tell)
    except (KeyboardInterrupt, OSError, RunError) as error:
        why = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error)
        _write(run, folder, choice.brokers)
        raise BenchCutShort(f"{why}\nfinished cells are kept in {folder}: the same command goes on") from error
    _write(run, folder, choice.brokers)
    _tell(run, end, folder, as_json)


def _write(run: BenchRun, folder: Path, brokers: int) -> None:
    """Write all that is known so far."""
    table, cards = run.table(), run.cards()
    if table.empty:
        return
    with whole(folder / "table.csv") as draft:
        table.to_csv(draft, index=False)
    with whole(folder / "table.parquet") as draft:
        table.to_parquet(draft, index=False)
    write_text(folder / "cards.json", json.dumps(cards, indent=1) + "\n")
    write_page(folder, table, run.plan, cards, brokers)


def _tell(run: BenchRun, end: BenchEnd, folder: Path, as_json: bool) -> None:
    table = run.table()
    verdicts = dict(Counter(table["verdict"])) if len(table) else {}
    if as_json:
        counts = {"cells": len(run.plan.cells), "kept": end.kept, "done": end.done, "failed": len(end.failed)}
        print(json.dumps(counts | {"verdicts": verdicts, "left_out": run.plan.left_out, "folder": str(folder)}))
    else:
        console = Console()
        console.width = max(console.width, _WIDTH_MIN)
        if len(table):
            console.print(_overview(table))
        for why, names in run.plan.reasons.items():
            console.print(f"not in the table: {escape(', '.join(names))}: {escape(why)}", highlight=False)
        console.print(
            f"{len(run.plan.cells):,} cells: {end.kept:,} kept, {end.done:,} done, {len(end.failed):,} failed"
        )
        for cell, why in end.failed[:_FAILED_SHOWN]:
            console.print(f"[red]failed[/red]: {escape(str(cell))}: {escape(why)}", highlight=False)
        console.print(", ".join(f"{count:,} {verdict}" for verdict, count in verdicts.items()), highlight=False)
        console.print(f"table: {folder / 'table.csv'}\npage: {folder / 'bench.html'}", highlight=False)
    if end.failed:
        raise typer.Exit(1)


def _overview(table: pd.DataFrame) -> Table:
    found = overview(table)
    rich = Table(box=None, header_style="bold")
    rich.add_column("system", no_wrap=True)
    for title, words in found.titles:
        rich.add_column(f"{title}\n{words}", justify="right")
    for name, cells in found.rows:
        rich.add_row(name, *cells)
    return rich


def _words(seconds: float) -> str:
    """A length of time for people."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
