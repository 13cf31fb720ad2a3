"""What a router has met lately: for a routing whose tree changes under traffic, so that an event may come by twice."""

from typing import ClassVar


class RecentlySeen:
    """Keys, remembered until `forget` has been called twice."""

    remembers: ClassVar = ("_before", "_now")

    def __init__(self) -> None:
        self._before: dict[tuple[int, ...], None] = {}
        self._now: dict[tuple[int, ...], None] = {}

    def again(self, key: tuple[int, ...]) -> bool:
        """Has this been asked before?"""
        if key in self._now or key in self._before:
            return True
        self._now[key] = None
        return False

    def forget(self) -> None:
        """Some time has passed."""
        self._before, self._now = self._now, {}
