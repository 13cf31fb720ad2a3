"""Random schedules that are interrupted end at once, with what was played until then."""

import multiprocessing
import threading
from collections.abc import Iterator

import pytest

from benchmarks import schedules
from benchmarks.schedules import Tally, all_of

_PAIR = "flooding/best_effort"
_ENDS = multiprocessing.Semaphore(0)


def _last_alone(pair: str, first: int, count: int) -> tuple[str, Tally]:
    """Plays the last chunk of three, and has no end of the others until it is let go."""
    if first < 200:
        _ENDS.acquire()
    return pair, Tally(count)


def _let_go() -> None:
    _ENDS.release()
    _ENDS.release()


@pytest.fixture
def rescue(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Timer]:
    """What waits for ever is let go after half a minute."""
    monkeypatch.setattr(schedules, "play", _last_alone)
    timer = threading.Timer(30, _let_go)
    timer.start()
    yield timer
    timer.cancel()


def test_a_tally_waits_for_no_other(rescue: threading.Timer) -> None:
    played = all_of([_PAIR], 250, 0, 3)
    assert next(played) == (_PAIR, Tally(50))
    played.close()
    assert not rescue.finished.is_set()


def test_no_process_plays_on_when_nobody_takes_more(rescue: threading.Timer) -> None:
    before = multiprocessing.active_children()
    played = all_of([_PAIR], 250, 0, 3)
    next(played)
    played.close()
    assert multiprocessing.active_children() == before
    assert not rescue.finished.is_set()
