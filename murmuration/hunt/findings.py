"""What a hunt has found: one finding for each cause, however many schedules show it.

Two schedules have one cause if they show the same symptom in the same way once both are shrunk (`showing`), and the
faults that are left are of the same sort: none, some that take something away, some that change links. Links that do
harm all the time change links, too. A schedule that was not shrunk counts for the first finding with its symptom.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from murmur_pubsub.json_file import check_keys, read_json
from murmuration.hunt.chunk import Found
from murmuration.hunt.present import sizes_of, write_schedule, write_story
from murmuration.hunt.showing import how_it_shows
from murmuration.hunt.shrink import HARM, Shrunk
from murmuration.hunt.symptoms import Symptom
from murmuration.sweeps.folder import write_whole

_FILE = "finding.json"
_CHANGING = ("link", "slow")
"""Faults that take nothing away."""


class Cause(NamedTuple):
    """What tells causes apart. `shows`: see `showing.how_it_shows`; `faults`: the sorts of those that are left."""

    shows: str
    faults: tuple[str, ...]


def cause_of(keys: Mapping[str, Any], symptom: Symptom) -> Cause:
    """Of a shrunk scenario with that symptom."""
    sorts = {"changes a link" if kind in _CHANGING else "takes away" for kind in kinds_of(keys)}
    if any(keys.get("links", {}).get(harm) for harm in HARM):
        sorts.add("changes a link")
    return Cause(how_it_shows(keys, symptom), tuple(sorted(sorts)))


@dataclass
class Finding:
    """One cause."""

    folder: Path
    pair: str
    kind: str
    """The symptom's."""
    cause: "Cause"
    record: dict[str, Any]
    """What is written in its file."""

    @property
    def words(self) -> str:
        """In a line."""
        return str(self.record["reason"]).partition("\n")[0]


@dataclass(frozen=True, slots=True)
class _Record:
    """What has to stand in the file of a finding."""

    pair: str
    symptom: str
    reason: str
    shows: str
    sorts: tuple[str, ...]
    schedules: int
    origins: tuple[str, ...]


class FindingStore:
    """The findings in a folder. `properties`: those that were asked for, by their dotted paths."""

    def __init__(self, folder: Path, properties: Sequence[str] = ()) -> None:
        self._folder = folder
        self._properties = properties
        self.all: list[Finding] = []

    def read(self) -> None:
        """Those of earlier on; raises `InputError` for a file that is none."""
        for path in sorted(self._folder.glob(f"[0-9]*/{_FILE}")):
            record = read_json(path, "a finding as the hunt wrote it, or no such file")
            check_keys(_Record, record, path)
            cause = Cause(record["shows"], tuple(record["sorts"]))
            self.all.append(Finding(path.parent, record["pair"], record["symptom"], cause, record))

    @property
    def origins(self) -> set[str]:
        """The schedules that were counted."""
        return {origin for finding in self.all for origin in finding.record["origins"]}

    def count(self, pair: str, kind: str, origin: str) -> bool:
        """Count a schedule that was not shrunk for the first finding with its symptom; False: there is none."""
        finding = next((each for each in self.all if (each.pair, each.kind) == (pair, kind)), None)
        if finding is None:
            return False
        self._count(finding, origin)
        return True

    def add(self, pair: str, found: Found, shrunk: Shrunk, origin: str) -> None:
        """Count it for the finding that it is, or make it a new one. `origin`: which chunk's which schedule it was."""
        cause = cause_of(shrunk.keys, shrunk.symptom)
        for finding in self.all:
            if (finding.pair, finding.kind, finding.cause) == (pair, found.symptom.kind, cause):
                self._count(finding, origin)
                return
        self._new(pair, found, shrunk, cause, origin)

    def _count(self, finding: Finding, origin: str) -> None:
        finding.record["origins"].append(origin)
        finding.record["schedules"] += 1
        self._write(finding)

    def _new(self, pair: str, found: Found, shrunk: Shrunk, cause: Cause, origin: str) -> None:
        symptom, keys = shrunk.symptom, shrunk.keys
        slug = re.sub(r"[^a-z0-9]+", "-", f"{pair} {symptom.kind}".lower()).strip("-")[:50]
        folder = self._folder / f"{len(self.all) + 1:03}-{slug}"
        folder.mkdir(exist_ok=True)
        before, after = sizes_of(found.keys), sizes_of(keys)
        record = {
            "pair": pair,
            "symptom": symptom.kind,
            "reason": symptom.words,
            "shows": cause.shows,
            "faults": kinds_of(keys),
            "sorts": cause.faults,
            "schedules": 1,
            "origins": [origin],
            "before": before._asdict(),
            "after": after._asdict(),
            "tries": shrunk.tries,
            "seconds": round(shrunk.seconds, 1),
        }
        finding = Finding(folder, pair, symptom.kind, cause, record)
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
