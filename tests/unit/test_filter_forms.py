"""The forms of a filter outside one process: wire, text and pickle, on input that is almost right."""

import os
import pickle
import subprocess
import sys
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from murmur_pubsub.errors import InputError
from murmur_pubsub.filter import Constraint, Filter, interval
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.values import canonical
from reliability.epidemic.messages import signature
from routing import filter_digest
from tests.strategies import filters

WIDE_TEXT = (
    "x IN (1, 2) AND s >= 'a' AND s != 'b' AND flag = TRUE AND y > 0.5 AND z IS NOT NULL AND t LIKE '%b' AND u IS NULL"
)


def number_on_the_wire(name: object = "x", values: object = (1,), low: object = None, high: object = None) -> list[Any]:
    return [[name, "number", None if values is None else list(values), low, False, high, False, []]]  # type: ignore[call-overload]


def nested(depth: int) -> list[Any]:
    body: list[Any] = []
    for _ in range(depth):
        body = [body]
    return body


def test_a_well_formed_constraint_is_read() -> None:
    assert Filter.from_wire(number_on_the_wire()) == parse_filter("x = 1")


@pytest.mark.parametrize(
    "body",
    [
        *(number_on_the_wire(name) for name in ("", "a b", "1x", "x'", "naïve", "x\n", "AND", "true", "In", None, 3)),
        number_on_the_wire(values=[float("inf")]),
        number_on_the_wire(values=[float("nan")]),
        number_on_the_wire(values=["0x5"]),
        number_on_the_wire(values=["0x0" + "f" * 20]),
        number_on_the_wire(values=["0x" + "f" * 1_000]),
        number_on_the_wire(values=["0x" + "f" * 100_000]),
        number_on_the_wire(values=["five"]),
        number_on_the_wire(values=[True]),
        number_on_the_wire(values=[2, 1]),
        number_on_the_wire(values=[1, 1.0]),
        number_on_the_wire(values=None),
        number_on_the_wire(values=None, low=float("-inf")),
        number_on_the_wire(values=None, low=2, high=1),
        number_on_the_wire(nested(3_000)),
        [["x", nested(3_000), *[None] * 6]],
        [["s", "string", None, "a", False, "a" + "\0" * 100_000, True, []]],
        *(
            [["s", "string", None, None, False, None, False, [], suffix]]
            for suffix in ("", 3, ["a"], "a" + "\0" * 65, "_id", "a%")
        ),
        [["s", "string", None, "a\0", False, None, False, [], "b"]],
        [["s", "string", ["ab"], None, False, None, False, [], "b"]],
        [["x", "number", None, None, False, None, False, [], "b"]],
        [["x", None, ["a"], None, False, None, False, []]],
        [["x", None, [], None, False, None, False, [], "b"]],
        [nested(3_000)],
        {"x": 1},
    ],
)
def test_what_no_filter_sends_is_refused(body: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 -- that it is no other error is all that is promised
        Filter.from_wire(body)


def unpacked(wanted: Filter) -> Any:
    return msgpack.unpackb(msgpack.packb(wanted.to_wire()))


def test_the_wire_form_cannot_be_altered() -> None:
    """It is made once, and all that send the filter share it."""
    wire: Any = parse_filter("x > 1 AND y IN (2, 3)").to_wire()
    assert type(wire) is tuple
    assert all(type(part) in (tuple, str, int, bool, type(None)) for entry in wire for part in (entry, *entry))


@st.composite
def almost_right(draw: st.DrawFn) -> Any:
    """The wire form of a filter with some fields replaced by fields of others or by odd values."""
    body: Any = unpacked(draw(filters))
    donor: Any = unpacked(draw(filters))
    odd = st.sampled_from([None, True, 0, -1, 2.5, float("inf"), "", "a", "a\0", "number", "string", [], [1], ["a"]])
    fields = [field for entry in donor or [] for field in entry]
    for entry in body or []:
        for position in range(len(entry)):
            if draw(st.integers(0, 5)) == 0:
                entry[position] = draw(st.sampled_from(fields) | odd if fields else odd)
    return msgpack.unpackb(msgpack.packb(body))


@given(almost_right())
@settings(max_examples=1_000)
def test_an_altered_filter_is_refused_or_is_one_in_every_form(body: Any) -> None:
    try:
        wanted = Filter.from_wire(body)
    except ValueError:
        return
    assert parse_filter(str(wanted)) == wanted
    assert Filter.from_wire(unpacked(wanted)) == wanted


def test_a_pickled_filter_is_equal_in_a_process_that_hashes_strings_otherwise() -> None:
    program = (
        "import pickle, sys; from murmur_pubsub.filter_parser import parse_filter; "
        f"wanted = parse_filter({WIDE_TEXT!r}); "
        "print(pickle.load(sys.stdin.buffer) == wanted)"
    )
    for seed in ("1", "2"):  # this process has at most one of them
        done = subprocess.run(
            [sys.executable, "-c", program],
            input=pickle.dumps(parse_filter(WIDE_TEXT)),
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        )
        assert done.stdout.strip() == b"True"


@pytest.mark.parametrize(
    ("text", "column", "found"),
    [
        ("x = " + "9" * 5_000, 5, "5000 digits"),
        ("x = ٣", 5, "٣"),
        ("x = 1 AND\n y ~ 3", 14, "~"),
        ("x = 1 AND true = 2", 11, "true"),
        ("and = 1", 1, "and"),
        ("s = '\ud800'", 6, "surrogate"),
        ("s = 'a" + "\0" * 65 + "'", 1, "NULs"),
        ("s >= 'a' AND s < 'a" + "\0" * 3_000 + "'", 1, "NULs"),
    ],
)
def test_text_that_has_no_wire_form_is_refused_at_its_column(text: str, column: int, found: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_filter(text)
    assert caught.value.place == f"filter, column {column}"
    assert found in caught.value.found


@pytest.mark.parametrize(
    "text",
    [
        f"x = {2**64 - 1}",
        f"x = {-(2**63)}",
        f"x IN (1, {2**64}, {2**200})",
        f"x > {-(2**63) - 1} AND x != {2**70}",
        "x = " + "9" * 1_000,
        "x = -" + "9" * 1_000,
        "true.x = 1",
        "android = 1",
    ],
)
def test_what_is_just_within_the_limits_survives_the_wire(text: str) -> None:
    wanted = parse_filter(text)
    assert Filter.from_wire(unpacked(wanted)) == wanted == parse_filter(str(wanted))


def test_as_many_nuls_as_are_allowed_survive_all_forms() -> None:
    wanted = parse_filter("s > 'a' AND s < 'a" + "\0" * 64 + "'")
    assert Filter.from_wire(unpacked(wanted)) == wanted == parse_filter(str(wanted))
    assert wanted.matches({"s": "a\0"})
    assert not wanted.matches({"s": "a"})


def test_excluded_points_do_not_push_an_end_beyond_what_can_be_written() -> None:
    parts = ["s >= 'a'", *(f"s != 'a{chr(0) * count}'" for count in range(64))]
    wanted = parse_filter(" AND ".join(parts))
    assert parse_filter(str(wanted)) == wanted
    with pytest.raises(InputError):
        parse_filter(" AND ".join([*parts, f"s != 'a{chr(0) * 64}'"]))


short_texts = st.text(alphabet="a\0b", max_size=4)


@given(
    st.none() | short_texts, st.booleans(), st.none() | short_texts, st.booleans(), st.lists(short_texts, max_size=4)
)
@settings(max_examples=300)
def test_an_interval_of_strings_holds_more_than_any_set_since_what_holds_few_is_a_set(
    low: str | None, low_open: bool, high: str | None, high_open: bool, excluded: list[str]
) -> None:
    """The index asks no set whether it covers an interval."""
    made = interval("string", low, low_open, high, high_open, excluded)
    if made is None or made.values is not None:
        return
    first = "" if made.low is None else str(made.low)
    members = [first + "\0" * count for count in range(200)]
    assert sum(map(made.contains, members)) >= 200 - len(excluded)


def test_two_strings_next_to_each_other_are_a_set() -> None:
    assert interval("string", "a", False, "a\0", False) == Constraint("string", ("a", "a\0"))
    assert interval("string", "a", False, "a\0\0", False, ["a\0"]) == Constraint("string", ("a", "a\0\0"))
    assert parse_filter("s IN ('a', 'a\0')").covers(parse_filter("s >= 'a' AND s < 'a\0\0'"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x > 5", "x > 5.0"),
        ("x = 0", "x = -0.0"),
        ("x IN (1, 2.5)", "x IN (1.0, 2.5)"),
        ("x BETWEEN -1e3 AND 3", "x BETWEEN -1000 AND 3.0"),
        ("x != 7", "x != 7.0"),
        (f"x < {2**64}", "x < 18446744073709551616.0"),
        (f"x < {2**64 - 2**11}", f"x < {float(2**64 - 2**11)!r}"),
    ],
)
def test_equal_filters_look_the_same_however_their_numbers_were_written(one: str, other: str) -> None:
    """Or two brokers, which met one of them first each, tell each other for ever that they hold different ones."""
    first, second = parse_filter(one), parse_filter(other)
    assert first == second
    assert str(first) == str(second)
    assert repr(first.to_wire()) == repr(second.to_wire())
    assert repr(Filter.from_wire(msgpack.unpackb(msgpack.packb(first.to_wire())))) == repr(first)
    assert signature(first) == signature(second)
    assert filter_digest._stamp.__wrapped__(first) == filter_digest._stamp.__wrapped__(second)


@given(number=st.one_of(st.integers(), st.floats(allow_nan=False)))
def test_the_canonical_number_is_equal_and_the_same_for_all_that_are_equal(number: float) -> None:
    assert canonical(number) == number
    others = [canonical(kind(number)) for kind in (int, float) if _is_exact(kind, number)]
    assert [repr(each) for each in others] == [repr(canonical(number))] * len(others)


def _is_exact(kind: type, number: float) -> bool:
    try:
        return bool(kind(number) == number)
    except OverflowError:
        return False
