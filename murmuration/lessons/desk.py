"""What the page's worker asks of Python: the name of a call and what is given, as JSON, and so the answer."""

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from murmur_pubsub.errors import InputError, RunError
from murmur_pubsub.protocol_error import ProtocolError
from murmuration.lessons.lesson_run import LessonRun
from murmuration.lessons.lessons import LESSONS, End, Lesson
from murmuration.lessons.own_router import try_router
from murmuration.lessons.witnesses import witness
from murmuration.scenario.yaml_mapping import read_mapping
from spark_analysis.way_picture import way_plain

_LINK = "the link"
_TOLD = 5
"""Excuses, and events that are missing."""


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
        return self._begun(LessonRun(self._lesson.scenario(seed), _new_folder()))

    def play(self, scenario: str) -> dict[str, Any]:
        """Begin the run of a scenario, as text in YAML."""
        self._lesson = None
        keys, _ = read_mapping(Path(_LINK), scenario)
        return self._begun(LessonRun(keys, _new_folder(), _LINK))

    def _begun(self, run: LessonRun) -> dict[str, Any]:
        self._run = run
        run.hands.held = True
        return {"head": run.head(), "frames": []} | self._told(run.advance(0))

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
        assert run is not None
        judgement = run.judgement()
        missing = judgement.pairs.missing
        lacks, shown = None, ""
        if lesson is not None:
            end = End(judgement, run.faults, answer, run.end_of_way(*missing[0]) if missing else "", run.hops())
            lacks = lesson.lacks(end)
            shown = lesson.shown(end) if lacks is None else ""
        excuses = dict.fromkeys(each.text for each in judgement.excused.values())
        events = list(dict.fromkeys(event for event, _ in missing))
        return {
            "verdict": dict(judgement.numbers),
            "explained": list(excuses)[:_TOLD],
            "missing": [f"{source}:{number}" for source, number in events[:_TOLD]],
            "missing_events": len(events),
            "lacks": lacks,
            "shown": shown,
            "saved": run.saved(),
            "hash": run.journal_hash(),
        }

    def way(self, event: str) -> Mapping[str, Any]:
        """The way of an event so far, to be drawn."""
        assert self._run is not None
        source, number = map(int, event.split(":"))
        return way_plain(self._run.way(source, number))

    def _told(self, frames: list[dict[str, Any]]) -> dict[str, Any]:
        assert self._run is not None
        told = self._run.hands.told()
        told["hands"]["saved"] = "by-hand.yaml"
        return {"more": frames, "told": told, "over": self._run.over}


def _new_folder() -> Path:
    return Path(tempfile.mkdtemp()) / "run"


def _try_router(code: str, number: int) -> dict[str, Any]:
    return try_router(code, number)._asdict()


_DESK = Desk()
_CALLS: Mapping[str, Callable[..., Any]] = {
    "witness": _DESK.witness,
    "open": _DESK.open,
    "play": _DESK.play,
    "advance": _DESK.advance,
    "do": _DESK.do,
    "decide": _DESK.decide,
    "way": _DESK.way,
    "try": _try_router,
}


def answer(call: str, given: str) -> str:
    """Carry out a call: `{"answer": …}`, or `{"trouble": …}` in words for whoever wrote what was to be played. With
    `"full": true` the memory has run out, and whoever asks begins anew with other memory."""
    try:
        return json.dumps({"answer": _CALLS[call](**json.loads(given))})
    except (InputError, ProtocolError, RunError) as error:
        return _trouble(str(error))
    except ModuleNotFoundError as error:
        return _trouble(f"This takes {error.name}, which Python in a browser does not have: murmur run plays it.")
    except MemoryError:
        return _trouble("It takes more memory than this browser gives to a page: murmur run plays it.", full=True)


def _trouble(words: str, full: bool = False) -> str:
    return json.dumps({"trouble": words, "full": full})
