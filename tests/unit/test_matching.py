"""The bit-set index against the naive one, under any order of additions, removals and questions."""

import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from murmur_pubsub import matching, matching_cells, matching_level
from murmur_pubsub.filter import Filter
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.matching import FilterIndex, MatchingIndex
from murmur_pubsub.matching_naive import NaiveIndex
from murmur_pubsub.values import Value
from tests.strategies import BOOLEANS, NUMBERS, STRINGS, attributes, filters

Indexes = tuple[FilterIndex[int], FilterIndex[int]]

# Bounds set so low that short histories reach what only large tables reach otherwise.
SMALL_TABLE_BOUNDS: list[tuple[object, str, int]] = [
    (matching, "_NEWCOMERS_MAX", 3),
    (matching, "_MERGED_MAX", 20),
    (matching, "_SCOUTS", 4),
    (matching, "_SPLIT_FROM", 8),
    (matching_level, "_PLANS_MAX", 2),
    (matching_level, "_MANY_BITS", 1),
]
TIGHT_BOUNDS: list[tuple[object, str, int]] = [
    *SMALL_TABLE_BOUNDS,
    (matching_level, "_CELLS_TOTAL", 3),
    (matching_level, "_CELLS_MIN", 2),
    (matching_level, "_FEW_DESTINATIONS", 2),
    (matching_cells, "_SMALL_SIZE", 0),
    (matching_cells, "_STRIDE", 2),
]

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


@pytest.mark.parametrize("bounds", [SMALL_TABLE_BOUNDS, TIGHT_BOUNDS], ids=["small", "tight"])
@given(history=steps)
@settings(max_examples=200, deadline=None)
def test_the_index_answers_as_the_naive_one(
    bounds: list[tuple[object, str, int]], history: list[tuple[object, ...]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in bounds:
            patch.setattr(module, name, value)
        play(history)


def play(history: list[tuple[object, ...]]) -> None:
    indexes: Indexes = (MatchingIndex(), NaiveIndex())
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


def compare_matches(indexes: Indexes, event: dict[str, Value]) -> None:
    index, oracle = indexes
    assert index.matching(event) == oracle.matching(event)
    assert index.destinations(event) == oracle.destinations(event)
    assert index.destinations(event, 0) == oracle.destinations(event, 0)


def compare_covers(indexes: Indexes, wanted: Filter) -> None:
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
    indexes: Indexes = (MatchingIndex(), NaiveIndex())
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


def mixed_filter(rng: random.Random, names: int) -> Filter:
    kinds = [
        lambda name: f"{name} = {rng.randrange(2_000)}",
        lambda name: f"{name} IN ({rng.randrange(50)}, {rng.randrange(50)})",
        lambda name: f"{name} > {rng.randrange(1_000)} AND {name} != {rng.randrange(1_000)}",
        lambda name: f"{name} LIKE '{rng.choice('abc')}{rng.choice('abc')}%'",
        lambda name: f"{name} < {rng.random() * 1_000!r}",
        lambda name: f"{name} = {rng.choice(['TRUE', 'FALSE'])}",
        lambda name: f"{name} IS NOT NULL",
    ]
    return parse_filter(" AND ".join(rng.choice(kinds)(f"a{each}") for each in rng.sample(range(names), 2)))


def every_filter_on_one_attribute() -> list[Filter]:
    numbers, strings = ["0", "1", "2.5", "3"], ["''", "'a'", "'a\0'", "'ab'", "'b'"]
    texts = ["x IS NOT NULL", "TRUE", "FALSE", "x = TRUE", "x != TRUE", "y = 1"]
    texts += [f"x LIKE {constant[:-1]}%'" for constant in strings]
    for constants in (numbers, strings):
        for first in constants:
            texts += [f"x {operator} {first}" for operator in ("=", "!=", "<", "<=", ">", ">=")]
            for second in constants:
                texts += [f"x BETWEEN {first} AND {second}", f"x IN ({first}, {second})"]
                texts += [f"x >= {first} AND x != {second}", f"x <= {first} AND x != {second}"]
                texts += [f"x > {first} AND x < {second}"]
    return [parse_filter(text) for text in texts]


@pytest.mark.parametrize("bounds", [[], SMALL_TABLE_BOUNDS, TIGHT_BOUNDS], ids=["shipped", "small", "tight"])
@pytest.mark.parametrize("removed_of_four", [0, 1, 3])
def test_every_operator_meets_every_value(bounds: list[tuple[object, str, int]], removed_of_four: int) -> None:
    every = every_filter_on_one_attribute()
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in bounds:
            patch.setattr(module, name, value)
        indexes: Indexes = (MatchingIndex(), NaiveIndex())
        for key, wanted in enumerate(every):
            for index in indexes:
                index.add(key, wanted, key % 4)
        compare_matches(indexes, {})
        for key in range(len(every)):
            if key % 4 < removed_of_four:
                for index in indexes:
                    index.remove(key)
        for met in (*NUMBERS, *STRINGS, *BOOLEANS):
            compare_matches(indexes, {"x": met})
            compare_matches(indexes, {"x": met, "y": 1, "z": 2})
        for wanted in every[::3]:
            compare_covers(indexes, wanted)
        indexes[0].check_invariants()


@pytest.mark.parametrize(("names", "destinations"), [(3, 5), (3, 2_000), (400, 5)])
def test_tables_of_mixed_filters_answer_as_the_naive_one(names: int, destinations: int) -> None:
    rng = random.Random(f"{names}/{destinations}")
    indexes: Indexes = (MatchingIndex(), NaiveIndex())
    for key in range(5_000):
        wanted = mixed_filter(rng, names)
        for index in indexes:
            index.add(key, wanted, key % destinations)
    values: list[Value] = [3, 40, 999.5, 1_500, "ab", "abc", "b", True, False]
    for _ in range(40):
        present = rng.sample(range(names), min(names, rng.randrange(1, 40)))
        compare_matches(indexes, {f"a{each}": rng.choice(values) for each in present})
        compare_covers(indexes, mixed_filter(rng, names))
    indexes[0].check_invariants()


def test_levels_mostly_removed_between_two_questions_are_built_anew_together() -> None:
    indexes: Indexes = (MatchingIndex(), NaiveIndex())
    for begin, end in ((0, 200), (200, 260)):
        for key in range(begin, end):
            for index in indexes:
                index.add(key, parse_filter(f"x > {key}"), key % 3)
        compare_matches(indexes, {"x": 100})
    for key in [*range(150), *range(200, 250)]:
        for index in indexes:
            index.remove(key)
    compare_matches(indexes, {"x": 300})
    indexes[0].check_invariants()


def test_a_duplicate_is_covered_until_its_last_copy_is_removed() -> None:
    index = MatchingIndex[str]()
    index.add(1, parse_filter("x > 1"), "a")
    index.add(2, parse_filter("x > 1"), "b")
    index.remove(1)
    assert index.covers_any(parse_filter("x > 1"))
    index.remove(2)
    assert not index.covers_any(parse_filter("x > 1"))


def test_many_equality_filters_take_memory_in_proportion() -> None:
    def bytes_for(count: int) -> int:
        filters = [parse_filter(f"author = {number}") for number in range(count)]
        index = MatchingIndex[int]()
        tracemalloc.start()
        try:
            for number, wanted in enumerate(filters):
                index.add(number, wanted, 0)
            assert index.matching({"author": count - 1}) == [count - 1]
            return tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()

    assert bytes_for(40_000) < 6 * bytes_for(10_000)  # bit sets for each value would make it 16 times


def test_a_key_in_use_is_refused_and_an_unknown_one_too() -> None:
    index = MatchingIndex[str]()
    index.add(1, parse_filter("x = 1"), "a")
    with pytest.raises(ValueError, match="key 1"):
        index.add(1, parse_filter("x = 2"), "a")
    with pytest.raises(KeyError):
        index.remove(2)


def sized(*sizes: int) -> MatchingIndex[int]:
    """An index to which so many filters were added at a time, and made a level by a question."""
    index: MatchingIndex[int] = MatchingIndex()
    for size in sizes:
        for _ in range(size):
            index.add(len(index), parse_filter(f"x = {len(index)}"), 0)
        index.matching({"x": 0})
    return index


def levels(index: MatchingIndex[int]) -> list[int]:
    return sorted(level.size for level in index._levels)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((60, 30), [30, 60]),
        ((59, 30), [89]),
        ((60, 31), [91]),
        ((200, 60, 30), [30, 60, 200]),
        ((200, 60, 31), [91, 200]),
        ((130, 60, 31), [221]),
        ((24,), []),
        ((25,), [25]),
    ],
)
def test_a_level_stays_apart_if_it_is_twice_as_large_as_what_is_built(
    sizes: tuple[int, ...], expected: list[int]
) -> None:
    assert levels(sized(*sizes)) == expected


@pytest.mark.parametrize(("most", "expected"), [(90, [31, 60]), (91, [91])])
def test_levels_are_merged_up_to_a_size(monkeypatch: pytest.MonkeyPatch, most: int, expected: list[int]) -> None:
    monkeypatch.setattr(matching, "_MERGED_MAX", most)
    assert levels(sized(60, 31)) == expected


def test_a_level_less_than_a_third_of_which_is_left_is_built_anew() -> None:
    index = sized(90)
    for key in range(60):
        index.remove(key)
    assert index.matching({"x": 70}) == [70]
    assert levels(index) == [90], "a third is left"
    index.remove(60)
    assert index.matching({"x": 70}) == [70]
    assert levels(index) == [29], "it takes room for what is there, and no more"
    assert not index._wasted


def test_the_edges_of_cells_are_in_order_where_there_are_more_bounds_than_cells_too() -> None:
    lows = [40, 10, 70, 20, 60, 30, 50]
    found = [parse_filter(f"x BETWEEN {low}.5 AND {low + 4}.5").constraints for low in lows]
    constraints = [(number, each["x"]) for number, each in enumerate(found) if each is not None]
    cells = matching_cells.AttributeCells(constraints, len(lows), 0, 4)
    assert 1 < len(cells.edges) <= 4
    assert cells.edges == sorted(cells.edges)
