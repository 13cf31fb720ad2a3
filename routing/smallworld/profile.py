"""A node's profile: which ranges it has subscribed to on which attributes, packed for gossip.

Profiles are compared far more often than they change, so they travel as bytes and are unpacked once.
"""

import functools
import struct
import zlib
from bisect import bisect_right
from collections.abc import Mapping, Sequence

from murmur_pubsub.intervals import Interval, fill_gaps, union, value_count
from routing.smallworld.ring import RING_SIZE

_RANGES_MAX = 256
"""Of one attribute; beyond it the closest ranges are joined."""
ANY_ATTRIBUTE = 0
"""The attribute of filters that name none."""
Profile = Mapping[int, Sequence[Interval]]


def attribute_key(name: str) -> int:
    """An attribute's number on the wire, the same in every process; never `ANY_ATTRIBUTE`."""
    return zlib.crc32(name.encode()) or 1


def pack_profile(profile: Profile, first: int | None = None) -> bytes:
    """The profile, the attribute `first` and then the others ascending, each with its ranges disjoint and ascending."""
    numbers: list[int] = []
    for attribute in sorted(profile, key=lambda each: (each != first, each)):
        ranges = fill_gaps(union(profile[attribute]), _RANGES_MAX)
        numbers += [attribute, len(ranges)]
        for low, high in ranges:
            numbers += [low, high]
    return struct.pack(f"<{len(numbers)}I", *numbers)


@functools.lru_cache(maxsize=65_536)
def unpack_profile(packed: bytes) -> Profile:
    """The profile that was packed; anything else is no interest at all."""
    if len(packed) % 4:
        return {}
    numbers = struct.unpack(f"<{len(packed) // 4}I", packed)
    profile: dict[int, list[Interval]] = {}
    place = 0
    while place + 1 < len(numbers):
        attribute, count = numbers[place], numbers[place + 1]
        ends = numbers[place + 2 : place + 2 + 2 * count]
        profile[attribute] = list(zip(ends[::2], ends[1::2], strict=False))
        place += 2 + 2 * count
    return profile


@functools.lru_cache(maxsize=65_536)
def ranges_on(attribute: int, packed: bytes) -> tuple[Sequence[Interval], int]:
    """The ranges on that attribute, and how many values are in them."""
    ranges = unpack_profile(packed).get(attribute, ())
    return ranges, value_count(ranges)


def wants(packed: bytes, hashed: Mapping[int, int]) -> bool:
    """Does the profile say that its node wants an event with these hashed values? A profile does not tell which
    attributes belong to one subscription, so the event must have a wanted value of each of them."""
    profile = unpack_profile(packed)
    if ANY_ATTRIBUTE in profile:
        return True
    for attribute, ranges in profile.items():
        value = hashed.get(attribute)
        if value is None:
            return False
        place = bisect_right(ranges, (value, RING_SIZE)) - 1
        if place < 0 or ranges[place][1] < value:
            return False
    return bool(profile)
