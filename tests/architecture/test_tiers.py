"""`make test` leaves out what is marked slow, and touches every room all the same."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.conftest import COLLECTED, is_marked, pytest_terminal_summary

TESTS = Path(__file__).parents[1]


def test_every_folder_and_kind_of_tests_has_some_that_are_not_slow(request: pytest.FixtureRequest) -> None:
    quick: defaultdict[str, int] = defaultdict(int)
    for item in request.config.stash[COLLECTED]:
        kinds = [kind for kind in ("ray", "spark") if is_marked(item, kind)]
        for room in (str(item.path.parent), *kinds):
            quick[room] += not is_marked(item, "slow")
    if not {str(path.parent) for path in TESTS.rglob("test_*.py")} <= quick.keys():
        pytest.skip("only some of the tests were asked for")
    assert [room for room, count in quick.items() if not count] == []


def test_the_end_of_a_run_names_what_ought_to_be_marked() -> None:
    reports = [
        *reports_of("quick", 1.0),
        *reports_of("long", 4.0),
        *reports_of("live", 15.0, ray=1),
        *reports_of("longer", 30.0, spark=1),
        *reports_of("marked", 30.0, slow=1),
    ]
    said: list[str] = []
    reporter = SimpleNamespace(stats={"passed": reports[1::2], "": reports[::2]}, line=said.append)
    pytest_terminal_summary(cast(pytest.TerminalReporter, reporter))
    assert [line.rpartition(" ")[2] for line in said] == ["longer", "long"]


def reports_of(name: str, seconds: float, **keywords: int) -> list[pytest.TestReport]:
    """Of a test that takes half its time to set up."""
    given: Mapping[str, Any] = keywords
    return [
        pytest.TestReport(name, ("", 0, name), given, "passed", None, when, duration=seconds / 2)
        for when in ("setup", "call")
    ]
