"""Journal rows in the words of a runtime: both record what happens to a node through this."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from murmur_pubsub.event import Event, contents_of, fingerprint_of
from murmur_pubsub.faults import Fault
from murmur_pubsub.filter import Filter
from murmur_pubsub.journal import NONE, DropReason, FaultStage, JournalWriter, Refusal, RowKind, SideKind
from murmur_pubsub.machine import Answer, Record

_SEND, _RECEIVE, _PUBLISH, _DELIVER, _EVENT = map(
    int, (RowKind.SEND, RowKind.RECEIVE, RowKind.PUBLISH, RowKind.DELIVER, SideKind.EVENT)
)
"""What is written for each message, as plain numbers: to look up a member of an enumeration takes as long as to write
a row."""


class Recorder:
    """Rows of one node. `numbers` gives the number of each node name in the run's manifest.

    With `hops` false, SEND and RECEIVE rows are left out: a run's verdict needs only what was published,
    subscribed and delivered, and the two rows for each hop are most of a journal. `drops`: messages so far that will
    not reach their peers.
    """

    __slots__ = ("_numbers", "_row", "_side", "drops", "hops", "node")

    def __init__(self, writer: JournalWriter, node: int, numbers: Mapping[str, int], hops: bool = True) -> None:
        self._row: Callable[..., None] = writer.row
        self._side: Callable[..., None] = writer.side
        self._numbers = numbers
        self.node = node
        self.hops = hops
        self.drops = 0

    def fall_silent(self) -> None:
        """Write nothing from now on, whatever happens to what is left of the node."""
        self._row = self._side = _write_nothing

    def plain(self, now_us: int, kind: RowKind, value: int = 0, peer: str | None = None) -> None:
        """A row about the node itself or one of its links."""
        self._row(now_us, kind, self.node, peer=self._number(peer), value=value)

    def refused(self, now_us: int, reason: Refusal, count: int) -> None:
        """This number of connections was refused for the reason."""
        self._row(now_us, RowKind.REFUSED, self.node, hops=int(reason), value=count)

    def sent(self, now_us: int, message: Any, to: str, size: int) -> None:
        """The message was put on the link."""
        source, sequence, hops = _event_of(message) if message.CARRIES_EVENT else _NO_EVENT
        peer = self._numbers.get(to, NONE)
        self._row(now_us, _SEND, self.node, source, sequence, peer, hops, size, message.KIND)

    def received(self, now_us: int, message: Any, source: str) -> None:
        """The message arrived."""
        publisher, sequence, hops = _event_of(message) if message.CARRIES_EVENT else _NO_EVENT
        peer = self._numbers.get(source, NONE)
        self._row(now_us, _RECEIVE, self.node, publisher, sequence, peer, hops, 0, message.KIND)

    def dropped(self, now_us: int, message: Any, to: str, reason: DropReason) -> None:
        """The message will not reach its peer."""
        self.drops += 1
        self._about_event(now_us, RowKind.DROP, message, to, int(reason))

    def lost(self, now_us: int, count: int, peer: str, reason: DropReason) -> None:
        """This number of messages were still here when the connection to the peer was gone."""
        self.drops += count
        for _ in range(count):
            self.plain(now_us, RowKind.DROP, reason, peer)

    def duplicated(self, now_us: int, message: Any, to: str) -> None:
        """The link model made a second copy."""
        self._about_event(now_us, RowKind.DUPLICATE, message, to, 0)

    def published(self, now_us: int, event: Event) -> None:
        """A publisher of this node published the event: its attributes go to the side file first. Raises `InputError`
        for one that may not be."""
        event.check()
        self._side(_EVENT, event.to_wire())
        self._row(now_us, _PUBLISH, self.node, event.source, event.sequence, value=len(event.blob))

    def delivered(self, now_us: int, event: Event, hops: int, subscribers: Sequence[int]) -> None:
        """The event was handed to the subscribers: the runtime, not the machine, says what it contains."""
        if not subscribers:
            return
        fingerprint = fingerprint_of(*contents_of(event))
        for each in subscribers:
            self._row(now_us, _DELIVER, self.node, event.source, event.sequence, NONE, hops, fingerprint, each)

    def subscription(self, now_us: int, subscriber: int, wanted: Filter, withdrawn: bool, ordinal: int) -> None:
        """A subscriber of this node subscribed, or withdrew; `ordinal` as in `murmur_pubsub.script.ScriptedCommand`."""
        side_kind = SideKind.UNSUBSCRIBE if withdrawn else SideKind.SUBSCRIBE
        self._side(side_kind, (now_us, self.node, subscriber, str(wanted), ordinal))
        kind = RowKind.UNSUBSCRIBE if withdrawn else RowKind.SUBSCRIBE
        self._row(now_us, kind, self.node, source=subscriber, sequence=ordinal)

    def fault(self, now_us: int, step: int, fault: Fault, stage: FaultStage) -> None:
        """A step of the fault plan, as the row of the node that it is about (the driver's, if it is about many)."""
        node = self._numbers[fault.nodes[0]] if fault.nodes else self.node
        peer = fault.nodes[1] if len(fault.nodes) > 1 else None
        number = self._number(peer) if not fault.host else fault.host
        self._row(now_us, RowKind.FAULT, node, sequence=step, peer=number, hops=int(stage), value=int(fault.kind))

    def protocol(self, now_us: int, record: Record) -> None:
        """A row that a machine asked for."""
        source, sequence = record.event.id if record.event is not None else (NONE, NONE)
        self._row(
            now_us, RowKind.PROTOCOL, self.node, source, sequence,
            self._number(record.peer), 0, record.topic, record.value,
        )  # fmt: skip

    def answered(self, now_us: int, answer: Answer) -> None:
        """What has become of an order."""
        self._side(SideKind.ANSWER, (now_us, self.node, answer.number, answer.refusal))
        refused = int(bool(answer.refusal))
        self._row(now_us, RowKind.ANSWER, self.node, sequence=answer.number, value=refused)

    def _about_event(self, now_us: int, kind: RowKind, message: Any, to: str, value: int) -> None:
        source, sequence, hops = _event_of(message) if message.CARRIES_EVENT else _NO_EVENT
        self._row(now_us, kind, self.node, source, sequence, self._number(to), hops, 0, value)

    def _number(self, name: str | None) -> int:
        return NONE if name is None else self._numbers.get(name, NONE)


def _write_nothing(*_: object, **__: object) -> None:
    """In place of a writer that is gone."""


_NO_EVENT = NONE, NONE, 0


def _event_of(message: Any) -> tuple[int, int, int]:
    """Publisher, sequence number and hops of the event that a message carries."""
    event: Event = message.event
    return event.source, event.sequence, message.hops if message.COUNTS_HOPS else 0
