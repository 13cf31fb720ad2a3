"""`murmur doctor`: is everything here that a run needs?"""

import json
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import psutil
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from murmur_pubsub.errors import InputError


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at; `remedy` is a command or a sentence for the person."""

    what: str
    fine: bool
    found: str
    remedy: str


def examine() -> list[Finding]:
    """Python, Java, memory, cores, disk, Ray and Spark, in this order."""
    return [_python(), _java(), _memory(), _cores(), _disk(), _open_files(), _package("ray"), _package("pyspark")]


def print_findings(findings: Sequence[Finding], as_json: bool) -> None:
    """A table, or one JSON line."""
    if as_json:
        told = {each.what: {"fine": each.fine, "found": each.found, "remedy": each.remedy} for each in findings}
        print(json.dumps(told))
        return
    table = Table(box=None, header_style="bold")
    for heading in ("", "what", "found", "how to mend it"):
        table.add_column(heading)
    for finding in findings:
        mark = "[green]ok[/green]" if finding.fine else "[red]no[/red]"
        table.add_row(mark, finding.what, escape(finding.found), "" if finding.fine else escape(finding.remedy))
    Console().print(table)


def _python() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    return Finding("Python", sys.version_info >= (3, 11), found, "install Python 3.11 or newer")


def _java() -> Finding:
    from spark_analysis.session import check_java

    try:
        return Finding("Java", True, check_java(), "")
    except InputError as error:
        return Finding("Java", False, error.found, error.allowed)


def _memory() -> Finding:
    from actors.room import fitting_nodes

    available = psutil.virtual_memory().available
    fitting = fitting_nodes(available)
    return Finding(
        "memory",
        fitting >= 32,
        f"{available / 1e9:.1f} GB free: room for {fitting} actors",
        "the default scenario needs 32 actors; free memory, or use --runtime virtual",
    )


def _cores() -> Finding:
    cores = os.cpu_count() or 1
    return Finding("cores", cores >= 2, str(cores), "a live run wants two cores; raise time_dilation, or use virtual")


def _disk() -> Finding:
    free = shutil.disk_usage(".").free
    return Finding("disk", free > 2e9, f"{free / 1e9:.1f} GB free here", "journals and Spark want 2 GB")


def _open_files() -> Finding:
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return Finding("open files", soft >= 1024, f"limit {soft}", "ulimit -n 65536")


def _package(name: str) -> Finding:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return Finding(name, True, version(name), "")
    except PackageNotFoundError:
        return Finding(name, False, "not installed", "make setup")
