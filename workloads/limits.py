"""What options of workloads may be. Each check raises `InputError` naming the key, what was found and what is allowed.

A scenario file can write any float, `.nan` and `.inf` among them, so that ranges are asked for and never refused.
"""

import math

from murmur_pubsub.errors import InputError

CLIENTS_MAX = PUBLISHERS_MAX = USERS_MAX = RANKS_MAX = 1_000_000
FILTERS_MAX = DRAWN_EVENTS_MAX = 10_000_000
"""Drawn before the run, some hundred bytes each."""
VALUES_MAX = 20_000_000
"""Numbers in filters, or in events that are drawn before the run."""
PUBLICATIONS_MAX = 1_000_000_000_000
"""Made as they are published: they take time, and no room."""


def at_least_one(options: object, *names: str) -> None:
    """Each of these options is 1 or more."""
    for name in names:
        if getattr(options, name) < 1:
            raise InputError(f"workload.{name}", str(getattr(options, name)), "at least 1")


def at_most(most: int, what: str, **counts: int) -> None:
    """The product of these options, which is how many there are of `what`, is this at most. One of them is named: it is
    all made before the run begins, and has to find room in one process."""
    found = math.prod(counts.values())
    if found > most:
        largest = max(counts, key=lambda name: counts[name])
        words = str(found) if len(counts) == 1 else f"{counts[largest]}, which makes {found:,} {what}"
        raise InputError(f"workload.{largest}", words, f"at most {most:,} {what}")


def clients_in_all(**counts: int) -> None:
    """Options that together say how many clients there are."""
    at_most(CLIENTS_MAX, "clients", **counts)


def positive_rate(rate_per_s: float | None) -> None:
    """A rate of publications, or None for as fast as the system takes them."""
    if rate_per_s is not None and not 0 < rate_per_s < math.inf:
        raise InputError("workload.rate_per_s", str(rate_per_s), "a positive rate, or null")


def zipf_exponent(exponent: float) -> None:
    """0 is all the same; beyond 20 the second rank is not drawn in a million years."""
    if not 0 <= exponent <= 20:
        raise InputError("workload.exponent", str(exponent), "0 to 20")


def share_of_filters(matching_rate: float) -> None:
    """A matching rate."""
    if not 0 < matching_rate <= 1:
        raise InputError("workload.matching_rate", str(matching_rate), "above 0, at most 1")
