"""What is wanted by way of a node: regions of the space of events, and how they are aggregated.

A region is an attribute, a range of its hashed values and a filter over the other attributes. A subscription is one
region for each range of one attribute; where a lookup for part of the range goes on, only that part does. Cut down to
the same part, subscriptions that differ in that range alone are the same region: this is what makes aggregation work
(Vinifera IV-B3).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from murmur_pubsub.filter import EVERYTHING, Filter
from murmur_pubsub.intervals import Interval, contains, union

SubscriptionRegions = dict[tuple[int, Filter], list[Interval]]
"""(attribute, filter) to disjoint ranges, ascending."""
_COMPARED_MAX = 12
"""At most this many filters of an attribute are compared with each other for covering. Among more, only those that are
equal, or covered by the filter that asks for nothing more, are aggregated."""


def aggregate(parts: Iterable[Mapping[tuple[int, Filter], Sequence[Interval]]]) -> SubscriptionRegions:
    """All of them in one, without what another region covers."""
    gathered: dict[tuple[int, Filter], list[Interval]] = {}
    for part in parts:
        for key, ranges in part.items():
            gathered.setdefault(key, []).extend(ranges)
    regions = {key: union(ranges) for key, ranges in gathered.items()}
    by_attribute: dict[int, list[Filter]] = {}
    for attribute, wanted in regions:
        by_attribute.setdefault(attribute, []).append(wanted)
    for attribute, filters in by_attribute.items():
        if len(filters) > 1:
            wide = filters if len(filters) <= _COMPARED_MAX else [each for each in filters if each == EVERYTHING]
            _drop_covered(regions, attribute, filters, wide)
    return regions


def extended(regions: SubscriptionRegions, more: SubscriptionRegions) -> SubscriptionRegions:
    """Both in one, without looking for what is covered."""
    found = dict(regions)
    for key, ranges in more.items():
        found[key] = union([*found[key], *ranges]) if key in found else ranges
    return found


def _drop_covered(
    regions: SubscriptionRegions, attribute: int, filters: Sequence[Filter], wide: Sequence[Filter]
) -> None:
    for narrow in filters:
        for other in wide:
            if other is narrow or (attribute, other) not in regions or not other.covers(narrow):
                continue
            if contains(regions[attribute, other], regions[attribute, narrow]):
                del regions[attribute, narrow]
                break


def within(narrow: SubscriptionRegions, wide: SubscriptionRegions) -> bool:
    """Does the second hold all of the first, each region in one of the same filter or in one that asks for nothing
    more?"""
    return all(
        contains(wide.get(key, ()), ranges) or contains(wide.get((key[0], EVERYTHING), ()), ranges)
        for key, ranges in narrow.items()
    )


def coarse(regions: SubscriptionRegions, filters_max: int) -> SubscriptionRegions:
    """The same, but of an attribute with more filters than that all events in their ranges."""
    count = Counter(attribute for attribute, _ in regions)
    many = {attribute for attribute, filters in count.items() if filters > filters_max}
    if not many:
        return regions
    found = {key: ranges for key, ranges in regions.items() if key[0] not in many}
    for attribute in many:
        ranges = [each for key, of_key in regions.items() if key[0] == attribute for each in of_key]
        found[attribute, EVERYTHING] = union(ranges)
    return found


def to_wire(regions: SubscriptionRegions) -> tuple[list[int], list[Filter]]:
    """(attribute, low, high, filter number) in turn, and the filters."""
    numbers: list[int] = []
    filters: dict[Filter, int] = {}
    for (attribute, wanted), ranges in regions.items():
        filter_number = filters.setdefault(wanted, len(filters))
        for low, high in ranges:
            numbers += (attribute, low, high, filter_number)
    return numbers, list(filters)


def from_wire(numbers: Sequence[int], filters: Sequence[Filter]) -> SubscriptionRegions:
    """The regions that were written so."""
    regions: SubscriptionRegions = {}
    for first in range(0, len(numbers) - 3, 4):
        attribute, low, high, filter_number = numbers[first : first + 4]
        regions.setdefault((attribute, filters[filter_number]), []).append((low, high))
    return regions
