"""The way of one event through a run, put together from the journal alone: which node had it when, from which node, and
what then.

A *visit* is one arrival of the event at a node (or its publication there) with all that the node did because of it:
deliveries, messages sent on, messages that were lost. Rows of a node are in the order in which they were written, so
whatever follows an arrival and comes before the next one is of that visit. A message is followed from its SEND row to
a RECEIVE row of its receiver: the first of its kind from that sender not yet accounted for. Times of different hosts
are compared as they stand.
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from murmur_pubsub.errors import InputError
from murmur_pubsub.event import unpack_attributes
from murmur_pubsub.journal import NONE, DropReason, FaultStage, RowKind, SideKind, parse_side
from murmur_pubsub.journal_format import HEADER_BYTES
from murmur_pubsub.journal_rows import parse_segment
from murmur_pubsub.journal_store import JournalStore, store_at
from murmur_pubsub.run_manifest import FaultEntry, RunManifest, read_manifest
from spark_analysis.wording import duration

EventId = tuple[int, int]
"""Publisher and number."""
LOSSES = {
    DropReason.LOSS: "lost by the link",
    DropReason.OVERFLOW: "dropped: the queue is full",
    DropReason.UNREACHABLE: "there is no link",
    DropReason.LINK_BROKEN: "the link is down",
    DropReason.NODE_DOWN: "the node is down",
}


@dataclass(slots=True)
class EventMessage:
    """A message that carried the event. `kind`: its type's name; `loss`: why it did not arrive (None: it arrived, or
    its fate is unknown: `received` tells); `copy`: the link made it of another one."""

    sender: str
    receiver: str
    kind: str
    hops: int
    sent: "Visit | None" = None
    received: "Visit | None" = None
    loss: str | None = None
    copy: bool = False


@dataclass(slots=True, eq=False)
class Visit:
    """See above. `cause`: the message that brought it (None: it was published here, or came some other way)."""

    time_us: int
    node: str
    published: bool = False
    cause: EventMessage | None = None
    delivered: list[int] = field(default_factory=list)
    sent: list[EventMessage] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Incident:
    """A fault that came into effect, or a node that began again, while the event was on its way."""

    time_us: int
    text: str


@dataclass(frozen=True, slots=True)
class EventWay:
    """Everything known of the event; `visits` and `incidents` in order of time."""

    source: int
    sequence: int
    published_us: int
    attributes: dict[str, Any]
    visits: Sequence[Visit]
    incidents: Sequence[Incident]
    has_messages: bool

    @property
    def messages(self) -> Iterator[EventMessage]:
        """All messages that carried it."""
        return (message for visit in self.visits for message in visit.sent)


def follow(run: Path, source: int, sequence: int) -> EventWay:
    """The way of the event in the run folder; raises `InputError` for a folder that is no run's, a damaged journal, or
    an event that was not published."""
    ways = follow_all(run, [(source, sequence)])
    if not ways:
        store = store_at(read_manifest(run).journal_at(run))
        raise InputError(f"{run}, event {source}:{sequence}", "no such publication", _some_events(store))
    return ways[source, sequence]


def follow_all(run: Path, wanted: Sequence[EventId]) -> dict[EventId, EventWay]:
    """The ways of all these events that were published, from one reading of the journal; raises `InputError`."""
    manifest = read_manifest(run)
    store = store_at(manifest.journal_at(run))
    rows, around, has_messages = _read(store, wanted)
    attributes = _attributes(store, frozenset(wanted))
    ways = {}
    for source, sequence in dict.fromkeys(wanted):
        about = rows[(rows["source"] == source) & (rows["sequence"] == sequence)]
        published = about[about["kind"] == RowKind.PUBLISH]
        if len(published):
            begin_us, end_us = int(published["time_us"].min()), int(about["time_us"].max())
            ways[source, sequence] = EventWay(
                source, sequence, begin_us, attributes.get((source, sequence), {}),
                _visits(about, manifest), list(_named(around, manifest, begin_us, end_us)), has_messages,
            )  # fmt: skip
    return ways


def _files(store: JournalStore, ending: str) -> Iterator[tuple[str, bytes]]:
    """What people call each file, and its content; without those that were just being opened."""
    for name in store.sizes(ending):
        data = store.read(name)
        if any(data[:HEADER_BYTES]):
            yield store.name_of(name), data


def _segments(store: JournalStore) -> Iterator[np.ndarray]:
    for place, data in _files(store, "seg"):
        yield parse_segment(place, data)[1]


def _read(store: JournalStore, wanted: Sequence[EventId]) -> tuple[np.ndarray, np.ndarray, bool]:
    """The rows about the events, and those about faults and starts, each in order of time; has it rows of messages?"""
    about, around, has_messages = [], [], False
    keys = np.array([source << 40 | sequence for source, sequence in wanted], dtype=np.int64)
    for rows in _segments(store):
        kinds = rows["kind"]
        of_events = (kinds >= RowKind.PUBLISH) & (kinds <= RowKind.DROP) | (kinds == RowKind.DUPLICATE)
        rows_of_events = rows[of_events & (rows["source"] >= 0)]
        about.append(
            rows_of_events[np.isin(rows_of_events["source"].astype(np.int64) << 40 | rows_of_events["sequence"], keys)]
        )
        has_messages = has_messages or bool((kinds == RowKind.RECEIVE).any())
        again = (kinds == RowKind.START) & (rows["value"] > 0)
        around.append(rows[again | (kinds == RowKind.FAULT) & (rows["hops"] == FaultStage.IN_EFFECT)])
    if not about:
        raise InputError(store.place, "no segment", "the journal of a run")
    found, other = np.concatenate(about), np.concatenate(around)
    in_order, around_it = (each[np.argsort(each["time_us"], kind="stable")] for each in (found, other))
    return in_order, around_it, has_messages


def _attributes(store: JournalStore, wanted: Set[EventId]) -> dict[EventId, dict[str, Any]]:
    found = {}
    for place, data in _files(store, "blob"):
        for kind, fields in parse_side(place, data):
            if kind is SideKind.EVENT and (fields[0], fields[1]) in wanted:
                found[fields[0], fields[1]] = dict(unpack_attributes(bytes(fields[3])))
    return found


def _some_events(store: JournalStore) -> str:
    """Words for what can be asked for."""
    last: dict[int, int] = {}
    for rows in _segments(store):
        for row in rows[rows["kind"] == RowKind.PUBLISH]:
            last[int(row["source"])] = max(int(row["sequence"]), last.get(int(row["source"]), 0))
    if not last:
        return "an event of the run, which has none"
    publisher = min(last)
    return f"PUBLISHER:NUMBER, such as {publisher}:{last[publisher]} (publishers {min(last)} to {max(last)})"


def _visits(rows: np.ndarray, manifest: RunManifest) -> list[Visit]:
    names = dict(enumerate(manifest.names))
    kinds = manifest.message_kinds
    current: dict[str, Visit] = {}
    visits: list[Visit] = []
    arrivals: list[tuple[Visit, str, str, int]] = []

    def visit(node: str, time_us: int, published: bool = False) -> Visit:
        current[node] = Visit(time_us, node, published)
        visits.append(current[node])
        return current[node]

    for row in rows:
        node, time_us, kind = names[int(row["node"])], int(row["time_us"]), int(row["kind"])
        peer = names.get(int(row["peer"]), "?") if row["peer"] != NONE else ""
        hops, value = int(row["hops"]), int(row["value"])
        if kind == RowKind.PUBLISH:
            visit(node, time_us, published=True)
        elif kind == RowKind.RECEIVE:
            arrivals.append((visit(node, time_us), peer, kinds.get(value, str(value)), hops))
            continue
        here = current.get(node) or visit(node, time_us)
        if kind == RowKind.DELIVER:
            here.delivered.append(value)
        elif kind == RowKind.SEND:
            here.sent.append(EventMessage(node, peer, kinds.get(value, str(value)), hops, here))
        elif kind == RowKind.DUPLICATE:
            made = [each for each in here.sent if each.receiver == peer]
            here.sent.append(EventMessage(node, peer, made[-1].kind if made else "?", hops, here, copy=True))
        elif kind == RowKind.DROP:
            _lose(here, peer, hops, LOSSES[DropReason(value)])
    _pair(visits, arrivals)
    return visits


def _lose(here: Visit, peer: str, hops: int, why: str) -> None:
    for message in here.sent:
        if message.receiver == peer and message.hops == hops and message.loss is None:
            message.loss = why
            return
    here.sent.append(EventMessage(here.node, peer, "", hops, here, loss=why))


def _pair(visits: Iterable[Visit], arrivals: Iterable[tuple[Visit, str, str, int]]) -> None:
    """Give every arrival the message that brought it."""
    under_way: dict[tuple[str, str], list[EventMessage]] = {}
    for visit in visits:
        for message in visit.sent:
            if message.loss is None:
                under_way.setdefault((message.sender, message.receiver), []).append(message)
    for visit, sender, kind, hops in arrivals:
        sent = under_way.get((sender, visit.node), [])
        unheard_of = EventMessage(sender, visit.node, kind, hops)
        message = next((each for each in sent if each.kind == kind and each.received is None), unheard_of)
        message.received, visit.cause = visit, message


def _named(rows: np.ndarray, manifest: RunManifest, begin_us: int, end_us: int) -> Iterator[Incident]:
    names = manifest.names
    for row in rows:
        time_us = int(row["time_us"])
        if not begin_us <= time_us <= end_us:
            continue
        if row["kind"] == RowKind.START:
            yield Incident(time_us, f"{names[int(row['node'])]} begins again")
        elif int(row["sequence"]) < len(manifest.faults):
            yield Incident(time_us, _fault_words(manifest.faults[int(row["sequence"])]))


def _fault_words(entry: FaultEntry) -> str:
    """The fault and its time as the scenario counts it."""
    return entry.text if entry.time_us is None else f"{entry.text} (at {duration(entry.time_us)} of publishing)"
