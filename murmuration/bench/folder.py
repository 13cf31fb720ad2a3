"""The folder of a table: `cells.jsonl` has a line for each cell that was played, so that the same command goes on.

A line that cannot be read, of an interrupted write, counts as not there, and so does one of a cell whose scenario has
changed since. Nothing in it depends on where the data is: a copy of the folder goes on elsewhere.
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from murmur_pubsub.errors import InputError
from murmur_pubsub.json_file import read_json
from murmuration.bench.matrix import Cell
from murmuration.bench.plan import digest_of
from murmuration.sweeps.folder import held_folder, write_whole
from murmuration.sweeps.kept_lines import keep_lines, kept_lines
from murmuration.version import own_version

IDENTITY = ("workload", "fault", "routing", "reliability", "seed")
"""The keys of a record that say of which cell it is."""
VERDICT_KEPT = (
    "verdict", "published", "required", "delivered", "missing", "duplicate", "spurious", "out_of_order", "explained",
    "reason",
)  # fmt: skip
"""What is kept of a verdict. The cell's scenario makes all of it again."""


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
                record = {key: found[key] for key in (*IDENTITY, "digest")}
                record["verdict"] = {key: found["verdict"][key] for key in VERDICT_KEPT}
                record["figures"] = dict(found["figures"].items())
                record["cpu_s"] = float(found["cpu_s"])
                self._records[tuple(record[key] for key in IDENTITY)] = record
            except (KeyError, TypeError, AttributeError, ValueError):
                continue


def _identity(cell: Cell) -> tuple[Any, ...]:
    return cell.workload, cell.fault, *cell.system, cell.seed
