"""Subscriptions and events of the Vinifera paper: random, skewed, and those of a real friendship graph.

The paper says "a Zipf-like distribution over the attribute space" and no more. Here an attribute's domain is [0, 1] cut
into 1,000 values. A subscription asks on each attribute for an interval of a fixed width around a centre; centres of
subscriptions and values of events are uniform (random) or Zipf with exponent 1 over the values in their order (skewed),
so that popular values lie side by side. The width of a fifth of the domain is what makes a fifth of the nodes want an
event of the random model, which the paper's baseline overhead of about 80 % amounts to; with more attributes each
interval is wider, or hardly an event would match anybody.
"""

import math
import random
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from murmur_pubsub.filter import Filter
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.values import Value
from workloads.popularity import Zipf
from workloads.social import read_friendships

Model = Literal["random", "skewed", "social"]
_VALUES = 1_000
_MATCHED = 0.2


class IntervalWorkload:
    """Subscriptions to intervals on all of `attributes` attributes, and events."""

    def __init__(self, model: Model, attributes: int, seed: int) -> None:
        self.names = [f"a{number}" for number in range(attributes)]
        self.domains: dict[str, dict[str, float]] = {name: {"min": 0.0, "max": 1.0} for name in self.names}
        self._rng = random.Random(f"{seed}/vinifera/workload")
        self._zipf = Zipf(_VALUES, 1.0) if model == "skewed" else None
        self._half = _MATCHED ** (1 / attributes) / 2

    def filter(self, node: int) -> Filter:
        """The node's subscription."""
        parts = []
        for name in self.names:
            centre = self._value()
            low, high = max(0.0, centre - self._half), min(1.0, centre + self._half)
            parts.append(f"{name} BETWEEN {low:.6f} AND {high:.6f}")
        return parse_filter(" AND ".join(parts))

    def event(self) -> Mapping[str, Value]:
        """One event's attributes."""
        return {name: self._value() for name in self.names}

    def _value(self) -> float:
        rng = self._rng
        return rng.random() if self._zipf is None else (self._zipf.draw(rng) + rng.random()) / _VALUES


class SocialWorkload:
    """Each node is a user of a friendship graph and wants the posts of its friends: a real correlation of interests.
    The users are those met first from a well connected one, breadth first, so that friends stay friends."""

    def __init__(self, path: Path, nodes: int, seed: int) -> None:
        friends = read_friendships(path)
        self._rng = random.Random(f"{seed}/vinifera/social")
        hubs = sorted(friends, key=lambda user: -len(friends[user]))[:20]
        chosen = breadth_first(self._rng.choice(hubs), friends, nodes)
        self._users = list(chosen)
        self._friends = {user: [each for each in friends[user] if each in chosen] for user in self._users}
        self.names = ["author"]
        self.domains: dict[str, dict[str, float]] = {"author": {"min": float(min(friends)), "max": float(max(friends))}}

    @property
    def nodes(self) -> int:
        """As many as there are users."""
        return len(self._users)

    def filter(self, node: int) -> Filter:
        """The posts of the node's friends."""
        return parse_filter(f"author IN ({', '.join(map(str, self._friends[self._users[node]]))})")

    def event(self) -> Mapping[str, Value]:
        """A post; who has more friends posts more."""
        return {"author": self._rng.choice(self._friends[self._rng.choice(self._users)])}


def breadth_first(begin: int, friends: Mapping[int, list[int]], count: int) -> dict[int, None]:
    """The first `count` users met from there."""
    found = {begin: None}
    waiting = deque(found)
    while waiting:
        for friend in friends[waiting.popleft()]:
            if len(found) < count and friend not in found:
                found[friend] = None
                waiting.append(friend)
    return found


def friend_links(nodes: int) -> int:
    """K_f = log2 N - 2, the paper's choice after its first experiment; from one to eight, as its degree is 10."""
    return min(8, max(1, round(math.log2(nodes)) - 2))
