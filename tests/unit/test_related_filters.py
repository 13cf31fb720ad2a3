"""Who has filters that cover a given one, or are covered by it: kept from question to question."""

import random

from murmur_pubsub.filter import Filter
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.matching import MatchingIndex


def test_who_is_related_follows_those_that_come_and_go_however_often_it_was_asked() -> None:
    rng = random.Random("related")
    index = MatchingIndex[int]()
    asked = [parse_filter(f"x > {low} and x < {low + width}") for low in range(9) for width in (2, 4, 8)]
    held: dict[int, Filter] = {}
    for key in range(300):
        if held and rng.random() < 0.4:
            gone = rng.choice([*held])
            del held[gone]
            index.remove(gone)
        else:
            held[key] = rng.choice(asked)
            index.add(key, held[key], key % 7)
        for wanted in rng.choices(asked, k=9):
            wider = [each for each in sorted(held) if held[each].covers(wanted)]
            narrower = [each for each in sorted(held) if wanted.covers(held[each])]
            assert index.related(wanted) == list(dict.fromkeys(each % 7 for each in wider + narrower))
