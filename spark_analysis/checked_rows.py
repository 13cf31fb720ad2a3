"""The rows of a journal that show whether a fault took effect: of each node in order of time.

There may be millions of them, so a row is made only when it is looked at.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, starmap
from typing import NamedTuple

from murmur_pubsub.journal import RowKind

LINK_CHANGES = (RowKind.LINK_UP, RowKind.LINK_DOWN, RowKind.START)
"""The kinds of rows that say which links there are."""


class CheckedRow(NamedTuple):
    """A row with the fields that checks look at; see `murmur_pubsub.journal.ROW`."""

    time_us: int
    node: int
    source: int
    sequence: int
    peer: int
    kind: int
    value: int


COLUMNS = dict(zip(CheckedRow._fields, "qiiqibq", strict=True))
"""The fields and the type codes of their arrays."""
Columns = Sequence["array[int]"]
"""Those of one node, in the order of `COLUMNS`; its rows in order of time."""


class CheckedRows:
    """The rows of some nodes. `times_us`: of each node's rows, in order; `part` makes those from one place in this
    order to another. `changes`: all rows of the kinds of `LINK_CHANGES`."""

    def __init__(
        self,
        times_us: Mapping[int, Sequence[int]],
        part: Callable[[int, int, int], Iterable[CheckedRow]],
        changes: Iterable[CheckedRow],
    ) -> None:
        self._times_us = times_us
        self._part = part
        self._changed_us: dict[tuple[int, ...], list[int]] = {}
        """By kind and node (of those that were started again), or kind and link."""
        self._came_us: dict[int, list[int]] = {}
        for time_us, node, _, _, peer, kind, value in sorted(changes):
            if kind == RowKind.START:
                if value:
                    self._changed_us.setdefault((kind, node), []).append(time_us)
                else:
                    self._came_us.setdefault(node, []).append(time_us)
            else:
                self._changed_us.setdefault((kind, min(node, peer), max(node, peer)), []).append(time_us)
        self._courses: dict[tuple[int, int], tuple[Sequence[int], Sequence[bool]]] = {}

    @classmethod
    def of_columns(cls, by_node: Mapping[int, Columns]) -> "CheckedRows":
        """Those in the columns."""

        def part(node: int, begin: int, end: int) -> Iterable[CheckedRow]:
            return starmap(CheckedRow, zip(*(column[begin:end] for column in by_node[node]), strict=True))

        kinds_at = list(COLUMNS).index("kind")
        changes = [
            row
            for node, columns in by_node.items()
            for place, kind in enumerate(columns[kinds_at])
            if kind in LINK_CHANGES
            for row in part(node, place, place + 1)
        ]
        return cls({node: columns[0] for node, columns in by_node.items()}, part, changes)

    @classmethod
    def of(cls, rows: Iterable[CheckedRow]) -> "CheckedRows":
        """These, each node's as they came if they are of one time."""
        by_node: dict[int, list[CheckedRow]] = {}
        for row in sorted(rows, key=lambda row: row.time_us):
            by_node.setdefault(row.node, []).append(row)
        return cls(
            {node: [row.time_us for row in listed] for node, listed in by_node.items()},
            lambda node, begin, end: by_node[node][begin:end],
            [row for listed in by_node.values() for row in listed if row.kind in LINK_CHANGES],
        )

    def between(self, nodes: Iterable[int], from_us: int, until_us: int) -> list[CheckedRow]:
        """The rows of these nodes strictly between the two times, node by node."""
        found: list[CheckedRow] = []
        for node in nodes:
            times_us = self._times_us.get(node, ())
            begin, end = bisect_right(times_us, from_us), bisect_left(times_us, until_us)
            if begin < end:
                found += self._part(node, begin, end)
        return found

    def linked(self, ends: tuple[int, int], time_us: int) -> bool:
        """Did the two nodes have their link at that time, as far as either has said? Of two that died together neither
        can say that the link went, and one that has just been started has none yet."""
        course = self._courses.get(ends)
        if course is None:
            course = self._courses[ends] = self._course(ends)
        since_us, linked = course
        return linked[bisect_right(since_us, time_us)]

    def _course(self, ends: tuple[int, int]) -> tuple[Sequence[int], Sequence[bool]]:
        """When it may have changed whether they have their link, and whether they had it before each of these times and
        after the last."""
        link = min(ends), max(ends)
        made_us = self._changed_us.get((RowKind.LINK_UP, *link), [])
        lost_us = sorted(
            time_us
            for change in ((RowKind.LINK_DOWN, *link), *((RowKind.START, end) for end in set(ends)))
            for time_us in self._changed_us.get(change, ())
        )
        if made_us:  # else they never had any, as where brokers have none
            lost_us = sorted(chain(lost_us, *(self._came_us.get(end, ()) for end in set(ends))))
        since_us = sorted({*made_us, *lost_us})
        return since_us, [True, *(_last(lost_us, time_us) <= _last(made_us, time_us) for time_us in since_us)]


def _last(times_us: Sequence[int], until_us: int) -> int:
    """The last of these times until then; -1: there is none."""
    place = bisect_right(times_us, until_us)
    return times_us[place - 1] if place else -1
