"""What `murmur compare` prints: runs side by side, a line for each figure."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from murmuration.results.comparison import compare
from spark_analysis.wording import count, duration


def print_comparison(folders: Sequence[Path], as_json: bool) -> None:
    """A table, or one JSON line for each of its lines."""
    lines = compare(folders)
    if as_json:
        for line in lines:
            values = dict(zip(map(str, folders), line.values, strict=True))
            print(json.dumps({"what": line.what, "unit": line.unit, "values": values}))
        return
    table = Table(box=None, header_style="bold")
    table.add_column("")
    for folder in folders:
        table.add_column(escape(folder.name), justify="right")
    section = ""
    for line in lines:
        if section == "scenario" and line.unit != "scenario":
            table.add_section()
        section = line.unit
        table.add_row(escape(line.what), *(escape(_words(value, line.unit)) for value in line.values))
    Console().print(table)


def _words(value: Any, unit: str) -> str:
    if value is None:
        return "–"
    if unit == "us":
        return duration(value)
    return count(value) if type(value) is int and unit != "scenario" else str(value)
