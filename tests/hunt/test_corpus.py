"""Which schedules a guided hunt keeps, and which it changes most often."""

import random
from collections import Counter

import pytest

from murmuration.hunt import corpus as module
from murmuration.hunt.corpus import Corpus
from murmuration.hunt.schedule import Schedule


def schedule(number: int) -> Schedule:
    return Schedule({"seed": number}, ())


def chosen(corpus: Corpus, count: int) -> Counter[int]:
    """How often each was chosen, one at a time."""
    rng = random.Random(1)
    return Counter(each.scenario["seed"] for _ in range(count) for each in corpus.parents(rng, 1))


def test_what_reaches_a_rare_place_is_chosen_more_often_and_all_are_in_turn() -> None:
    corpus = Corpus()
    corpus.take(schedule(0), ["common"])
    corpus.take(schedule(1), ["common", "rare"])
    corpus.count({"common": 100, "rare": 1})
    often = chosen(corpus, 400)
    assert often[1] > 3 * often[0] > 0, "a weight of 1 against one of 1/100, each the less the more it was chosen"
    assert often[0] > 20, "without that it would be chosen four times"


def test_of_too_many_those_are_kept_that_reach_what_is_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KEPT", 2)
    corpus = Corpus()
    corpus.count({"place 0": 50, "place 1": 1, "place 2": 2, "place 3": 60, "place 4": 70})
    for number in range(5):
        corpus.take(schedule(number), [f"place {number}"])
    assert len(corpus) == 2
    assert set(chosen(corpus, 50)) == {1, 2}
    assert corpus.places == {f"place {number}" for number in range(5)}, "what was reached is not forgotten"
