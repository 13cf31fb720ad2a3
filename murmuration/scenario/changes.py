"""Changes to the keys of a scenario: by options of the command line, by a sweep, by a program."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import yaml

from murmur_pubsub.errors import InputError
from murmuration.scenario.yaml_mapping import yaml_value

KeyPath = tuple[str, ...]


class KeyChange(NamedTuple):
    """A new value of a key."""

    key: KeyPath
    value: Any
    place: str
    """What an error about the value names in place of the file: the option or argument that gave it."""


def change_of_option(text: str) -> KeyChange:
    """The change of `--set KEY.SUBKEY=VALUE`, whose value is YAML; raises `InputError`."""
    place = f"--set {text[:80]}"
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise InputError(place, repr(text), "key=value, such as overlay.brokers=32")
    try:
        return KeyChange(tuple(key.split(".")), yaml_value(value), place)
    except (yaml.YAMLError, RecursionError):
        raise InputError(place, repr(value[:80]), "a YAML value") from None


def changes_of(values: Mapping[str, Any], place: str) -> list[KeyChange]:
    """Changes that a sweep or program gives by "key.subkey"."""
    return [KeyChange(tuple(key.split(".")), value, place) for key, value in values.items()]


def apply_change(data: dict[str, Any], places: dict[KeyPath, str], change: KeyChange) -> None:
    """Set the value, and let errors about it name the change's place; raises `InputError`."""
    section = data
    for step in change.key[:-1]:
        section = section.setdefault(step, {})
        if not isinstance(section, dict):
            raise InputError(change.place, f"{step!r}, which is a value", "a section of the scenario")
    section[change.key[-1]] = change.value
    for below in [path for path in places if path[: len(change.key)] == change.key]:
        del places[below]  # what stood there in the file is gone
    places[change.key] = change.place
