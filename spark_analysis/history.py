"""What a journal says of a run, for the judge in plain Python: events, subscriptions, and rows kept as written.

Most rows are of messages, and hardly any question is about all of them. So they stay the bytes that they are in the
files: their kinds are a slice of these, and a row is made when it is asked for.
"""

import itertools
import struct
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from murmur_pubsub.filter import Filter
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.journal import NONE, RowKind, SideKind, parse_side, written_rows
from murmur_pubsub.journal_format import KIND_AT, ROW, JournalRow
from murmur_pubsub.journal_store import JournalStore, store_at
from spark_analysis.checked_rows import LINK_CHANGES, CheckedRow, CheckedRows

_NEVER = float("inf")
_new = tuple.__new__
"""Makes a row in half the time of its own constructor."""
_TIMES = struct.Struct(f"<q{ROW.size - 8}x")
_NODES = struct.Struct(f"<24xi{ROW.size - 28}x")
_IDS = struct.Struct(f"<8xq8xii{ROW.size - 32}x")
"""The fields of `ROW` that are asked of many rows: its time; its node; its sequence number, node and source."""
RowId = tuple[int, int, int]
"""Sequence number, node and source of a row."""


class WrittenRows:
    """The rows of a journal, those of a node in the order in which they were written."""

    def __init__(self, written: bytes) -> None:
        self.written = written
        self._kinds = written[KIND_AT :: ROW.size]

    def __len__(self) -> int:
        return len(self._kinds)

    def of(self, *kinds: RowKind) -> list[JournalRow]:
        """The rows of these kinds."""
        return self._at(itertools.compress(range(len(self)), self._are(kinds)))

    def has(self, kind: RowKind) -> bool:
        """Is there a row of this kind?"""
        return kind in self._kinds

    def ids(self, *kinds: RowKind) -> set[RowId]:
        """Of each row of these kinds its id."""
        return set(itertools.compress(_IDS.iter_unpack(self.written), self._are(kinds)))

    def about(self, events: Collection[tuple[int, int]], *kinds: RowKind) -> list[JournalRow]:
        """The rows of these kinds about these events: source and sequence number."""
        wanted = {(sequence, source) for source, sequence in events}
        ids = zip(range(len(self)), _IDS.iter_unpack(self.written), strict=True)
        return self._at(
            place
            for place, (sequence, _, source) in itertools.compress(ids, self._are(kinds))
            if (sequence, source) in wanted
        )

    @property
    def last_us(self) -> int:
        """The time of the last row; 0 if there is none."""
        return max(self._times(), default=0)

    def checked(self, nodes: Collection[int]) -> CheckedRows:
        """Those of these nodes, for checks of faults."""
        if not nodes:
            return CheckedRows.of(())
        times_us = list(self._times())
        places: dict[int, list[int]] = {node: [] for node in nodes}
        for place, (node,) in enumerate(_NODES.iter_unpack(self.written)):
            if node in places:
                places[node].append(place)
        for listed in places.values():
            listed.sort(key=times_us.__getitem__)
        return CheckedRows(
            {node: [times_us[place] for place in listed] for node, listed in places.items()},
            lambda node, begin, end: map(_checked, self._at(places[node][begin:end])),
            map(_checked, self.of(*LINK_CHANGES)),
        )

    def _are(self, kinds: Collection[RowKind]) -> bytes:
        """Of each row: is it of one of these kinds?"""
        return self._kinds.translate(bytes(kind in kinds for kind in range(256)))

    def _at(self, places: Iterable[int]) -> list[JournalRow]:
        written, unpack = self.written, ROW.unpack_from
        return [_new(JournalRow, unpack(written, place * ROW.size)) for place in places]

    def _times(self) -> Iterator[int]:
        return itertools.chain.from_iterable(_TIMES.iter_unpack(self.written))


def _checked(row: JournalRow) -> CheckedRow:
    time_us, sequence, value, node, source, peer, _, _, kind = row
    return _new(CheckedRow, (time_us, node, source, sequence, peer, kind, value))


@dataclass(frozen=True, slots=True)
class Life:
    """A subscription: from when to when it was held, and from and until when by everybody."""

    wanted: Filter
    node: int
    issued_us: int
    settled_us: float
    withdrawn_us: float
    withdrawal_settled_us: float

    @property
    def changes_us(self) -> list[int]:
        """When the subscription was issued, and withdrawn if it was."""
        return [int(time_us) for time_us in (self.issued_us, self.withdrawn_us) if time_us != _NEVER]


@dataclass(frozen=True, slots=True)
class History:
    """What a journal says. `events`: id to (publication time, packed attributes). `lives`: of each subscriber's
    subscriptions."""

    events: Mapping[tuple[int, int], tuple[int, bytes]]
    lives: Mapping[int, Sequence[Life]]
    rows: WrittenRows


def read_history(journal: Path | str) -> History:
    """The history in the journal of one run: its folder, or path or URI."""
    store = store_at(str(journal))
    rows = WrittenRows(b"".join(written_rows(place, data)[1] for place, data in store.written("seg")))
    settled_at = _settled_at(rows)
    events: dict[tuple[int, int], tuple[int, bytes]] = {}
    issued: dict[tuple[int, str], list[list[Any]]] = defaultdict(list)
    for kind, fields in _side_records(store):
        if kind is SideKind.EVENT:
            events.setdefault((fields[0], fields[1]), (fields[2], fields[3]))
        elif kind is SideKind.SUBSCRIBE:
            issued[fields[2], fields[3]].append([fields[1], fields[0], _NEVER])
        else:
            held = [span for span in issued[fields[2], fields[3]] if span[2] == _NEVER]
            if held:
                held[0][2] = fields[0]
    lives: dict[int, list[Life]] = {}
    for (subscriber, text), spans in issued.items():
        wanted = parse_filter(text)
        for node, begin, end in spans:
            life = Life(wanted, node, begin, settled_at(begin), end, settled_at(end))
            lives.setdefault(subscriber, []).append(life)
    return History(events, lives, rows)


def _settled_at(rows: WrittenRows) -> Callable[[float], float]:
    """When everybody first knew of all that had changed until some time."""
    settlings = sorted((row.value, row.time_us) for row in rows.of(RowKind.SETTLED))
    covered = [value for value, _ in settlings]
    # The first that covers as much or more.
    firsts = list(itertools.accumulate((at_us for _, at_us in reversed(settlings)), min))[::-1]

    def settled_at(time_us: float) -> float:
        place = bisect_left(covered, time_us)
        return firsts[place] if place < len(firsts) else _NEVER

    return settled_at


def _side_records(store: JournalStore) -> Iterator[tuple[SideKind, list[Any]]]:
    """All records, but for subscriptions that a client issued again after a restart."""
    known = set()
    for place, data in store.written("blob"):
        for kind, fields in parse_side(place, data):
            if kind is SideKind.ANSWER:
                continue
            if kind is not SideKind.EVENT and fields[4] != NONE:
                if (fields[1], fields[4]) in known:
                    continue
                known.add((fields[1], fields[4]))
            yield kind, fields
