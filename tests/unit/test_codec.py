"""The codec: what goes in comes out, and nothing that comes from outside breaks it."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from murmur_pubsub import codec as codec_module
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
from murmur_pubsub.message import kind_of, message
from murmur_pubsub.unpacking import SMALL_BYTES, unpack
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
    made = frame([b"\x01"] * count)
    assert len(FrameReader().feed(made)) == count
    assert made[FRAME_HEADER.size :] == msgpack.packb([1] * count), "as msgpack packs it itself"


def test_a_frame_that_claims_too_much_is_a_wire_error() -> None:
    assert FrameReader().feed(FRAME_HEADER.pack(FRAME_BYTES_MAX)) == []
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


def test_a_message_may_be_as_large_as_a_frame_takes_it_and_no_larger() -> None:
    codec = Codec((LinksUp,))

    def filled(size: int) -> LinksUp:
        return LinksUp("b", 0, 0, ["b" * (size - beside)])

    beside = 0
    beside = len(codec.encode(filled(100_000))) - 100_000
    largest = codec.encode(filled(MESSAGE_BYTES_MAX))
    assert len(largest) == MESSAGE_BYTES_MAX
    assert len(FrameReader().feed(frame([largest]))) == 1
    with pytest.raises(InputError, match="found 4,194,305 bytes; allowed: at most 4,194,304 bytes"):
        codec.encode(filled(MESSAGE_BYTES_MAX + 1))


@message(9_999)
class Listed(NamedTuple):
    """Any number of lists."""

    lists: Sequence[Any]


def test_a_message_may_have_as_many_lists_as_its_frame_may_with_the_list_around_it_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(codec_module, "CONTAINERS_MAX", 9)
    codec = Codec((Listed,))
    large = "x" * SMALL_BYTES
    sent = codec.encode(Listed([large, *([[]] * 6)]))  # the message is one more, and so is its field
    assert unpack(frame([sent])[FRAME_HEADER.size :], 9), "with the list around it"
    with pytest.raises(InputError, match="more than 8 lists and maps; allowed: fewer"):
        codec.encode(Listed([large, *([[]] * 7)]))


FULL = SMALL_BYTES - 5
"""So much fits a small frame beside the longest head of an array."""


@pytest.mark.parametrize(
    ("sizes", "counts"),
    [
        ([FULL], [1]),
        ([FULL - 1, 1], [2]),
        ([FULL, 1], [1, 1]),
        ([FULL - 1, 1, 1], [2, 1]),
        ([1, FULL - 1, FULL, 1, 1], [2, 1, 2]),
        ([FULL // 2] * 5, [2, 2, 1]),
        ([2 * FULL], [1]),
        ([1, 2 * FULL, 1], [1, 1, 1]),
    ],
)
def test_a_small_frame_takes_what_fits_and_a_large_message_has_one_of_its_own(
    sizes: list[int], counts: list[int]
) -> None:
    cut = frames([b"\x01" * size for size in sizes])
    ends = [sum(counts[:number]) for number in range(len(counts) + 1)]
    held = [sum(sizes[begin:end]) for begin, end in pairwise(ends)]
    assert [len(each) - FRAME_HEADER.size - 1 for each in cut] == held, "a head of one byte, and what it holds"


def test_a_filter_is_made_once_while_there_is_room_to_remember_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec_module, "_FILTER_CACHE_SIZE", 2)
    codec = Codec((FilterForwarded,))
    first, second, third = (codec.encode(FilterForwarded(parse_filter(f"x > {number}"))) for number in range(3))
    made, beside = codec.decode(first).filter, codec.decode(second).filter
    assert codec.decode(first).filter is made
    assert codec.decode(second).filter is beside
    codec.decode(third)
    assert codec.decode(first).filter is not made, "all are forgotten when there is no more room"
    assert codec.decode(first).filter == made
