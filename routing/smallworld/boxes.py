"""What is wanted by way of a node: boxes, and how they are aggregated.

A box is an attribute, a range of its hashed values and a filter for what must hold besides, over the other attributes.
A subscription is one box for each range of one attribute; where a lookup for part of the range goes on, only that part
does. Cut down to the same part, subscriptions that differ in that range alone are the same box: this is what makes
aggregation work (Vinifera IV-B3).
"""

from collections.abc import Iterable, Mapping, Sequence

from murmur_pubsub.filter import EVERYTHING, Filter
from routing.smallworld.ring import Interval, union

Boxes = dict[tuple[int, Filter], list[Interval]]
"""(attribute, filter) to disjoint ranges, ascending."""
_COMPARED_MAX = 24
"""So many filters of an attribute are compared with each other for covering; among more only those that are equal, or
covered by the filter that asks for nothing more, are aggregated."""


def aggregate(parts: Iterable[Mapping[tuple[int, Filter], Sequence[Interval]]]) -> Boxes:
    """All of them in one, without what another box covers."""
    gathered: dict[tuple[int, Filter], list[Interval]] = {}
    for part in parts:
        for key, ranges in part.items():
            gathered.setdefault(key, []).extend(ranges)
    boxes = {key: union(ranges) for key, ranges in gathered.items()}
    by_attribute: dict[int, list[Filter]] = {}
    for attribute, wanted in boxes:
        by_attribute.setdefault(attribute, []).append(wanted)
    for attribute, filters in by_attribute.items():
        if len(filters) > 1:
            wide = filters if len(filters) <= _COMPARED_MAX else [each for each in filters if each == EVERYTHING]
            _drop_covered(boxes, attribute, filters, wide)
    return boxes


def extended(boxes: Boxes, more: Boxes) -> Boxes:
    """Both in one, without looking for what is covered."""
    found = dict(boxes)
    for key, ranges in more.items():
        found[key] = union([*found[key], *ranges]) if key in found else ranges
    return found


def _drop_covered(boxes: Boxes, attribute: int, filters: Sequence[Filter], wide: Sequence[Filter]) -> None:
    for narrow in filters:
        for other in wide:
            if other is narrow or (attribute, other) not in boxes or not other.covers(narrow):
                continue
            if contains(boxes[attribute, other], boxes[attribute, narrow]):
                del boxes[attribute, narrow]
                break


def contains(wide: Sequence[Interval], narrow: Sequence[Interval]) -> bool:
    """Is every value of the second in the first? Both disjoint and ascending."""
    at = 0
    for low, high in narrow:
        while at < len(wide) and wide[at][1] < high:
            at += 1
        if at == len(wide) or wide[at][0] > low:
            return False
    return True


def within(narrow: Boxes, wide: Boxes) -> bool:
    """Does the second hold all of the first, box by box?"""
    return all(key in wide and contains(wide[key], ranges) for key, ranges in narrow.items())


def to_wire(boxes: Boxes) -> tuple[list[int], list[Filter]]:
    """(attribute, low, high, filter number) in turn, and the filters."""
    numbers: list[int] = []
    filters: dict[Filter, int] = {}
    for (attribute, wanted), ranges in boxes.items():
        at = filters.setdefault(wanted, len(filters))
        for low, high in ranges:
            numbers += (attribute, low, high, at)
    return numbers, list(filters)


def from_wire(numbers: Sequence[int], filters: Sequence[Filter]) -> Boxes:
    """The boxes that were written so."""
    boxes: Boxes = {}
    for at in range(0, len(numbers) - 3, 4):
        attribute, low, high, which = numbers[at : at + 4]
        boxes.setdefault((attribute, filters[which]), []).append((low, high))
    return boxes
