"""What may be published: the same at every door through which an event comes in."""

import math
from pathlib import Path
from typing import Any

import msgpack
import pytest

from murmur_pubsub.errors import InputError, WireError
from murmur_pubsub.event import EVENT_BYTES_MAX, Event, contents_of, fingerprint_of
from murmur_pubsub.journal import JournalWriter
from murmur_pubsub.recorder import Recorder
from murmur_pubsub.values import Value
from murmur_virtual.run import play_virtual
from murmuration.harness.cluster import Cluster
from tests.deployments import PlainScript, deployment
from workloads.recorded import parse_event

REFUSED: dict[str, dict[str, Any]] = {
    "an integer of 65 bits": {"price": 2**64},
    "a negative one of 65 bits": {"price": -(2**63) - 1},
    "infinity": {"price": math.inf},
    "minus infinity": {"price": -math.inf},
    "nan": {"price": math.nan},
    "none": {"price": None},
    "a list": {"price": [1]},
    "a map": {"price": {"of": 1}},
    "half a surrogate pair": {"price": "\ud800"},
}


def by_cluster(folder: Path, attributes: dict[str, Any]) -> None:
    with Cluster.start({"kind": "chain", "brokers": 1}, {"alice": "b0"}, folder=folder / "run") as cluster:
        cluster.clients["alice"].publish(attributes)


def by_script(folder: Path, attributes: dict[str, Any]) -> None:
    script = PlainScript(publications=((0, 0, attributes),))
    play_virtual(deployment(1, [], {"c0": "b0"}, {"c0": script}), folder, lambda *_: None)


def by_runtime(folder: Path, attributes: dict[str, Any]) -> None:
    """What both runtimes do before a machine sees the event."""
    Recorder(JournalWriter(folder, "c0", 0), 0, {"c0": 0}).published(1, Event(0, 0, 1, attributes))


DOORS = {"Cluster": by_cluster, "a script": by_script, "a runtime": by_runtime}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", REFUSED)
def test_a_value_that_no_event_may_have_is_refused_by_the_attributes_name(tmp_path: Path, door: str, name: str) -> None:
    with pytest.raises(InputError) as caught:
        DOORS[door](tmp_path, {"symbol": "A", **REFUSED[name]})
    assert caught.value.place == "publication 0:0, attribute 'price'"
    assert caught.value.allowed == "a finite number of at most 64 bits, a text or a boolean"


@pytest.mark.parametrize("door", DOORS)
def test_an_event_without_attributes_is_refused(tmp_path: Path, door: str) -> None:
    with pytest.raises(InputError, match="publication 0:0: found an event without attributes; allowed: one attribute"):
        DOORS[door](tmp_path, {})


@pytest.mark.parametrize(
    "line", ['{"price": 18446744073709551616}', '{"price": NaN}', '{"price": null}', "[price,1e999]"]
)
def test_a_dataset_is_held_to_the_same(line: str) -> None:
    with pytest.raises(InputError, match="a finite number of at most 64 bits"):
        parse_event(line, "line 7")


@pytest.mark.parametrize("blob", [{}, {"x": math.inf}, {"x": math.nan}, {"x": None}, {"x": [1]}, {1: 1}, [1]])
def test_what_a_peer_sends_is_held_to_the_same(blob: Any) -> None:
    event = Event.from_wire([0, 0, 1, msgpack.packb(blob)])
    with pytest.raises(WireError):
        _ = event.attributes


def test_what_is_just_allowed_comes_through() -> None:
    attributes: dict[str, Value] = {"least": -(2**63), "most": 2**64 - 1, "large": 1e308, "none": "", "no": False}
    event = Event(0, 0, 1, attributes)
    event.check()
    assert Event.from_wire([0, 0, 1, event.blob]).attributes == attributes


def test_an_event_may_have_a_mebibyte_and_no_more() -> None:
    room = EVENT_BYTES_MAX - len(msgpack.packb({"x": "y" * 70_000})) + 70_000
    Event(3, 4, 1, {"x": "y" * room}).check()
    with pytest.raises(InputError, match="publication 3:4: found attributes of 1,048,577 bytes"):
        Event(3, 4, 1, {"x": "y" * (room + 1)}).check()


def test_events_are_equal_only_in_all_that_they_say() -> None:
    event = Event(1, 2, 3, {"x": 1})
    assert event == Event(1, 2, 3, {"x": 1})
    assert event not in (Event(2, 2, 3, {"x": 1}), Event(1, 3, 3, {"x": 1}), Event(1, 2, 4, {"x": 1}))
    assert event != Event(1, 2, 3, {"x": 2})


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ((0, 0, 0), (-1, 0, 0)),
        ((0, 0, 0), (0, -1, 0)),
        ((0, 0, 0), (0, 0, -1)),
        ((2**31 - 1, 0, 0), (2**31, 0, 0)),
        ((0, 2**63 - 1, 0), (0, 2**63, 0)),
        ((0, 0, 2**63 - 1), (0, 0, 2**63)),
        ((1, 0, 0), (True, 0, 0)),
        ((0, 1, 0), (0, True, 0)),
        ((0, 0, 1), (0, 0, True)),
    ],
)
def test_the_numbers_of_an_event_fit_a_row_of_the_journal(right: tuple[Any, ...], wrong: tuple[Any, ...]) -> None:
    blob = msgpack.packb({"x": 1})
    assert Event.from_wire([*right, blob]).to_wire() == (*right, blob)
    with pytest.raises(WireError):
        Event.from_wire([*wrong, blob])


@pytest.mark.parametrize("fields", [[0, 0, 0], [0, 0, 0, b"", 0], (0, 0, 0, b""), [0, 0, 0, "text"], b"four", None])
def test_what_is_no_list_of_an_event_is_refused(fields: Any) -> None:
    with pytest.raises(WireError, match="an event "):
        Event.from_wire(fields)


def test_a_fingerprint_depends_on_time_and_contents_and_fits_a_row() -> None:
    blob = msgpack.packb({"x": 1})
    found = {fingerprint_of(time_us, each) for time_us in range(50) for each in (blob, blob + b"\0")}
    assert len(found) == 100
    assert all(-(2**31) <= each < 2**31 for each in found)
    assert min(found) < -(2**30) < 2**30 < max(found), "all of it"


def test_contents_are_those_that_the_event_holds_whatever_its_class_says() -> None:
    class Liar(Event):
        blob = b"nothing"

        def __getattribute__(self, name: str) -> Any:
            return 0 if name == "time_us" else super().__getattribute__(name)

    assert contents_of(Liar(1, 2, 3, {"x": 1})) == (3, msgpack.packb({"x": 1}))
    assert Event(1, 2, 3, {"x": 1}).id == (1, 2)
