"""A router of one's own: what is right is valid on all runs, and whatever is wrong is said in words."""

import sys
import types

import pytest

from murmuration.lessons.own_router import STARTER, TRIALS, try_router

HERE = "return []  # here"
FLOODING = "return [Hop(peer) for peer in self._neighbours if peer != came_from]"


def test_the_starter_delivers_nothing_to_other_brokers_and_flooding_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever module of that name was there before."""
    left_over = types.ModuleType("own")
    exec(STARTER.replace(HERE, FLOODING), left_over.__dict__)
    monkeypatch.setitem(sys.modules, "own", left_over)
    assert [try_router(STARTER, number).verdict for number in range(len(TRIALS))] == ["invalid"] * 3
    tried = [try_router(STARTER.replace(HERE, FLOODING), number) for number in range(len(TRIALS))]
    assert [(each.verdict, each.trouble) for each in tried] == [("valid", "")] * 3


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("return [", "was never closed"),
        ("return [Hop(peer) for peer in self._neighbors]", "own.py:24, in Own.next_hops"),
        ("return ['b1']", "allowed: a list of Hop"),
        ("import nothing_there", "No module named 'nothing_there'"),
    ],
    ids=["syntax", "name", "no hop", "import"],
)
def test_what_is_wrong_is_said(line: str, words: str) -> None:
    assert words in try_router(STARTER.replace(HERE, line), 0).trouble


@pytest.mark.parametrize(("code", "words"), [("x = 1", "no attribute 'OWN'"), ("1 / 0", "ZeroDivisionError in line 1")])
def test_a_module_without_a_router_is_said(code: str, words: str) -> None:
    assert words in try_router(code, 0).trouble


@pytest.mark.slow
def test_a_router_that_floods_is_ended() -> None:
    assert (
        "It floods" in try_router(STARTER.replace(HERE, "return [Hop(peer) for peer in self._neighbours]"), 1).trouble
    )
