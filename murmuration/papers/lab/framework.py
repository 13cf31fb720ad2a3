"""What the reproduction of a paper is made of: tables, figures and bars, and sweeps of runs in parallel.

A paper measures everything it prints. A bar compares one measured figure with what it should reach; where it makes no
sense (a scaled-down run), `met` is None and the note says why.
"""

import csv
import json
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Protocol, TypeVar

from rich.console import Console
from rich.table import Table as RichTable

from murmur_pubsub.errors import RunError
from murmur_pubsub.progress import Progress

Point = TypeVar("Point")
Result = TypeVar("Result")

WORKERS = 2
_ENDING_S = 30
"""So long an interrupted run may take to stop its actors."""
_INTERRUPT = {signal.SIGINT}


@dataclass(frozen=True, slots=True)
class Bar:
    """One thing that a reproduction should reach. `paper`: what the paper printed, and the bar where it differs."""

    name: str
    paper: str
    measured: float | str
    met: bool | None
    note: str = ""

    def to_json(self) -> str:
        """One line."""
        fields = {"bar": self.name, "paper": self.paper, "measured": self.measured, "met": self.met}
        return json.dumps(fields | ({"note": self.note} if self.note else {}))


@dataclass(frozen=True, slots=True)
class ResultTable:
    """A table of the reproduction; `name` is its file's."""

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | int | float]]


@dataclass(slots=True)
class PaperResult:
    """All that came out. `figures` are PNG files in the folder."""

    tables: list[ResultTable] = field(default_factory=list)
    figures: list[Path] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)

    @property
    def all_met(self) -> bool:
        """No bar was missed."""
        return all(bar.met is not False for bar in self.bars)


class Paper(Protocol):
    """A paper that can be reproduced."""

    name: str
    title: str

    def reproduce(self, folder: Path, quick: bool, seeds: int, progress: Progress) -> PaperResult:
        """Measure everything; figures go to the folder, which exists."""
        ...


def in_parallel(
    function: Callable[[Point], Result],
    points: Sequence[Point],
    progress: Progress,
    workers: int = WORKERS,
    keep: Callable[[Point, Result], None] = lambda point, result: None,
) -> list[Result]:
    """The function's result for each point, in their order. Each point has a process of its own, so that what it
    measures of its memory is its own. `keep` is called with each result as it comes. Whatever ends this early, a kill
    too, interrupts the processes. Raises what a point raised; `RunError`, if its process was killed."""
    context = multiprocessing.get_context("spawn")
    waiting = deque(enumerate(points))
    running: dict[Connection, tuple[int, SpawnProcess]] = {}
    results: dict[int, Result] = {}
    progress("runs", 0, len(points))
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                number, point = waiting.popleft()
                here, there = context.Pipe()
                process = context.Process(target=_run, args=(there, function, point))
                signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPT)
                process.start()
                signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPT)
                there.close()
                running[here] = number, process
            (ready, *_) = connection.wait(list(running))
            assert isinstance(ready, Connection)
            number, process = running[ready]
            results[number] = _received(ready, process, points[number])
            del running[ready]
            keep(points[number], results[number])
            progress("runs", len(results), len(points))
    finally:
        for here in running:
            here.close()
        for _, process in running.values():
            process.join(_ENDING_S + 5)
            process.kill()
    return [results[number] for number in range(len(points))]


def _received(here: Connection, process: SpawnProcess, point: object) -> Any:
    try:
        result, error = here.recv()
    except EOFError:
        process.join()
        raise RunError(f"the process of {point} ended with exit code {process.exitcode}") from None
    process.join()
    if error is not None:
        raise error
    return result


def _run(there: Connection, function: Callable[[Point], Result], point: Point) -> None:
    """One point, in its process: interrupted when nobody holds the other end any more, ended if that does not help."""

    def watch() -> None:
        there.poll(None)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(_ENDING_S)
        os._exit(1)

    os.setsid()  # what interrupts the command from a terminal comes by the pipe, once: it has been blocked until here
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=watch, daemon=True).start()
    outcome: tuple[Result | None, Exception | None]
    try:
        outcome = function(point), None
    except KeyboardInterrupt:
        os._exit(130)
    except Exception as error:
        error.add_note(traceback.format_exc())
        outcome = None, error
    there.send(outcome)


def write_tables(result: PaperResult, folder: Path) -> None:
    """Every table and the bars as CSV."""
    bars = ResultTable(
        "bars",
        "Bars",
        ("bar", "paper", "measured", "met", "note"),
        [(bar.name, bar.paper, bar.measured, _met(bar), bar.note) for bar in result.bars],
    )
    for table in (*result.tables, bars):
        with (folder / f"{table.name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(table.columns)
            writer.writerows(table.rows)


def print_result(result: PaperResult, console: Console) -> None:
    """Tables and bars for people."""
    for table in result.tables:
        console.print(_rich(table.title, table.columns, table.rows))
    rows = [(bar.name, bar.paper, _text(bar.measured), _met(bar), bar.note) for bar in result.bars]
    console.print(_rich("Bars", ("bar", "paper", "measured", "met", "note"), rows))
    for figure in result.figures:
        console.print(f"figure: {figure}")


def _rich(title: str, columns: Sequence[str], rows: Sequence[Sequence[str | int | float]]) -> RichTable:
    table = RichTable(title=title, title_justify="left", box=None, header_style="bold")
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right")
    for row in rows:
        table.add_row(*map(_text, row))
    return table


def _text(value: str | int | float) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else value


def _met(bar: Bar) -> str:
    return {True: "yes", False: "NO", None: "-"}[bar.met]
