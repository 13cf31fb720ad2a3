"""Schedules in which brokers join cells and depart from them, while all else breaks as in any schedule."""

import random
from collections.abc import Mapping

from murmur_pubsub.faults import PlanRules
from murmur_pubsub.places import spreads
from murmuration.hunt.space import TimedEntry

_WAIT_MS = (50, 300, 1_000)
"""How long after the newcomer is there another broker departs."""
_AT_ONCE_MS = (0, 2, 5, 20)
"""The same of the first that is wanted at it."""
_WANTED = "a0 >= 0.2"
_DIES, _IS_KILLED, _RETURNS = 0.3, 0.5, 0.4


def replacing(
    rules: PlanRules, homes: Mapping[str, str], at_ms: int, kind: str, number: int, lasting_ms: int | None
) -> list[TimedEntry]:
    """The entries of a fault of a kind of `space.REPLACEMENTS`, by their times. `homes`: client to its broker at
    first."""
    plan = rules.cells
    if plan is None or not plan.newcomers:
        return []
    rng = random.Random(number)
    name = rng.choice(plan.newcomers)
    if kind == "cut_newcomer":
        peer = rng.choice([each for members in plan.cells.values() for each in members])
        lasting = {} if lasting_ms is None else {"for": f"{lasting_ms} ms"}
        return [(at_ms, {"cut": [name, peer], **lasting})]
    cells = [cell for cell, members in plan.cells.items() if len(members) > 1 or spreads(plan, cell)]
    if not cells:
        return []
    cell = rng.choice(cells)
    joins: list[TimedEntry] = [(at_ms, {"join": name, "cell": cell})]
    if spreads(plan, cell) and name in rules.subscribing:
        joins.append((at_ms + rng.choice(_AT_ONCE_MS), {"subscribe": name, "filter": _WANTED}))
    if kind == "join":
        return joins
    near = [*plan.cells[cell], *plan.newcomers]
    if kind == "depart":
        return [(at_ms, {"depart": rng.choice(near), "broker": rng.choice(near)})]
    old = rng.choice([each for each in near if each != name])
    return [*joins, *_replaced(rng, rules, homes, at_ms, lasting_ms, name, cell, old)]


def _replaced(
    rng: random.Random,
    rules: PlanRules,
    homes: Mapping[str, str],
    at_ms: int,
    lasting_ms: int | None,
    name: str,
    cell: str,
    old: str,
) -> list[TimedEntry]:
    """The clients go to the newcomer, the old broker departs (or dies, and is said to have departed), and may come back
    by mistake."""
    plan = rules.cells
    assert plan is not None
    wait_ms = rng.choice(_WAIT_MS)
    entries: list[TimedEntry] = []
    if spreads(plan, cell):
        clients = [client for client in sorted(rules.roaming) if homes[client] == old]
        moved_ms = at_ms + rng.choice((*_AT_ONCE_MS, wait_ms // 2))
        entries += [(moved_ms, {"move_client": client, "to": name}) for client in clients]
        if old in plan.newcomers and old in rules.subscribing:
            entries.append((moved_ms, {"unsubscribe": old, "filter": _WANTED}))
    dies_ms = None
    if rng.random() < _DIES:
        dies_ms = at_ms + wait_ms // 2
    elif rng.random() < _IS_KILLED:
        dies_ms = at_ms + wait_ms + rng.choice(_WAIT_MS)
    told = rng.choice([name, *(each for each in plan.cells[cell] if each != old)])
    entries.append((at_ms + wait_ms, {"depart": told, "broker": old}))
    if dies_ms is not None:
        returns = {"for": f"{max(lasting_ms or 0, wait_ms)} ms"} if rng.random() < _RETURNS else {}
        entries.append((dies_ms, {"kill": old, **returns}))
    return entries
