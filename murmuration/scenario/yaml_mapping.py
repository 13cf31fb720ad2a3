"""A YAML file of keys, and the line of each: what scenario and sweep files have in common."""

from pathlib import Path
from typing import Any

import yaml

from murmur_pubsub.errors import InputError

KeyLines = dict[tuple[str, ...], int]

_DEPTH_MAX = 40
"""So many levels may be in each other."""


def read_mapping(path: Path, text: str) -> tuple[dict[str, Any], KeyLines]:
    """The keys of the file's text and the line of each; raises `InputError` naming file and line."""
    try:
        lines = _key_lines(yaml.compose(text, Loader=_Loader), (), str(path))
        data = yaml_value(text)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        found = f"the character {chr(error.character)!r}"
        raise InputError(f"{path}, line {line}", found, "characters that can be printed") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{path}, line {mark.line + 1}, column {mark.column + 1}" if mark else str(path)
        found = (error.problem or "no YAML").removeprefix("but ").removeprefix("found ")
        raise InputError(place, found, "a YAML mapping") from None
    except RecursionError:
        raise InputError(str(path), "brackets in brackets without an end", f"at most {_DEPTH_MAX} levels") from None
    if not isinstance(data, dict):
        found = {type(None): "nothing", list: "a list"}.get(type(data), "a single value")
        raise InputError(str(path), found, "a mapping of keys, such as 'overlay:'")
    return data, lines


def yaml_value(text: str) -> Any:
    """The value of a YAML text; raises `yaml.YAMLError`, and RecursionError for one that is nested too deep."""
    return yaml.load(text, Loader=_Loader)


class _Loader(yaml.SafeLoader):
    """Names the place of what looks like a number or a date and cannot be one, which is a bare ValueError."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except ValueError as error:
            what = "number that can be read" if node.tag.endswith(":int") else "date"
            found = f"{str(node.value)[:40]}, which is no {what}"
            raise yaml.constructor.ConstructorError(None, None, found, node.start_mark) from error


def _key_lines(node: Any, path: tuple[str, ...], place: str) -> KeyLines:
    """The line of each key; raises `InputError` for a key that stands twice (YAML would take the last), and for a value
    without an end: one that stands within itself."""
    lines: KeyLines = {}
    if len(path) > _DEPTH_MAX:
        found = "a value within itself, or nested without an end"
        raise InputError(
            f"{place}, line {node.start_mark.line + 1}, key {path[0]}", found, f"at most {_DEPTH_MAX} levels"
        )
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
