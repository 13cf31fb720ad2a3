"""A machine's inputs are recorded as they come, and read as they were; what is no such record is named by its place."""

from collections.abc import Sequence

import msgpack
import pytest

from murmur_pubsub.client import CLIENT_MESSAGES, ClientSubscribe
from murmur_pubsub.errors import InputError
from murmur_pubsub.event import Event
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import (
    Effect,
    Input,
    LinkDown,
    LinkUp,
    Machine,
    Order,
    Persist,
    Publish,
    Received,
    Start,
    Stored,
    Subscribe,
    TimerFired,
    Unsubscribe,
)
from murmur_pubsub.recorded_inputs import InputRecorder, RecordedInput, read_inputs

WANTED = parse_filter("x > 3 AND s LIKE 'a%'")
INPUTS: Sequence[Input] = (
    Start((b"first", b"second")),
    Received("b1", ClientSubscribe(7, WANTED)),
    TimerFired(("routing", "b1", 5)),
    LinkUp("b1", True),
    LinkDown("b1", "closed"),
    Stored(4),
    Subscribe(7, WANTED),
    Unsubscribe(8, WANTED),
    Publish(Event(1, 2, 3, {"x": 4})),
    Order(6, "move", ("b1", "b2")),
)


class Keeper(Machine):
    """Stores how many inputs it has taken, and raises at the last."""

    message_types = CLIENT_MESSAGES

    def __init__(self) -> None:
        self.taken = 0

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        self.taken += 1
        if self.taken == len(INPUTS):
            raise ValueError("enough")
        return [Persist(self.taken, b"input")]


def recorded() -> list[bytes]:
    records: list[bytes] = []
    recorder = InputRecorder(Keeper(), records.append)
    for number, each in enumerate(INPUTS[:-1]):
        assert recorder.handle(each, 100 + number) == [Persist(number + 1, b"input")]
    with pytest.raises(ValueError, match="enough"):
        recorder.handle(INPUTS[-1], 200)
    return records


def read(records: Sequence[bytes]) -> list[RecordedInput]:
    return list(read_inputs("here", b"".join(records), CLIENT_MESSAGES))


def test_every_kind_of_input_is_read_as_it_was_with_its_time_and_a_digest_of_what_came_of_it() -> None:
    found = read(recorded())
    assert [repr(each.input) for each in found] == [repr(each) for each in INPUTS]
    assert [each.time_us for each in found] == [*range(100, 109), 200]
    digests = [each.digest for each in found]
    assert digests[-1] is None, "the machine raised"
    assert None not in digests[:-1]
    assert len({*digests}) == len(INPUTS), "each stored something else"


def test_an_input_whose_effects_were_not_written_any_more_is_there() -> None:
    records = recorded()
    del records[3]
    found = read(records)
    assert [each.digest is None for each in found] == [False, True, *[False] * 7, True]
    cut_off = records[-1][:-3]
    assert len(read([*records[:-1], cut_off])) == len(INPUTS) - 1


def test_other_effects_have_another_digest() -> None:
    class Other(Keeper):
        def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
            return [Persist(1, b"other")]

    records: list[bytes] = []
    InputRecorder(Other(), records.append).handle(INPUTS[0], 100)
    assert read(records)[0].digest != read(recorded())[0].digest


@pytest.mark.parametrize(
    ("wrong", "number"),
    [
        (msgpack.packb([5]), 3),
        (msgpack.packb([5, 0]) + msgpack.packb([5, 0, [], []]), 4),
        (msgpack.packb([5, 99, 0]), 3),
        (msgpack.packb([5, 1, "b1", b"\xc1"]), 3),
        (msgpack.packb([5, 8, b"\xc1"]), 3),
        (msgpack.packb([5, 8, msgpack.packb([1, 2, 3])]), 3),
        (msgpack.packb("text"), 3),
        (msgpack.packb({"a": 1, "b": 2}), 3),
        (b"\xc1", 2),
    ],
    ids=[
        "no input",
        "too many fields",
        "no kind",
        "no message",
        "no event",
        "half an event",
        "no list",
        "a map",
        "no msgpack",
    ],
)
def test_what_is_no_record_is_named_by_its_place(wrong: bytes, number: int) -> None:
    """After an input and what came of it."""
    with pytest.raises(InputError, match="no recorded input") as error:
        read([*recorded()[:2], wrong])
    assert error.value.place == f"here, record {number}"
    assert error.value.allowed == "what a run with keep_inputs wrote"
