"""The synthetic workload: interval filters and events with Zipf popularity, at a wanted matching rate.

Interest is skewed: the domain of each numeric attribute is cut into `buckets`, and both the centres of intervals and
the values of events fall into buckets by Zipf. Filters constrain `predicates` of the attributes with intervals of
one width, tuned on a sample (see `workloads.interests`), and those that are drawn to be `covered` with parts of
another's. With `categories` each also asks for one value of a string attribute, popular by Zipf too. The rate reached
by events that are really published is part of the description.
"""

import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass

from murmur_pubsub.errors import InputError
from murmur_pubsub.values import Value
from workloads.client_placement import Where
from workloads.limits import (
    FILTERS_MAX,
    PUBLICATIONS_MAX,
    PUBLISHERS_MAX,
    RANKS_MAX,
    VALUES_MAX,
    at_least_one,
    at_most,
    clients_in_all,
    positive_rate,
    share_of_filters,
    zipf_exponent,
)
from workloads.plan import TimedPublication
from workloads.popularity import Arrival, Zipf, publishing_times

DECIMALS = 6
_ATTRIBUTES_MAX = 1_000
_INTEGERS_MAX = 2**53


@dataclass(frozen=True, slots=True)
class ZipfOptions:
    """Zipf-distributed interest at a wanted matching rate."""

    clients: int = 16
    """Client nodes; publishers are dealt out to them in turn."""
    clients_at: Where = "all"
    """The brokers at which clients attach: all, or the leaves of the tree."""
    client_brokers: tuple[str, ...] = ()
    """Brokers at which clients attach, in turn, in place of `clients_at`."""
    subscribers_per_actor: int = 10
    """Subscribers that one client node stands for."""
    subscriptions_per_subscriber: int = 1
    """Filters of each subscriber."""
    publishers: int = 4
    """How many publishers there are."""
    publications: int = 2_000
    """Events of all publishers together."""
    rate_per_s: float | None = 400.0
    """Publications a second, all publishers together (none: as fast as the system takes them)."""
    arrival: Arrival = "poisson"
    """How publications follow each other."""
    attributes: int = 5
    """Attributes of an event, `a0`, `a1` and so on."""
    predicates: int = 2
    """Attributes that a filter constrains."""
    integers: int | None = None
    """Values are the whole numbers below it (none: numbers from 0 to 1)."""
    categories: int = 0
    """How many values the text attribute `category` has (0: events have none)."""
    exponent: float = 0.8
    """Of the Zipf distribution."""
    buckets: int = 50
    """Parts of the domain of a value, whose popularity follows the distribution."""
    matching_rate: float = 0.05
    """Share of all subscriptions that an event should match."""
    covered: float = 0.0
    """Share of filters that ask for a part of what an earlier filter asks for, which covers them."""
    resubscriptions: int = 0
    """How often a subscriber withdraws a filter while events are published, and asks for it again later, or for
    another one (at most: a filter that is away cannot be withdrawn)."""

    def __post_init__(self) -> None:
        at_least_one(
            self, "clients", "subscribers_per_actor", "subscriptions_per_subscriber", "publishers", "publications",
            "attributes", "predicates", "buckets",
        )  # fmt: skip
        clients_in_all(clients=self.clients)
        at_most(PUBLISHERS_MAX, "publishers", publishers=self.publishers)
        at_most(PUBLICATIONS_MAX, "publications", publications=self.publications)
        per_client = {name: getattr(self, name) for name in ("subscribers_per_actor", "subscriptions_per_subscriber")}
        at_most(FILTERS_MAX, "filters", clients=self.clients, **per_client)
        at_most(FILTERS_MAX, "filters", resubscriptions=self.resubscriptions)
        at_most(RANKS_MAX, "buckets", buckets=self.buckets)
        at_most(RANKS_MAX, "categories", categories=self.categories)
        at_most(_ATTRIBUTES_MAX, "attributes", attributes=self.attributes)
        at_most(VALUES_MAX, "values of first events", publishers=self.publishers, attributes=self.attributes)
        if self.predicates > self.attributes:
            raise InputError("workload.predicates", str(self.predicates), f"at most {self.attributes}, the attributes")
        at_most(VALUES_MAX, "intervals", clients=self.clients, predicates=self.predicates, **per_client)
        if self.integers is not None and not 2 <= self.integers <= _INTEGERS_MAX:
            raise InputError("workload.integers", str(self.integers), f"2 to {_INTEGERS_MAX}, or null")
        if self.resubscriptions < 0:
            raise InputError("workload.resubscriptions", str(self.resubscriptions), "0 or more")
        if self.resubscriptions and self.rate_per_s is None:
            allowed = "0 without rate_per_s: there is no time that they could be spread over"
            raise InputError("workload.resubscriptions", str(self.resubscriptions), allowed)
        if self.categories < 0:
            raise InputError("workload.categories", str(self.categories), "0 or more")
        if not 0 <= self.covered <= 1:
            raise InputError("workload.covered", str(self.covered), "0 to 1")
        share_of_filters(self.matching_rate)
        positive_rate(self.rate_per_s)
        zipf_exponent(self.exponent)


def category_name(category: int) -> str:
    """The value of the string attribute `category`."""
    return f"v{category}"


class EventSource:
    """Draws events, one after the other, from a random stream of its own."""

    def __init__(self, options: ZipfOptions, rng: random.Random) -> None:
        self._options = options
        self._rng = rng
        self._buckets = Zipf(options.buckets, options.exponent)
        self._categories = Zipf(options.categories, options.exponent) if options.categories else None

    def value(self) -> float | int:
        """A value of a numeric attribute."""
        at = (self._buckets.draw(self._rng) + self._rng.random()) / self._options.buckets
        if self._options.integers is None:
            return round(at, DECIMALS)
        return min(int(at * self._options.integers), self._options.integers - 1)

    def category(self) -> int:
        """A category (0 if the options want none)."""
        return self._categories.draw(self._rng) if self._categories else 0

    def attributes(self) -> dict[str, Value]:
        """One event: a value in each attribute."""
        event: dict[str, Value] = {f"a{number}": self.value() for number in range(self._options.attributes)}
        if self._categories:
            event["category"] = category_name(self.category())
        return event


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
        source = EventSource(options, rng)
        rate = None if options.rate_per_s is None else options.rate_per_s / options.publishers
        turn_us = 0.0 if options.rate_per_s is None else self.publisher * 1e6 / options.rate_per_s
        for time_us in publishing_times(self.count, rate, options.arrival, rng, turn_us):
            yield time_us, self.publisher, source.attributes()


@dataclass(frozen=True, slots=True)
class MergedPublications:
    """The events of several publishers in order of time, made as they are walked."""

    parts: tuple[ZipfPublications, ...]

    def __iter__(self) -> Iterator[TimedPublication]:
        return heapq.merge(*self.parts, key=lambda publication: publication[0])
