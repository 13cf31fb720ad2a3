"""Which nodes a way between two others may lead over."""

import itertools
import random

import pytest

from spark_analysis.search_tree import lying_between, neighbours_of


def ways(name: str, last: str, neighbours: dict[str, list[str]], so_far: tuple[str, ...]) -> set[str]:
    """All nodes of all ways that come by no node twice, one by one."""
    if name == last:
        return {*so_far, last}
    peers = (peer for peer in neighbours.get(name, ()) if peer not in so_far and peer != name)
    return set().union(*(ways(peer, last, neighbours, (*so_far, name)) for peer in peers))


@pytest.mark.parametrize(
    ("links", "between"),
    [
        ("ab bc cd", "abcd"),
        ("ab bd bc ce", "abd"),
        ("ab bc ca cd", "abcd"),
        ("ad dx xy yz zx", "ad"),
        ("ab cd", "ad"),
    ],
)
def test_what_only_leads_back_by_the_same_node_is_left_out(links: str, between: str) -> None:
    """The fourth has a ring behind one link."""
    assert lying_between("a", "d", neighbours_of((link[0], link[1]) for link in links.split())) == {*between}


def test_it_is_what_all_ways_have_one_by_one() -> None:
    for seed in range(300):
        rng = random.Random(seed)
        names = "abcdefg"[: rng.randint(2, 7)]
        pairs = [*itertools.combinations(names, 2)]
        neighbours = neighbours_of(rng.sample(pairs, rng.randint(0, len(pairs))))
        first, last = rng.sample(names, 2)
        assert lying_between(first, last, neighbours) == {first, last, *ways(first, last, neighbours, ())}, (
            f"seed {seed}"
        )
    assert lying_between("a", "a", {"a": ["b"], "b": ["a"]}) == {"a"}
