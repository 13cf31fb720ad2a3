"""Which client stands at which broker."""

from collections.abc import Sequence
from typing import Literal

from murmur_pubsub.errors import InputError
from workloads.overlay import Overlay

Where = Literal["all", "leaves"]


def place_clients(overlay: Overlay, clients: int, where: Where, listed: Sequence[str] = ()) -> list[str]:
    """The broker of each client: in turn over those listed; with none, over all, or over those with one neighbour."""
    if clients < 1:
        raise InputError("workload.clients", str(clients), "at least 1")
    for broker in listed:
        if broker not in overlay.client_brokers:
            names = ", ".join(overlay.client_brokers[:10]) + (", …" if len(overlay.client_brokers) > 10 else "")
            raise InputError("workload.client_brokers", repr(broker), f"brokers that take clients: {names}")
    homes = listed or (overlay.client_brokers if where == "all" else overlay.leaves)
    return [homes[number % len(homes)] for number in range(clients)]


def equal_parts(total: int, parts: int) -> list[int]:
    """`total` in `parts` numbers as equal as can be."""
    return [total // parts + (part < total % parts) for part in range(parts)]
