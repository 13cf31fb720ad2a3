"""What the page's worker asks of Python: the name of a call and what is given, as JSON, and so the answer."""

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from murmur_pubsub.errors import InputError
from murmuration.lessons.lesson_run import LessonRun
from murmuration.lessons.lessons import LESSONS, End, Lesson
from murmuration.lessons.own_router import try_router
from murmuration.lessons.witnesses import witness


class Desk:
    """One lesson at a time, and the run of it."""

    def __init__(self) -> None:
        self._lesson: Lesson | None = None
        self._run: LessonRun | None = None

    def witness(self, routing: str, reliability: str) -> dict[str, Any]:
        """The witness of that pair."""
        return witness(routing, reliability)._asdict()

    def open(self, lesson: str, seed: int) -> dict[str, Any]:
        """Begin the run of a lesson anew."""
        self._lesson = LESSONS[lesson]
        self._run = LessonRun(self._lesson.scenario(seed), Path(tempfile.mkdtemp()) / lesson)
        self._run.hands.held = True
        return {"head": self._run.head(), "frames": []} | self._told(self._run.advance(0))

    def advance(self, us: int) -> dict[str, Any]:
        """Let this time pass."""
        assert self._run is not None
        return self._told(self._run.advance(us))

    def do(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """What hands in the page ask: an order, another pace, or the end."""
        run = self._run
        assert run is not None
        said = ""
        try:
            match asked:
                case {"order": dict(entry)}:
                    said = run.order(entry)
                case {"speed": int() | float() as speed}:
                    run.hands.set_pace(speed=float(speed))
                case {"paused": bool(paused)}:
                    run.hands.set_pace(paused=paused)
                case {"finish": True}:
                    return {"said": ""} | self._told(run.play_on())
        except InputError as error:
            said = f"Not done: {error}"
        return {"said": said} | self._told(run.advance(0))

    def decide(self, answer: str) -> dict[str, Any]:
        """The verdict on a run that is over, and whether the lesson is solved."""
        lesson, run = self._lesson, self._run
        assert lesson is not None
        assert run is not None
        judgement = run.judgement()
        end = End(judgement, run.faults, answer, run.levels())
        excuses = dict.fromkeys(each.text for each in judgement.excused.values())
        return {
            "verdict": dict(judgement.numbers),
            "explained": list(excuses)[:5],
            "lacks": lesson.lacks(end),
            "saved": run.saved(),
            "hash": run.journal_hash(),
        }

    def _told(self, frames: list[dict[str, Any]]) -> dict[str, Any]:
        assert self._run is not None
        told = self._run.hands.told()
        told["hands"]["saved"] = "by-hand.yaml"
        return {"more": frames, "told": told, "over": self._run.over}


def _try_router(code: str, number: int) -> dict[str, Any]:
    return try_router(code, number)._asdict()


_DESK = Desk()
_CALLS: Mapping[str, Callable[..., Any]] = {
    "witness": _DESK.witness,
    "open": _DESK.open,
    "advance": _DESK.advance,
    "do": _DESK.do,
    "decide": _DESK.decide,
    "try": _try_router,
}


def answer(call: str, given: str) -> str:
    """Carry out a call."""
    return json.dumps(_CALLS[call](**json.loads(given)))
