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
TABLES = [
    f"{'.'.join(path.relative_to(ROOT).with_suffix('').parts)}"
    for folder in ("routing", "reliability")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if re.search(r"^TRANSITIONS\b", path.read_text(), re.MULTILINE)
]
PICTURE = re.compile(r"<!-- states of ([\w.]+) -->\n```mermaid\n(.*?)```\n", re.DOTALL)
PAGES = {path: path.read_text() for path in sorted((ROOT / "docs").rglob("*.md"))}
PICTURES = {found[1]: (path, found[2]) for path, text in PAGES.items() for found in PICTURE.finditer(text)}


def table_of(module: str) -> Mapping[tuple[Enum, Enum], Enum]:
    table: Mapping[tuple[Enum, Enum], Enum] = importlib.import_module(module).TRANSITIONS
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


@pytest.mark.parametrize("module", TABLES)
def test_the_picture_is_that_of_the_table(module: str) -> None:
    path, drawn = PICTURES[module]
    expected = picture(table_of(module))
    if drawn != expected and os.environ.get("MURMUR_REWRITE"):
        path.write_text(
            re.sub(
                rf"(states of {re.escape(module)} -->\n```mermaid\n).*?```",
                lambda found: found[1] + expected + "```",
                path.read_text(),
                flags=re.DOTALL,
            )
        )
    assert drawn == expected or os.environ.get("MURMUR_REWRITE")


@pytest.mark.parametrize("module", TABLES)
def test_every_state_is_reached_and_every_step_taken(module: str) -> None:
    table = table_of(module)
    states = list(type(next(iter(table.values()))))
    assert {before for before, _ in table} | set(table.values()) == set(states)
    assert {step for _, step in table} == set(type(next(step for _, step in table)))
    reached, grown = {states[0]}, True
    while grown:
        further = {after for (before, _), after in table.items() if before in reached} - reached
        reached |= further
        grown = bool(further)
    assert reached == set(states)
