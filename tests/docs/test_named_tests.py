"""A page that names a test names one that is there."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def named(text: str) -> Iterator[tuple[str, str]]:
    """The tests that a page names, as (file, function or nothing); `::name` alone is in the file named before."""
    file = ""
    for path, function in re.findall(r"`(tests/[\w/]+\.py)?(?:::(\w+))?`", text):
        file = path or file
        if path or function:
            yield file, function


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_the_tests_that_a_page_names_are_there(page: Path) -> None:
    for file, function in named(page.read_text()):
        source = (ROOT / file).read_text()
        assert not function or f"def {function}(" in source, f"{page.name}: {file} has no {function}"


def test_a_test_that_is_not_there_would_be_seen() -> None:
    assert list(named("`tests/docs/test_a.py::test_b`, `::test_c` and `tests/d.py`")) == [
        ("tests/docs/test_a.py", "test_b"),
        ("tests/docs/test_a.py", "test_c"),
        ("tests/d.py", ""),
    ]
