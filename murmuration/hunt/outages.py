"""Schedules in which several brokers go at one instant, or each is restarted in turn, as where new software comes."""

import random
from collections.abc import Sequence
from typing import Any

from murmur_pubsub.machine import NodeName
from murmuration.hunt.space import TimedEntry

_ALL = 0.4
"""So many outages take all brokers."""
_TOGETHER = 0.5
"""After so many all brokers are back at one instant."""
_LASTING_MS = (50, 600, 3_000)
"""Of an outage that is to be for good: it is not, since behind it nothing would be promised."""
_STAGGERED_MS = (1, 20, 300)
"""How long one broker after the other comes back, elsewhere."""
_DOWN_MS = (50, 400)
_BETWEEN_MS = (0, 20, 500)
"""How long after a broker is back the next one goes."""


def outage(
    brokers: Sequence[NodeName], at_ms: int, kind: str, number: int, lasting_ms: int | None, near: NodeName | None
) -> list[TimedEntry]:
    """The entries of a kind of `space.OUTAGES`, by their times. The broker `near` is the first that goes."""
    rng = random.Random(number)
    order = rng.sample(brokers, len(brokers))
    if near is not None:
        order.remove(near)
        order.insert(0, near)
    if kind == "rolling":
        down_ms, between_ms = rng.choice(_DOWN_MS), rng.choice(_BETWEEN_MS)
        times = [at_ms + place * (down_ms + between_ms) for place in range(len(order))]
        return [(begin_ms, _kill(name, down_ms)) for begin_ms, name in zip(times, order, strict=True)]
    if rng.random() >= _ALL:
        order = order[: max(2, len(order) // 2)]
    step_ms = 0 if rng.random() < _TOGETHER else rng.choice(_STAGGERED_MS)
    least_ms = rng.choice(_LASTING_MS) if lasting_ms is None else lasting_ms
    return [(at_ms, _kill(name, least_ms + place * step_ms)) for place, name in enumerate(order)]


def _kill(name: NodeName, lasting_ms: int) -> dict[str, Any]:
    return {"kill": name, "for": f"{lasting_ms} ms"}
