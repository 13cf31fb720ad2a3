"""The codec: what goes in comes out, and nothing that comes from outside breaks it."""

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from murmur_pubsub.client import CLIENT_MESSAGES, ClientSubscribe, Notification, Publication
from murmur_pubsub.codec import (
    FRAME_BYTES_MAX,
    FRAME_HEADER,
    MESSAGE_BYTES_MAX,
    Codec,
    Encoded,
    FrameReader,
    frame,
    frames,
)
from murmur_pubsub.errors import InputError, WireError
from murmur_pubsub.event import Event
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.message import kind_of
from reliability.best_effort import Forwarded
from routing.cells.messages import EpochHeard, LinksUp
from routing.forwarding import FilterForwarded, FilterWithdrawn

CODEC = Codec((*CLIENT_MESSAGES, Forwarded, FilterForwarded, FilterWithdrawn))
EVENT = Event(3, 17, 123_456, {"x": 1, "y": 2.5, "s": "text", "flag": True})
FILTER = parse_filter("x > 3 AND s LIKE 'te%' AND flag = TRUE")
MESSAGES = [
    ClientSubscribe(7, FILTER),
    ClientSubscribe(7, parse_filter("FALSE")),
    Publication(EVENT),
    Notification(EVENT, 4, [1, 2, 3]),
    Forwarded(EVENT, 2, [5, 6]),
    FilterForwarded(FILTER),
    FilterWithdrawn(parse_filter("TRUE")),
]

values = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(), st.text(max_size=5), st.binary(max_size=5)
)
bodies = st.recursive(
    values, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_survives_the_wire(message: object) -> None:
    assert CODEC.decode(CODEC.encode(message)) == message


def test_an_event_on_its_way_keeps_its_blob_untouched() -> None:
    arrived = CODEC.decode(CODEC.encode(Publication(EVENT))).event
    assert arrived.blob == EVENT.blob
    assert CODEC.encode(Publication(arrived)) == CODEC.encode(Publication(EVENT))


@given(st.binary(max_size=60))
def test_any_bytes_give_a_message_or_a_wire_error(data: bytes) -> None:
    try:
        message = CODEC.decode(data)
    except WireError:
        return
    assert type(message) in {type(each) for each in MESSAGES}


@given(st.sampled_from([1, 2, 3, 4, 16, 17, 128, 99, True]), st.lists(bodies, max_size=4))
def test_any_well_packed_array_gives_a_message_or_a_wire_error(kind: int, fields: list[object]) -> None:
    try:
        message = CODEC.decode(msgpack.packb([kind, *fields]))
    except WireError:
        return
    event = getattr(message, "event", None)
    if event is not None:
        try:
            assert isinstance(event.attributes, dict)
        except WireError:
            return
    assert CODEC.decode(CODEC.encode(message)) == message


def test_attributes_that_are_no_map_of_values_are_a_wire_error() -> None:
    for blob in (
        b"\xc1",
        msgpack.packb([1]),
        msgpack.packb({"x": None}),
        msgpack.packb({1: 2}),
        msgpack.packb({"x": float("nan")}),
    ):
        event = Event.from_wire([1, 2, 3, blob])
        with pytest.raises(WireError):
            _ = event.attributes


def test_bytes_whose_values_read_like_a_message_are_none() -> None:
    with pytest.raises(WireError):
        Codec((EpochHeard,)).decode(msgpack.packb(bytes([kind_of(EpochHeard), 5])))


def test_two_classes_of_one_kind_are_refused() -> None:
    with pytest.raises(ValueError, match="kind 3"):
        Codec((Publication, type("Other", (Publication,), {})))


@given(st.lists(st.sampled_from(MESSAGES), max_size=40), st.lists(st.integers(1, 200), min_size=1, max_size=20))
def test_frames_survive_any_cutting_of_the_stream(messages: list[object], cuts: list[int]) -> None:
    stream = frame([CODEC.encode(message) for message in messages]) * 2
    reader, bodies, position = FrameReader(), [], 0
    while position < len(stream):
        step = cuts[position % len(cuts)]
        bodies += reader.feed(stream[position : position + step])
        position += step
    assert [CODEC.from_body(body) for body in bodies] == messages * 2


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 65_535, 65_536])
def test_a_frame_holds_any_number_of_messages(count: int) -> None:
    assert len(FrameReader().feed(frame([b"\x01"] * count))) == count


def test_a_frame_that_claims_too_much_is_a_wire_error() -> None:
    with pytest.raises(WireError, match="at most"):
        FrameReader().feed(FRAME_HEADER.pack(FRAME_BYTES_MAX + 1))


def test_a_frame_that_is_no_array_is_a_wire_error() -> None:
    body = msgpack.packb({"a": 1})
    with pytest.raises(WireError, match="array of messages"):
        FrameReader().feed(FRAME_HEADER.pack(len(body)) + body)


def test_a_codec_counts_what_it_encodes_once_it_is_told_to_and_no_other_class() -> None:
    codec = Codec((Forwarded, FilterForwarded))
    message = Forwarded(EVENT, 1, ())
    size = len(codec.encode(message))
    encoders = codec.encoders
    counted = codec.count([Forwarded])
    assert len(encoders[Forwarded](message)) == len(codec.encode(message)) == size
    codec.encode(FilterForwarded(FILTER))
    assert counted == {Forwarded: Encoded(messages=2, bytes=2 * size)}


@pytest.mark.parametrize("count", [0, 1, 3, 2_000])
def test_messages_in_small_frames_are_all_there_in_their_order(count: int) -> None:
    messages = [CODEC.encode(ClientSubscribe(number, FILTER)) for number in range(count)]
    reader = FrameReader()
    found = [CODEC.from_body(body) for data in frames(messages) for body in reader.feed(data)]
    assert found == [ClientSubscribe(number, FILTER) for number in range(count)]


@pytest.mark.parametrize(
    "message",
    [
        LinksUp("b", 0, 0, ["b" * MESSAGE_BYTES_MAX]),
        ClientSubscribe(7, parse_filter(f"s = '{'s' * MESSAGE_BYTES_MAX}'")),
    ],
    ids=lambda message: type(message).__name__,
)
def test_a_message_that_no_node_would_take_is_not_sent(message: object) -> None:
    with pytest.raises(InputError, match=f"a {type(message).__name__} to send: found 4,194,.* bytes"):
        Codec((LinksUp, ClientSubscribe)).encode(message)
