"""Changes of mind: subscribers withdraw filters while events are published, and ask for these or others later."""

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from murmur_pubsub.script import Change

_SAME_AGAIN = 0.5
_LONGEST_PAUSE = 0.25


def draw_changes(
    subscriptions: Mapping[int, Sequence[tuple[int, str]]], others: Sequence[str], span_us: int, rng: random.Random
) -> dict[int, tuple[Change, ...]]:
    """One change of mind for each of `others`, by client, in order of time.

    `subscriptions`: of each client, (subscriber, filter text) as they are when publishing begins, which goes on for
    `span_us`. Half of the withdrawn filters are asked for again, in place of others one of `others` is. A filter is
    away for a quarter of the span at most, and a subscriber never asks for a filter that it has.
    """
    held = [(client, *each) for client, mine in subscriptions.items() for each in mine]
    back_us = dict.fromkeys(range(len(held)), 0)
    times_held = Counter(held)
    changes: defaultdict[int, list[Change]] = defaultdict(list)
    for at_us, other in zip(sorted(rng.randrange(span_us) for _ in others), others, strict=True):
        slot = rng.randrange(len(held))
        client, subscriber, text = held[slot]
        if times_held[held[slot]] > 1 or back_us[slot] > at_us:
            continue  # nothing to withdraw now, or no telling which of two it would be
        wanted = text if rng.random() < _SAME_AGAIN or times_held[client, subscriber, other] else other
        back_us[slot] = at_us + 1 + rng.randrange(int(span_us * _LONGEST_PAUSE) + 1)
        changes[client] += [(at_us, "unsubscribe", subscriber, text), (back_us[slot], "subscribe", subscriber, wanted)]
        times_held[held[slot]] -= 1
        held[slot] = (client, subscriber, wanted)
        times_held[held[slot]] += 1
    return {client: tuple(sorted(each)) for client, each in changes.items()}
