"""The folder of a table: each cell that was played has a file, so that the same command goes on where it stopped.

A file is there whole or not at all. A cell whose scenario has changed since counts as not there.
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from murmur_pubsub.errors import InputError
from murmuration.bench.matrix import Cell
from murmuration.bench.plan import digest_of
from murmuration.sweeps.folder import held_folder, write_whole
from murmuration.version import own_version


class BenchFolder:
    """The folder of one table."""

    def __init__(self, folder: Path, brokers: int) -> None:
        self.folder = folder
        self.scratch = folder / "scratch"
        """Where cells are played."""
        self._cells = folder / "cells"
        self._brokers = brokers

    @contextmanager
    def opened(self) -> Iterator[None]:
        """The folder, for this process alone; raises `InputError` if it is of another table."""
        with held_folder(self.folder, (self._cells, self.scratch), "bench"):
            known = {"format": "murmur-bench", "schema_version": 1, "version": own_version(), "brokers": self._brokers}
            path = self.folder / "bench.json"
            if path.exists():
                there = json.loads(path.read_text())
                if there != known:
                    found = f"a bench of {there.get('brokers')} brokers by murmur {there.get('version')}"
                    allowed = f"one of {self._brokers} brokers by murmur {known['version']}, or a new folder (--out)"
                    raise InputError(str(self.folder), found, allowed)
            elif any(self._cells.iterdir()):
                raise InputError(str(self.folder), "cells, and no bench.json", "the folder of a bench, or a new one")
            write_whole(path, json.dumps(known, indent=1) + "\n")
            for left in self.scratch.iterdir():
                shutil.rmtree(left, ignore_errors=True)
            yield

    def record(self, cell: Cell, scenario: dict[str, Any]) -> dict[str, Any] | None:
        """What was written of the cell, or None."""
        try:
            record: dict[str, Any] = json.loads(self._file(cell).read_text())
        except FileNotFoundError:
            return None
        return record if record["digest"] == digest_of(scenario) else None

    def write_record(self, cell: Cell, scenario: dict[str, Any], played: dict[str, Any]) -> dict[str, Any]:
        """Keep what came of the cell."""
        record = {
            "workload": cell.workload, "fault": cell.fault, "routing": cell.system.routing,
            "reliability": cell.system.reliability, "seed": cell.seed, "digest": digest_of(scenario), **played,
        }  # fmt: skip
        write_whole(self._file(cell), json.dumps(record, indent=1) + "\n")
        return record

    def _file(self, cell: Cell) -> Path:
        return self._cells / f"{cell.file_name}.json"
