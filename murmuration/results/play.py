"""Plays a scenario from a program: what `murmur run` does, without a terminal."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from murmuration.results.verdict import JudgeName, Verdict, verdict_of
from murmuration.runs.driver import execute
from murmuration.runs.own_modules import find_own_modules
from murmuration.runs.run_folder import default_folder, point_latest
from murmuration.scenario.changes import KeyPath, apply_change, changes_of
from murmuration.scenario.load import check_scenario, load_scenario


@dataclass(frozen=True, slots=True)
class Run:
    """A run that was played. `murmuration.load_run(run.folder)` has what happened, as tables."""

    folder: Path

    def verdict(self, judge: JudgeName = "spark") -> Verdict:
        """Have the run judged, by Spark or by the judge in plain Python; `auto`: by the latter if the run is small."""
        return verdict_of(self.folder, judge)


def run(
    scenario: str | Path | Mapping[str, Any] = "default",
    *,
    runtime: Literal["ray", "virtual"] | None = None,
    seed: int | None = None,
    changes: Mapping[str, Any] = MappingProxyType({}),
    folder: str | Path | None = None,
) -> Run:
    """Play a scenario: a file, the name of a built-in one, or its keys.

    `changes` are values by key, such as `{"links.loss": 0.1}`; `runtime` and `seed` are two of them. The run folder is
    `folder`, or a new one below `runs/`, to which `runs/latest` points then. Raises `InputError` for a scenario that
    cannot be played, and `RunError` for a run that ended early.
    """
    given = {"runtime": runtime, "seed": seed}
    changed = changes_of(changes, "changes")
    changed += changes_of({key: value for key, value in given.items() if value is not None}, "the arguments")
    if isinstance(scenario, Mapping):
        find_own_modules()
        data, places = copy.deepcopy(dict(scenario)), dict[KeyPath, str]()
        for change in changed:
            apply_change(data, places, change)
        loaded = check_scenario(data, "the scenario", places)
    else:
        find_own_modules(Path(scenario))
        loaded = load_scenario(Path(scenario), changes=changed)
    place = default_folder(loaded.scenario.name) if folder is None else Path(folder)
    try:
        return Run(execute(loaded, place, lambda *_: None).folder)
    finally:
        if folder is None:
            point_latest(place)
