"""The bit-set index against the naive one, under any order of additions, removals and questions."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pubsub import matching
from pubsub.filter import Filter
from pubsub.filter_parser import parse_filter
from pubsub.matching import FilterIndex, MatchingIndex
from pubsub.matching_naive import NaiveIndex
from pubsub.values import Value
from tests.strategies import attributes, filters

steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), filters, st.integers(0, 4)),
        st.tuples(st.just("add"), filters, st.integers(0, 4)),
        st.tuples(st.just("remove"), st.integers(0, 1_000)),
        st.tuples(st.just("match"), attributes),
        st.tuples(st.just("cover"), filters),
    ),
    max_size=80,
)


@given(steps)
@settings(max_examples=200, deadline=None)
def test_the_index_answers_as_the_naive_one(history: list[tuple[object, ...]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "_NEWCOMERS_MAX", 3)  # so that short histories reach many levels
        play(history)


def play(history: list[tuple[object, ...]]) -> None:
    indexes: tuple[FilterIndex, FilterIndex] = (MatchingIndex(), NaiveIndex())
    keys: list[int] = []
    for number, (what, *arguments) in enumerate(history):
        if what == "add":
            wanted, destination = arguments
            keys.append(number)
            for index in indexes:
                index.add(number, wanted, destination)  # type: ignore[arg-type]
        elif what == "remove" and keys:
            key = keys.pop(arguments[0] % len(keys))  # type: ignore[operator]
            for index in indexes:
                index.remove(key)
        elif what == "match":
            compare_matches(indexes, arguments[0])  # type: ignore[arg-type]
        elif what == "cover":
            compare_covers(indexes, arguments[0])  # type: ignore[arg-type]
    for index in indexes:
        index.check_invariants()
        assert len(index) == len(keys)


def compare_matches(indexes: tuple[FilterIndex, FilterIndex], event: dict[str, Value]) -> None:
    index, oracle = indexes
    assert index.matching(event) == oracle.matching(event)
    assert index.destinations(event) == oracle.destinations(event)
    assert index.destinations(event, 0) == oracle.destinations(event, 0)


def compare_covers(indexes: tuple[FilterIndex, FilterIndex], wanted: Filter) -> None:
    index, oracle = indexes
    assert index.covering(wanted) == oracle.covering(wanted)
    assert index.covers_any(wanted) == oracle.covers_any(wanted)
    assert index.covered_by(wanted) == oracle.covered_by(wanted)


def interval_filter(rng: random.Random) -> Filter:
    parts = []
    for name in rng.sample("abcdefgh", 3):
        low = rng.randrange(1_000)
        parts.append(f"{name} BETWEEN {low} AND {low + rng.randrange(300)}")
    return parse_filter(" AND ".join(parts))


@pytest.mark.parametrize("count", [100, 2_500, 6_000])
def test_large_indexes_built_in_bulk_answer_as_the_naive_one(count: int) -> None:
    rng = random.Random(count)
    indexes: tuple[FilterIndex, FilterIndex] = (MatchingIndex(), NaiveIndex())
    drawn = [interval_filter(rng) for _ in range(count)]
    for key, wanted in enumerate(drawn):
        for index in indexes:
            index.add(key, wanted, key * 7 % 8)
    for _ in range(40):
        compare_matches(indexes, {name: rng.randrange(1_300) for name in "abcdefgh"})
        compare_covers(indexes, drawn[rng.randrange(count)])
    for key in rng.sample(range(count), count * 2 // 3):
        for index in indexes:
            index.remove(key)
    for _ in range(40):
        compare_matches(indexes, {name: rng.randrange(1_300) for name in "abcdefgh"})
        compare_covers(indexes, drawn[rng.randrange(count)])
    indexes[0].check_invariants()


def test_a_key_in_use_is_refused_and_an_unknown_one_too() -> None:
    index = MatchingIndex()
    index.add(1, parse_filter("x = 1"), "a")
    with pytest.raises(ValueError, match="key 1"):
        index.add(1, parse_filter("x = 2"), "a")
    with pytest.raises(KeyError):
        index.remove(2)
