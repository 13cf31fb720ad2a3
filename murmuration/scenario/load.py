"""Reads scenario files: YAML, checked in full before anything starts.

An error names the file, the line, the key, what was found and what is allowed. Times are written with their
unit ("5 ms", "2 s", "250 us") and kept as integer microseconds.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml
from pydantic import ValidationError

from murmur_pubsub.errors import InputError
from murmuration.scenario.schema import Scenario
from murmuration.scenario.yaml_mapping import read_mapping

SCENARIO_FOLDER = Path(__file__).parents[1] / "scenarios"


@dataclasses.dataclass(frozen=True, slots=True)
class LoadedScenario:
    """A scenario, as checked and as written (with overrides), and where its keys stand in the file."""

    scenario: Scenario
    data: Mapping[str, Any]
    place: str
    lines: Mapping[tuple[str, ...], int]

    def _first_error(self, error: ValidationError, prefix: tuple[str, ...]) -> InputError:
        first = error.errors()[0]
        cause = first.get("ctx", {}).get("error")
        if isinstance(cause, InputError):
            return cause
        path = prefix + tuple(str(step) for step in first["loc"])
        if first["type"] == "extra_forbidden":
            return self.error_at(path, "an unknown key", _allowed_keys(path))
        if first["type"] in ("missing", "missing_argument"):
            return self.error_at(path, "nothing", "a value: this key is required")
        allowed = str(cause) if cause is not None else first["msg"].removeprefix("Input should be ")
        return self.error_at(path, repr(first["input"])[:80], allowed)

    def error_at(self, path: tuple[str, ...], found: str, allowed: str) -> InputError:
        """The error to raise for what was found under that key."""
        steps = path
        while steps and steps not in self.lines:
            steps = steps[:-1]
        line = f", line {self.lines[steps]}" if steps else ""
        return InputError(f"{self.place}{line}, key {'.'.join(path)}", found, allowed)


def load_scenario(
    path: Path,
    overrides: Sequence[str] = (),
    seed: int | None = None,
    changes: Mapping[str, Any] = MappingProxyType({}),
) -> LoadedScenario:
    """Read and check a scenario file; `changes` are values by "key.subkey", `overrides` "key.subkey=value" texts.
    Raises `InputError`."""
    if not path.is_file() and (SCENARIO_FOLDER / f"{path}.yaml").is_file():
        path = SCENARIO_FOLDER / f"{path}.yaml"
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        names = ", ".join(sorted(each.stem for each in SCENARIO_FOLDER.glob("*.yaml")))
        raise InputError(str(path), str(error), f"a scenario file, or the name of a built-in one ({names})") from None
    data, lines = read_mapping(path, text)
    for key, value in changes.items():
        change_key(data, key, value, key)
    for override in overrides:
        _override(data, override)
    if seed is not None:
        data["seed"] = seed
    return check_scenario(data, str(path), lines)


def check_scenario(
    data: Mapping[str, Any], place: str, lines: Mapping[tuple[str, ...], int] = MappingProxyType({})
) -> LoadedScenario:
    """The scenario of these keys; raises `InputError` naming `place`, and the line of the key if it is known."""
    draft = LoadedScenario(Scenario.model_construct(), data, place, lines)
    try:
        return dataclasses.replace(draft, scenario=Scenario.model_validate(data))
    except ValidationError as error:
        raise draft._first_error(error, ()) from None


def _override(data: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals or not key:
        raise InputError(f"--set {override}", repr(override), "key=value, such as overlay.brokers=32")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        raise InputError(f"--set {override}", repr(text), "a YAML value") from None
    change_key(data, key, value, f"--set {override}")


def change_key(data: dict[str, Any], key: str, value: Any, place: str) -> None:
    """Set the value of "key.subkey"."""
    steps = key.split(".")
    section = data
    for step in steps[:-1]:
        section = section.setdefault(step, {})
        if not isinstance(section, dict):
            raise InputError(place, f"{step!r}, which is a value", "a section of the scenario")
    section[steps[-1]] = value


def _allowed_keys(path: tuple[str, ...]) -> str:
    model: Any = Scenario
    for step in path[:-1]:
        model = model.model_fields[step].annotation
    return ", ".join(model.model_fields)
