"""Each lesson is failed by doing nothing and solved by what it asks for; its export, played, is the run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from murmuration.lessons.desk import Desk
from murmuration.lessons.lessons import LESSONS
from murmuration.lessons.witnesses import journal_hash
from murmuration.runs.driver import execute
from murmuration.scenario.load import load_scenario

Step = tuple[float, Mapping[str, Any]]
"""Seconds that pass, and then an order."""
SOLVED: Mapping[str, tuple[Sequence[Step], str]] = {
    "losing": ([(2, {"link": ["b0", "b1"], "loss": 0.5})], "b0 and b1"),
    "dead-broker": ([(2, {"kill": "b1"}), (3, {"restart": "b1"})], ""),
    "exactly-once": ([(2, {"kill": "b1"}), (1, {"kill": "p1"}), (3, {"restart": "p1"})], ""),
    "shortcuts": ([(8, {"kill": "b3"})], ""),
    "churn": (
        [(2, {"kill": "b1"}), (1, {"kill": "b4"}), (1, {"kill": "b5"}), (2, {"restart": "b1"}), (1, {"restart": "b4"})],
        "",
    ),
}
HALF_WAY: Mapping[str, tuple[Sequence[Step], str]] = {
    "losing": ([(2, {"kill": "b1"})], "b4 and b1"),
    "dead-broker": ([(2, {"kill": "b1"})], ""),
    "exactly-once": ([(2, {"kill": "b1"}), (1, {"kill": "p1"})], ""),
    "shortcuts": ([(8, {"kill": "b6"})], ""),
    "churn": ([(2, {"kill": "b3"}), (0, {"kill": "b6"}), (0, {"kill": "b9"})], ""),
}


def done(lesson: str, steps: Sequence[Step], answer: str) -> dict[str, Any]:
    """What a page is told in the end of whoever did this."""
    desk = Desk()
    opened = desk.open(lesson, 3)
    assert opened["head"]["nodes"]
    for seconds, entry in steps:
        for _ in range(int(seconds * 4)):
            assert not desk.advance(250_000)["over"]
        assert desk.do({"order": entry})["said"].endswith("took effect")
    assert desk.do({"finish": True})["over"]
    return desk.decide(answer)


@pytest.mark.slow
@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_is_not_solved_by_doing_nothing_or_half_of_it(lesson: str) -> None:
    assert done(lesson, (), "")["lacks"]
    assert done(lesson, *HALF_WAY[lesson])["lacks"]


@pytest.mark.slow
@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_is_solved_and_what_was_done_is_a_scenario_that_does_it_again(lesson: str, tmp_path: Path) -> None:
    end = done(lesson, *SOLVED[lesson])
    assert end["lacks"] is None, end
    saved = tmp_path / "by-hand.yaml"
    saved.write_text(end["saved"])
    execute(load_scenario(saved), tmp_path / "again", lambda *_: None)
    assert journal_hash(tmp_path / "again" / "journal") == end["hash"]


def test_an_order_that_cannot_be_is_said_and_the_run_goes_on() -> None:
    desk = Desk()
    desk.open("losing", 1)
    assert "b9" in desk.do({"order": {"kill": "b9"}})["said"]
    assert "took effect" in desk.do({"order": {"kill": "b2"}})["said"]
    told = [each for frame in desk.advance(50_000)["more"] for each in frame.get("s", ())]
    assert not any(each["k"] == "fault" for each in told), "it was told with the order"
    assert not desk.do({"paused": True})["over"]
    assert desk.do({"speed": 4})["told"]["hands"]["speed"] == 4
