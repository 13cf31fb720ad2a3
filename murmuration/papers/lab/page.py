"""The page of a reproduction: one HTML file that needs nothing else, with the paper beside what was measured."""

import base64
from pathlib import Path

from murmur_pubsub.whole_files import write_text
from murmuration.papers.lab.plotting import DPI
from murmuration.papers.lab.results import Beside, Criterion, Paper, PaperResult, ResultTable, TableCell, shown
from murmuration.version import own_version
from spark_analysis.report import fill_template

_SCREEN_DPI = 96
_OUTCOMES = {True: "met", False: "missed", None: "not judged"}


def write_page(paper: Paper, result: PaperResult, folder: Path) -> Path:
    """Write `FOLDER/paper.html`."""
    counts = {words: sum(each.met is met for each in result.criteria) for met, words in _OUTCOMES.items()}
    page = fill_template(
        "paper.html.j2",
        Path(__file__).parent,
        paper=paper,
        result=result,
        counts=counts,
        verdict="invalid" if counts["missed"] else ("valid" if counts["met"] else "unknown"),
        criteria=sorted(result.criteria, key=lambda each: each.met is not False),
        murmur=own_version(),
        outcome=_outcome,
        measured=_measured,
        shown=shown,
        is_beside=lambda cell: isinstance(cell, Beside),
        numeric_columns=_numeric_columns,
        picture=_picture,
        natural_width=_natural_width,
    )
    path = folder / "paper.html"
    write_text(path, page)
    return path


def _outcome(criterion: Criterion) -> str:
    return _OUTCOMES[criterion.met]


def _measured(criterion: Criterion) -> str:
    """With the digits that count: criteria may be about the fourth."""
    return f"{criterion.measured:,.6g}" if isinstance(criterion.measured, float) else shown(criterion.measured)


def _numeric_columns(table: ResultTable) -> list[bool]:
    """Which columns are set to the right: those of numbers, with or without a unit. The first names the rows."""
    columns = list(zip(*table.rows, strict=True))
    return [bool(at) and all(map(_is_number, cells)) for at, cells in enumerate(columns)]


def _is_number(cell: TableCell) -> bool:
    text = cell.measured if isinstance(cell, Beside) else shown(cell)
    return text == "-" or text.lstrip("+-")[:1].isdigit()


def _picture(path: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"


def _natural_width(path: Path) -> int:
    """In pixels of the page: text in the figure is then as large as that around it."""
    pixels = int.from_bytes(path.read_bytes()[16:20])  # the first field of a PNG's first chunk
    return round(pixels * _SCREEN_DPI / DPI)
