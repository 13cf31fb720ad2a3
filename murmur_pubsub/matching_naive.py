"""The naive index: every filter is asked. The oracle of the bit-set index, and the plainest thing that works."""

from collections.abc import Mapping
from typing import Generic

from murmur_pubsub.filter import Filter
from murmur_pubsub.matching_level import Destination
from murmur_pubsub.values import Value


class NaiveIndex(Generic[Destination]):
    """See `murmur_pubsub.matching.FilterIndex`."""

    def __init__(self) -> None:
        self._filters: dict[int, tuple[Filter, Destination]] = {}
        self._destinations: dict[Destination, int] = {}

    def add(self, key: int, wanted: Filter, destination: Destination) -> None:
        if key in self._filters:
            raise ValueError(f"the key {key} is in use")
        self._filters[key] = (wanted, destination)
        self._destinations[destination] = self._destinations.get(destination, 0) + 1

    def remove(self, key: int) -> None:
        _, destination = self._filters.pop(key)
        self._destinations[destination] -= 1
        if not self._destinations[destination]:
            del self._destinations[destination]

    def destinations(self, attributes: Mapping[str, Value], exclude: Destination | None = None) -> list[Destination]:
        found = {destination: None for wanted, destination in self._filters.values() if wanted.matches(attributes)}
        return [each for each in self._destinations if each in found and (exclude is None or each != exclude)]

    def matching(self, attributes: Mapping[str, Value]) -> list[int]:
        return [key for key, (wanted, _) in self._filters.items() if wanted.matches(attributes)]

    def covering(self, wanted: Filter) -> list[int]:
        return [key for key, (each, _) in self._filters.items() if each.covers(wanted)]

    def covers_any(self, wanted: Filter) -> bool:
        return any(each.covers(wanted) for each, _ in self._filters.values())

    def covered_by(self, wanted: Filter) -> list[int]:
        return [key for key, (each, _) in self._filters.items() if wanted.covers(each)]

    def __len__(self) -> int:
        return len(self._filters)

    def check_invariants(self) -> None:
        assert sum(self._destinations.values()) == len(self._filters)
