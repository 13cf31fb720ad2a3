"""What `murmur zoo` prints: a table of what has been planted, and whether the judge saw it."""

import contextlib
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from murmur_pubsub.errors import InputError, RunError
from murmuration.commands.console import RunProgress
from murmuration.commands.ending import make_folder
from murmuration.zoo.registry import DAMAGED, HONEST, SABOTEURS
from murmuration.zoo.sighting import see_on_spark, see_plainly
from murmuration.zoo.tour import TourRow, ZooEntry, chosen, place_of, tour

_NAMES_CHARACTERS = 56
_WIDTH_OF_FILES = 1_000


class ZooCutShort(RunError):
    """A tour that ended early."""


def visit_zoo(names: Sequence[str], plain: bool, as_json: bool, out: Path | None) -> None:
    """Judge those of these names, or all, and print what was seen; exits with 1 if a saboteur or a damage was not
    found, or an honest protocol was flagged."""
    entries = chosen(names, (*SABOTEURS, *DAMAGED, *HONEST))
    if out is not None:
        _make(out, entries)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) if out is None else out
        progress = stack.enter_context(RunProgress(quiet=as_json))
        if not plain:
            from spark_analysis.session import check_java, spark_session

            check_java()
            progress.step("starting Spark", 0, 0)
            stack.enter_context(spark_session())
        see = see_plainly if plain else see_on_spark
        rows: list[TourRow] = []
        try:
            rows += tour(entries, see, folder, progress.step)
        except (KeyboardInterrupt, OSError, RunError) as error:
            why = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error)
            kept = "nothing was kept" if out is None else f"finished runs are kept in {out}"
            raise ZooCutShort(f"{why}\n{kept}") from error
    if as_json:
        print(json.dumps({"rows": [row._asdict() for row in rows], "summary": summary(rows)}))
    else:
        width = None if sys.stdout.isatty() else _WIDTH_OF_FILES
        Console(width=width).print(table_of(rows))
        print(summary(rows))
    if not all(row.found for row in rows):
        raise typer.Exit(1)


def table_of(rows: Sequence[TourRow]) -> Table:
    """The rows as a table."""
    table = Table(box=None, header_style="bold")
    for heading in ("name", "what it does", "verdict", "finding", "what the finding names", ""):
        table.add_column(heading)
    for row in rows:
        right = "valid" if row.kind == "honest" else "found"
        mark = f"[green]{right}[/green]" if row.found else f"[red]not {right}[/red]"
        names = row.names if len(row.names) <= _NAMES_CHARACTERS else f"{row.names[:_NAMES_CHARACTERS]}…"
        table.add_row(row.name, row.does, row.verdict, row.finding or "", escape(names), mark)
    return table


def summary(rows: Sequence[TourRow]) -> str:
    """How many were found, in words."""
    parts = []
    for kind, words in (("saboteur", "saboteurs found"), ("damage", "damages found"), ("honest", "honest ones valid")):
        of_kind = [row for row in rows if row.kind == kind]
        if of_kind:
            parts.append(f"{sum(row.found for row in of_kind)} of {len(of_kind)} {words}")
    return ", ".join(parts)


def _make(folder: Path, entries: Sequence[ZooEntry]) -> None:
    """The folder of the runs, if none of them is there: one that could not be played again would pass for refused."""
    make_folder(folder)
    for place in (place_of(entry, folder) for entry in entries):
        if place.exists():
            raise InputError(f"--out {folder}", f"a run that is already there ({place.name})", "a new folder")
