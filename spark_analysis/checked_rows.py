"""The rows of a journal that show whether a fault took effect: of each node in order of time, and kept in columns.

There may be millions of them, so a row is made only when it is looked at.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import starmap
from typing import NamedTuple

from murmur_pubsub.journal import RowKind


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
    """The rows of some nodes."""

    def __init__(self, by_node: Mapping[int, Columns]) -> None:
        self._by_node = by_node

    @classmethod
    def of(cls, rows: Iterable[CheckedRow]) -> "CheckedRows":
        """These, each node's as they came if they are of one time."""
        by_node: dict[int, list[CheckedRow]] = {}
        for row in rows:
            by_node.setdefault(row.node, []).append(row)
        for listed in by_node.values():
            listed.sort(key=lambda row: row.time_us)
        return cls(
            {
                node: [array(code, [row[place] for row in listed]) for place, code in enumerate(COLUMNS.values())]
                for node, listed in by_node.items()
            }
        )

    def between(self, nodes: Iterable[int], from_us: int, until_us: int) -> list[CheckedRow]:
        """The rows of these nodes strictly between the two times, node by node."""
        found: list[CheckedRow] = []
        for node in nodes:
            columns = self._by_node.get(node)
            if columns is not None:
                begin, end = bisect_right(columns[0], from_us), bisect_left(columns[0], until_us)
                found += starmap(CheckedRow, zip(*(column[begin:end] for column in columns), strict=True))
        return found

    def linked(self, ends: tuple[int, int], time_us: int) -> bool:
        """Did the two nodes have their link at that time, as far as either has said? Of two that died together neither
        can say that the link went, and one that has been started again has none yet."""
        lost, made = (self._last((kind, *sorted(ends)), time_us) for kind in (RowKind.LINK_DOWN, RowKind.LINK_UP))
        return max(lost, *(self._last((RowKind.START, end), time_us) for end in ends)) <= made

    def _last(self, change: tuple[int, ...], time_us: int) -> int:
        times = self._link_changes.get(change, ())
        place = bisect_right(times, time_us)
        return times[place - 1] if place else -1

    @cached_property
    def _link_changes(self) -> Mapping[tuple[int, ...], Sequence[int]]:
        """When one of its ends said that a link came up, or was lost: by kind of row and ends; and when a node was
        started again, by kind of row and node."""
        found: dict[tuple[int, ...], list[int]] = {}
        for times, nodes, _, _, peers, kinds, values in self._by_node.values():
            for place, kind in enumerate(kinds):
                if kind == RowKind.LINK_UP or kind == RowKind.LINK_DOWN:
                    ends = sorted((nodes[place], peers[place]))
                    found.setdefault((kind, *ends), []).append(times[place])
                elif kind == RowKind.START and values[place]:
                    found.setdefault((kind, nodes[place]), []).append(times[place])
        for listed in found.values():
            listed.sort()
        return found
