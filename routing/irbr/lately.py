"""What nodes of ranges have said of filters a short while ago: operations that close in time may meet on their way."""

from collections import deque
from collections.abc import Iterator, Mapping

from murmur_pubsub.filter import Filter
from routing.pastry.identifiers import IdentifierRange

CONCURRENT_US = 2_000_000
"""Operations closer in time than that may meet on their way."""


class Lately:
    """By range, filter and node (its identifier): when it was heard last to have said something, and by which of its
    operations that was. It is forgotten after `CONCURRENT_US`, when it is asked for that."""

    def __init__(self) -> None:
        self._said: dict[IdentifierRange, dict[Filter, dict[int, tuple[int, int]]]] = {}
        self._order: deque[tuple[int, IdentifierRange, Filter, int]] = deque()

    def note(self, wide: IdentifierRange, wanted: Filter, node: int, number: int, now_us: int) -> None:
        """A node of the range has said it of the filter, by its operation of that number."""
        number = max(number, self.number(wide, wanted, node))
        self._said.setdefault(wide, {}).setdefault(wanted, {})[node] = now_us, number
        self._order.append((now_us, wide, wanted, node))

    def number(self, wide: IdentifierRange, wanted: Filter, node: int) -> int:
        """By which operation that node has said it last; -1: it has not, lately."""
        _, number = self.of(wide).get(wanted, {}).get(node, (0, -1))
        return number

    def of(self, wide: IdentifierRange) -> Mapping[Filter, Mapping[int, tuple[int, int]]]:
        """The filters of which nodes of the range have said it, and those nodes."""
        return self._said.get(wide, {})

    def about(self, wanted: Filter) -> Iterator[tuple[IdentifierRange, int]]:
        """The nodes that have said it of the filter, each behind its range."""
        return ((wide, node) for wide, filters in self._said.items() for node in filters.get(wanted, ()))

    def forget(self, wide: IdentifierRange, wanted: Filter, node: int) -> None:
        """The node has said otherwise."""
        nodes = self._said[wide][wanted]
        del nodes[node]
        if not nodes:
            del self._said[wide][wanted]

    def forget_old(self, now_us: int) -> None:
        """Forget what was said too long ago to meet what is said now."""
        while self._order and self._order[0][0] < now_us - CONCURRENT_US:
            since_us, wide, wanted, node = self._order.popleft()
            said_us, _ = self.of(wide).get(wanted, {}).get(node, (since_us + 1, 0))
            if said_us <= since_us:  # it has not said it again
                self.forget(wide, wanted, node)
