"""Whom a subscribers' broker asks about a redundant pubend: it does not know which of the two brokers serves.

It asks the one that answered last, and both while an answer is overdue. The one that does not serve says nothing. What
a broker says that has served before is true all the same: it tells only what both have stored
(`reliability.end_to_end.candidate`), so a step of a chain stays true whoever serves later.
"""

from collections.abc import Sequence

from murmur_pubsub.machine import NodeName
from murmur_pubsub.promise import RedundantEnd


class Whereabouts:
    """Of all redundant pubends, as one broker knows. `overdue_us`: an answer is overdue after so long."""

    def __init__(self, ends: Sequence[RedundantEnd], overdue_us: int) -> None:
        self._overdue_us = overdue_us
        self._both = {end.host: (end.host, end.backup) for end in ends}
        self._of = {name: end.host for end in ends for name in (end.host, end.backup)}
        self._last = {end.host: end.host for end in ends}
        self._asked_us: dict[NodeName, int] = {}
        """By the pubend's own broker: when it was asked first of what has no answer."""

    def ask(self, root: NodeName, now_us: int) -> Sequence[NodeName]:
        """A question is asked about the pubend of that broker now: of whom?"""
        if root not in self._both:
            return (root,)
        since_us = self._asked_us.setdefault(root, now_us)
        return self._both[root] if now_us - since_us >= self._overdue_us else (self._last[root],)

    def answered(self, by: NodeName) -> NodeName | None:
        """That broker has answered; if it is another one than before, the pubend's own broker."""
        root = self._of.get(by)
        if root is None:
            return None
        self._asked_us.pop(root, None)
        former, self._last[root] = self._last[root], by
        return root if former != by else None
