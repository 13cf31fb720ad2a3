"""What comes out of the reproduction of a paper: tables with figures, and criteria.

A paper measures everything it prints. A criterion compares one measured figure with what it should reach; where it
makes no sense (a scaled-down run), `met` is None and the note says why.
"""

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from murmur_pubsub.whole_files import whole
from murmuration.papers.lab.paper_runs import PaperRuns


class Beside(NamedTuple):
    """A cell of a table: what the paper says, and what was measured."""

    paper: str
    measured: str

    def __str__(self) -> str:
        return f"{self.paper} | {self.measured}"


TableCell = str | int | float | Beside


class Figure(NamedTuple):
    """A PNG file in the folder, and what it shows."""

    path: Path
    caption: str


@dataclass(frozen=True, slots=True)
class ResultTable:
    """A table of the reproduction, and the figures that show what is in it."""

    name: str
    """Its file's."""
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[TableCell]]
    figures: Sequence[Figure] = ()


@dataclass(frozen=True, slots=True)
class Criterion:
    """One thing that a reproduction should reach."""

    name: str
    paper: str
    """What the paper printed, and what is to be reached where that differs."""
    measured: float | str
    met: bool | None
    """None: not judged."""
    note: str = ""

    @property
    def outcome(self) -> str:
        """In one word."""
        return {True: "yes", False: "NO", None: "-"}[self.met]

    def to_json(self) -> str:
        """One line."""
        fields = {"bar": self.name, "paper": self.paper, "measured": self.measured, "met": self.met}
        return json.dumps(fields | ({"note": self.note} if self.note else {}))


@dataclass(slots=True)
class PaperResult:
    """All that came out."""

    scaled_down: bool
    """Was it made with fewer or smaller runs than the paper's?"""
    tables: list[ResultTable] = field(default_factory=list)
    criteria: list[Criterion] = field(default_factory=list)

    def judge(
        self,
        name: str,
        paper: str,
        measured: float | str,
        met: bool | None,
        note: str = "",
        at_any_size: bool = False,
    ) -> None:
        """Add a criterion; in a scaled-down reproduction it is judged only if it holds `at_any_size`."""
        if self.scaled_down and not at_any_size and met is not None:
            met, note = None, "; ".join(filter(None, (note, "scaled down: judged at full size only")))
        self.criteria.append(Criterion(name, paper, measured, met, note))

    @property
    def figures(self) -> list[Path]:
        """The files of all figures."""
        return [figure.path for table in self.tables for figure in table.figures]

    @property
    def all_met(self) -> bool:
        """No criterion was missed."""
        return all(criterion.met is not False for criterion in self.criteria)

    def write(self, folder: Path) -> None:
        """Every table, and the criteria, as CSV."""
        for table in (*self.tables, self.criteria_table()):
            with whole(folder / f"{table.name}.csv") as draft, draft.open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(table.columns)
                writer.writerows([[_plain(cell) for cell in row] for row in table.rows])

    def criteria_table(self) -> ResultTable:
        """The criteria as a table."""
        rows = [(each.name, each.paper, each.measured, each.outcome, each.note) for each in self.criteria]
        return ResultTable("criteria", "Criteria", ("criterion", "paper", "measured", "met", "note"), rows)


class Paper(Protocol):
    """A paper that can be reproduced."""

    name: str
    title: str
    about: str
    """How it is measured, in a few sentences."""

    def reproduce(self, runs: PaperRuns, quick: bool, seeds: int) -> PaperResult:
        """Measure everything; figures go to the folder of the runs."""
        ...


def shown(cell: TableCell) -> str:
    """A cell as text for people."""
    if isinstance(cell, float):
        return f"{cell:,.2f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def _plain(cell: TableCell) -> str | int | float:
    return str(cell) if isinstance(cell, Beside) else cell
