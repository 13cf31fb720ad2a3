"""A filter's wire form and text, constraint by constraint; and what is almost a wire form, with what is wrong in it."""

from typing import Any

import msgpack
import pytest

from murmur_pubsub.filter import ABSENT, ANY_NUMBER, EVERYTHING, EXISTS, NOTHING, Constraint, Filter
from murmur_pubsub.filter_parser import parse_filter

ANY_INTERVAL = (None, False, None, False, ())

FORMS: list[tuple[Constraint, tuple[Any, ...], str]] = [
    (EXISTS, (None, None, *ANY_INTERVAL), "x IS NOT NULL"),
    (ABSENT, (None, (), *ANY_INTERVAL), "x IS NULL"),
    (Constraint("number", (1,)), ("number", (1,), *ANY_INTERVAL), "x = 1"),
    (Constraint("number", (1, 2.5)), ("number", (1, 2.5), *ANY_INTERVAL), "x IN (1, 2.5)"),
    (Constraint("string", ("it's",)), ("string", ("it's",), *ANY_INTERVAL), "x = 'it''s'"),
    (Constraint("string", ("", "1")), ("string", ("", "1"), *ANY_INTERVAL), "x IN ('', '1')"),
    (Constraint("boolean", (False,)), ("boolean", (False,), *ANY_INTERVAL), "x = FALSE"),
    (Constraint("boolean", (True,)), ("boolean", (True,), *ANY_INTERVAL), "x = TRUE"),
    (Constraint("boolean", (False, True)), ("boolean", (False, True), *ANY_INTERVAL), "x IN (FALSE, TRUE)"),
    (Constraint("number", None, 1), ("number", None, 1, False, None, False, ()), "x >= 1"),
    (Constraint("number", None, 1, True), ("number", None, 1, True, None, False, ()), "x > 1"),
    (Constraint("number", high=2), ("number", None, None, False, 2, False, ()), "x <= 2"),
    (Constraint("number", high=2, high_open=True), ("number", None, None, False, 2, True, ()), "x < 2"),
    (Constraint("number", None, 1, False, 2), ("number", None, 1, False, 2, False, ()), "x BETWEEN 1 AND 2"),
    (Constraint("number", None, 1, True, 2), ("number", None, 1, True, 2, False, ()), "x <= 2 AND x > 1"),
    (Constraint("number", None, 1, False, 2, True), ("number", None, 1, False, 2, True, ()), "x < 2 AND x >= 1"),
    (Constraint("number", None, 1, True, 2, True), ("number", None, 1, True, 2, True, ()), "x < 2 AND x > 1"),
    (
        Constraint("number", None, 0, False, 4, False, (1, 2.5)),
        ("number", None, 0, False, 4, False, (1, 2.5)),
        "x BETWEEN 0 AND 4 AND x NOT IN (1, 2.5)",
    ),
    (Constraint("number", excluded=(3,)), ("number", None, None, False, None, False, (3,)), "x != 3"),
    (
        Constraint("number", None, 0, True, excluded=(3,)),
        ("number", None, 0, True, None, False, (3,)),
        "x > 0 AND x != 3",
    ),
    (Constraint("string"), ("string", None, *ANY_INTERVAL), "x >= ''"),
    (Constraint("string", None, "a"), ("string", None, "a", False, None, False, ()), "x >= 'a'"),
    (Constraint("string", suffix="b"), ("string", None, *ANY_INTERVAL, "b"), "x LIKE '%b'"),
    (
        Constraint("string", None, "a", False, "b", True, ("abc",), "c"),
        ("string", None, "a", False, "b", True, ("abc",), "c"),
        "x < 'b' AND x >= 'a' AND x != 'abc' AND x LIKE '%c'",
    ),
    (Constraint("number", (2**64 - 1,)), ("number", (2**64 - 1,), *ANY_INTERVAL), f"x = {2**64 - 1}"),
    (Constraint("number", (2**64,)), ("number", (hex(2**64),), *ANY_INTERVAL), f"x = {2**64}"),
    (Constraint("number", (-(2**63),)), ("number", (-(2**63),), *ANY_INTERVAL), f"x = {-(2**63)}"),
    (Constraint("number", (-(2**63) - 1,)), ("number", (hex(-(2**63) - 1),), *ANY_INTERVAL), f"x = {-(2**63) - 1}"),
    (
        Constraint("number", None, -(2**70), True, 2**80, True, (2**70,)),
        ("number", None, hex(-(2**70)), True, hex(2**80), True, (hex(2**70),)),
        f"x < {2**80} AND x > {-(2**70)} AND x != {2**70}",
    ),
]


@pytest.mark.parametrize(("constraint", "fields", "text"), FORMS)
def test_a_constraint_has_one_wire_form_and_one_text_and_is_read_from_both(
    constraint: Constraint, fields: tuple[Any, ...], text: str
) -> None:
    wanted = Filter({"x": constraint})
    assert wanted.to_wire() == (("x", *fields),)
    assert wanted.to_wire() is wanted.to_wire(), "made once"
    assert Filter.from_wire(msgpack.unpackb(msgpack.packb(wanted.to_wire()))) == wanted
    assert str(wanted) == str(wanted) == text
    assert parse_filter(text) == wanted


def test_the_filters_of_all_and_of_nothing_have_forms_of_their_own() -> None:
    assert NOTHING.to_wire() is None
    assert EVERYTHING.to_wire() == ()
    assert Filter.from_wire(None) == NOTHING
    assert Filter.from_wire([]) == EVERYTHING
    assert (str(NOTHING), str(EVERYTHING)) == ("FALSE", "TRUE")
    assert repr(parse_filter("x = 1 AND y = 'a'")) == "Filter(\"x = 1 AND y = 'a'\")"


def test_names_travel_in_order_and_each_is_constrained_once() -> None:
    first: list[Any] = ["a", None, None, None, False, None, False, []]
    second: list[Any] = ["b", None, [], None, False, None, False, []]
    wanted = Filter({"b": ABSENT, "a": EXISTS})
    assert Filter.from_wire([first, second]) == Filter.from_wire([second, first]) == wanted
    assert [name for name, *_ in wanted.to_wire() or ()] == ["a", "b"]
    assert str(wanted) == "a IS NOT NULL AND b IS NULL"
    with pytest.raises(ValueError, match="the attribute a is constrained twice"):
        Filter.from_wire([first, first])


def entry(domain: Any, values: Any, low: Any = None, high: Any = None, excluded: Any = (), *suffix: Any) -> list[Any]:
    return ["x", domain, values, low, False, high, False, list(excluded), *suffix]


NOT_NORMAL = "the constraint of x is not in normal form"


@pytest.mark.parametrize(
    ("altered", "complaint"),
    [
        (("x", "number", [1], None, False, None, False, []), "a list of a name and seven fields"),
        (["x", "number", [1], None, False, None, False], "a list of a name and seven fields"),
        (["x", "string", None, None, False, None, False, [], "a", "b"], "a list of a name and seven fields"),
        ([3, "number", [1], None, False, None, False, []], "a list of a name and seven fields"),
        ([], "a list of a name and seven fields"),
        (["1x", "number", [1], None, False, None, False, []], "'1x' is no name of an attribute"),
        (["And", "number", [1], None, False, None, False, []], "'And' is no name of an attribute"),
        (["x", "number", None, 1, 0, None, False, []], "malformed interval for x"),
        (["x", "number", None, None, False, 1, 0, []], "malformed interval for x"),
        (["x", "number", None, 1, 1, 2, 1, []], "malformed interval for x"),
        (["x", "string", None, None, False, None, False, None], "malformed interval for x"),
        (["x", "string", None, None, False, None, False, "a"], "malformed interval for x"),
        (["x", "string", None, None, False, None, False, {}], "malformed interval for x"),
        (entry("string", "a"), "malformed set for x"),
        (entry("string", {"a": 1}), "malformed set for x"),
        (entry("number", 1), "malformed set for x"),
        (entry("number", None, 1, None, (), "b"), "malformed suffix for x"),
        (entry("boolean", [True], None, None, (), "b"), "malformed suffix for x"),
        (entry(None, None, None, None, (), "b"), "malformed suffix for x"),
        (entry("string", None, None, None, (), 3), "malformed suffix for x"),
        (entry("string", None, None, None, (), ""), "malformed suffix for x"),
        (entry("text", ["a"]), "unknown domain for x"),
        (entry(3, None), "unknown domain for x"),
        (entry("number", ["a"]), "has something that is no number"),
        (entry("number", [True]), "has something that is no number"),
        (entry("number", [float("inf")]), "has something that is no number"),
        (entry("number", None, "a"), "has something that is no number"),
        (entry("number", None, None, "a"), "has something that is no number"),
        (entry("number", None, None, False), "has something that is no number"),
        (entry("number", None, 1, None, ["a"]), "has something that is no number"),
        (entry("number", [None]), "has something that is no number"),
        (entry("string", [1]), "has something that is no string"),
        (entry("string", None, 1), "has something that is no string"),
        (entry("string", None, None, None, [1]), "has something that is no string"),
        (entry("boolean", [0]), "has something that is no boolean"),
        (entry("number", ["0x5"]), "0x5 is not the shortest form of the number"),
        (entry("number", None, hex(2**64 - 1)), "is not the shortest form of the number"),
        (entry("number", None, None, hex(-(2**63))), "is not the shortest form of the number"),
        (entry("number", None, None, None, ["0x5"]), "0x5 is not the shortest form of the number"),
        (entry("number", None), NOT_NORMAL),
        (entry("number", []), NOT_NORMAL),
        (entry("number", [2, 1]), NOT_NORMAL),
        (entry("number", [1, 1]), NOT_NORMAL),
        (entry("number", [1], 1), NOT_NORMAL),
        (entry("number", [1], None, 1), NOT_NORMAL),
        (entry("number", [1], None, None, [2]), NOT_NORMAL),
        (entry("number", None, 2, 1), NOT_NORMAL),
        (entry("number", None, 1, 1), NOT_NORMAL),
        (entry("number", None, 1, 3, [1]), NOT_NORMAL),
        (entry("number", None, 1, 3, [4]), NOT_NORMAL),
        (entry("number", None, None, None, [2, 1]), NOT_NORMAL),
        (["x", "number", None, None, True, 1, False, []], NOT_NORMAL),
        (["x", "number", [1], None, True, None, False, []], NOT_NORMAL),
        (["x", "number", [1], None, False, None, True, []], NOT_NORMAL),
        (["x", "string", None, "a", True, None, False, []], NOT_NORMAL),
        (["x", "string", None, None, False, "a", False, []], NOT_NORMAL),
        (entry("string", ["b"], None, None, (), "b"), NOT_NORMAL),
        (entry("string", None, "a\0", None, (), "b"), NOT_NORMAL),
        (entry("boolean", None), NOT_NORMAL),
        (entry(None, ["a"]), NOT_NORMAL),
        (entry(None, None, 1), NOT_NORMAL),
        (entry(None, None, None, 1), NOT_NORMAL),
        (entry(None, None, None, None, [1]), NOT_NORMAL),
        (["x", None, None, None, True, None, False, []], NOT_NORMAL),
        (["x", None, None, None, False, None, True, []], NOT_NORMAL),
    ],
)
def test_what_is_almost_a_constraint_is_refused_for_what_is_wrong_in_it(altered: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Filter.from_wire([altered])


@pytest.mark.parametrize("body", [(), {}, "x", 0, False])
def test_what_is_no_list_of_constraints_is_refused(body: Any) -> None:
    with pytest.raises(ValueError, match=f"a filter is a list, not a {type(body).__name__}"):
        Filter.from_wire(body)


def test_no_filter_is_written_that_asks_for_any_number() -> None:
    """It has no text: no predicates say that."""
    assert Constraint("number") == ANY_NUMBER
    with pytest.raises(ValueError, match=NOT_NORMAL):
        Filter.from_wire([[*(Filter({"x": ANY_NUMBER}).to_wire() or ())[0]]])
