"""Where the filters of the matching index are: a mapping that never stalls while it grows.

A dict of a million keys takes 25 ms to grow. So the keys are spread over many dicts, by bits in which keys that follow
each other mostly agree: a small index has one dict.
"""

from collections.abc import Sequence

_SHARD_KEYS_LOG2 = 15
_SHARDS_MAX = 256
NUMBER_BITS = 20
"""The number of a filter within its home fits in so many bits."""


class Places:
    """For each key the home of its filter and the filter's number there, as one integer."""

    __slots__ = ("_count", "_shards")

    def __init__(self) -> None:
        self._shards: dict[int, dict[int, int]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, key: int) -> bool:
        return key in self._shards.get(key >> _SHARD_KEYS_LOG2 & _SHARDS_MAX - 1, ())

    def get(self, key: int) -> int | None:
        """The key's place, as `place_of` makes it; None if it has none."""
        shard = self._shards.get(key >> _SHARD_KEYS_LOG2 & _SHARDS_MAX - 1)
        return None if shard is None else shard.get(key)

    def put(self, key: int, place: int) -> None:
        """Give the key a place, or another one."""
        shard = self._shards.setdefault(key >> _SHARD_KEYS_LOG2 & _SHARDS_MAX - 1, {})
        before = len(shard)
        shard[key] = place
        self._count += len(shard) - before

    def move(self, keys: Sequence[int], places: Sequence[int], first: int) -> list[int]:
        """Give each key that has the place beside it the next place from `first` on; the positions of the others."""
        shards = self._shards
        others = []
        for position, (key, place) in enumerate(zip(keys, places, strict=True)):
            shard = shards.get(key >> _SHARD_KEYS_LOG2 & _SHARDS_MAX - 1)
            if shard is not None and shard.get(key) == place:
                shard[key] = first + position
            else:
                others.append(position)
        return others

    def pop(self, key: int) -> tuple[int, int]:
        """Take the key out: its home and its number there; raises KeyError if it has no place."""
        number = key >> _SHARD_KEYS_LOG2 & _SHARDS_MAX - 1
        if number not in self._shards:
            raise KeyError(key)
        shard = self._shards[number]
        place = shard.pop(key)
        if not shard:
            del self._shards[number]
        self._count -= 1
        return place >> NUMBER_BITS, place & (1 << NUMBER_BITS) - 1


def place_of(home: int, number: int) -> int:
    """The filter of this number in this home."""
    return home << NUMBER_BITS | number
