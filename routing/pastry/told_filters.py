"""Which filters a peer was told that this node wants, and whether what it answers agrees."""

from collections.abc import Iterable

from murmur_pubsub.filter import Filter
from routing.filter_digest import digest
from routing.pastry.changes import Answered


class ToldFilters:
    """What one peer was told."""

    def __init__(self, now_us: int) -> None:
        self._last_us = now_us
        self._digest: int | None = None
        """Of the filters; None: they may have changed since it was asked for."""

    def told(self, now_us: int) -> None:
        """The peer is told something."""
        self._last_us, self._digest = now_us, None

    def agrees(self, answer: Answered, filters: Iterable[Filter], round_began_us: int) -> bool:
        """Does the peer hold these filters, as far as its answer can tell? Probes are sent as a round begins, and
        nothing overtakes them: an answer says nothing of what the peer was told since."""
        if self._last_us >= round_began_us:
            return True
        if self._digest is None:
            self._digest = digest(filters)
        return answer.note == self._digest
