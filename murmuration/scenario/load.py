"""Reads scenario files: YAML, checked in full before anything starts.

An error names the file, the line, the key, what was found and what is allowed. Times are written with their
unit ("5 ms", "2 s", "250 us") and kept as integer microseconds.
"""

import dataclasses
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from murmur_pubsub.errors import InputError
from murmuration.scenario.changes import KeyChange, KeyPath, apply_change, change_of_option
from murmuration.scenario.options import in_words
from murmuration.scenario.schema import Scenario
from murmuration.scenario.yaml_mapping import read_mapping

SCENARIO_FOLDER = Path(__file__).parents[1] / "scenarios"


@dataclasses.dataclass(frozen=True, slots=True)
class LoadedScenario:
    """A scenario, as it was checked."""

    scenario: Scenario
    data: Mapping[str, Any]
    """As it was written, with every change."""
    place: str
    """The file, or what else gave it."""
    places: Mapping[KeyPath, str]
    """Where each key has its value from: a line of the file, or a change."""

    def _first_error(self, error: ValidationError, prefix: tuple[str, ...]) -> InputError:
        first = error.errors()[0]
        path = prefix + tuple(str(step) for step in first["loc"])
        if first["type"] == "extra_forbidden":
            return self.error_at(path, "an unknown key", _allowed_keys(path))
        if first["type"] in ("missing", "missing_argument"):
            return self.error_at(path, "nothing", "a value: this key is required")
        return self.error_at(path, *in_words(first))

    def error_at(self, path: tuple[str, ...], found: str, allowed: str) -> InputError:
        """The error to raise for what was found under that key."""
        return InputError(f"{self._place_of(path)}, key {'.'.join(path)}", found, allowed)

    def _place_of(self, path: tuple[str, ...]) -> str:
        """What gave that key: the place of it, of a key below it (a change may have made the section), of one above."""
        if path not in self.places:
            below = (place for steps, place in self.places.items() if steps[: len(path)] == path)
            above = (self.places[path[:length]] for length in range(len(path), 0, -1) if path[:length] in self.places)
            return next(below, next(above, self.place))
        place, of_kind = self.places[path], self.places.get((*path[:-1], "kind"), self.place)
        if place.startswith(self.place) and not of_kind.startswith(self.place):
            return f"{of_kind}, against {place}"  # another kind has other keys than the file was written for
        return place


def built_in_scenarios() -> dict[str, Path]:
    """The files of the scenarios that come with murmur, by name."""
    return {path.stem: path for path in sorted(SCENARIO_FOLDER.glob("*.yaml"))}


def scenario_path(path: Path) -> Path:
    """Where the scenario is: the file of that path, or the built-in one of that name."""
    return path if os.path.isfile(path) else built_in_scenarios().get(str(path), path)


def why_unreadable(error: OSError | UnicodeDecodeError) -> str:
    """Why a file that was named cannot be read, in words."""
    if isinstance(error, FileNotFoundError):
        return "no such file"
    return f"what cannot be read ({error.strerror if isinstance(error, OSError) else error})"


def load_scenario(path: Path, overrides: Iterable[str] = (), changes: Iterable[KeyChange] = ()) -> LoadedScenario:
    """Read a scenario file, change some of its keys and check it; raises `InputError`.

    `overrides` are texts as `--set` takes them.
    """
    path = scenario_path(path)
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        allowed = f"a scenario file, or the name of a built-in one ({', '.join(built_in_scenarios())})"
        raise InputError(f"{path!s:.200}", why_unreadable(error), allowed) from None
    data, lines = read_mapping(path, text)
    places = {key: f"{path}, line {line}" for key, line in lines.items()}
    for change in (*map(change_of_option, overrides), *changes):
        apply_change(data, places, change)
    return check_scenario(data, str(path), places)


def check_scenario(
    data: Mapping[str, Any], place: str, places: Mapping[KeyPath, str] = MappingProxyType({})
) -> LoadedScenario:
    """The scenario of these keys; raises `InputError` naming the key's own place if it is known, else `place`."""
    draft = LoadedScenario(Scenario.model_construct(), data, place, places)
    try:
        return dataclasses.replace(draft, scenario=Scenario.model_validate(data))
    except ValidationError as error:
        raise draft._first_error(error, ()) from None


def _allowed_keys(path: tuple[str, ...]) -> str:
    model: Any = Scenario
    for step in path[:-1]:
        model = model.model_fields[step].annotation
    return ", ".join(model.model_fields)
