"""What stands in the journal about each thing that happens to a node: the judge reads nothing else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from murmur_pubsub.client import ClientSubscribe, Notification, Publication
from murmur_pubsub.errors import InputError
from murmur_pubsub.event import Event, contents_of, fingerprint_of
from murmur_pubsub.faults import Fault, FaultKind
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.journal import DropReason, FaultStage, JournalWriter, Refusal, RowKind, SideKind, read_side
from murmur_pubsub.journal_format import JournalRow
from murmur_pubsub.journal_rows import read_segment
from murmur_pubsub.machine import Answer, Record
from murmur_pubsub.message import kind_of
from murmur_pubsub.recorder import Recorder

EVENT = Event(7, 3, 90, {"x": 1})
CONTENTS = fingerprint_of(*contents_of(EVENT))
WANTED = parse_filter("x > 3")
NOTIFICATION = Notification(EVENT, 4, [5])
"""With hops; a publication has none, and a subscription no event."""
NUMBERS = {"b0": 0, "b1": 1, "b2": 2, "driver": 3}


class Rest(NamedTuple):
    """What a row says beside its time, its node and its kind."""

    source: int = -1
    sequence: int = -1
    peer: int = -1
    hops: int = 0
    bytes: int = 0
    value: int = 0


def written(
    folder: Path, tell: Callable[[Recorder], object], node: int = 1
) -> tuple[list[JournalRow], list[tuple[SideKind, list[Any]]]]:
    """The rows and the records that the node's recorder has written."""
    writer = JournalWriter(folder, "b1", node)
    tell(Recorder(writer, node, NUMBERS))
    writer.close()
    (segment,) = folder.glob("*.seg")
    sides = [record for path in folder.glob("*.blob") for record in read_side(path)]
    return [JournalRow(*map(int, row)) for row in read_segment(segment)[1].tolist()], sides


@pytest.mark.parametrize(
    ("tell", "kind", "rows"),
    [
        (lambda it: it.plain(9, RowKind.LAG, 250), RowKind.LAG, [Rest(value=250)]),
        (lambda it: it.plain(9, RowKind.LINK_UP, peer="b2"), RowKind.LINK_UP, [Rest(peer=2)]),
        (lambda it: it.plain(9, RowKind.LINK_UP, peer="unheard"), RowKind.LINK_UP, [Rest()]),
        (lambda it: it.refused(9, Refusal.NO_PROOF, 6), RowKind.REFUSED, [Rest(hops=Refusal.NO_PROOF, value=6)]),
        (lambda it: it.sent(9, NOTIFICATION, "b2", 80), RowKind.SEND, [Rest(7, 3, 2, 4, 80, kind_of(Notification))]),
        (
            lambda it: it.sent(9, Publication(EVENT), "b2", 80),
            RowKind.SEND,
            [Rest(7, 3, 2, 0, 80, kind_of(Publication))],
        ),
        (
            lambda it: it.sent(9, ClientSubscribe(5, WANTED), "unheard", 80),
            RowKind.SEND,
            [Rest(bytes=80, value=kind_of(ClientSubscribe))],
        ),
        (lambda it: it.received(9, NOTIFICATION, "b2"), RowKind.RECEIVE, [Rest(7, 3, 2, 4, 0, kind_of(Notification))]),
        (
            lambda it: it.received(9, ClientSubscribe(5, WANTED), "unheard"),
            RowKind.RECEIVE,
            [Rest(value=kind_of(ClientSubscribe))],
        ),
        (
            lambda it: it.dropped(9, NOTIFICATION, "b2", DropReason.OVERFLOW),
            RowKind.DROP,
            [Rest(7, 3, 2, 4, value=DropReason.OVERFLOW)],
        ),
        (
            lambda it: it.lost(9, 2, "b2", DropReason.LINK_BROKEN),
            RowKind.DROP,
            [Rest(peer=2, value=DropReason.LINK_BROKEN)] * 2,
        ),
        (lambda it: it.duplicated(9, NOTIFICATION, "b2"), RowKind.DUPLICATE, [Rest(7, 3, 2, 4)]),
        (lambda it: it.published(9, EVENT), RowKind.PUBLISH, [Rest(7, 3, value=len(EVENT.blob))]),
        (
            lambda it: it.delivered(9, EVENT, 4, [5, 6]),
            RowKind.DELIVER,
            [Rest(7, 3, -1, 4, CONTENTS, subscriber) for subscriber in (5, 6)],
        ),
        (lambda it: it.subscription(9, 5, WANTED, False, 8), RowKind.SUBSCRIBE, [Rest(5, 8)]),
        (lambda it: it.subscription(9, 5, WANTED, True, 8), RowKind.UNSUBSCRIBE, [Rest(5, 8)]),
        (lambda it: it.protocol(9, Record(3, 44)), RowKind.PROTOCOL, [Rest(bytes=3, value=44)]),
        (lambda it: it.protocol(9, Record(3, 44, "b2", EVENT)), RowKind.PROTOCOL, [Rest(7, 3, 2, 0, 3, 44)]),
        (lambda it: it.answered(9, Answer(4, "")), RowKind.ANSWER, [Rest(sequence=4)]),
        (lambda it: it.answered(9, Answer(4, "no")), RowKind.ANSWER, [Rest(sequence=4, value=1)]),
    ],
)
def test_a_row_says_what_happened(
    tmp_path: Path, tell: Callable[[Recorder], None], kind: RowKind, rows: list[Rest]
) -> None:
    expected = [JournalRow(time_us=9, node=1, kind=kind, **row._asdict()) for row in rows]
    assert written(tmp_path, tell)[0] == expected


@pytest.mark.parametrize(
    ("fault", "node", "peer"),
    [
        (Fault(0, FaultKind.KILL, ("b1",)), 1, -1),
        (Fault(0, FaultKind.CUT, ("b1", "b2")), 1, 2),
        (Fault(0, FaultKind.PARTITION, groups=(("b0",), ("b1", "b2"))), 3, -1),
        (Fault(0, FaultKind.LOSE_HOST, host=6), 3, 6),
    ],
    ids=lambda value: str(value),
)
def test_a_fault_is_a_row_of_its_first_node_or_else_of_the_driver(
    tmp_path: Path, fault: Fault, node: int, peer: int
) -> None:
    rows, _ = written(tmp_path, lambda it: it.fault(9, 2, fault, FaultStage.IN_EFFECT), node=3)
    expected = Rest(sequence=2, peer=peer, hops=FaultStage.IN_EFFECT, value=fault.kind)
    assert rows == [JournalRow(time_us=9, node=node, kind=RowKind.FAULT, **expected._asdict())]


@pytest.mark.parametrize(
    ("tell", "record"),
    [
        (lambda it: it.published(9, EVENT), (SideKind.EVENT, [7, 3, 90, EVENT.blob])),
        (lambda it: it.subscription(9, 5, WANTED, False, 8), (SideKind.SUBSCRIBE, [9, 1, 5, "x > 3", 8])),
        (lambda it: it.subscription(9, 5, WANTED, True, 8), (SideKind.UNSUBSCRIBE, [9, 1, 5, "x > 3", 8])),
        (lambda it: it.answered(9, Answer(4, "no")), (SideKind.ANSWER, [9, 1, 4, "no"])),
    ],
)
def test_what_has_no_room_in_a_row_is_beside_it(
    tmp_path: Path, tell: Callable[[Recorder], None], record: tuple[SideKind, list[Any]]
) -> None:
    assert written(tmp_path, tell)[1] == [record]


def test_nothing_is_said_of_an_event_that_nobody_got_or_that_may_not_be(tmp_path: Path) -> None:
    def tell(it: Recorder) -> None:
        it.delivered(9, EVENT, 4, [])
        with pytest.raises(InputError):
            it.published(9, Event(7, 4, 90, {}))

    assert written(tmp_path, tell) == ([], [])
