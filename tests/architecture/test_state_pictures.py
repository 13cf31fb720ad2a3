"""The pictures of procedures in docs are those of their tables.

A page names the table in a comment before the picture. Draw the pictures anew with
`MURMUR_REWRITE=1 pytest tests/architecture/test_state_pictures.py`.
"""

import importlib
import os
import re
from collections.abc import Mapping
from enum import Enum
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLES = sorted(
    f"{'.'.join(path.relative_to(ROOT).with_suffix('').parts)}:{name}"
    for folder in ("routing", "reliability", "tests/protocols")
    for path in (ROOT / folder).rglob("*.py")
    for name in re.findall(r"^(\w+_TRANSITIONS)\b", path.read_text(), re.MULTILINE)
)
PICTURE = re.compile(r"(<!-- states of ([\w.:]+) -->\n```mermaid\n)(.*?)```\n", re.DOTALL)
PAGES = sorted((ROOT / "docs").rglob("*.md"))
PICTURES = {found[2]: (path, found[3]) for path in PAGES for found in PICTURE.finditer(path.read_text())}


def table_of(place: str) -> Mapping[tuple[Enum, Enum], Enum]:
    module, _, name = place.partition(":")
    table: Mapping[tuple[Enum, Enum], Enum] = getattr(importlib.import_module(module), name)
    return table


def picture(table: Mapping[tuple[Enum, Enum], Enum]) -> str:
    """The table as a state diagram; it starts in the first state of the class."""
    states = list(type(next(iter(table.values()))))
    lines = ["stateDiagram-v2", *(f"    {state.name}: {state.name.lower()}<br>{state.value}" for state in states)]
    lines.append(f"    [*] --> {states[0].name}")
    lines += [f"    {before.name} --> {after.name}: {step.value}" for (before, step), after in table.items()]
    return "\n".join(lines) + "\n"


def test_every_table_is_pictured() -> None:
    assert sorted(PICTURES) == TABLES != []


@pytest.mark.parametrize("place", TABLES)
def test_the_picture_is_that_of_the_table(place: str) -> None:
    path, drawn = PICTURES[place]
    expected = picture(table_of(place))
    if os.environ.get("MURMUR_REWRITE"):
        path.write_text(
            PICTURE.sub(lambda found: f"{found[1]}{expected}```\n" if found[2] == place else found[0], path.read_text())
        )
    else:
        assert drawn == expected


@pytest.mark.parametrize("place", TABLES)
def test_every_state_is_reached_and_every_step_taken(place: str) -> None:
    table = table_of(place)
    states = list(type(next(iter(table.values()))))
    assert {before for before, _ in table} | set(table.values()) == set(states)
    assert {step for _, step in table} == set(type(next(step for _, step in table)))
    reached, grown = {states[0]}, True
    while grown:
        further = {after for (before, _), after in table.items() if before in reached} - reached
        reached |= further
        grown = bool(further)
    assert reached == set(states)
