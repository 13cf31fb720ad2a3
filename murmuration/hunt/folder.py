"""The folder of a hunt: what was played, reached and found, so that a hunt that was cut short goes on where it stopped.

`hunt.json` says what is hunted. `log.jsonl` has a line for each chunk that came back, with the schedules that have a
symptom: what was played is never played again, so that what it found has to be kept with it. `corpus.jsonl` has each
schedule that reached something new, with what that was. `findings/` has a folder for each finding.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from murmur_pubsub.errors import InputError
from murmur_pubsub.json_file import check_keys, read_json, taken_apart
from murmuration.hunt.chunk import Found, Quarry
from murmuration.hunt.fault_draws import DrawnFault
from murmuration.hunt.schedule import Schedule
from murmuration.hunt.space import KINDS
from murmuration.hunt.symptoms import Symptom
from murmuration.scenario.load import check_scenario
from murmuration.sweeps.folder import held_folder, write_whole
from murmuration.sweeps.kept_lines import keep_lines, kept_lines
from murmuration.version import own_version

_FORMAT = "murmur-hunt"
_SCHEMA_VERSION = 3
_BEGUN = "the hunt that was begun there, or a new folder (--out)"
_KEPT = "lines as the hunt wrote them, or no such file"


@dataclass(frozen=True, slots=True)
class _Lost:
    """What has to stand in the log of a chunk that did not come back."""

    chunk: int
    pair: str
    at_s: float
    lost: str


@dataclass(frozen=True, slots=True)
class _Played:
    """And of one that did."""

    chunk: int
    pair: str
    at_s: float
    schedules: int
    refused: int
    cpu_s: float
    verdicts: Mapping[str, int]
    places: int


@dataclass(frozen=True, slots=True)
class _Reached:
    """What has to stand in the corpus beside each schedule."""

    pair: str
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Schedule:
    """And of a schedule."""

    scenario: Mapping[str, Any]
    faults: tuple[tuple[int, str, int, int | None, int | None], ...]

    def __post_init__(self) -> None:
        for _, kind, *_ in self.faults:
            if kind not in KINDS:
                raise InputError("faults", repr(kind), "the kinds of faults that a hunt draws")


@dataclass(frozen=True, slots=True)
class _Found:
    """And of one with a symptom, beside the schedule."""

    keys: Mapping[str, Any]
    symptom: tuple[str, str]
    number: int


class HuntFolder:
    """The folder of one hunt."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.findings = folder / "findings"
        self._log = folder / "log.jsonl"
        self._corpus = folder / "corpus.jsonl"

    @contextmanager
    def opened(self, quarries: Sequence[Quarry], seed: int, guided: bool) -> Iterator[None]:
        """The folder, for this hunt and this process alone; raises `InputError` if it cannot be had."""
        with held_folder(self.folder, (self.findings,), "hunt"):
            self._claim(quarries, seed, guided)
            yield

    def chunks(self) -> Iterator[dict[str, Any]]:
        """What was written of each chunk; raises `InputError` for a line that is no chunk's."""
        for record in kept_lines(self._log):
            check_keys(_Lost if isinstance(record, dict) and "lost" in record else _Played, record, self._log)
            with taken_apart(self._log, _KEPT):
                for each in record.get("found", ()):
                    check_keys(_Found, each, self._log)
                    _check_schedule(each["schedule"], self._log)
                    check_scenario(each["keys"], str(self._log))
                    each["keys"]["faults"]  # a scenario may leave them out, and what was found may not
            yield record

    def corpus(self, pairs: Collection[str]) -> Iterator[tuple[str, Schedule, list[str]]]:
        """(pair, schedule, what it was the first to reach), in the order in which they came; raises `InputError` for a
        line that is none of these pairs'."""
        for line in kept_lines(self._corpus):
            check_keys(_Reached, line, self._corpus)
            _check_schedule(line, self._corpus)
            if line["pair"] not in pairs:
                raise InputError(f"{self._corpus}, key pair", repr(line["pair"]), ", ".join(pairs))
            yield line["pair"], _schedule(line), line["places"]

    def add_chunk(self, record: dict[str, Any], found: Sequence[Found] = ()) -> None:
        """Keep what is known of a chunk."""
        kept = [
            {**vars(each), "schedule": vars(each.schedule), "symptom": [each.symptom.kind, each.symptom.words]}
            for each in found
        ]
        keep_lines(self._log, [{**record, "found": kept}])

    def found_in(self, record: Mapping[str, Any]) -> Iterator[Found]:
        """What was found in the chunk of that record."""
        for each in record.get("found", ()):
            yield Found(_schedule(each["schedule"]), each["keys"], Symptom(*each["symptom"]), each["number"])

    def add_reached(self, pair: str, reached: Sequence[tuple[Schedule, list[str]]]) -> None:
        """Keep schedules that were the first to reach something."""
        lines = [
            {"pair": pair, "scenario": schedule.scenario, "faults": schedule.faults, "places": places}
            for schedule, places in reached
        ]
        keep_lines(self._corpus, lines)

    def _claim(self, quarries: Sequence[Quarry], seed: int, guided: bool) -> None:
        """See that the folder is this hunt's, or make it so."""
        known = {
            "format": _FORMAT,
            "schema_version": _SCHEMA_VERSION,
            "version": own_version(),
            "seed": seed,
            "guided": guided,
            "quarries": [
                {
                    "pair": each.name,
                    "parameters": each.parameters,
                    "scenario": each.scenario,
                    "properties": each.properties,
                }
                for each in quarries
            ],
        }
        path = self.folder / "hunt.json"
        if not path.exists():
            if self._log.exists() or any(self.findings.iterdir()):
                raise InputError(str(self.folder), "findings, and no hunt.json", "the folder of a hunt, or a new one")
            write_whole(path, json.dumps(known, indent=1) + "\n")
            return
        there = read_json(path, _BEGUN)
        with taken_apart(path, _BEGUN):
            found = _difference(there, json.loads(json.dumps(known)))
        if found is not None:
            raise InputError(str(path), found, _BEGUN)


def _schedule(line: Mapping[str, Any]) -> Schedule:
    return Schedule(line["scenario"], tuple(DrawnFault(*fault) for fault in line["faults"]))


def _check_schedule(line: Any, path: Path) -> None:
    """Raise `InputError` naming the file unless it is one that this version can play."""
    check_keys(_Schedule, line, path)
    check_scenario(line["scenario"], str(path))


def _difference(there: dict[str, Any], wanted: dict[str, Any]) -> str | None:
    for key, name in (
        ("format", "something else"),
        ("schema_version", "a corpus of schema"),
        ("version", "a corpus of murmur"),
        ("seed", "a hunt with seed"),
        ("guided", "a hunt with guided"),
    ):
        if there.get(key) != wanted[key]:
            return f"{name} {there.get(key)}, this is {wanted[key]}"
    if there.get("quarries") != wanted["quarries"]:
        pairs = ", ".join(each["pair"] for each in there.get("quarries", ()))
        return f"a hunt over {pairs}, or with another scenario, other parameters or properties"
    return None
