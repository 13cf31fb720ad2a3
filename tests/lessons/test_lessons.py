"""Each lesson is failed by doing nothing and solved by what it asks for; its export, played, is the run."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from murmuration.lessons.desk import Desk, answer
from murmuration.lessons.lessons import LESSONS
from murmuration.lessons.witnesses import journal_hash
from murmuration.runs.driver import execute
from murmuration.scenario.load import load_scenario
from tests.lessons.solved import SOLVED, Step

HALF_WAY: Mapping[str, tuple[Sequence[Step], str]] = {
    "losing": ([(2, {"kill": "b1"})], "b0, b1, b2 or b4"),
    "dead-broker": ([(2, {"kill": "b1"})], ""),
    "exactly-once": ([(2, {"kill": "b1"}), (1, {"kill": "p1"})], ""),
    "shortcuts": ([(17, {"subscribe": "c1", "filter": "publisher = 0"})], ""),
    "churn": ([(2, {"kill": "b3"}), (0, {"kill": "b6"}), (0, {"kill": "b9"})], ""),
}


def hash_of(scenario: str, folder: Path) -> str:
    """That of the journal which `murmur run` makes of it."""
    (folder / "by-hand.yaml").write_text(scenario)
    execute(load_scenario(folder / "by-hand.yaml"), folder / "again", lambda *_: None)
    return journal_hash(folder / "again" / "journal")


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
    assert hash_of(end["saved"], tmp_path) == end["hash"]


@pytest.mark.parametrize("waited_s", [0, 21], ids=["at once", "after all is published"])
def test_a_run_to_which_nothing_was_done_is_a_scenario_too(waited_s: float, tmp_path: Path) -> None:
    desk = Desk()
    desk.open("losing", 3)
    desk.advance(int(waited_s * 1e6))
    desk.do({"finish": True})
    end = desk.decide("")
    assert hash_of(end["saved"], tmp_path) == end["hash"]


def test_a_scenario_that_was_saved_is_the_same_run_on_the_page() -> None:
    end = done("losing", *SOLVED["losing"])
    desk = Desk()
    desk.play(end["saved"])
    desk.advance(100_000)
    desk.do({"finish": True})
    again = desk.decide("")
    assert again["hash"] == end["hash"]
    assert again["saved"] == end["saved"].partition("\n")[2], "but for its first line, a comment"
    assert again["missing"] == end["missing"]


@pytest.mark.parametrize(
    ("call", "given", "words"),
    [
        ("play", {"scenario": "overlay: ["}, "the link, line 1, column"),
        ("play", {"scenario": "name: x"}, "key overlay: found nothing"),
        ("way", {"event": "0:99"}, "no such publication"),
    ],
)
def test_what_cannot_be_is_said(call: str, given: dict[str, Any], words: str) -> None:
    json.loads(answer("open", json.dumps({"lesson": "losing", "seed": 1})))
    assert words in json.loads(answer(call, json.dumps(given)))["trouble"]


def test_the_way_of_an_event_that_is_missing_has_the_copy_that_was_lost() -> None:
    desk = Desk()
    desk.open("losing", 3)
    desk.do({"order": {"link": ["b0", "b2"], "loss": 1.0}})
    desk.do({"finish": True})
    end = desk.decide("b2 and b0")
    assert (len(end["missing"]), end["missing_events"], end["lacks"]) == (5, 99, None)
    assert {"from": "b0", "to": "b2", "lost": "lost by the link"} in desk.way(end["missing"][0])["hops"]


def test_an_order_that_cannot_be_is_said_and_the_run_goes_on() -> None:
    desk = Desk()
    desk.open("losing", 1)
    assert "b9" in desk.do({"order": {"kill": "b9"}})["said"]
    assert "took effect" in desk.do({"order": {"kill": "b2"}})["said"]
    told = [each for frame in desk.advance(50_000)["more"] for each in frame.get("s", ())]
    assert not any(each["k"] == "fault" for each in told), "it was told with the order"
    assert not desk.do({"paused": True})["over"]
    assert desk.do({"speed": 4})["told"]["hands"]["speed"] == 4
