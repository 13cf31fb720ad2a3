"""The bit-set index against the naive one, under any order of additions, removals and questions."""

import random
import sys
import tracemalloc
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from murmur_pubsub import (
    matching_block,
    matching_cells,
    matching_columns,
    matching_homes,
    matching_level,
    matching_places,
)
from murmur_pubsub.filter import Filter
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.matching import FilterIndex, MatchingIndex
from murmur_pubsub.matching_homes import Homes
from murmur_pubsub.matching_level import IndexEntry, Level
from murmur_pubsub.matching_naive import NaiveIndex
from murmur_pubsub.matching_places import Places, place_of
from murmur_pubsub.values import Value
from tests.strategies import BOOLEANS, NUMBERS, STRINGS, attributes, filters

Indexes = tuple[FilterIndex[int], FilterIndex[int]]

# Bounds set so low that short histories reach what only large tables reach otherwise.
SMALL_TABLE_BOUNDS: list[tuple[object, str, int]] = [
    (matching_homes, "_NEWCOMERS_MAX", 3),
    (matching_homes, "_BACKLOG_MAX", 5),
    (matching_homes, "_AT_ONCE", 6),
    (matching_homes, "_LEVELS_MAX", 12),
    (matching_homes, "_SCOUTS", 4),
    (matching_homes, "_MOVED_AT_ONCE", 3),
    (matching_homes, "_COMPLETED", 3),
    (matching_homes, "_CAPACITY_MIN", 64),
    (matching_homes, "_CAPACITY_MAX", 128),
    (matching_homes, "_CAPACITY_GROWTH", 2),
    (matching_homes, "_LISTED_AT_ONCE", 3),
    (matching_block, "_WORDS_AT_ONCE", 1),
    (matching_level, "_PLANS_MAX", 2),
    (matching_level, "_STRUCK_MAX", 2),
    (matching_level, "_MANY_BITS", 1),
]
TIGHT_BOUNDS: list[tuple[object, str, int]] = [
    *SMALL_TABLE_BOUNDS,
    (matching_level, "_CELLS_TOTAL", 3),
    (matching_level, "_CELLS_MIN", 2),
    (matching_level, "_FEW_DESTINATIONS", 2),
    (matching_block, "_CODED_MAX", 1),
    (matching_block, "_CELLS_TOTAL", 3),
    (matching_block, "_CELLS_TOTAL_MAX", 3),
    (matching_block, "_GAP_MAX", 6),
    (matching_block, "_ANSWERABLE_MAX", 2),
    (matching_block, "_FEW_WORDS", 0),
    (matching_columns, "_EDGES_MAX", 3),
    (matching_columns, "_ENTRIES_AT_ONCE", 2),
    (matching_columns, "_ROW_FROM", 2),
    (matching_block, "_VALUE_ROWS", 3),
    (matching_columns, "_ROW_FROM_OF_MANY", 16),
    (matching_places, "_SHARD_KEYS_LOG2", 1),
    (matching_places, "_SHARDS_MAX", 4),
    (matching_cells, "_AT_ONCE", 2),
    (matching_cells, "_CELLS_AT_ONCE", 2),
    (matching_cells, "_BOUNDS_MAX", 3),
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
        high = low + 1 + rng.randrange(300)
        parts.append(rng.choice([f"{name} BETWEEN {low} AND {high}", f"{name} > {low} AND {name} < {high}"]))
    return parse_filter(" AND ".join(parts))


@pytest.mark.parametrize(("count", "scouts"), [(100, 4_096), (2_500, 4_096), (3_000, 100)])
def test_large_indexes_answer_as_the_naive_one(count: int, scouts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching_homes, "_SCOUTS", scouts)
    monkeypatch.setattr(matching_homes, "_LEVELS_MAX", 2 * scouts)
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
        lambda name: f"{name} IS NULL",
        lambda name: f"{name} NOT IN ({rng.randrange(50)}, 999.5)",
        lambda name: f"{name} LIKE '%{rng.choice('abc')}'",
    ]
    return parse_filter(" AND ".join(rng.choice(kinds)(f"a{each}") for each in rng.sample(range(names), 2)))


def every_filter_on_one_attribute() -> list[Filter]:
    numbers, strings = ["0", "1", "2.5", "3"], ["''", "'a'", "'a\0'", "'ab'", "'b'"]
    texts = ["x IS NOT NULL", "x IS NULL", "x IS NULL AND y = 1", "TRUE", "FALSE", "x = TRUE", "x != TRUE", "y = 1"]
    texts += [f"x LIKE {constant[:-1]}%'" for constant in strings]
    for ended in ("x LIKE '%b'", "x LIKE '%ab'", "x LIKE '%bb'", "x LIKE '%\0'", "x LIKE '%a\0'"):
        texts += [ended, *(f"{ended} AND x {operator} {first}" for operator in ("!=", "<", ">") for first in strings)]
    for constants in (numbers, strings):
        for first in constants:
            texts += [f"x {operator} {first}" for operator in ("=", "!=", "<", "<=", ">", ">=")]
            for second in constants:
                texts += [f"x BETWEEN {first} AND {second}"]
                texts += [f"x IN ({first}, {second})", f"x NOT IN ({first}, {second})"]
                texts += [f"x >= {first} AND x != {second}", f"x <= {first} AND x != {second}"]
                texts += [f"x > {first} AND x < {second}"]
    return [parse_filter(text) for text in texts]


@pytest.mark.parametrize("bounds", [[], SMALL_TABLE_BOUNDS, TIGHT_BOUNDS], ids=["shipped", "small", "tight"])
@pytest.mark.parametrize("removed_of_four", [0, 1, 3])
def test_every_operator_meets_every_value(bounds: list[tuple[object, str, int]], removed_of_four: int) -> None:
    every = every_filter_on_one_attribute()
    random.Random(removed_of_four).shuffle(every)  # edges of blocks come from filters of all domains
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
        compare_matches(indexes, {"y": 1})
        for met in (*NUMBERS, *STRINGS, "abb", "ab\0b", "bbb", *BOOLEANS):
            compare_matches(indexes, {"x": met})
            compare_matches(indexes, {"x": met, "y": 1, "z": 2})
        for wanted in every[::4]:
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
        filters, index = [parse_filter(f"author = {number}") for number in range(count)], MatchingIndex[int]()
        tracemalloc.start()
        try:
            for number, wanted in enumerate(filters):
                index.add(number, wanted, 0)
            assert index.matching({"author": count - 1}) == [count - 1]
            return tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()

    least = min(bytes_for(8_000), bytes_for(8_000))  # what else allocates meanwhile is not the index's
    assert least < 6 * bytes_for(2_000)  # bit sets for each value would make it 16 times


def test_a_key_in_use_is_refused_and_an_unknown_one_too() -> None:
    index = MatchingIndex[str]()
    index.add(1, parse_filter("x = 1"), "a")
    with pytest.raises(ValueError, match="key 1"):
        index.add(1, parse_filter("x = 2"), "a")
    with pytest.raises(KeyError):
        index.remove(2)


def settled(index: MatchingIndex[int], wanted: list[str]) -> Homes[int]:
    """Where the filters live once they are added to the index and nothing is under way any more."""
    for text in wanted:
        index.add(len(index), parse_filter(text), 0)
    homes = index._homes
    while homes._task is not None or homes._unsettled:
        homes._settle(matching_homes._NEWCOMERS_MAX)
    return homes


def sizes(homes: Homes[int]) -> list[int]:
    return sorted(level.size for level in homes._levels.values())


@pytest.mark.parametrize("count", [25, 33, 100, 1_000, 5_000])
def test_each_level_is_at_least_twice_as_large_as_the_one_before(count: int) -> None:
    homes = settled(MatchingIndex(), [f"x = {number}" for number in range(count)])
    found = sizes(homes)
    assert all(small * 2 <= large for small, large in pairwise(found)), found
    assert sum(found) + len(homes.newcomers) == count
    assert len(homes.newcomers) <= matching_homes._BACKLOG_MAX


def test_a_question_finds_few_newcomers() -> None:
    index = MatchingIndex[int]()
    for number in range(30):
        index.add(number, parse_filter(f"x = {number}"), 0)
    assert len(index._homes.newcomers) == 30
    assert index.matching({"x": 7}) == [7]
    assert sizes(index._homes) == [30]


def test_an_index_that_is_only_asked_comes_to_have_one_level() -> None:
    index = MatchingIndex[int]()
    homes = settled(index, [f"x = {number}" for number in range(400)])
    assert len(homes._levels) > 1
    assert homes.newcomers
    for _ in range(1_000):
        assert index.matching({"x": 7}) == [7]
    assert sizes(homes) == [400]
    assert not homes.newcomers


def test_a_level_less_than_a_third_of_which_is_left_is_built_anew() -> None:
    index = MatchingIndex[int]()
    homes = settled(index, [f"x = {number}" for number in range(96)])
    before = sizes(homes)
    assert before[-1] >= 60
    for key in range(96):
        if key % 3 or key < 9:
            index.remove(key)
    settled(index, [])
    after = sizes(homes)
    assert sum(after) <= 29 < sum(before), "it takes room for what is there, and no more"
    assert [index.matching({"x": key}) for key in (3, 12, 13)] == [[], [12], []]


def calls_in(action: Callable[[], object]) -> int:
    """How many functions are called: what a call costs, whatever else the computer does."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(None)
    return calls


def test_no_call_does_all_that_is_to_be_done() -> None:
    # What no call may do at once: build a level of thousands, move thousands into a block, or out of one.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching_homes, "_LEVELS_MAX", 2_048)
        patch.setattr(matching_homes, "_SCOUTS", 1_024)
        index = MatchingIndex[int]()
        drawn = [parse_filter(f"x > {number} AND y = {number % 50}") for number in range(5_000)]
        calls = [calls_in(partial(index.add, key, wanted, key % 8)) for key, wanted in enumerate(drawn)]
        assert index._homes._blocks, "the history is too short to show anything"
        asked = [calls_in(partial(index.matching, {"x": 10, "y": 1})) for _ in range(50)]
        removed = [calls_in(partial(index.remove, key)) for key in range(4_900)]
        settled(index, [])
        assert not index._homes._blocks, "what is left fits into levels"
    most = 16_000  # a merge of 2,048 filters ends with a call or some for each
    assert max(calls) < most
    assert max(asked) < most
    assert max(removed) < most
    assert index.matching({"x": 5_000, "y": 1}) == [4_901, 4_951]


@pytest.mark.parametrize("step", [1, 7])
def test_a_block_takes_no_more_filters_when_its_edges_tell_few_of_them_apart(step: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in SMALL_TABLE_BOUNDS:
            patch.setattr(module, name, value)
        patch.setattr(matching_block, "_GAP_MAX", 20)
        indexes: Indexes = (MatchingIndex(), NaiveIndex())
        for key in range(150):  # each bound is beyond all edges that a block was opened with
            for index in indexes:
                index.add(key, parse_filter(f"x > {key * step}.5"), key % 3)
        blocks = list(indexes[0]._homes._blocks.values())  # type: ignore[attr-defined]
        assert sum(block.crowded for block in blocks) >= 2
        for value in range(0, 160 * step, 13):
            compare_matches(indexes, {"x": value})


def test_blocks_that_follow_each_other_share_their_edges() -> None:
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in SMALL_TABLE_BOUNDS:
            patch.setattr(module, name, value)
        homes = settled(MatchingIndex(), [f"x BETWEEN {key * 7 % 10} AND 20" for key in range(200)])
    cuts = [block.cuts for block in homes._blocks.values()]
    assert len(cuts) > 1
    assert all(each is cuts[0] for each in cuts)


def test_a_larger_block_takes_over_what_smaller_ones_hold() -> None:
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in SMALL_TABLE_BOUNDS:
            patch.setattr(module, name, value)
        patch.setattr(matching_homes, "_CAPACITY_MAX", 512)
        homes = settled(MatchingIndex(), [f"x BETWEEN {key * 7 % 10} AND 20" for key in range(300)])
        (block,) = homes._blocks.values()
    assert block.capacity == 512
    assert len(block) > 128, "more than were added since it was opened"


def test_a_block_is_asked_for_destinations_until_all_it_has_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in SMALL_TABLE_BOUNDS:
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(matching_homes, "_CAPACITY_MIN", 1_024)
    index = MatchingIndex[int]()
    homes = settled(index, [])
    for key in range(600):
        index.add(key, parse_filter(f"x > {key} AND y > 0"), key % 3)
    settled(index, [])
    (block,) = homes._blocks.values()
    asked: list[int] = []
    original = block._matches

    def noting(able: matching_columns.Row, rows: list[matching_columns.Row], begin: int, end: int) -> Any:
        asked.append(begin)
        return original(able, rows, begin, end)

    monkeypatch.setattr(block, "_matches", noting)
    for y, exclude, words in ((1, None, 1), (1, 0, 1), (0, None, block.used_words)):
        asked.clear()
        found: dict[int, None] = {}
        block.add_destinations(("x", "y"), {"x": 1_000, "y": y}, found, exclude)
        assert sorted(found) == [each for each in range(3) if y and each != exclude]
        assert asked == list(range(words))


def test_a_block_is_asked_first_if_levels_seldom_find_every_destination(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in SMALL_TABLE_BOUNDS:
        monkeypatch.setattr(module, name, value)
    index = MatchingIndex[int]()
    for key in range(100):
        few = key < 4  # filters of few constraints stay in levels
        index.add(key, parse_filter("x > 0" if few else "x > 0 AND y > 0"), 0 if few else key % 4)
    homes = settled(index, [])
    assert isinstance(homes.in_turn[0], matching_level.Level)
    for _ in range(matching_homes._COMPLETED * 3):
        assert index.destinations({"x": 1, "y": 1}) == [0, 1, 2, 3]
    assert isinstance(homes.in_turn[0], matching_block.Block)
    assert index.destinations({"x": 1}) == [0]
    index.check_invariants()


def test_places_are_kept_for_keys_of_any_size() -> None:
    places = Places()
    keys = [0, 1, -1, 2**15, 2**40, -(2**62)]
    for number, key in enumerate(keys):
        places.put(key, place_of(number + 1, number))
    places.put(0, place_of(9, 5))
    assert len(places) == len(keys)
    assert all(key in places for key in keys)
    assert places.get(0) == place_of(9, 5)
    assert places.get(2) is None
    assert places.get(2**16) is None
    assert [places.pop(key) for key in keys] == [(9, 5), (2, 1), (3, 2), (4, 3), (5, 4), (6, 5)]
    assert len(places) == 0
    assert 0 not in places
    for key in (0, 2**50):
        with pytest.raises(KeyError):
            places.pop(key)


def test_the_edges_of_cells_are_in_order_where_there_are_more_bounds_than_cells_too() -> None:
    lows = [40, 10, 70, 20, 60, 30, 50]
    found = [parse_filter(f"x BETWEEN {low}.5 AND {low + 4}.5").constraints for low in lows]
    constraints = [(number, each["x"]) for number, each in enumerate(found) if each is not None]
    cells = matching_cells.AttributeCells(len(lows))
    for _ in cells.build(constraints, 0, 4):
        pass
    assert 1 < len(cells.edges) <= 4
    assert cells.edges == sorted(cells.edges)


def test_of_the_plans_of_questions_a_level_keeps_so_many_and_no_more() -> None:
    """Events of ever other attributes would fill the memory."""
    level = Level([IndexEntry(0, parse_filter("a0 > 1"), "b0")])
    for number in range(2_000):
        level._plan(("a0", f"a{number}"))
    assert 0 < len(level._plans) <= 256
