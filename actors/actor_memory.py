"""How many actors fit into a host's memory."""

import psutil

from murmur_pubsub.errors import InputError

ACTOR_BYTES = 75 * 1024 * 1024
"""Memory that an idle actor holds of its own (67 MB were measured), with a little to work in."""
RAY_BYTES = 900 * 1024 * 1024
"""What Ray itself holds besides actors."""


def fitting_actors(memory_bytes: int) -> int:
    """How many actors fit beside Ray into this much memory."""
    return max(0, (memory_bytes - RAY_BYTES) // ACTOR_BYTES)


def check_memory(actors: int, available_bytes: int | None = None) -> None:
    """Raise `InputError` if that many actors do not fit into this host's free memory."""
    available_bytes = psutil.virtual_memory().available if available_bytes is None else available_bytes
    fitting = fitting_actors(available_bytes)
    if actors > fitting:
        raise InputError(
            "memory",
            f"{actors} actors, which need {(RAY_BYTES + actors * ACTOR_BYTES) / 1e9:.1f} GB,"
            f" and {available_bytes / 1e9:.1f} GB free",
            f"at most {fitting} actors here; or `--runtime virtual`, which needs none",
        )
