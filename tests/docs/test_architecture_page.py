"""The architecture page names every package and module of the product, with the purpose that its docstring gives.

Bring the page up to date with `MURMUR_REWRITE=1 python -m pytest tests/docs/test_architecture_page.py`.
"""

import ast
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
FOLDERS = [ROOT / name for name in reversed(PROJECT["tool"]["importlinter"]["root_packages"])]
BEGIN, END = "<!-- modules: made by tests/docs/test_architecture_page.py -->\n", "<!-- modules: end -->"


def purpose(module: Path) -> str:
    """The first sentence of the module's docstring."""
    text = ast.get_docstring(ast.parse(module.read_text())) or ""
    return " ".join(re.split(r"\n\n|(?<=[a-z)`]\.)\s", text)[0].split()).replace("|", "\\|")


def packages(folder: Path) -> Iterator[Path]:
    """The package and those below it, each before what is in it."""
    yield folder
    for inner in sorted(path.parent for path in folder.glob("*/__init__.py")):
        yield from packages(inner)


def tables() -> str:
    """Each package with its purpose and a table of its modules, as Markdown."""
    lines: list[str] = []
    for package in (inner for folder in FOLDERS for inner in packages(folder)):
        modules = [path for path in sorted(package.glob("*.py")) if path.name != "__init__.py"]
        lines += ["", f"**`{package.relative_to(ROOT)}/`**: {purpose(package / '__init__.py')}", ""]
        if modules:
            lines += ["| module | purpose |", "| --- | --- |"]
            lines += [f"| `{path.stem}` | {purpose(path)} |" for path in modules]
    return "\n".join([*lines[1:], ""])


def with_tables(page: str) -> str:
    """The page with what is between its two marks made anew."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}{tables()}{END}{rest.split(END)[1]}"


def rooms_drawn(page: str) -> set[tuple[str, str]]:
    """The arrows of the picture of `murmuration/`, from room to room."""
    picture = page.split("### The rooms of murmuration")[1].split("```")[1]
    sides = [
        [side.strip().split(" & ") for side in line.split("-->")] for line in picture.splitlines() if "-->" in line
    ]
    return {(upper, lower) for uppers, lowers in sides for upper in uppers for lower in lowers}


def rooms_imported() -> set[tuple[str, str]]:
    """Which room of `murmuration/` imports which, imports inside functions too."""
    found: set[tuple[str, str]] = set()
    for room in (path.parent for path in (ROOT / "murmuration").glob("*/__init__.py")):
        text = "\n".join(path.read_text() for path in room.rglob("*.py"))
        found |= {(room.name, other) for other in re.findall(r"^\s*from murmuration\.(\w+)[. ]", text, re.MULTILINE)}
    return found


def closure(arrows: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The arrows, and those from the first end to the last of several in a row."""
    further = {(upper, lowest) for upper, lower in arrows for middle, lowest in arrows if lower == middle}
    return arrows if further <= arrows else closure(arrows | further)


def test_the_rooms_are_drawn_as_they_import_each_other() -> None:
    drawn = rooms_drawn(PAGE.read_text())
    ends = {room for arrow in drawn for room in arrow}
    imported = {(upper, lower) for upper, lower in rooms_imported() if upper != lower and {upper, lower} <= ends}
    assert drawn <= imported, "drawn, and not imported"
    assert imported <= closure(drawn), "imported, and not drawn"
    assert ends >= {path.parent.name for path in (ROOT / "murmuration").glob("*/__init__.py")}
    assert not any((lower, upper) in closure(drawn) for upper, lower in drawn), "a circle"


def test_the_page_names_every_module_with_its_purpose() -> None:
    if os.environ.get("MURMUR_REWRITE"):
        PAGE.write_text(with_tables(PAGE.read_text()))
    page = PAGE.read_text()
    assert page == with_tables(page), __doc__


def test_a_page_without_one_module_is_not_taken_for_it() -> None:
    page = PAGE.read_text()
    changed = page.replace("| `virtual_node` |", "| `somewhere` |")
    assert changed != page
    assert with_tables(changed) == page


def test_every_module_says_what_it_is_for() -> None:
    unsaid = [path for folder in FOLDERS for path in folder.rglob("*.py") if len(purpose(path)) < 10]
    assert not unsaid
