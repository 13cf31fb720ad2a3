"""The folder of a table: `cells.jsonl` has a line for each cell that was played, so that the same command goes on.

A line that cannot be read, of an interrupted write, counts as not there, and so does one of a cell whose scenario has
changed since. Nothing in it depends on where the data is: a copy of the folder goes on elsewhere.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from murmur_pubsub.errors import InputError
from murmur_pubsub.json_file import check_keys, read_json
from murmur_pubsub.verdict_file import TOLD_COUNTS, TableVerdict
from murmuration.bench.matrix import Cell
from murmuration.bench.measure import FIGURES
from murmuration.bench.plan import digest_of
from murmuration.sweeps.folder import held_folder, write_whole
from murmuration.sweeps.kept_lines import keep_lines, kept_lines
from murmuration.version import own_version

IDENTITY = ("workload", "fault", "routing", "reliability", "seed")
"""The keys of a record that say of which cell it is."""
VERDICT_KEPT = ("verdict", *TOLD_COUNTS, "reason")
"""What is kept of a verdict. The cell's scenario makes all of it again."""


@dataclass(frozen=True, slots=True)
class _Record:
    """What has to stand in the line of a cell, beside its verdict."""

    workload: str
    fault: str
    routing: str
    reliability: str
    seed: int
    digest: str
    figures: Mapping[str, float | None]
    cpu_s: float


class BenchFolder:
    """The folder of one table."""

    def __init__(self, folder: Path, brokers: int) -> None:
        self.folder = folder
        self.scratch = folder / "scratch"
        """Where cells are played."""
        self._path = folder / "cells.jsonl"
        self._brokers = brokers
        self._records: dict[tuple[Any, ...], dict[str, Any]] = {}

    @contextmanager
    def opened(self) -> Iterator[None]:
        """The folder, for this process alone; raises `InputError` if it is of another table."""
        with held_folder(self.folder, (self.scratch,), "bench"):
            known = {"format": "murmur-bench", "schema_version": 1, "version": own_version(), "brokers": self._brokers}
            path = self.folder / "bench.json"
            if path.exists():
                there = read_json(path, "the bench that was begun there, or a new folder (--out)")
                if there != known:
                    found = f"a bench of {there.get('brokers')} brokers by murmur {there.get('version')}"
                    allowed = f"one of {self._brokers} brokers by murmur {known['version']}, or a new folder (--out)"
                    raise InputError(str(path), found, allowed)
            write_whole(path, json.dumps(known, indent=1) + "\n")
            for left in self.scratch.iterdir():
                shutil.rmtree(left, ignore_errors=True)
            self._read()
            yield

    def record(self, cell: Cell) -> dict[str, Any] | None:
        """What was written of the cell, or None."""
        record = self._records.get(_identity(cell))
        return record if record is not None and record["digest"] == digest_of(cell) else None

    def write_record(self, cell: Cell, played: dict[str, Any]) -> dict[str, Any]:
        """Keep what came of the cell."""
        verdict = {key: played["verdict"][key] for key in VERDICT_KEPT}
        identity = dict(zip(IDENTITY, _identity(cell), strict=True))
        record = {**identity, "digest": digest_of(cell), **played, "verdict": verdict}
        keep_lines(self._path, [record])
        return record

    def _read(self) -> None:
        for found in kept_lines(self._path):
            try:
                check_keys(_Record, found, self._path)
                check_keys(TableVerdict, found.get("verdict"), self._path)
                record = {key: found[key] for key in (*IDENTITY, "digest", "cpu_s")}
                record["verdict"] = {key: found["verdict"][key] for key in VERDICT_KEPT}
                record["figures"] = {key: _number(found["figures"][key]) for key in FIGURES}
                self._records[tuple(record[key] for key in IDENTITY)] = record
            except (InputError, LookupError, ArithmeticError):
                continue


def _identity(cell: Cell) -> tuple[Any, ...]:
    return cell.workload, cell.fault, *cell.system, cell.seed


def _number(figure: float | None) -> float | None:
    return None if figure is None else float(figure)
