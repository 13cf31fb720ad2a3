"""A run of hundreds of millions of rows, written with numpy: what a tree of brokers would have journaled.

`python -m benchmarks.big_run FOLDER ROWS` writes a run folder. 15 brokers in a binary tree have a client each, with
four subscribers of one range of `x` each; the clients of the leaves publish, one event every 50 us. An event crosses
the links towards the brokers that want it, and no others. Deliveries are lost, doubled, invented and swapped on
purpose, and the counts of each are kept: the judge has to find exactly these.
"""

import sys
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from murmur_pubsub.event import fingerprint_of
from murmur_pubsub.journal import NONE, JournalWriter, Phase, RowKind, SideKind
from murmur_pubsub.journal_format import HEADER_BYTES, FileState, SegmentHeader
from murmur_pubsub.journal_rows import ROW_TYPE
from murmur_pubsub.run_manifest import NodeEntry, OverlayEntry, RunManifest, write_manifest

BROKERS = 15
SUBSCRIBERS_A_CLIENT = 4
VALUES = 1_000
_WIDTH = 200
_EVERY_US = 50
_HOP_US = 900
_BEGIN_US = 1_000_000
_EVENTS_AT_ONCE = 40_000
_ROWS_AN_EVENT = 53
_PLANTED_EVERY = 10_000
_ROWS_A_SEGMENT = 131_072
_PUBLISHERS = tuple(range(BROKERS // 2, BROKERS))
_SEND, _RECEIVE, _DELIVER, _PUBLISH = (
    int(each) for each in (RowKind.SEND, RowKind.RECEIVE, RowKind.DELIVER, RowKind.PUBLISH)
)
_EVENT_RECORD = np.dtype(
    [
        ("length", "<u4"), ("side", "u1"), ("four", "u1"), ("i32", "u1"), ("source", ">i4"), ("i64", "u1"),
        ("sequence", ">i8"), ("i64_too", "u1"), ("time_us", ">i8"), ("bin8", "u1"), ("bytes", "u1"),
        ("map1", "u1"), ("name", "S2"), ("i16", "u1"), ("x", ">i2"),
    ]
)  # fmt: skip
"""A side record of an event {"x": number}, as msgpack would pack it with integers of fixed size."""

Columns = dict[str, npt.NDArray[np.int64]]


def _client(broker: int) -> int:
    return BROKERS + broker


def _way(publisher: int) -> list[tuple[int, int, int, list[int]]]:
    """The links away from the publisher's broker: sender, receiver, depth of the sender, the brokers beyond."""
    neighbours = {
        broker: [other for other in ((broker - 1) // 2, 2 * broker + 1, 2 * broker + 2) if 0 <= other < BROKERS]
        for broker in range(BROKERS)
    }
    neighbours[0] = [1, 2]

    def beyond(receiver: int, sender: int) -> list[int]:
        further = [each for other in neighbours[receiver] if other != sender for each in beyond(other, receiver)]
        return [receiver, *further]

    links, waiting = [], [(publisher, NONE, 0)]
    while waiting:
        broker, origin, depth = waiting.pop()
        for other in neighbours[broker]:
            if other != origin:
                links.append((broker, other, depth, beyond(other, broker)))
                waiting.append((other, broker, depth + 1))
    return links


class _NodeFiles:
    """Segments and side files of one node, written in bulk."""

    def __init__(self, journal: Path, name: str, node: int) -> None:
        self._journal, self._name, self._node = journal, name, node
        self._segments = self._side_files = self._checksum = self._side_checksum = self._side_bytes = 0
        self._waiting: list[np.ndarray] = []

    def add(self, rows: np.ndarray) -> None:
        self._waiting.append(rows)
        if sum(map(len, self._waiting)) >= _ROWS_A_SEGMENT:
            rows = np.concatenate(self._waiting, dtype=ROW_TYPE)
            whole = len(rows) - len(rows) % _ROWS_A_SEGMENT
            for begin in range(0, whole, _ROWS_A_SEGMENT):
                self._write(rows[begin : begin + _ROWS_A_SEGMENT])
            self._waiting = [rows[whole:]]

    def add_events(self, records: np.ndarray) -> None:
        body = records.tobytes()
        self._side_checksum = zlib.crc32(body, self._side_checksum)
        used = HEADER_BYTES + len(body)
        self._side_bytes += used
        header = SegmentHeader(
            self._node, 0, self._side_files, allocated=used, state=FileState.SEALED, used=used,
            checksum=self._side_checksum,
        )  # fmt: skip
        (self._journal / f"{self._name}-0-{self._side_files:05d}.blob").write_bytes(header.of_side_file() + body)
        self._side_files += 1

    def close(self) -> None:
        self._write(np.concatenate([np.zeros(0, ROW_TYPE), *self._waiting], dtype=ROW_TYPE), FileState.LAST)

    def _write(self, rows: np.ndarray, state: FileState = FileState.SEALED) -> None:
        body = rows.tobytes()
        self._checksum = zlib.crc32(body, self._checksum)
        used = HEADER_BYTES + len(body)
        header = SegmentHeader(
            self._node, 0, self._segments, allocated=used, state=state, used=used, checksum=self._checksum,
            side_files=self._side_files, side_bytes=self._side_bytes, side_checksum=self._side_checksum,
        )  # fmt: skip
        (self._journal / f"{self._name}-0-{self._segments:05d}.seg").write_bytes(header.of_segment() + body)
        self._segments += 1


class BigRun:
    """Writes one run. `planted` counts what was done to deliveries on purpose; `rows`, `events` and deliveries
    `required` what there is."""

    def __init__(self, folder: Path, seed: int = 1) -> None:
        self.rows = 0
        self.events = 0
        self.required = 0
        self.planted: Counter[str] = Counter()
        self._folder = folder
        self._journal = folder / "journal"
        self._journal.mkdir(parents=True)
        self._random = np.random.default_rng(seed)
        self._names = [f"b{number}" for number in range(BROKERS)] + [f"c{number}" for number in range(BROKERS)]
        self._files = {node: _NodeFiles(self._journal, name, node) for node, name in enumerate(self._names)}
        self._low = self._random.integers(0, VALUES - _WIDTH, BROKERS * SUBSCRIBERS_A_CLIENT)
        self._sequences = dict.fromkeys(_PUBLISHERS, 0)

    def write(self, rows: int) -> None:
        """So many rows, about."""
        events = self.events = rows // _ROWS_AN_EVENT
        for begin in range(0, events, _EVENTS_AT_ONCE):
            self._write_events(begin, min(_EVENTS_AT_ONCE, events - begin))
        for files in self._files.values():
            files.close()
        self._write_driver(_BEGIN_US + events * _EVERY_US)

    def _write_events(self, begin: int, count: int) -> None:
        x = self._random.integers(0, VALUES, count)
        time_us = _BEGIN_US + (begin + np.arange(count)) * _EVERY_US
        publisher = np.array(_PUBLISHERS)[np.arange(begin, begin + count) % len(_PUBLISHERS)]
        sequence = np.empty(count, np.int64)
        for each in _PUBLISHERS:
            own = publisher == each
            sequence[own] = self._sequences[each] + np.arange(own.sum())
            self._sequences[each] += int(own.sum())
        wants = (x[:, None] >= self._low) & (x[:, None] <= self._low + _WIDTH)
        rows: list[np.ndarray] = []
        for each in _PUBLISHERS:
            own = np.flatnonzero(publisher == each)
            rows += self._rows_of(each, sequence[own], time_us[own], wants[own], x[own])
            self._write_records(each, sequence[own], time_us[own], x[own])
        together = np.concatenate(rows, dtype=ROW_TYPE)
        together = together[np.lexsort((together["time_us"], together["node"]))]
        self.rows += len(together)
        bounds = np.searchsorted(together["node"], np.arange(2 * BROKERS + 1))
        for node, files in self._files.items():
            files.add(together[bounds[node] : bounds[node + 1]])

    def _rows_of(
        self, publisher: int, sequence: np.ndarray, time_us: np.ndarray, wants: np.ndarray, x: np.ndarray
    ) -> list[np.ndarray]:
        """All rows about the events of one publisher."""
        client = _client(publisher)
        at_broker = np.asarray(wants.reshape(len(wants), BROKERS, SUBSCRIBERS_A_CLIENT).any(axis=2))
        event = {"source": publisher, "sequence": sequence}
        rows = [
            _rows(_PUBLISH, client, time_us, value=6, **event),
            _rows(_SEND, client, time_us, peer=publisher, bytes=60, value=16, **event),
            _rows(_RECEIVE, publisher, time_us + _HOP_US // 2, peer=client, value=16, **event),
        ]
        arrival = {publisher: _HOP_US}
        for sender, receiver, depth, beyond in _way(publisher):
            crosses = np.flatnonzero(at_broker[:, beyond].any(axis=1))
            crossing: dict[str, Any] = {"source": publisher, "sequence": sequence[crosses], "value": 17}
            left = time_us[crosses] + _HOP_US * (depth + 1)
            rows.append(_rows(_SEND, sender, left, peer=receiver, bytes=70, hops=depth, **crossing))
            rows.append(_rows(_RECEIVE, receiver, left + _HOP_US // 2, peer=sender, hops=depth + 1, **crossing))
            arrival[receiver] = _HOP_US * (depth + 2)
        for broker in range(BROKERS):
            told = np.flatnonzero(at_broker[:, broker])
            telling: dict[str, Any] = {"source": publisher, "sequence": sequence[told], "value": 18}
            left = time_us[told] + arrival[broker]
            rows.append(_rows(_SEND, broker, left, peer=_client(broker), bytes=66, **telling))
            rows.append(_rows(_RECEIVE, _client(broker), left + _HOP_US // 2, peer=broker, **telling))
        arrivals = np.vectorize(arrival.get)(range(BROKERS))
        rows.append(self._deliveries(publisher, sequence, time_us, wants, arrivals, _fingerprints(time_us, x)))
        return rows

    def _deliveries(
        self, publisher: int, sequence: np.ndarray, time_us: np.ndarray, wants: np.ndarray, arrival: np.ndarray,
        fingerprints: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        subscriber, event = np.nonzero(wants.T)
        self.required += len(event)
        delay = arrival[subscriber // SUBSCRIBERS_A_CLIENT] + _HOP_US
        delivered_us = time_us[event] + delay
        choose = self._random.choice
        # Even subscribers lose, double and invent; odd ones have events swapped: no fault hides another.
        even = np.flatnonzero(subscriber % 2 == 0)
        faults = max(1, len(event) // _PLANTED_EVERY)
        lost, doubled = choose(even, 2 * faults, replace=False).reshape(2, faults)
        pairs = np.flatnonzero((subscriber[:-1] % 2 == 1) & (subscriber[1:] == subscriber[:-1]))
        pairs = pairs[delivered_us[pairs] >= time_us[event[pairs + 1]]]  # nothing comes before it is published
        swapped = choose(pairs[::4], min(faults, len(pairs) // 4), replace=False)
        delivered_us[swapped], delivered_us[swapped + 1] = delivered_us[swapped + 1], delivered_us[swapped]
        unwanted_subscriber, unwanted = np.nonzero(~wants.T[::2])
        invented = choose(len(unwanted), faults, replace=False)
        kept = np.ones(len(event), bool)
        kept[lost] = False
        who = np.concatenate([subscriber[kept], subscriber[doubled], 2 * unwanted_subscriber[invented]])
        what = np.concatenate([event[kept], event[doubled], unwanted[invented]])
        invented_us = time_us[unwanted[invented]] + arrival[2 * unwanted_subscriber[invented] // SUBSCRIBERS_A_CLIENT]
        when = np.concatenate([delivered_us[kept], delivered_us[doubled] + 1, invented_us + _HOP_US])
        counts = {"missing": faults, "duplicate": faults, "spurious": faults, "out_of_order": len(swapped)}
        self.planted.update(counts)
        node = _client(0) + who // SUBSCRIBERS_A_CLIENT
        event_fields = {"source": publisher, "sequence": sequence[what], "bytes": fingerprints[what]}
        return _rows(_DELIVER, node, when, hops=2, value=who, **event_fields)

    def _write_records(self, publisher: int, sequence: np.ndarray, time_us: np.ndarray, x: np.ndarray) -> None:
        records = np.zeros(len(x), _EVENT_RECORD)
        fixed = {
            "length": _EVENT_RECORD.itemsize - 5, "side": SideKind.EVENT, "four": 0x94, "i32": 0xD2, "i64": 0xD3,
            "i64_too": 0xD3, "bin8": 0xC4, "bytes": 6, "map1": 0x81, "name": b"\xa1x", "i16": 0xD1, "source": publisher,
        }  # fmt: skip
        for name, value in fixed.items():
            records[name] = value
        records["sequence"], records["time_us"], records["x"] = sequence, time_us, x
        self._files[_client(publisher)].add_events(records)

    def _write_driver(self, end_us: int) -> None:
        """Phases, subscriptions and the manifest."""
        driver = 2 * BROKERS
        writer = JournalWriter(self._journal, "driver", driver)
        for number, low in enumerate(self._low):
            text = f"x BETWEEN {low} AND {low + _WIDTH}"
            node = _client(number // SUBSCRIBERS_A_CLIENT)
            writer.side(SideKind.SUBSCRIBE, (100, node, number, text, number))
            writer.row(100, RowKind.SUBSCRIBE, node, source=number, sequence=number)
        writer.row(500, RowKind.SETTLED, driver, value=200)
        phases = ((0, Phase.STARTING), (50, Phase.SUBSCRIBING), (_BEGIN_US - 1, Phase.PUBLISHING))
        for at_us, phase in (*phases, (end_us, Phase.DRAINING), (end_us + 1_000_000, Phase.STOPPED)):
            writer.row(at_us, RowKind.PHASE, driver, value=phase)
        writer.close()
        nodes = [NodeEntry(f"b{number}", "broker") for number in range(BROKERS)]
        nodes += [NodeEntry(f"c{number}", "client", f"b{number}") for number in range(BROKERS)]
        links = tuple((f"b{(number - 1) // 2}", f"b{number}") for number in range(1, BROKERS))
        manifest = RunManifest(
            name="big", runtime="virtual", seed=1, run="0", nodes=(*nodes, NodeEntry("driver", "driver")),
            status="complete", writers=dict.fromkeys([*self._names, "driver"], 1), links=links,
            overlay=OverlayEntry(tuple(self._names[:BROKERS]), links),
        )  # fmt: skip
        write_manifest(self._folder, manifest)
        (self._folder / "scenario.yaml").write_text("name: big\n")


def _fingerprints(time_us: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Of the events with these publication times and values of their one attribute."""
    blobs = (b"\x81\xa1x\xd1" + value.to_bytes(2, "big") for value in x.tolist())
    return np.fromiter(map(fingerprint_of, time_us.tolist(), blobs), np.int32, len(x))


def _rows(kind: int, node: "int | np.ndarray", time_us: np.ndarray, **fields: Any) -> np.ndarray:
    rows = np.zeros(len(time_us), ROW_TYPE)
    rows["kind"], rows["node"], rows["time_us"], rows["peer"] = kind, node, time_us, NONE
    for name, value in fields.items():
        rows[name] = value
    return rows


if __name__ == "__main__":
    written = BigRun(Path(sys.argv[1]))
    written.write(int(sys.argv[2]))
    print(f"{written.rows:,} rows, {written.required:,} deliveries required, {dict(written.planted)}")
