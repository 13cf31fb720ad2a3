"""The way of one event through a run, put together from the journal alone: which node had it when, from which node, and
what then.

A *visit* is one arrival of the event at a node (or its publication there) with all that the node did because of it:
deliveries, messages sent on, messages that were lost. Rows of a node are in the order in which they were written, so
whatever follows an arrival and comes before the next one is of that visit. A message is followed from its SEND row to
a RECEIVE row of its receiver: the first of its kind from that sender not yet accounted for. Times of different hosts
are compared as they stand.
"""

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from murmur_pubsub.errors import InputError
from murmur_pubsub.event import unpack_attributes
from murmur_pubsub.journal import NONE, DropReason, FaultStage, RowKind, SideKind, parse_side, written_rows
from murmur_pubsub.journal_format import KIND_AT, ROW, JournalRow
from murmur_pubsub.journal_store import JournalStore, store_at
from murmur_pubsub.promise import REFUSED
from murmur_pubsub.run_manifest import FaultEntry, RunManifest, read_manifest
from spark_analysis.wording import duration

EventId = tuple[int, int]
"""Publisher and number."""
_OF_EVENTS = frozenset({*range(RowKind.PUBLISH, RowKind.DROP + 1), RowKind.DUPLICATE})
_AROUND = re.compile(b"[%c%c]" % (RowKind.START, RowKind.FAULT))
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
    """A fault that came into effect, or a node that began again, while the event was on its way; or that its publisher
    was told that it was refused."""

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
    about, around, has_messages = _read(store, wanted)
    attributes = _attributes(store, about.keys())
    ways = {}
    for (source, sequence), rows in about.items():
        published = [row.time_us for row in rows if row.kind == RowKind.PUBLISH]
        if published:
            begin_us, end_us = min(published), rows[-1].time_us
            told = [row for row in rows if row.kind == RowKind.PROTOCOL]
            incidents = [*_refusals(told, manifest), *_named(around, manifest, begin_us, end_us)]
            ways[source, sequence] = EventWay(
                source, sequence, begin_us, attributes.get((source, sequence), {}),
                _visits((row for row in rows if row.kind != RowKind.PROTOCOL), manifest),
                sorted(incidents, key=lambda each: each.time_us), has_messages,
            )  # fmt: skip
    return ways


def _segments(store: JournalStore) -> Iterator[memoryview]:
    for place, data in store.written("seg"):
        yield written_rows(place, data)[1]


def _read(
    store: JournalStore, wanted: Sequence[EventId]
) -> tuple[dict[EventId, list[JournalRow]], list[JournalRow], bool]:
    """The rows about each event, and those about faults and starts, in order of time; has it rows of messages?"""
    about: dict[EventId, list[JournalRow]] = {event: [] for event in wanted}
    around, has_messages, segments = [], False, 0
    for rows in _segments(store):
        segments += 1
        for row in ROW.iter_unpack(rows):
            if (row[4], row[1]) in about and (row[8] in _OF_EVENTS or _is_refusal(row)):
                about[row[4], row[1]].append(JournalRow._make(row))
        kinds = bytes(rows[KIND_AT :: ROW.size])
        has_messages = has_messages or RowKind.RECEIVE in kinds
        for found in _AROUND.finditer(kinds):
            around.append(JournalRow._make(ROW.unpack_from(rows, found.start() * ROW.size)))
    if not segments:
        raise InputError(store.place, "no segment", "the journal of a run")
    for each in (*about.values(), around):
        each.sort(key=lambda row: row.time_us)
    return about, around, has_messages


def _attributes(store: JournalStore, wanted: Set[EventId]) -> dict[EventId, dict[str, Any]]:
    found = {}
    for place, data in store.written("blob"):
        for kind, fields in parse_side(place, data):
            if kind is SideKind.EVENT and (fields[0], fields[1]) in wanted:
                found[fields[0], fields[1]] = dict(unpack_attributes(bytes(fields[3])))
    return found


def _some_events(store: JournalStore) -> str:
    """Words for what can be asked for."""
    last: dict[int, int] = {}
    for rows in _segments(store):
        for row in map(JournalRow._make, ROW.iter_unpack(rows)):
            if row.kind == RowKind.PUBLISH:
                last[row.source] = max(row.sequence, last.get(row.source, 0))
    if not last:
        return "an event of the run, which has none"
    publisher = min(last)
    return f"PUBLISHER:NUMBER, such as {publisher}:{last[publisher]} (publishers {min(last)} to {max(last)})"


def _visits(rows: Iterable[JournalRow], manifest: RunManifest) -> list[Visit]:
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
        node, time_us, kind = names[row.node], row.time_us, row.kind
        peer = names.get(row.peer, "?") if row.peer != NONE else ""
        hops, value = row.hops, row.value
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


def _is_refusal(row: tuple[int, ...]) -> bool:
    return row[8] == RowKind.PROTOCOL and row[6] == REFUSED


def _refusals(rows: Iterable[JournalRow], manifest: RunManifest) -> Iterator[Incident]:
    """Topics are a protocol's own: this one is known where subscriptions are durable."""
    for row in rows if manifest.promise.durable else ():
        yield Incident(row.time_us, f"{manifest.names[row.node]} is told that it was refused")


def _named(rows: Iterable[JournalRow], manifest: RunManifest, begin_us: int, end_us: int) -> Iterator[Incident]:
    for row in rows:
        if not begin_us <= row.time_us <= end_us:
            continue
        if row.kind == RowKind.START and row.value > 0:
            yield Incident(row.time_us, f"{manifest.names[row.node]} begins again")
        elif row.kind == RowKind.FAULT and row.hops == FaultStage.IN_EFFECT and row.sequence < len(manifest.faults):
            yield Incident(row.time_us, _fault_words(manifest.faults[row.sequence]))


def _fault_words(entry: FaultEntry) -> str:
    """The fault and its time as the scenario counts it."""
    return entry.text if entry.time_us is None else f"{entry.text} (at {duration(entry.time_us)} of publishing)"
