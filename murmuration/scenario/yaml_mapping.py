"""A YAML file of keys, and the line of each: what scenario and sweep files have in common."""

from pathlib import Path
from typing import Any

import yaml

from murmur_pubsub.errors import InputError

KeyLines = dict[tuple[str, ...], int]


def read_mapping(path: Path, text: str) -> tuple[dict[str, Any], KeyLines]:
    """The keys of the file's text and the line of each; raises `InputError` naming file and line."""
    try:
        lines = _key_lines(yaml.compose(text, Loader=yaml.SafeLoader), (), str(path))
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}, line {mark.line + 1}, column {mark.column + 1}" if mark else str(path)
        raise InputError(place, getattr(error, "problem", None) or "no YAML", "a YAML mapping") from None
    if not isinstance(data, dict):
        raise InputError(str(path), type(data).__name__, "a mapping of keys, such as 'overlay:'")
    return data, lines


def _key_lines(node: Any, path: tuple[str, ...], place: str) -> KeyLines:
    """The line of each key; raises `InputError` for a key that stands twice (YAML would take the last)."""
    lines: KeyLines = {}
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*path, str(key.value))
            line = key.start_mark.line + 1
            if here in lines:
                found = f"a second one (the first is in line {lines[here]})"
                raise InputError(f"{place}, line {line}, key {'.'.join(here)}", found, "each key once")
            lines[here] = line
            lines.update(_key_lines(value, here, place))
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            here = (*path, str(number))
            lines[here] = value.start_mark.line + 1
            lines.update(_key_lines(value, here, place))
    return lines
