"""Reconfiguration as the evaluation has it: a link of the tree breaks, and another joins the two halves.

Any two dispatchers of the two halves are joined that have fewer links than the degree.
"""

import random
from collections.abc import Iterable, Sequence
from typing import Any

from murmur_pubsub.machine import NodeName

Edge = tuple[NodeName, NodeName]


def joining_edge(
    names: Iterable[NodeName], edges: Sequence[Edge], broken: Edge, degree: int, rng: random.Random
) -> Edge:
    """The edge that joins the two halves of a tree, which has these edges since the broken one is gone."""
    neighbours: dict[NodeName, list[NodeName]] = {name: [] for name in names}
    for here, there in edges:
        neighbours[here].append(there)
        neighbours[there].append(here)
    chosen = []
    for start in broken:
        half = [start]
        for name in half:
            half += [peer for peer in neighbours[name] if peer not in half]
        chosen.append(rng.choice([name for name in half if len(neighbours[name]) < degree]))
    return chosen[0], chosen[1]


def reconfigurations(
    edges: Sequence[Edge], degree: int, times_ms: Iterable[int], repair_ms: int, delay_ms: int, rng: random.Random
) -> list[dict[str, Any]]:
    """The faults of a scenario: at each time a link breaks, and another, with that delay, comes `repair_ms` later. One
    has to come before the next breaks, so that the halves are known."""
    left = list(edges)
    names = dict.fromkeys(name for edge in edges for name in edge)
    faults: list[dict[str, Any]] = []
    for at_ms in times_ms:
        broken = left.pop(rng.randrange(len(left)))
        joined = joining_edge(names, left, broken, degree, rng)
        left.append(joined)
        faults.append({"at": f"{at_ms} ms", "disconnect": list(broken)})
        faults.append({"at": f"{at_ms + repair_ms} ms", "connect": list(joined), "delay": f"{delay_ms} ms"})
    return faults
