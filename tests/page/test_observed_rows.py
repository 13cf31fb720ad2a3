"""What an observer makes of rows written by hand: what is on its way, what a death takes along, and who comes late."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from murmur_page.counted import counted
from murmur_page.frame import Frame, delay_bucket
from murmur_page.growing import GrowingRun
from murmur_page.observer import Observer
from murmur_pubsub.faults import FaultKind
from murmur_pubsub.journal import NONE, DropReason, FaultStage, RowKind
from murmur_pubsub.run_manifest import FaultEntry, read_manifest
from tests.spark.run_folder import RunFolder

B0, B1, B2, C0 = range(4)
Row = tuple[int, ...]


class Looked:
    """An observer of three brokers in a chain, and frames that follow each other."""

    def __init__(self, folder: Path) -> None:
        manifest = read_manifest(RunFolder(folder, brokers=3, clients=1).finish())
        kill = FaultEntry("kill b1", FaultKind.KILL, 0, ("b1",))
        self.observer = Observer(replace(manifest, faults=(kill,)))
        self._end_us = 0

    def at(self, *rows: Row) -> Frame:
        """The next frame, of these rows."""
        begin_us, self._end_us = self._end_us, self._end_us + 100
        return self.observer.frame(counted(rows), begin_us, self._end_us)


@pytest.fixture
def looked(tmp_path: Path) -> Looked:
    return Looked(tmp_path / "run")


def row(kind: RowKind, node: int, peer: int = NONE, time_us: int = 0, **given: Any) -> Row:
    """A row, its fields in the order of the journal's."""
    fields = {"sequence": NONE, "value": 0, "source": NONE, "size": 0, "hops": 0} | given
    return (
        time_us, fields["sequence"], fields["value"], node, fields["source"], peer, fields["size"], fields["hops"],
        int(kind),
    )  # fmt: skip


def up(first: int, second: int) -> list[Row]:
    return [row(RowKind.LINK_UP, first, second), row(RowKind.LINK_UP, second, first)]


def test_what_was_sent_waits_until_it_arrives_or_is_lost(looked: Looked) -> None:
    sent = row(RowKind.SEND, B0, B1)
    assert looked.at(sent, sent, sent).waiting == {B1: 3}
    assert looked.at(row(RowKind.RECEIVE, B1, B0)).waiting == {B1: 2}
    assert looked.at(row(RowKind.DROP, B0, B1, value=DropReason.LOSS)).waiting == {B1: 1}


def test_what_was_lost_before_it_was_sent_takes_nothing_from_what_waits(looked: Looked) -> None:
    frame = looked.at(row(RowKind.DROP, B0, B1, value=DropReason.UNREACHABLE), row(RowKind.SEND, B0, B1))
    assert frame.waiting == {B1: 1}
    assert frame.moved[B0, B1].lost == 1


def test_nothing_waits_on_a_link_that_was_lost(looked: Looked) -> None:
    looked.at(*up(B0, B1), *up(B1, B2))
    assert looked.at(row(RowKind.SEND, B0, B1), row(RowKind.SEND, B2, B1)).waiting == {B1: 2}
    assert looked.at(row(RowKind.LINK_DOWN, B1, B0)).waiting == {B1: 1}


def test_the_links_of_a_node_that_dies_are_down_before_a_peer_says_so_and_nothing_waits_for_it(looked: Looked) -> None:
    assert looked.at(*up(B0, B1), *up(B1, B2)).links == {(B0, B1): "up", (B1, B2): "up"}
    looked.at(row(RowKind.SEND, B0, B1))
    frame = looked.at(row(RowKind.FAULT, 4, sequence=0, value=FaultKind.KILL, hops=FaultStage.IN_EFFECT))
    assert frame.links == {(B0, B1): "down", (B1, B2): "down"}
    assert frame.waiting == {B1: 0}
    assert looked.at(row(RowKind.LINK_UP, B0, B1)).links == {}, "the other end is dead"


def test_a_delivery_that_is_read_before_its_publication_has_a_delay(looked: Looked) -> None:
    event = {"source": 7, "sequence": 3}
    assert not looked.at(row(RowKind.DELIVER, C0, time_us=900, **event)).delays
    assert not looked.at().delays
    assert looked.at(row(RowKind.PUBLISH, C0, time_us=100, **event)).delays == {delay_bucket(800): 1}
    assert not looked.at().delays


def test_the_lag_of_frames_that_are_merged_is_the_largest() -> None:
    frames = [Frame(100 * number, 100 * number + 100, lag_us=lag_us) for number, lag_us in enumerate((3, 9, 4))]
    for later in frames[1:]:
        frames[0].merge(later)
    assert frames[0].lag_us == 9


def test_a_frame_of_rows_that_come_late_still_follows_the_one_before(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    growing = GrowingRun(run.finish(close=False))
    run.publish("c0", 900_000, 0, 0, {"x": 1})
    (first,) = growing.look()
    run.publish("c1", 500_000, 1, 0, {"x": 1})
    (late,) = growing.look()
    assert late["b"] == first["t"] < late["t"]
    assert (first["p"], late["p"]) == (1, 1)
