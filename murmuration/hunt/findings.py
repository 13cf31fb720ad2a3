"""What a hunt has found: one finding for each cause, however many schedules show it.

Two schedules have one cause if the same symptom is left of them with the same kinds of faults, once both are shrunk. A
schedule that was not shrunk counts for the first finding with its symptom.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from murmur_pubsub.errors import InputError
from murmuration.hunt.chunk import Found
from murmuration.hunt.present import sizes_of, write_schedule, write_story
from murmuration.hunt.shrink import Shrunk
from murmuration.sweeps.folder import write_whole

_FILE = "finding.json"


@dataclass
class Finding:
    """One cause."""

    folder: Path
    pair: str
    kind: str
    """The symptom's."""
    faults: tuple[str, ...]
    """The kinds of faults that are left in the shrunk schedule."""
    record: dict[str, Any]
    """What is written in its file."""

    @property
    def words(self) -> str:
        """In a line."""
        return str(self.record["reason"]).partition("\n")[0]


class FindingStore:
    """The findings in a folder. `properties`: those that were asked for, by their dotted paths."""

    def __init__(self, folder: Path, properties: Sequence[str] = ()) -> None:
        self._folder = folder
        self._properties = properties
        self.all: list[Finding] = []

    def read(self) -> None:
        """Those of earlier on; raises `InputError` for a file that is none."""
        for path in sorted(self._folder.glob(f"[0-9]*/{_FILE}")):
            try:
                record = json.loads(path.read_text())
                finding = Finding(path.parent, record["pair"], record["symptom"], tuple(record["faults"]), record)
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(str(path), repr(error), "a finding as the hunt wrote it, or no such file") from None
            self.all.append(finding)

    def count(self, pair: str, kind: str) -> bool:
        """Count a schedule that was not shrunk for the first finding with its symptom; False: there is none."""
        finding = next((each for each in self.all if (each.pair, each.kind) == (pair, kind)), None)
        if finding is None:
            return False
        self._count(finding)
        return True

    def add(self, pair: str, found: Found, shrunk: Shrunk, origin: str) -> None:
        """Count it for the finding that it is, or make it a new one. `origin`: which chunk's which schedule it was."""
        faults = kinds_of(shrunk.keys)
        for finding in self.all:
            if (finding.pair, finding.kind, finding.faults) == (pair, found.symptom.kind, faults):
                self._count(finding)
                return
        self._new(pair, found, shrunk, faults, origin)

    def _count(self, finding: Finding) -> None:
        finding.record["schedules"] += 1
        self._write(finding)

    def _new(self, pair: str, found: Found, shrunk: Shrunk, faults: tuple[str, ...], origin: str) -> None:
        symptom, keys = shrunk.symptom, shrunk.keys
        slug = re.sub(r"[^a-z0-9]+", "-", f"{pair} {symptom.kind}".lower()).strip("-")[:50]
        folder = self._folder / f"{len(self.all) + 1:03}-{slug}"
        folder.mkdir(exist_ok=True)
        before, after = sizes_of(found.keys), sizes_of(keys)
        record = {
            "pair": pair,
            "symptom": symptom.kind,
            "reason": symptom.words,
            "faults": faults,
            "schedules": 1,
            "origin": origin,
            "before": before._asdict(),
            "after": after._asdict(),
            "tries": shrunk.tries,
            "seconds": round(shrunk.seconds, 1),
        }
        finding = Finding(folder, pair, symptom.kind, faults, record)
        self.all.append(finding)
        write_schedule(folder, keys, symptom, before, self._properties)
        self._write(finding)
        write_story(folder, keys, symptom, self._properties)

    def _write(self, finding: Finding) -> None:
        write_whole(finding.folder / _FILE, json.dumps(finding.record, indent=1) + "\n")


def kinds_of(keys: Mapping[str, Any]) -> tuple[str, ...]:
    """The kinds of the faults of a scenario, each once."""
    verbs = (next(key for key in entry if key not in ("at", "for")) for entry in keys["faults"])
    return tuple(sorted(set(verbs)))
