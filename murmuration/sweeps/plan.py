"""Sweep files: which runs a sweep is made of, checked in full before any of them starts.

A sweep file names a scenario, what all runs change in it (`set`), and what they differ in: `grid`, every combination
of some values of some keys, or `points`, a list of such changes; and for how many seeds each is run. The plan of a
sweep is a function of the sweep file, the scenario and nothing else, so a sweep can be told from another one.
"""

import copy
import hashlib
import itertools
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from murmur_pubsub.errors import InputError
from murmur_pubsub.progress import Progress
from murmuration.deployment.build_deployment import build
from murmuration.scenario.changes import changes_of
from murmuration.scenario.load import LoadedScenario, load_scenario, why_unreadable
from murmuration.scenario.options import in_words, is_of_union
from murmuration.scenario.schema import SEEDS_END, Seed
from murmuration.scenario.yaml_mapping import KeyLines, read_mapping

POINTS_MAX = 100_000


class SweepFile(BaseModel):
    """The keys of a sweep file; `seeds` is a count (from the scenario's seed on) or a list."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,60}$")]
    description: str = ""
    scenario: str
    set: dict[str, Any] = {}
    grid: dict[str, list[Any]] | None = None
    points: list[dict[str, Any]] | None = None
    seeds: Annotated[int, Field(ge=1)] | list[Seed] = 1


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One run: its number, the parameters in which runs differ, its seed, and the whole scenario as data."""

    number: int
    parameters: Mapping[str, Any]
    seed: int
    scenario: Mapping[str, Any]

    @property
    def live(self) -> bool:
        """Is it played on Ray?"""
        return bool(self.scenario["runtime"] == "ray")

    def __str__(self) -> str:
        return ", ".join(f"{key}={plain(value)}" for key, value in (*self.parameters.items(), ("seed", self.seed)))

    @property
    def digest(self) -> str:
        """By which this run is known again."""
        return hashlib.sha256(json.dumps(dict(self.scenario), sort_keys=True, default=str).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """All runs of a sweep. `keys` are the parameters in which they differ; `text` is the sweep file's."""

    name: str
    description: str
    keys: tuple[str, ...]
    points: tuple[SweepPoint, ...]
    text: str


def plain(value: Any) -> str:
    """A parameter's value as a person would write it."""
    return value if isinstance(value, str) else json.dumps(value, default=str)


def read_sweep(path: Path, progress: Progress = lambda *_: None) -> SweepPlan:
    """The plan of a sweep file; raises `InputError` for what no run could be made of, naming line or point."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path!s:.200}", why_unreadable(error), "a sweep file (docs/reference.md)") from None
    data, lines = read_mapping(path, text)
    data.setdefault("name", path.stem)
    try:
        sweep = SweepFile.model_validate(data)
    except ValidationError as error:
        raise _first_error(error, path, lines) from None
    settings = _settings(sweep, path, lines)
    scenario = _scenario_path(sweep.scenario, path)
    points: list[SweepPoint] = []
    total = len(settings) * (sweep.seeds if isinstance(sweep.seeds, int) else len(sweep.seeds))
    if total > POINTS_MAX:
        found = f"{total:,} runs of {len(settings):,} settings"
        raise _error(path, lines, ("seeds",), found, f"at most {POINTS_MAX:,}: all are planned before the first")
    for parameters in settings:
        loaded = _checked(path, scenario, sweep, parameters)
        progress("checking points", len(points), total)
        for seed in _seeds(sweep, loaded.scenario.seed, path, lines):
            points.append(SweepPoint(len(points) + 1, parameters, seed, {**loaded.data, "seed": seed}))
    return SweepPlan(sweep.name, sweep.description, tuple(settings[0]), tuple(points), text)


def _seeds(sweep: SweepFile, first: int, path: Path, lines: KeyLines) -> Sequence[int]:
    """Those of each setting; `first` is the scenario's own."""
    if not isinstance(sweep.seeds, int):
        return sweep.seeds
    if first + sweep.seeds > SEEDS_END:
        found = f"{sweep.seeds}, from the scenario's {first} on"
        raise _error(path, lines, ("seeds",), found, f"seeds below {SEEDS_END}")
    return range(first, first + sweep.seeds)


def _settings(sweep: SweepFile, path: Path, lines: KeyLines) -> list[dict[str, Any]]:
    """The parameters of each point, without seeds."""
    if (sweep.grid is None) == (sweep.points is None):
        found = "neither grid nor points" if sweep.grid is None else "grid and points"
        raise InputError(str(path), found, "one of them: what the runs differ in")
    if isinstance(sweep.seeds, list) and (not sweep.seeds or len(set(sweep.seeds)) < len(sweep.seeds)):
        raise _error(path, lines, ("seeds",), plain(sweep.seeds), "a count, or a list of different seeds")
    if sweep.grid is not None:
        settings = _grid(sweep.grid, path, lines)
    else:
        assert sweep.points is not None
        settings = _listed(sweep.points, path, lines)
    for key in settings[0]:
        section = "grid" if sweep.grid is not None else "points"
        if key == "seed":
            raise _error(path, lines, (section, key), "seed", "seeds under their own key: `seeds: [1, 2, 3]`")
        if key in sweep.set:
            raise _error(path, lines, ("set", key), f"a key of {section} too", "each key in one of them")
    seen: set[str] = set()
    for each in settings:
        text = ", ".join(f"{key}={plain(value)}" for key, value in each.items())
        if text in seen:
            raise InputError(f"{path}, point {text}", "it twice", "each point once; `seeds` repeats them")
        seen.add(text)
    return settings


def _grid(grid: Mapping[str, list[Any]], path: Path, lines: KeyLines) -> list[dict[str, Any]]:
    if not grid:
        raise _error(path, lines, ("grid",), "no key", "keys of the scenario with a list of values each")
    for key, values in grid.items():
        if not values:
            raise _error(path, lines, ("grid", key), "an empty list", "one value or more")
    count = 1
    for values in grid.values():
        count *= len(values)
    if count > POINTS_MAX:
        raise _error(path, lines, ("grid",), f"{count:,} points", f"at most {POINTS_MAX:,}")
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def _listed(points: list[dict[str, Any]], path: Path, lines: KeyLines) -> list[dict[str, Any]]:
    if not points or not points[0]:
        raise _error(path, lines, ("points",), "nothing", "mappings of keys of the scenario to values")
    for number, point in enumerate(points):
        if set(point) != set(points[0]):
            found, allowed = ", ".join(point) or "no key", f"the keys of the first point: {', '.join(points[0])}"
            raise _error(path, lines, ("points", str(number)), found, allowed)
    return [{key: point[key] for key in points[0]} for point in points]


def _checked(path: Path, scenario: Path, sweep: SweepFile, parameters: Mapping[str, Any]) -> LoadedScenario:
    """The scenario of a point, built once to see that it can be; raises `InputError` naming the point."""
    changes = copy.deepcopy({"runtime": "virtual", **sweep.set, **parameters})
    try:
        loaded = load_scenario(scenario, changes=changes_of(changes, "the sweep's change"))
        build(loaded)
    except InputError as error:
        point = ", ".join(f"{key}={plain(value)}" for key, value in parameters.items())
        raise InputError(f"{path}, point {point}: {error.place}", error.found, error.allowed) from None
    return loaded


def _scenario_path(name: str, path: Path) -> Path:
    """A scenario beside the sweep file, or one that `murmur run` would find."""
    beside = path.parent / name
    return beside if os.path.isfile(beside) else Path(name)


def _error(path: Path, lines: KeyLines, steps: tuple[str, ...], found: str, allowed: str) -> InputError:
    known = steps
    while known and known not in lines:
        known = known[:-1]
    line = f", line {lines[known]}" if known else ""
    return InputError(f"{path}{line}, key {'.'.join(steps)}", found, allowed)


def _told(error: ValidationError) -> tuple[ErrorDetails, tuple[str, ...]]:
    """The first error, and the steps to its key. Of several at one key it is the one that is deepest in what stands
    there: an item of a list, and not that a list is no number."""
    found = [(each, tuple(str(step) for step in each["loc"] if not is_of_union(step))) for each in error.errors()]
    return max((each for each in found if each[1][:1] == found[0][1][:1]), key=lambda each: len(each[1]))


def _first_error(error: ValidationError, path: Path, lines: KeyLines) -> InputError:
    first, steps = _told(error)
    if first["type"] == "extra_forbidden":
        return _error(path, lines, steps, "an unknown key", ", ".join(SweepFile.model_fields))
    if first["type"] == "missing":
        return _error(path, lines, steps, "nothing", "a value: this key is required")
    return _error(path, lines, steps[:2], plain(first["input"])[:80], in_words(first)[1])
