"""Every message of every registered pair: whatever arrives is a message of the annotated fields, or a `WireError`."""

import itertools
from collections.abc import Sequence
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from murmur_pubsub.client import CLIENT_MESSAGES
from murmur_pubsub.codec import Codec
from murmur_pubsub.errors import WireError
from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.message import Like, Way, kind_of, way_of
from murmuration.registry import RELIABILITIES, ROUTINGS
from reliability.end_to_end.redundant_messages import REDUNDANT_MESSAGES
from tests.strategies import filters

MESSAGES: dict[str, type] = {
    f"{each.__module__}.{each.__name__}": each
    for part in (*(each.make for each in ROUTINGS.values()), *(each.make for each in RELIABILITIES.values()))
    for each in (*cast(Any, part).message_types, *CLIENT_MESSAGES, *REDUNDANT_MESSAGES)
}
INT64 = st.integers(-(2**63), 2**63 - 1)
odd_numbers = st.sampled_from([-1, 2**15 - 1, 2**31, 2**40, 2**63 - 1, 2**63, 2**64 - 1, -(2**63)])
anything = st.recursive(
    st.none() | st.booleans() | odd_numbers | st.floats() | st.text(max_size=3) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)
events = st.tuples(
    st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1), st.binary(max_size=9)
)


def right(hint: Any) -> st.SearchStrategy[Any]:
    """What stands on the wire for a value of that annotation."""
    origin, arguments = get_origin(hint) or hint, get_args(hint)
    if origin is Annotated:
        (note,) = arguments[1:]
        return st.tuples(*map(right, note.elements)) if isinstance(note, Like) else st.integers(*note)
    if origin is dict:
        return st.dictionaries(right(arguments[0]), right(arguments[1]), max_size=3)
    if origin in (list, Sequence):
        return st.lists(right(arguments[0]), max_size=4)
    if origin is Event:
        return events.map(list)
    if origin is Filter:
        return filters.map(lambda each: each.to_wire())
    return {int: INT64, str: st.text(max_size=4), bool: st.booleans(), bytes: st.binary(max_size=4), Any: anything}[
        origin
    ]


def fields_of(message_type: type) -> list[Any]:
    return list(get_type_hints(message_type, include_extras=True).values())


def plain(value: Any) -> Any:
    """As it comes back from the wire: events and filters as what stands for them, tuples as lists."""
    if isinstance(value, Event | Filter):
        value = value.to_wire()
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return {key: plain(each) for key, each in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("name", MESSAGES)
@settings(max_examples=20)
@given(data=st.data())
def test_what_is_annotated_comes_through_unchanged(name: str, data: st.DataObject) -> None:
    codec = Codec((MESSAGES[name],))
    kind = kind_of(MESSAGES[name])
    body = [kind, *(data.draw(right(hint)) for hint in fields_of(MESSAGES[name]))]
    sent = msgpack.packb(body)
    arrived = codec.decode(sent)
    assert type(arrived) is MESSAGES[name]
    assert plain(msgpack.unpackb(codec.encode(arrived))) == plain(msgpack.unpackb(sent)) or "nan" in repr(body)


@pytest.mark.parametrize("name", MESSAGES)
@settings(max_examples=20)
@given(data=st.data())
def test_what_is_not_annotated_is_a_wire_error_or_a_message(name: str, data: st.DataObject) -> None:
    codec = Codec((MESSAGES[name],))
    kind = kind_of(MESSAGES[name])
    mixed = [data.draw(right(hint) | anything) for hint in fields_of(MESSAGES[name])]
    body = [kind, *mixed, *data.draw(st.lists(anything, max_size=1))]
    try:
        arrived = codec.decode(msgpack.packb(body))
    except WireError:
        return
    assert type(arrived) is MESSAGES[name]
    codec.encode(arrived)


@pytest.mark.parametrize("name", MESSAGES)
def test_no_integer_of_more_than_64_bits_and_no_other_element_comes_through(name: str) -> None:
    """One field at a time, the others as they should be."""
    codec = Codec((MESSAGES[name],))
    hints = fields_of(MESSAGES[name])
    samples = [_sample(hint) for hint in hints]
    kind = kind_of(MESSAGES[name])
    codec.decode(msgpack.packb([kind, *samples]))
    for number, hint in enumerate(hints):
        for wrong in _wrong(hint):
            body = [kind, *samples[:number], wrong, *samples[number + 1 :]]
            with pytest.raises(WireError):
                codec.decode(msgpack.packb(body))


def _sample(hint: Any) -> Any:
    origin = get_origin(hint) or hint
    if origin is Annotated:
        note = get_args(hint)[1]
        return [_sample(each) for each in note.elements] if isinstance(note, Like) else 0
    given_samples = {int: 0, str: "", bool: True, bytes: b"", dict: {}, list: [], Sequence: [], Filter: None}
    return [0, 0, 0, b"\x80"] if origin is Event else given_samples[origin]


def _wrong(hint: Any) -> list[Any]:
    origin, arguments = get_origin(hint) or hint, get_args(hint)
    if origin is Annotated and isinstance(arguments[1], Like):
        elements = arguments[1].elements
        right_one: list[Any] = _sample(hint)
        odd = [
            [*right_one[:at], wrong, *right_one[at + 1 :]] for at, each in enumerate(elements) for wrong in _wrong(each)
        ]
        return [None, [], right_one[1:], [*right_one, 1], *odd]
    if origin is Annotated:
        return [-1, 2**15 - 1, 2**63, 1.0, True, None]
    if origin is dict:
        keys = [{each: _sample(arguments[1])} for each in _wrong(arguments[0]) if isinstance(each, str | bytes)]
        return [None, [], *keys, *({"b0": each} for each in _wrong(arguments[1]))]
    if origin in (list, Sequence):
        return [None, {}, "text", *([each] for each in (() if arguments[0] is Any else _wrong(arguments[0])))]
    if origin is Event:
        wrong = [[-1, 0, 0], [2**31, 0, 0], [2**40, 0, 0], [0, -1, 0], [0, 2**63, 0], [0, 0, -1], [0, 0, 2**63]]
        return [None, [], *([*numbers, b"\x80"] for numbers in wrong), [0, 0, 0, "\x80"]]
    wrong_values: dict[Any, list[Any]] = {
        int: [2**63, 2**64 - 1, 1.0, True, None, "1"],
        str: [None, b"b0", 1],
        bool: [0, None],
        bytes: ["", None],
        Filter: [1, "TRUE", [1]],
    }
    return wrong_values[origin]


def test_every_message_says_which_role_sends_it_and_no_other_may() -> None:
    """A node's codec takes from a client what clients send, and from a broker what brokers send to such a node."""
    taken = set()
    for name, (role, by_client) in itertools.product(
        MESSAGES, [("broker", False), ("broker", True), ("client", False), ("client", True)]
    ):
        hears = Codec((MESSAGES[name],)).heard_by(role)[by_client]  # type: ignore[arg-type]
        body = [kind_of(MESSAGES[name]), *map(_sample, fields_of(MESSAGES[name]))]
        try:
            hears(body)
        except WireError:
            continue
        taken.add((name, role, by_client))
    roles = {Way.BETWEEN_BROKERS: ("broker", False), Way.TO_BROKER: ("broker", True), Way.TO_CLIENT: ("client", False)}
    assert taken == {(name, *roles[way_of(each)]) for name, each in MESSAGES.items()}
    between = {name.rpartition(".")[2] for name, role, by_client in taken if by_client or role == "client"}
    assert between == {
        "ClientSubscribe", "ClientUnsubscribe", "Publication", "Notification",
        "Submission", "Accepted", "Handed", "HandedBack",
        "Resume", "Recorded", "ResumedAt", "DurableHanded", "DurableGivenUp", "Decided",
    }  # fmt: skip
