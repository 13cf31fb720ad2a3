"""Which client stands at which broker."""

from typing import Literal

from pubsub.errors import InputError
from workloads.overlay import Overlay

Where = Literal["all", "leaves"]


def place_clients(overlay: Overlay, clients: int, where: Where) -> list[str]:
    """The broker of each client: in turn over all brokers, or over those with one neighbour."""
    if clients < 1:
        raise InputError("workload.clients", str(clients), "at least 1")
    homes = overlay.brokers if where == "all" else overlay.leaves
    return [homes[number % len(homes)] for number in range(clients)]


def share(total: int, parts: int) -> list[int]:
    """`total` in `parts` numbers as equal as can be."""
    return [total // parts + (part < total % parts) for part in range(parts)]
