"""Builds the synthetic workload (`workloads.zipf`): its filters, tuned on a sample, and its publications."""

import functools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from murmur_pubsub.script import Change
from workloads.client_placement import equal_parts, place_clients
from workloads.interests import Events, Interests
from workloads.overlay import Overlay
from workloads.plan import ClientPlan, Workload
from workloads.resubscriptions import draw_changes
from workloads.zipf import EventSource, MergedPublications, ZipfOptions, ZipfPublications, category_name

_TUNED_ON = 400
_MEASURED_ON = 1_000


@dataclass(frozen=True, slots=True)
class _Drawn:
    """What does not depend on the overlay: filters, the width of their intervals, the matching rate that they reach on
    so many events, and each publisher's publications."""

    texts: tuple[str, ...]
    width: float
    reached: float
    measured_on: int
    published: tuple[ZipfPublications, ...]


def build_zipf(overlay: Overlay, options: ZipfOptions, seed: int) -> Workload:
    """The workload over the overlay."""
    homes = place_clients(overlay, options.clients, options.clients_at, options.client_brokers)
    drawn = _drawn(options, seed)
    texts, published = drawn.texts, drawn.published
    each = options.subscribers_per_actor * options.subscriptions_per_subscriber
    subscriptions = {
        number: tuple(
            (at // options.subscriptions_per_subscriber, texts[at]) for at in range(number * each, (number + 1) * each)
        )
        for number in range(len(homes))
    }
    changes = _changes(options, subscriptions, drawn.width, seed)
    clients = []
    for number, home in enumerate(homes):
        mine = tuple(published[number :: options.clients])
        publications = mine[0] if len(mine) == 1 else MergedPublications(mine)
        publishers = tuple(part.publisher for part in mine)
        plan = ClientPlan(f"c{number}", home, subscriptions[number], publishers, publications, changes.get(number, ()))
        clients.append(plan)
    description: dict[str, float | int | str] = {
        "kind": "zipf",
        "seed": seed,
        "subscribers": options.clients * options.subscribers_per_actor,
        "subscriptions": len(texts),
        "distinct filters": len(dict.fromkeys(texts)),
        "publications": options.publications,
        "publishers": options.publishers,
        "wanted matching rate": options.matching_rate,
        "reached matching rate": round(drawn.reached, 6),
        "events the rate was measured on": drawn.measured_on,
        "interval width": round(drawn.width, 6),
    }
    return Workload(overlay, tuple(clients), description, options.publications)


@functools.lru_cache(maxsize=1)
def _drawn(options: ZipfOptions, seed: int) -> _Drawn:
    # The last one is kept: a hunt builds each schedule twice, to fit its faults to the nodes and to play it.
    subscribers = options.clients * options.subscribers_per_actor
    interests = _interests(options, subscribers * options.subscriptions_per_subscriber, seed)
    width = interests.tuned_width(_tuning_sample(options, seed), options.matching_rate)
    bounds = interests.bounds(width)
    published = tuple(
        ZipfPublications(options, seed, publisher, count)
        for publisher, count in enumerate(equal_parts(options.publications, options.publishers))
    )
    measured = _published_sample(options, published)
    reached = interests.matching_rate(measured, bounds)
    return _Drawn(tuple(interests.texts(bounds)), width, reached, measured.count, published)


def _changes(
    options: ZipfOptions, subscriptions: Mapping[int, Sequence[tuple[int, str]]], width: float, seed: int
) -> dict[int, tuple[Change, ...]]:
    if not options.resubscriptions or options.rate_per_s is None:
        return {}
    others = _interests(options, options.resubscriptions, f"{seed}/resubscriptions")
    rng = random.Random(f"{seed}/resubscriptions")
    span_us = int(options.publications / options.rate_per_s * 1e6)
    return draw_changes(subscriptions, others.texts(others.bounds(width)), max(span_us, 1), rng)


def _interests(options: ZipfOptions, total: int, seed: object) -> Interests:
    rng = random.Random(f"{seed}/subscriptions")
    source = EventSource(options, rng)
    predicates = range(options.predicates)
    chosen = [tuple(rng.sample(range(options.attributes), options.predicates)) for _ in range(total)]
    centres = [tuple(float(source.value()) for _ in predicates) for _ in range(total)]
    wanted = EventSource(options, random.Random(f"{seed}/subscriptions/categories"))
    categories = [wanted.category() for _ in range(total)] if options.categories else None
    extent, whole = float(options.integers or 1), options.integers is not None
    as_wide, in_middle = [(1.0,) * options.predicates] * total, [(0.0,) * options.predicates] * total
    interests = Interests(chosen, centres, categories, extent, whole, as_wide, in_middle)
    return interests.with_covered(options.covered, random.Random(f"{seed}/subscriptions/covered"))


def _tuning_sample(options: ZipfOptions, seed: int) -> Events:
    """Events that are not published: how many are published must not change the filters."""
    source = EventSource(options, random.Random(f"{seed}/tuning"))
    numbers = [tuple(source.value() for _ in range(options.attributes)) for _ in range(_TUNED_ON)]
    categories = EventSource(options, random.Random(f"{seed}/tuning/categories"))
    return Events(numbers, [categories.category() for _ in range(_TUNED_ON)])


def _published_sample(options: ZipfOptions, published: Sequence[ZipfPublications]) -> Events:
    """The first events of each publisher, about `_MEASURED_ON` together, or all if there are no more."""
    most = -(-_MEASURED_ON // len(published))
    events = [attributes for each in published for _, _, attributes in islice(each, most)]
    numbers = [tuple(float(event[f"a{number}"]) for number in range(options.attributes)) for event in events]
    codes = {category_name(number): number for number in range(options.categories)}
    categories = [codes.get(str(event.get("category")), 0) for event in events]
    return Events(numbers, categories)
