"""A set of filters against plain questions of each filter, under any order of additions, removals and questions."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from murmur_pubsub.filter import NOTHING, Filter
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.values import Value
from routing.filter_set import FilterSet
from tests.strategies import attributes, filters

_POINTS = ("x = 1", "x = 1.0", "x = 2.5", "x = TRUE", "x = FALSE", "x = 'a'", "x = ''", "y = 0", "z = 'ab'")
points = st.sampled_from(_POINTS).map(parse_filter)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.one_of(points, filters), max_size=12),
    st.lists(st.one_of(points, filters, st.just(NOTHING)), min_size=1, max_size=6),
    attributes,
    st.randoms(use_true_random=False),
)
def test_it_answers_as_its_filters_do_one_by_one(
    added: list[Filter], asked: list[Filter], event: dict[str, Value], rng: random.Random
) -> None:
    held = FilterSet()
    plain: dict[Filter, None] = {}
    for wanted in added:
        if wanted not in held:
            held.add(wanted)
            plain[wanted] = None
        if plain and rng.random() < 0.3:
            gone = rng.choice(list(plain))
            held.remove(gone)
            del plain[gone]
        assert list(held) == list(plain)
        for question in [*asked, *added]:
            assert held.covers(question) == any(each.covers(question) for each in plain), question
            assert held.covered_by(question) == [each for each in plain if question.covers(each)], question
        assert held.matches_any(event) == any(each.matches(event) for each in plain)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(points, filters), max_size=12))
def test_put_leaves_those_that_no_other_covers(added: list[Filter]) -> None:
    held = FilterSet()
    plain: list[Filter] = []
    for wanted in added:
        is_new = not any(each.covers(wanted) for each in plain)
        if is_new:
            plain = [*(each for each in plain if not wanted.covers(each)), wanted]
        assert held.put(wanted) == is_new
        assert list(held) == plain


def test_values_of_two_domains_are_told_apart() -> None:
    held = FilterSet.of(map(parse_filter, ("x = 1", "x = '1'")))
    assert not held.covers(parse_filter("x = TRUE"))
    assert held.covers(parse_filter("x = 1.0 AND y < 3"))
    assert not held.matches_any({"x": True})
    assert held.matches_any({"x": 1.0})
    assert held.covered_by(parse_filter("x >= 0")) == [parse_filter("x = 1")]
    assert held.covered_by(parse_filter("x IS NOT NULL")) == list(held)


def test_one_that_is_of_many_values_alone_asks_no_index() -> None:
    """The saboteur is an index of them: it would be asked, and built, for each."""
    held = FilterSet.of(parse_filter(f"author = {author}") for author in range(200))
    assert len(held) == 200
    assert not len(held._index)
