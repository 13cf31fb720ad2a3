"""A catch-up stream step by step, and where it and the consolidated stream of its broker meet."""

from collections.abc import Sequence
from typing import Any

import pytest

from murmur_pubsub.event import Event
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import Effect
from reliability.durable.catching_up import CatchUpStream
from reliability.durable.holders import Holders
from reliability.durable.messages import CatchUp, Caught, CaughtUp, Enlisted, GivenUp, Resume
from reliability.durable.parameters import DurableParameters
from reliability.gryphon.round_trip import RoundTrip
from reliability.gryphon.sessions import Sessions
from reliability.gryphon.subend import Subend

ALL = parse_filter("x >= 0")


def step(after: int, tick: int) -> Caught:
    return Caught("s", "c", 0, after, tick, Event(3, tick, 0, {"x": 1}), 1, [1], 9, 0, [])


def end(after: int, tick: int) -> CaughtUp:
    return CaughtUp("s", "c", 0, after, tick, 9, 0, [])


def taken(stream: CatchUpStream) -> list[int]:
    ticks = []
    while (found := stream.following()) is not None:
        stream.go_on(found)
        ticks.append(stream.tick)
    return ticks


def test_steps_are_taken_in_order_however_they_come() -> None:
    stream = CatchUpStream(5, 200)
    assert stream.ask(1_000, 7) == 10
    for each in (step(12, 15), end(15, 40), step(10, 12), step(12, 15), step(2, 4)):
        stream.put(each, 8)
        assert taken(stream) == []
    assert stream.due_us == 8
    stream.put(step(5, 10), 9)
    assert taken(stream) == [10, 12, 15, 40]
    assert (stream.at_end, stream.left) == (True, 0)
    stream.put(step(38, 50), 9)
    assert taken(stream) == [50], "it is the first after the tick 38, so after 40 as well"


def test_a_step_that_a_withdrawal_has_made_untrue_holds_nothing_up() -> None:
    stream = CatchUpStream(5, 200)
    stream.put(step(8, 10), 0)  # what was on the tick 8 is lost, and no more kept
    stream.put(end(5, 30), 0)
    assert taken(stream) == [30]


def test_what_is_given_up_takes_the_place_of_a_step_that_ends_there_too() -> None:
    """That one followed what is lost: it never comes to its turn."""
    stream = CatchUpStream(5, 200)
    stream.put(step(8, 10), 0)
    stream.put(GivenUp("s", "c", 0, 5, 10, [3, 6, 10], 0, 0, []), 0)
    stream.put(end(10, 30), 0)
    assert taken(stream) == [10, 30]


def test_more_is_asked_for_when_all_has_come_and_less_when_nothing_comes() -> None:
    stream = CatchUpStream(0, 25)
    asked = []
    for _ in range(3):
        asked.append(stream.ask(1_000, 0))
        for tick in range(stream.tick, stream.tick + asked[-1]):
            stream.put(step(tick, tick + 1), 0)
            taken(stream)
        assert stream.left == 0
    assert asked == [10, 20, 25]
    stream.ask(1_000, 0)
    stream.put_off()
    assert (stream.ask(1_000, 0), stream.ask(3, 0)) == (10, 3)


class Here:
    """A broker with one client, of a pubend that p has; `asked` is what it asks p for."""

    def __init__(self, ends: Sequence[int], begins: int | None = None) -> None:
        """The client's registration begins at tick 10. `begins`: the tick with which the consolidated stream begins,
        if that is known already."""
        parameters = DurableParameters()
        self.subend: Subend | None = None
        self.asked: list[CatchUp] = []
        sessions = Sessions(0, parameters.window)
        sessions.begin("c")
        about = (RoundTrip.of(parameters), parameters.window, parameters.catch_up, lambda _: self.subend, self._post)
        self.holders = Holders("s", {"p": [0]}, sessions, *about)
        self.holders.resume("c", Resume(1, [1], [ALL], []), 1, 0)
        if begins is not None:
            self.begin(begins)
        self.holders.enlisted(Enlisted("s", "c", 1, [0, 10], list(ends), 0, 0, []), 1_000)

    def _post(self, message: Any) -> list[Effect]:
        self.asked += [message] if type(message) is CatchUp else []
        return []

    def begin(self, tick: int) -> None:
        self.subend = Subend(tick, DurableParameters())
        self.subend.begin(1, tick)
        self.holders.meet(0, 2_000)

    def is_live(self, tick: int) -> bool:
        return self.holders.live_for("c", 0, tick)


@pytest.mark.parametrize("known", [True, False], ids=["before it is recorded", "after that"])
def test_a_client_of_which_nothing_is_kept_is_live_when_the_consolidated_stream_begins(known: bool) -> None:
    here = Here([0, 14], begins=15 if known else None)
    if not known:
        assert not here.is_live(15)
        here.begin(15)
    assert here.is_live(15)
    assert here.asked == []


@pytest.mark.parametrize("known", [True, False], ids=["before it is recorded", "after that"])
def test_what_lies_before_the_consolidated_stream_begins_is_asked_for(known: bool) -> None:
    here = Here([0, 14], begins=18 if known else None)
    if not known:
        here.begin(18)
    assert [each.after for each in here.asked] == [14]
    here.holders.meet(0, 3_000)
    assert len(here.asked) == 1, "it is on its way"


def test_what_is_kept_for_a_client_is_asked_for_at_once() -> None:
    assert [each.after for each in Here([]).asked] == [10]
