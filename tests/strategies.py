"""Hypothesis strategies for values, attributes and filters, drawn from a universe small enough to enumerate.

`NUMBERS` and `STRINGS` hold the constants that filters use and, between and beside them, values that tell
open ends from closed ones and a string from its direct successor: at least one between any two ends that the
constants (and what follows all strings with a prefix) can give, or an infinite set would look empty or finite. With
suffixes it takes more strings to tell sets apart: `ENDED_STRINGS`.
"""

from hypothesis import strategies as st

from murmur_pubsub.filter import Filter
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.values import Value

NUMBERS: list[Value] = [-1, 0, 0.5, 1, 1.5, 2, 2.25, 2.5, 2.75, 3, 3.5, 4]
ENDS = ["a", "b", "ab", "\0", "a\0", "\0\0", "\0b"]
STRINGS: list[Value] = [
    "",
    "\0",
    "a",
    "a\0",
    "a\0\0",
    "a\0a",
    "aa",
    "ab",
    "ab\0",
    "abc",
    "ac",
    "b",
    "ba",
    "c",
    "\U0010ffff",
    "\U0010ffffa",
]
ENDED_STRINGS: list[Value] = sorted(
    {f"{base}{between}{end}" for base in STRINGS for between in ("", "\0\0", "\0c", "c") for end in ENDS}
)
BOOLEANS: list[Value] = [False, True]
NAMES = ["x", "y", "z"]

number_constants: st.SearchStrategy[Value] = st.sampled_from([0, 1, 2, 2.5, 3])
suffix_constants: st.SearchStrategy[Value] = st.sampled_from(ENDS)
string_constants: st.SearchStrategy[Value] = st.sampled_from(["", "a", "a\0", "ab", "b", "\U0010ffff"])
values = st.one_of(st.sampled_from([*NUMBERS, *STRINGS, *BOOLEANS]), st.sampled_from(ENDED_STRINGS))


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


@st.composite
def predicates(draw: st.DrawFn) -> str:
    """The text of one predicate."""
    name = draw(st.sampled_from(NAMES))
    constants = draw(st.sampled_from([number_constants, number_constants, string_constants]))
    kinds = ["comparison", "comparison", "between", "in", "not in", "like", "suffix", "exists", "absent", "boolean"]
    kind = draw(st.sampled_from(kinds))
    if kind == "comparison":
        operator = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
        return f"{name} {operator} {_text(draw(constants))}"
    if kind == "between":
        return f"{name} BETWEEN {_text(draw(constants))} AND {_text(draw(constants))}"
    if kind in ("in", "not in"):
        listed = draw(st.lists(constants, min_size=1, max_size=3))
        return f"{name} {kind.upper()} ({', '.join(_text(value) for value in listed)})"
    if kind == "like":
        return f"{name} LIKE {_text(str(draw(string_constants)) + '%')}"
    if kind == "suffix":
        return f"{name} LIKE {_text('%' + str(draw(suffix_constants)))}"
    if kind == "absent":
        return f"{name} IS NULL"
    if kind == "boolean":
        return f"{name} {draw(st.sampled_from(['=', '!=']))} {draw(st.sampled_from(['TRUE', 'FALSE']))}"
    return f"{name} IS NOT NULL"


filter_texts = st.lists(predicates(), max_size=4).map(" AND ".join)
subscription_texts = st.lists(st.lists(predicates(), min_size=1, max_size=3).map(" AND ".join), min_size=1, max_size=3)
filters: st.SearchStrategy[Filter] = filter_texts.filter(lambda text: "BETWEEN" not in text or same_types(text)).map(
    parse_filter
)
attributes = st.dictionaries(st.sampled_from(NAMES), values, max_size=3)


def same_types(text: str) -> bool:
    """Can the text be parsed? BETWEEN takes two values of one type."""
    from murmur_pubsub.errors import InputError

    try:
        parse_filter(text)
    except InputError:
        return False
    return True
