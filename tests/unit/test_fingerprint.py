"""What state a machine is in, coarsely: `murmur_pubsub.fingerprint`."""

from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import pytest

from murmur_pubsub.fingerprint import Fact, facts_of, state_of
from murmur_pubsub.membership import Membership
from murmur_pubsub.places import CellPlan
from murmur_pubsub.procedure import Procedure


class Colour(Enum):
    RED = 1


class Pair(NamedTuple):
    first: int
    second: int


@dataclass(frozen=True)
class Frozen:
    value: int = 1


class Part:
    __slots__ = ("level",)

    def __init__(self, level: int) -> None:
        self.level = level


class Whole:
    def __init__(self, held: Any) -> None:
        self.held = held


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (True, "True"), (False, "False"), (None, "None"), (Colour.RED, "is RED"),
        (0, "0"), (0.0, "0"), (1, "above 0"), (0.5, "above 0"), (-1, "below 0"), (-0.5, "below 0"),
        ([], "empty"), ({}, "empty"), (set(), "empty"), (deque([1]), "one"), ({1: 1}, "one"), (frozenset([7]), "one"),
        ([0, 0], "a few"), (dict.fromkeys(range(7)), "a few"), (set(range(8)), "many"), ([0] * 99, "many"),
        ("", "some"), ("b", "some"), (b"", "some"), ((), "some"), (Pair(1, 2), "some"),
    ],
)  # fmt: skip
def test_a_value_is_one_of_few_words(held: Any, said: str) -> None:
    assert facts_of(Whole(held)) == {("Whole", "held", said)}


def test_parts_are_looked_into_and_share_their_facts() -> None:
    levels = {("Part", "level", "above 0"), ("Part", "level", "0")}
    assert facts_of(Whole(Part(3))) == {("Part", "level", "above 0")}
    assert facts_of(Whole([Part(0), Part(1), Part(-1)])) == levels | {("Whole", "held", "a few")}
    assert facts_of(Whole({1: Part(0), 2: Part(1)})) == levels | {("Whole", "held", "a few")}
    assert facts_of(Whole((Part(0),))) == {("Whole", "held", "some"), ("Part", "level", "0")}


class Speaking(Part):
    def fingerprint(self) -> set[Fact]:
        return set()


def test_a_part_with_a_fingerprint_of_its_own_is_not_looked_into() -> None:
    assert facts_of(Whole(Speaking(1))) == set()
    assert facts_of(Whole([Speaking(1)])) == {("Whole", "held", "one")}
    assert facts_of(Speaking(1)) == {("Speaking", "level", "above 0")}


def test_what_holds_of_a_state_is_one_fact() -> None:
    assert state_of("stream", gap=True, full=[], asked_above=[7]) == ("stream", "state", "gap + asked above")
    assert state_of("stream", gap=None) == ("stream", "state", "nothing")


def test_values_and_functions_are_no_parts() -> None:
    for held in (Frozen(), len, Part, ValueError("x"), lambda: 1):
        assert facts_of(Whole(held)) == set()


def test_of_what_the_package_itself_has_only_a_procedure_is_a_part() -> None:
    door: Procedure[Colour, Colour] = Procedure("door", "b0", {}, Colour.RED)
    assert ("Procedure", "state", "is RED") in facts_of(Whole(door))
    assert facts_of(Whole(Membership(CellPlan({}, (), ())))) == set()


def test_what_lies_deep_or_goes_in_a_circle_ends() -> None:
    deep: Any = Part(1)
    for _ in range(3):
        deep = Whole(deep)
    assert facts_of(Whole(deep)) == {("Part", "level", "above 0")}
    assert facts_of(Whole(Whole(deep))) == set()
    circle = Whole([])
    circle.held.append(circle)
    assert facts_of(circle) == {("Whole", "held", "one")}
