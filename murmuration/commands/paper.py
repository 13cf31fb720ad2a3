"""What `murmur paper` says and writes: progress, what is kept when it is cut short, tables, criteria, one page."""

from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table as RichTable

from murmur_pubsub.deployment import object_at
from murmur_pubsub.errors import InputError, RunError
from murmuration.commands.console import RunProgress
from murmuration.commands.ending import make_folder
from murmuration.papers import PAPERS
from murmuration.papers.lab.page import write_page
from murmuration.papers.lab.paper_runs import PaperRuns
from murmuration.papers.lab.results import Paper, PaperResult, ResultTable, shown
from murmuration.runs.run_folder import default_folder
from murmuration.sweeps.tasks import Cores


class PaperCutShort(RunError):
    """A reproduction that ended early; the same command goes on with it."""


def reproduce_paper(
    name: str, quick: bool, seeds: int, workers: int | None, address: str | None, out: Path | None, as_json: bool
) -> None:
    """Reproduce the paper; exits with 1 if a criterion is missed."""
    if name not in PAPERS:
        raise InputError("paper", repr(name), ", ".join(PAPERS))
    cores = Cores(workers, address)
    chosen: Paper = object_at(PAPERS[name], "paper")()
    folder = out or default_folder(f"paper-{name}")
    make_folder(folder)
    try:
        with RunProgress(quiet=as_json) as progress:
            result = chosen.reproduce(PaperRuns(folder, progress.step, cores), quick, seeds)
    except (KeyboardInterrupt, OSError, RunError) as error:
        why = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error)
        kept = f"finished runs are kept: the same command with `--out {folder}` goes on"
        raise PaperCutShort(f"{why}\n{kept}") from error
    result.write(folder)
    page = write_page(chosen, result, folder)
    if as_json:
        for criterion in result.criteria:
            print(criterion.to_json())
    else:
        _print(result, page)
    if not result.all_met:
        raise typer.Exit(1)


def _print(result: PaperResult, page: Path) -> None:
    console = Console()
    for table in (*result.tables, result.criteria_table()):
        console.print(_rich(table))
    for figure in result.figures:
        console.print(f"figure: {figure}")
    console.print(f"page: {page}")


def _rich(table: ResultTable) -> RichTable:
    rich = RichTable(title=table.title, title_justify="left", box=None, header_style="bold")
    for number, column in enumerate(table.columns):
        rich.add_column(column, justify="left" if number == 0 else "right")
    for row in table.rows:
        rich.add_row(*map(shown, row))
    return rich
