"""The load of the live benchmarks: quotes of fifty symbols, and filters over symbol, price and volume."""

import random

from murmur_pubsub.values import Value

_SYMBOLS = tuple(f"S{number:02d}" for number in range(50))


def quote_filters(count: int, rng: random.Random) -> list[str]:
    """Filter texts; a quote matches one in a hundred of them, more or less."""
    return [
        f"symbol = '{_SYMBOLS[number % len(_SYMBOLS)]}'"
        f" AND price > {rng.random() * 50} AND volume > {rng.randrange(5_000)}"
        for number in range(count)
    ]


def quote(rng: random.Random) -> dict[str, Value]:
    """One event's attributes."""
    return {"symbol": rng.choice(_SYMBOLS), "price": rng.random() * 100, "volume": rng.randrange(10_000)}
