"""Schedules in which clients ask for more, and publish more, than their workload says: filters and events of all kinds.

A workload's filters are intervals, joined by AND, over attributes that each event has. These are joined by OR as well,
look at what an event lacks, or at texts; and the events lack attributes, or have them of another domain.
"""

import random
from collections.abc import Mapping
from typing import Any

from murmur_pubsub.faults import PlanRules
from murmuration.hunt.space import TimedEntry

_FILTERS = (
    "a0 BETWEEN 0.2 AND 0.5 OR a0 BETWEEN 0.4 AND 0.8",
    "a0 < 0.3 OR a1 > 0.7",
    "a0 IS NULL",
    "a1 IS NOT NULL AND a0 IS NULL",
    "a0 != 0.25",
    "a0 NOT IN (0.25, 1)",
    "a0 IN (0.25, 'low')",
    "word LIKE 'pub%' OR word LIKE '%ed' OR a0 > 0.9",
    "flag = true AND word IS NULL",
    "TRUE",
)
_EVENTS: tuple[Mapping[str, Any], ...] = (
    {"a0": 0.25},
    {"a1": 0.8},
    {"a0": 0.45, "a1": 0.9, "word": "published"},
    {"a0": "low", "word": "lost"},
    {"a0": 1, "flag": True},
    {},
)


def commanding(
    rules: PlanRules,
    homes: Mapping[str, str],
    at_ms: int,
    kind: str,
    number: int,
    lasting_ms: int | None,
    near: str | None,
) -> list[TimedEntry]:
    """The entries of a kind of `space.COMMANDS`, by their times; where there is one, of a client of the broker `near`.
    `homes`: client to its broker at first."""
    able = sorted(rules.subscribing if kind == "ask" else rules.publishers)
    if not able:
        return []
    rng = random.Random(number)
    name = rng.choice([each for each in able if near in (each, homes.get(each))] or able)
    if kind == "say":
        return [(at_ms, {"publish": name, "event": dict(rng.choice(_EVENTS))})]
    wanted = rng.choice(_FILTERS)
    entries: list[TimedEntry] = [(at_ms, {"subscribe": name, "filter": wanted})]
    if lasting_ms is not None:
        entries.append((at_ms + lasting_ms, {"unsubscribe": name, "filter": wanted}))
    return entries
