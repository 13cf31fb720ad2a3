"""What solves each lesson: orders with the seconds that pass before each, and what is typed in the end."""

from collections.abc import Mapping, Sequence
from typing import Any

Step = tuple[float, Mapping[str, Any]]
"""Seconds that pass, and then an order."""
SOLVED: Mapping[str, tuple[Sequence[Step], str]] = {
    "losing": ([(2, {"link": ["b0", "b1"], "loss": 0.5})], "b0 and b1"),
    "dead-broker": ([(2, {"kill": "b1"}), (3, {"restart": "b1"})], ""),
    "exactly-once": ([(2, {"kill": "b1"}), (1, {"kill": "p1"}), (3, {"restart": "p1"})], ""),
    "shortcuts": ([(2, {"subscribe": "c1", "filter": "publisher = 0"})], ""),
    "churn": (
        [(2, {"kill": "b1"}), (1, {"kill": "b4"}), (1, {"kill": "b5"}), (2, {"restart": "b1"}), (1, {"restart": "b4"})],
        "",
    ),
}
ROUTER = "return [Hop(peer) for peer in self._neighbours if peer != came_from]"
"""The line of a router that solves the last lesson."""
