"""The synthetic workload: interval filters and events with Zipf popularity, at a wanted matching rate.

Each numeric attribute has the domain 0 to 1. Interest is skewed: the domain is cut into `buckets`, and both the
centres of intervals and the values of events fall into buckets by Zipf. Filters constrain `predicates` of the
attributes with intervals of one width, which is found by bisection so that, over a sample, an event matches
the wanted share of the subscriptions. The rate reached on a fresh sample is part of the description.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pubsub.errors import InputError
from pubsub.values import Value
from workloads.overlay import Overlay
from workloads.placement import Where, place_clients, share
from workloads.plan import ClientPlan, TimedPublication, Workload
from workloads.popularity import Arrival, Zipf, publishing_times

_SAMPLE = 400
_FILTERS_SAMPLED = 2_000
_DECIMALS = 6


@dataclass(frozen=True, slots=True)
class ZipfOptions:
    """clients: client nodes, each standing for `subscribers_per_actor` subscribers and one publisher (the first
    `publishers` of them). matching_rate: share of all subscriptions that an event should match. rate_per_s:
    publications a second, all publishers together (null: as fast as the system takes them)."""

    clients: int = 16
    clients_at: Where = "all"
    subscribers_per_actor: int = 10
    subscriptions_per_subscriber: int = 1
    publishers: int = 4
    publications: int = 2_000
    rate_per_s: float | None = 400.0
    arrival: Arrival = "poisson"
    attributes: int = 5
    predicates: int = 2
    exponent: float = 0.8
    buckets: int = 50
    matching_rate: float = 0.05

    def __post_init__(self) -> None:
        for name in ("clients", "subscribers_per_actor", "publications", "attributes", "predicates", "buckets"):
            if getattr(self, name) < 1:
                raise InputError(f"workload.{name}", str(getattr(self, name)), "at least 1")
        if not 1 <= self.publishers <= self.clients:
            raise InputError("workload.publishers", str(self.publishers), f"1 to {self.clients}, the clients")
        if self.predicates > self.attributes:
            raise InputError("workload.predicates", str(self.predicates), f"at most {self.attributes}, the attributes")
        if not 0 < self.matching_rate <= 1:
            raise InputError("workload.matching_rate", str(self.matching_rate), "above 0, at most 1")
        if self.rate_per_s is not None and self.rate_per_s <= 0:
            raise InputError("workload.rate_per_s", str(self.rate_per_s), "a positive rate, or null")


@dataclass(frozen=True, slots=True)
class ZipfPublications:
    """One publisher's events, made anew from the seed whenever they are walked."""

    options: ZipfOptions
    seed: int
    publisher: int
    count: int

    def __iter__(self) -> Iterator[TimedPublication]:
        options = self.options
        rng = random.Random(f"{self.seed}/publisher/{self.publisher}")
        zipf = Zipf(options.buckets, options.exponent)
        rate = None if options.rate_per_s is None else options.rate_per_s / options.publishers
        for time_us in publishing_times(self.count, rate, options.arrival, rng):
            yield time_us, self.publisher, event_attributes(options, zipf, rng)


def event_attributes(options: ZipfOptions, zipf: Zipf, rng: random.Random) -> dict[str, Value]:
    """One event: a value in each attribute."""
    return {f"a{number}": _value(options, zipf, rng) for number in range(options.attributes)}


def _value(options: ZipfOptions, zipf: Zipf, rng: random.Random) -> float:
    return round((zipf.draw(rng) + rng.random()) / options.buckets, _DECIMALS)


def build_zipf(overlay: Overlay, options: ZipfOptions, seed: int) -> Workload:
    """The workload over the overlay."""
    homes = place_clients(overlay, options.clients, options.clients_at)
    subscribers = options.clients * options.subscribers_per_actor
    total = subscribers * options.subscriptions_per_subscriber
    zipf = Zipf(options.buckets, options.exponent)
    chosen, centres = _interests(options, total, zipf, seed)
    sample = _sample(options, zipf, f"{seed}/tuning")
    width = _tuned_width(chosen, centres, sample, options.matching_rate)
    reached = _matching_rate(chosen, centres, width, _sample(options, zipf, f"{seed}/reached"))
    counts = share(options.publications, options.publishers)
    clients = []
    for number, home in enumerate(homes):
        first = number * options.subscribers_per_actor * options.subscriptions_per_subscriber
        last = first + options.subscribers_per_actor * options.subscriptions_per_subscriber
        subscriptions = tuple(
            (at // options.subscriptions_per_subscriber, _text(chosen[at], centres[at], width))
            for at in range(first, last)
        )
        publications = ZipfPublications(options, seed, number, counts[number]) if number < options.publishers else ()
        clients.append(ClientPlan(f"c{number}", home, subscriptions, publications))
    description: dict[str, float | int | str] = {
        "kind": "zipf",
        "subscribers": subscribers,
        "subscriptions": total,
        "publications": options.publications,
        "publishers": options.publishers,
        "wanted matching rate": options.matching_rate,
        "reached matching rate": round(reached, 4),
        "interval width": round(width, 4),
    }
    return Workload(overlay, tuple(clients), description, options.publications)


def _interests(options: ZipfOptions, total: int, zipf: Zipf, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Which attributes each filter constrains (total x predicates) and the centres of its intervals."""
    rng = random.Random(f"{seed}/subscriptions")
    chosen = np.array([rng.sample(range(options.attributes), options.predicates) for _ in range(total)])
    centres = np.array([[_value(options, zipf, rng) for _ in range(options.predicates)] for _ in range(total)])
    return chosen, centres


def _sample(options: ZipfOptions, zipf: Zipf, seed: str) -> np.ndarray:
    rng = random.Random(seed)
    return np.array([list(event_attributes(options, zipf, rng).values()) for _ in range(_SAMPLE)], dtype=float)


def _matching_rate(chosen: np.ndarray, centres: np.ndarray, width: float, events: np.ndarray) -> float:
    """The share of (event, filter) pairs that match, over the events and the first filters."""
    chosen, centres = chosen[:_FILTERS_SAMPLED], centres[:_FILTERS_SAMPLED]
    matched = np.ones((len(events), len(chosen)), dtype=bool)
    for predicate in range(chosen.shape[1]):
        matched &= np.abs(events[:, chosen[:, predicate]] - centres[:, predicate]) <= width / 2
    return float(matched.mean())


def _tuned_width(chosen: np.ndarray, centres: np.ndarray, events: np.ndarray, wanted: float) -> float:
    low, high = 0.0, 2.0
    for _ in range(30):
        middle = (low + high) / 2
        if _matching_rate(chosen, centres, middle, events) < wanted:
            low = middle
        else:
            high = middle
    return high


def _text(chosen: np.ndarray, centres: np.ndarray, width: float) -> str:
    return " AND ".join(
        f"a{attribute} BETWEEN {round(float(centre) - width / 2, _DECIMALS)!r}"
        f" AND {round(float(centre) + width / 2, _DECIMALS)!r}"
        for attribute, centre in zip(chosen.tolist(), centres.tolist(), strict=True)
    )
