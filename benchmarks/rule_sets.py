"""Filters and events as they are met outside papers on matching: rules over city lots, and recorded quotes."""

import random
from pathlib import Path

from murmur_pubsub.filter import Filter, finite, interval, prefix
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.values import Value
from workloads.popularity import Zipf
from workloads.quantile_filters import QuantileFilters
from workloads.recorded import read_recorded

_EVENTS = 200
_STREETS = 2_000
_BLOCKS, _LOTS = 8_000, 120
_SURVEYED_OF_FILE = 200
_MATCHING_RATE = 0.005
_KINDS = ("ST", "AVE", "BLVD", "TER", None)


def city_lots(count: int) -> tuple[list[Filter], list[dict[str, Value]]]:
    """Filters and events, the same each time. They imitate the shape of the public benchmark of event rulers: lots of a
    city as flat JSON objects, some attributes absent now and then; rules for exact values, for prefixes, for ranges
    of coordinates, and for anything but some streets, a quarter each. Nothing of the data itself is here."""
    rng = random.Random(f"lots/{count}")
    streets = [
        "".join(rng.choice("ABCDEFGHIKLMNOPRSTUVW") for _ in range(rng.randrange(4, 10))) for _ in range(_STREETS)
    ]
    popular = Zipf(_STREETS, 0.8)

    def block() -> str:
        return f"{rng.randrange(_BLOCKS):04}"

    def lot() -> dict[str, Value]:
        found: dict[str, Value] = {
            "type": "Feature", "properties.BLOCK_NUM": block(), "properties.LOT_NUM": f"{rng.randrange(_LOTS):03}",
            "properties.STREET": streets[popular.draw(rng)], "properties.ODD_EVEN": rng.choice("EO"),
            "properties.FROM_ST": rng.randrange(4_000), "geometry.type": "Polygon",
            "geometry.x": rng.uniform(-122.52, -122.36), "geometry.y": rng.uniform(37.70, 37.83),
        }  # fmt: skip
        found["properties.MAPBLKLOT"] = f"{found['properties.BLOCK_NUM']}{found['properties.LOT_NUM']}"
        kind = rng.choice(_KINDS)
        return found if kind is None else found | {"properties.ST_TYPE": kind}

    def rule(number: int) -> Filter:
        if number % 4 == 0:
            wanted = f"{block()}{rng.randrange(_LOTS):03}"
            return Filter.conjunction([("properties.MAPBLKLOT", finite("string", [wanted]))])
        if number % 4 == 1:
            begin = prefix(streets[popular.draw(rng)][: rng.randrange(3, 5)])
            parity = finite("string", [rng.choice("EO")])
            return Filter.conjunction([("properties.STREET", begin), ("properties.ODD_EVEN", parity)])
        if number % 4 == 2:
            x, y = rng.uniform(-122.52, -122.36), rng.uniform(37.70, 37.83)
            across = interval("number", x, high=x + rng.random() * 0.01)
            along = interval("number", y, high=y + rng.random() * 0.01)
            return Filter.conjunction([("geometry.x", across), ("geometry.y", along)])
        others = interval("string", excluded=[streets[popular.draw(rng)] for _ in range(rng.randrange(1, 4))])
        return Filter.conjunction(
            [("properties.BLOCK_NUM", finite("string", [block()])), ("properties.STREET", others)]
        )

    return [rule(number) for number in range(count)], [lot() for _ in range(_EVENTS)]


def recorded_quotes(path: Path, count: int) -> tuple[list[Filter], list[dict[str, Value]]]:
    """Filters over symbol, closing price and volume, of which a quote of the recording matches one in two hundred, and
    quotes; the same each time."""
    rng = random.Random(f"quotes/{count}")
    quotes = [quote for file in read_recorded(path) for quote in file[-_SURVEYED_OF_FILE:]]
    drawn = QuantileFilters(quotes, "symbol", ("close", "volume"), 0.8, count, 1)
    filters = [parse_filter(text) for text in drawn.texts(drawn.tuned_width(_MATCHING_RATE))]
    return filters, [dict(quote) for quote in rng.sample(quotes, _EVENTS)]
