"""Which neighbour wants what: against a plain list of (neighbour, filter)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from murmur_pubsub.errors import InputError
from murmur_pubsub.filter import Filter
from murmur_pubsub.filter_parser import parse_filter
from routing.pastry.identifiers import IdentifierSpace
from routing.pastry.messages import PastryPeer
from routing.pastry.neighbour_filters import NeighbourFilters

TEXTS = ("x > 1", "x > 3", "x > 3 AND y > 3", "x < 2", "y > 1", "TRUE")
WANTED = {text: parse_filter(text) for text in TEXTS}
NAMES = ("b1", "b2", "b3")


STEPS = st.tuples(st.sampled_from(("add", "add", "remove", "drop")), st.sampled_from(NAMES), st.sampled_from(TEXTS))


@given(st.lists(STEPS))
@settings(max_examples=60)
def test_questions_are_answered_as_a_plain_list_answers_them(steps: list[tuple[str, str, str]]) -> None:
    filters = NeighbourFilters()
    kept: list[tuple[str, Filter]] = []
    for verb, name, text in steps:
        entry = (name, WANTED[text])
        if verb == "add":
            assert filters.add(PastryPeer(name, 0), WANTED[text]) == (entry not in kept)
            kept += [entry] * (entry not in kept)
        elif verb == "remove":
            assert filters.remove(*entry) == (entry in kept)
            kept = [each for each in kept if each != entry]
        else:
            assert filters.drop(name) == [wanted for each, wanted in kept if each == name]
            kept = [each for each in kept if each[0] != name]
        filters.check_invariants()
    assert [(peer.name, wanted) for peer, wanted in filters] == kept
    assert len(filters) == len(kept)
    for name in NAMES:
        assert filters.of(name) == [wanted for each, wanted in kept if each == name]
    for asked in WANTED.values():
        covered = [(name, wanted) for name, wanted in kept if asked.covers(wanted)]
        related = {name for name, wanted in kept if asked.covers(wanted) or wanted.covers(asked)}
        assert {(peer.name, wanted) for peer, wanted in filters.covered_by(asked)} == set(covered)
        assert sorted(peer.name for peer in filters.related(asked)) == sorted(related)
    for attributes in ({"x": 0, "y": 0}, {"x": 2, "y": 2}, {"x": 9, "y": 9}):
        matching = {wanted for _, wanted in kept if wanted.matches(attributes)}
        assert sorted(map(str, filters.matching(attributes))) == sorted(map(str, matching))
        wanting = {name for name, wanted in kept if wanted in matching}
        assert sorted(peer.name for peer in filters.destinations(attributes)) == sorted(wanting)


@pytest.mark.parametrize(("base", "digits", "allowed"), [(2, 1, True), (2, 0, False), (4, 0, False), (3, 2, False)])
def test_a_space_has_at_least_one_digit_of_a_power_of_two(base: int, digits: int, allowed: bool) -> None:
    if allowed:
        assert IdentifierSpace(base, digits).size == base**digits
        return
    with pytest.raises(InputError):
        IdentifierSpace(base, digits)
