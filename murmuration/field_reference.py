"""What the declaration of a field says, in words for the reference: its meaning, its values, its default."""

import ast
import inspect
import textwrap
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from murmur_pubsub.links import Delay
from murmuration.scenario.durations import duration_text
from murmuration.scenario.options import unit_of

_PLURALS = {int: "whole numbers", float: "numbers", str: "texts", dict: "mappings"}
_WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    Path: "a path",
    Delay: "a delay",
}


def field_texts(kind: type[Any]) -> Mapping[str, str]:
    """What stands below each field of a class, those of its bases included."""
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        if base.__module__.startswith("pydantic"):
            continue
        (declared,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(declared, ast.ClassDef)
        for field, below in zip(declared.body, declared.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                    texts[field.target.id] = " ".join(str(below.value.value).split())
    return texts


def value_words(annotation: Any) -> str:
    """What the annotation allows."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if unit_of(annotation) is not None:
        return "two times" if origin is tuple else "a time"
    if origin is Annotated:
        return value_words(arguments[0])
    if origin is Literal:
        return ", ".join(f"`{each}`" for each in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(value_words(each) for each in arguments if each is not type(None))
    if origin in (tuple, list):
        return f"a list of {_PLURALS.get(get_origin(arguments[0]) or arguments[0], 'pairs')}"
    return _WORDS.get(annotation, "a mapping")


def default_words(default: Any, annotation: Any) -> str:
    """The default as a file would have it."""
    if default is None or default in ((), [], {}, "", Delay()):
        return "none"
    unit = unit_of(annotation)
    if unit is not None:
        times = default if isinstance(default, tuple) else (default,)
        return " to ".join(duration_text(each * unit.value) for each in times)
    if isinstance(default, tuple):
        return ", ".join(f"`{each}`" for each in default)
    return str(default).lower() if isinstance(default, bool) else f"{default}"
