"""The tool that asks whether tests notice small changes of the protocols' code (`python -m benchmarks.mutants`)."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks.forked_tests import ForkedTests
from benchmarks.mutants import draw
from benchmarks.mutations import compiles, mutations_of
from benchmarks.swapped_code import CannotSwapError, functions_by_code, swap

ROOT = Path(__file__).parents[2]

SOURCE = '''"""Not this: 1 < 2."""


def first(values: list[int], limit: int = 3) -> list[int]:
    """Nor this."""
    assert len(values) < 9
    if not values or values[0] > limit:
        raise ValueError("Δ < 1")
    values[0] += 2
    found = "Δ" and values[0] + 5
    return [found]
'''


def changed(tmp_path: Path) -> list[tuple[str, str, tuple[int, int] | None]]:
    file = tmp_path / "module.py"
    file.write_text(SOURCE)
    found = []
    for each in mutations_of(tmp_path, file):
        after = each.applied(SOURCE).splitlines()[each.line - 1]
        found.append((after.strip(), each.what, each.lines))
    return found


def test_each_change_stands_where_it_should(tmp_path: Path) -> None:
    assert changed(tmp_path) == [
        ("def first(values: list[int], limit: int = (3 + 1)) -> list[int]:", "a number is one more", None),
        ("def first(values: list[int], limit: int = (3 - 1)) -> list[int]:", "a number is one less", None),
        ("if not (not values or values[0] > limit):", "a condition is turned", (7, 7)),
        ("if not values and values[0] > limit:", "and for its opposite", (7, 7)),
        ("if (values) or values[0] > limit:", "a `not` is left out", (7, 7)),
        ("if not values or values[0] >= limit:", "a comparison is another one", (7, 7)),
        ("if not values or values[(0 + 1)] > limit:", "a number is one more", (7, 7)),
        ("if not values or values[(0 - 1)] > limit:", "a number is one less", (7, 7)),
        ("pass", "a statement is left out", (9, 9)),
        ("values[(0 + 1)] += 2", "a number is one more", (9, 9)),
        ("values[(0 - 1)] += 2", "a number is one less", (9, 9)),
        ("values[0] += (2 + 1)", "a number is one more", (9, 9)),
        ("values[0] += (2 - 1)", "a number is one less", (9, 9)),
        ('found = "Δ" or values[0] + 5', "or for its opposite", (10, 10)),
        ('found = "Δ" and values[0] - 5', "- for another operator", (10, 10)),
        ('found = "Δ" and values[(0 + 1)] + 5', "a number is one more", (10, 10)),
        ('found = "Δ" and values[(0 - 1)] + 5', "a number is one less", (10, 10)),
        ('found = "Δ" and values[0] + (5 + 1)', "a number is one more", (10, 10)),
        ('found = "Δ" and values[0] + (5 - 1)', "a number is one less", (10, 10)),
        ("return []", "nothing is returned", (11, 11)),
    ]


def test_a_larger_draw_continues_a_smaller_one() -> None:
    smaller, larger = draw(5, 3, ["routing/cells"]), draw(9, 3, ["routing/cells"])
    assert larger[:5] == smaller
    assert {each.path.rpartition("/")[0] for each in larger} == {"routing/cells"}
    assert all(compiles(each.applied(Path(each.path).read_text())) for each in larger)


def test_a_test_that_never_ends_has_noticed_the_change(tmp_path: Path) -> None:
    """Whatever it catches, and however busy the computer is: its CPU time counts."""
    (tmp_path / "test_endless.py").write_text(
        "def test_endless():\n    while True:\n        try:\n            sum(range(99))\n"
        "        except BaseException:\n            pass\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    program = (
        "import benchmarks.cpu_limit as limit, pytest\nlimit.SECONDS_MAX = 0.1\n"
        "pytest.main(['-q', '-p', 'no:cacheprovider', '-p', 'benchmarks.cpu_limit', '.'])"
    )
    environment = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "FAILED test_endless.py::test_endless - more than 0.1 s of CPU time"


IMPORTED = """
from functools import lru_cache

def plain(value):
    return value + 1

plain_of_two = plain(2)
twice = lru_cache(lambda value: value * 2)

class Held:
    step = 3

    @property
    def value(self):
        return [each + self.step for each in (1, 2)]

    def later(self):
        return lambda: self.step < 4
"""


@pytest.fixture
def change(tmp_path: Path) -> tuple[ModuleType, Callable[[str, str], object]]:
    """A module that is imported, and what changes it."""
    module, path = ModuleType("imported"), str(tmp_path / "imported.py")
    exec(compile(IMPORTED, path, "exec"), module.__dict__)
    return module, lambda one, other: swap(functions_by_code(), path, IMPORTED, IMPORTED.replace(one, other))


@pytest.mark.parametrize(
    ("one", "other", "shown"),
    [
        ("value + 1", "value - 1", (4, 10, [4, 5], True)),
        ("value * 2", "value + 2", (6, 7, [4, 5], True)),
        ("each + self.step", "each - self.step", (6, 10, [-2, -1], True)),
        ("self.step < 4", "self.step >= 4", (6, 10, [4, 5], False)),
    ],
)
def test_functions_that_are_held_already_do_what_the_changed_file_says(
    change: tuple[ModuleType, Callable[[str, str], object]], one: str, other: str, shown: tuple[object, ...]
) -> None:
    module, make = change
    plain, twice, held = module.plain, module.twice, module.Held()
    make(one, other)
    assert (plain(5), twice(5), held.value, held.later()()) == shown
    assert module.plain_of_two == 3


@pytest.mark.parametrize(("one", "other"), [("step = 3", "step = 4"), ("plain(2)", "plain(3)"), ("def plain", "def p")])
def test_what_runs_while_a_module_is_imported_cannot_be_changed_later(
    change: tuple[ModuleType, Callable[[str, str], object]], one: str, other: str
) -> None:
    with pytest.raises(CannotSwapError):
        change[1](one, other)


@pytest.mark.slow
def test_a_fork_plays_tests_and_hunts_up_to_the_first_that_fails() -> None:
    path = "routing/flooding.py"
    source = (ROOT / path).read_text()
    nowhere = source.replace("peer != came_from", "peer == came_from")
    assert nowhere != source
    forked = ForkedTests(ROOT, ["tests/unit/test_intervals.py"])
    try:
        played = forked.play(path, nowhere, forked.tests[:2], ["flooding/best_effort"], 5, 60)
        assert played["said"].startswith("flooding/best_effort, schedule ")
        assert list(played["seconds"]) == forked.tests[:2]
        assert forked.play(path, source + "\n\nCONSTANT = 1\n", [], [], 0, 60) == {"cannot": "no function differs"}
        path = "murmur_pubsub/message.py"
        source = (ROOT / path).read_text()
        undecorated = source.replace("        return message_type\n", "        return None\n")
        assert undecorated != source
        decorated = forked.play(path, undecorated, forked.tests[:1], [], 0, 60)
        assert decorated == {"cannot": "a function has run while modules were imported"}
    finally:
        forked.close()
