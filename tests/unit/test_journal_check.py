"""What may be open and what may not, what is missing and what is damage: file by file, without Spark."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import FaultKind
from murmur_pubsub.journal import JournalWriter, RowKind, SideKind, read_side
from murmur_pubsub.journal_format import (
    HEADER_BYTES,
    RECORD,
    ROW,
    FileState,
    SegmentHeader,
    schema_version,
    sound_header,
)
from murmur_pubsub.journal_rows import read_segment
from murmur_pubsub.journal_sealing import bytes_written, seal_series, seal_unheard
from murmur_pubsub.journal_store import store_at
from murmur_pubsub.run_manifest import ClusterEntry, FaultEntry, Gathered, HostEntry, NodeEntry, RunManifest, Status
from spark_analysis.journal_check import Damage, find_damage

NODES = (NodeEntry("b0", "broker"), NodeEntry("c0", "client", "b0"), NodeEntry("driver", "driver"))
KILL, RESTART, STALL, RESUME = (
    FaultEntry(kind.name, kind, nodes=("c0",))
    for kind in (FaultKind.KILL, FaultKind.RESTART, FaultKind.STALL, FaultKind.RESUME)
)
RUN = 9


class Run:
    """A run of which the tests write the journal of c0; the driver's is whole."""

    def __init__(self, folder: Path) -> None:
        self.journal = folder / "journal"
        self.journal.mkdir()
        self._folder = folder
        self.writer("driver", 2).close()

    def writer(self, name: str = "c0", node: int = 1, incarnation: int = 0) -> JournalWriter:
        """A writer with two rows in its first segment."""
        return JournalWriter(self.journal, name, node, incarnation, 2, RUN)

    def written(self, rows: int, records: int = 0, incarnation: int = 0) -> JournalWriter:
        """The same, not closed, with rows and records of 1,000 bytes."""
        writer = self.writer(incarnation=incarnation)
        for number in range(records):
            writer.side(SideKind.EVENT, [0, number, number, b"x" * 1_000])
        for number in range(rows):
            writer.row(number, RowKind.PUBLISH, 1, 0, number)
        return writer

    def damages(
        self, incarnations: int = 1, faults: Sequence[FaultEntry] = (), status: Status = "complete", **said: Any
    ) -> list[Damage]:
        """What the check finds in a run whose manifest says that."""
        writers = {"c0": incarnations, "driver": 1} if status == "complete" else None
        manifest = RunManifest(
            "cut", "virtual", 1, f"{RUN:x}", NODES, status, faults=tuple(faults), **{"writers": writers} | said
        )
        return find_damage(store_at(str(self.journal)), manifest)

    def path(self, number: int, ending: str = "seg", incarnation: int = 0) -> Path:
        """A file of c0."""
        return self.journal / f"c0-{incarnation}-{number:05d}.{ending}"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_a_sealed_journal_is_whole(run: Run) -> None:
    run.written(rows=100, records=200).close()
    assert len(list(run.journal.glob("c0*.seg"))) > 3
    assert len(list(run.journal.glob("c0*.blob"))) > 1
    assert run.damages() == []


def test_a_series_that_nothing_took_away_must_be_sealed(run: Run) -> None:
    run.written(rows=3, records=1)
    told = "was never sealed, though no fault took its writer away"
    assert run.damages() == [Damage("c0-0-00000.blob", told), Damage("c0-0-00001.seg", told)]


@pytest.mark.parametrize(
    ("faults", "may_be_open"),
    [
        ([KILL], True),
        ([FaultEntry("lose host", FaultKind.LOSE_HOST, nodes=("b0", "c0"))], True),
        ([STALL], True),
        ([STALL, RESUME, STALL], True),
        ([STALL, RESUME], False),
        ([FaultEntry("kill", FaultKind.KILL, nodes=("b0",))], False),
        ([FaultEntry("slow", FaultKind.SLOW, nodes=("c0",))], False),
    ],
)
def test_a_series_may_be_open_where_a_fault_took_its_writer_away(
    run: Run, faults: list[FaultEntry], may_be_open: bool
) -> None:
    run.written(rows=3, records=1)
    assert (run.damages(faults=faults) == []) == may_be_open


def test_a_fault_takes_one_incarnation_away_and_not_the_next(run: Run) -> None:
    run.written(rows=1)
    second = run.written(rows=1, incarnation=1)
    assert [each.file for each in run.damages(2, [KILL, RESTART])] == ["c0-1-00000.seg"]
    second.close()
    assert run.damages(2, [KILL, RESTART]) == []


OWN_DEATH = FaultEntry("death of c0", FaultKind.KILL, 1, ("c0",), by_itself=True)
LATER = [replace(each, time_us=2 + place) for place, each in enumerate((KILL, RESTART, KILL, RESTART))]


@pytest.mark.parametrize(
    ("faults", "taken"),
    [
        ([*LATER[:2], OWN_DEATH], 1),
        ([*LATER, OWN_DEATH], 2),
        ([*LATER[:2], replace(OWN_DEATH, time_us=9)], 2),
        ([*LATER[:3], replace(OWN_DEATH, time_us=9)], 2),
        ([STALL, KILL, RESTART], 1),
        ([KILL, FaultEntry("lose host", FaultKind.LOSE_HOST, nodes=("b0", "c0")), RESTART], 1),
        ([KILL, FaultEntry("kill actor", FaultKind.KILL_ACTOR, nodes=("b0", "c0"))], 1),
    ],
    ids=[
        "it had died before it was killed", "before it was killed the first time", "after it was back",
        "after it was killed", "stalled before", "killed before its host was lost", "killed before its actor",
    ],
)  # fmt: skip
def test_to_kill_who_is_dead_takes_no_further_incarnation_away(run: Run, faults: list[FaultEntry], taken: int) -> None:
    for incarnation in range(taken + 1):
        run.written(rows=1, incarnation=incarnation)
    assert [each.file for each in run.damages(taken + 1, faults)] == [f"c0-{taken}-00000.seg"]


def test_a_run_that_was_cut_short_may_be_open_and_lack_what_was_not_begun(run: Run) -> None:
    run.written(rows=3, records=1)
    run.path(2).write_bytes(b"")
    for status in ("running", "interrupted"):
        assert run.damages(status=status) == []


@pytest.mark.parametrize("number", [0, 1])
def test_what_is_no_consequence_of_being_cut_short_is_named_all_the_same(run: Run, number: int) -> None:
    run.written(rows=7, records=1)
    run.path(number).unlink()
    assert run.damages(status="interrupted") == [Damage(run.path(number).name, "is missing")]


def test_the_segment_after_one_that_was_sealed_is_missed_in_a_run_cut_short(run: Run) -> None:
    run.written(rows=7)
    run.path(2).unlink()
    assert run.damages(status="interrupted") == [Damage("c0-0-00002.seg", "is missing")]


def test_an_incarnation_without_the_one_before_it_is_damage(run: Run) -> None:
    run.written(rows=1, incarnation=1)
    assert run.damages(status="interrupted") == [Damage("c0-0-00000.seg", "is missing")]


@pytest.mark.parametrize("size", [0, HEADER_BYTES + ROW.size])
def test_a_file_that_was_just_being_opened_is_no_damage_where_its_writer_was_killed(run: Run, size: int) -> None:
    run.written(rows=2)
    run.path(1).write_bytes(bytes(size))
    assert run.damages(faults=[KILL]) == []
    assert len(run.damages()) == 2


@pytest.mark.parametrize(("ending", "told"), [("seg", "was cut at row 1 of 2"), ("blob", "was cut at byte 300 of")])
def test_an_open_file_has_all_the_room_it_was_given(run: Run, ending: str, told: str) -> None:
    run.written(rows=1, records=1)
    path = run.path(0, ending)
    os.truncate(path, HEADER_BYTES + ROW.size if ending == "seg" else 300)
    (found,) = run.damages(faults=[KILL])
    assert found.file == path.name
    assert told in found.what


def test_a_gap_in_an_open_segment_is_damage(run: Run) -> None:
    run.written(rows=5)
    with run.path(1).open("r+b") as opened:
        opened.seek(HEADER_BYTES + 2 * ROW.size - 2)
        opened.write(b"\0")
    (found,) = run.damages(faults=[KILL])
    assert found.file == "c0-0-00001.seg"
    assert "row 1: a row that was not written" in found.what


def test_a_damaged_record_in_an_open_side_file_is_damage(run: Run) -> None:
    run.written(rows=1, records=3)
    with run.path(0, "blob").open("r+b") as opened:
        opened.seek(HEADER_BYTES)
        opened.write(b"\xff\xff\xff")
    (found,) = run.damages(faults=[KILL])
    assert "a damaged record" in found.what


def test_a_file_that_grew_is_damage(run: Run) -> None:
    run.written(rows=1).close()
    with run.path(0).open("ab") as opened:
        opened.write(bytes(ROW.size))
    assert run.damages() == [Damage("c0-0-00000.seg", f"has {ROW.size} bytes more than it was given")]


@pytest.mark.parametrize("name", ["x9-0-00000.seg", "backup.seg", "c0-0-0.seg", "c0-00-00000.blob"])
def test_a_file_of_no_writer_is_damage(run: Run, name: str) -> None:
    run.written(rows=1, records=1).close()
    (run.journal / name).write_bytes(run.path(0, name.rpartition(".")[2]).read_bytes())
    assert run.damages() == [Damage(name, "is no file of this run's journal")]


@pytest.mark.parametrize("content", [b"PAR1" + bytes(range(1, 200)), b"short"])
def test_a_foreign_file_is_damage(run: Run, content: bytes) -> None:
    run.written(rows=1, records=1).close()
    run.path(0, "blob").write_bytes(content)
    (found,) = run.damages()
    assert found.file == "c0-0-00000.blob"


def test_the_files_of_a_host_that_is_away_are_not_missed(run: Run) -> None:
    host = HostEntry("second", "10.0.0.6", None, 0, "/scratch/run", Gathered(0, "it is not there"), ("b0",))
    run.written(rows=1).close()
    writers = {"b0": 1, "c0": 1, "driver": 1}
    assert run.damages(writers=writers) == [Damage("b0-0-00000.seg", "is missing")]
    assert run.damages(writers=writers, cluster=ClusterEntry("10.0.0.5:6379", (host,))) == []


def test_a_journal_of_another_schema_version_is_refused(run: Run) -> None:
    for path in run.journal.iterdir():
        path.write_bytes(b"MURMURsg" + b"\x02\x00" + bytes(200))
    with pytest.raises(InputError, match="schema version 2"):
        run.damages()


def test_a_file_that_ends_within_its_header_has_no_schema_version() -> None:
    assert schema_version(b"MURMURsg" + b"\x02\x00" + bytes(200)) == 2
    assert schema_version(b"MURMURsg\x02") is None


def test_no_journal_at_all_is_refused(run: Run) -> None:
    for path in run.journal.iterdir():
        path.unlink()
    with pytest.raises(InputError, match="no segment"):
        run.damages()


def test_an_empty_file_with_a_great_number_is_the_only_one_named(run: Run) -> None:
    run.written(rows=1)
    (run.journal / "c0-0-99999999999.seg").write_bytes(b"")
    (run.journal / "c0-99999999999-00000.seg").write_bytes(b"no header")
    names = [each.file for each in run.damages(status="interrupted")]
    assert names == ["c0-0-99999999999.seg", "c0-99999999999-00000.seg"]


# ------------------------------------------------------------------------- sealed by the process that killed it
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 6, 50])
@pytest.mark.parametrize("records", [0, 1, 200])
def test_what_a_killed_writer_left_is_sealed_and_says_the_same(run: Run, rows: int, records: int) -> None:
    run.written(rows, records)
    seal_series(run.journal, "c0", 0)
    assert run.damages(faults=[KILL]) == []
    read = [read_segment(path) for path in sorted(run.journal.glob("c0-*.seg"))]
    assert [int(row["sequence"]) for _, rows_of in read for row in rows_of] == list(range(rows))
    sides = [fields[1] for path in sorted(run.journal.glob("c0-*.blob")) for _, fields in read_side(path)]
    assert sides == list(range(records))
    assert read[-1][0].state is FileState.LAST_OF_DEAD
    before = {path: path.read_bytes() for path in run.journal.iterdir()}
    seal_series(run.journal, "c0", 0)
    assert {path: path.read_bytes() for path in run.journal.iterdir()} == before, "once is enough"


@pytest.mark.parametrize("begun", ["nothing", "an empty file", "a file", "rows"])
def test_of_a_writer_that_nobody_had_heard_of_there_is_a_sealed_series(run: Run, begun: str) -> None:
    run.written(rows=3)
    if begun == "an empty file":
        run.path(0, incarnation=1).write_bytes(bytes(1_000))
    elif begun != "nothing":
        run.written(rows=2 if begun == "rows" else 0, incarnation=1)
    seal_series(run.journal, "c0", 0)
    seal_unheard(run.journal, "c0", 1, 1, RUN)
    assert run.damages(incarnations=2, faults=[KILL, RESTART, KILL]) == []
    assert len(read_segment(run.path(0, incarnation=1))[1]) == (2 if begun == "rows" else 0)


def _read(path: Path) -> tuple[SegmentHeader, bytes]:
    """What the file says of itself, but for who closed it; and what follows."""
    data = path.read_bytes()
    header = sound_header(data)
    assert header is not None
    state = FileState.LAST if header.state is FileState.LAST_OF_DEAD else header.state
    return replace(header, state=state), data[HEADER_BYTES:]


@pytest.mark.parametrize("records", [0, 5])
def test_what_is_sealed_for_a_dead_writer_is_what_a_living_one_leaves_but_for_who_closed_it(
    run: Run, records: int
) -> None:
    run.written(rows=3, records=records).close()
    left = {path.name: _read(path) for path in run.journal.glob("c0-*")}
    for path in run.journal.glob("c0-*"):
        path.unlink()
    run.written(rows=3, records=records)
    seal_series(run.journal, "c0", 0)
    assert {path.name: _read(path) for path in run.journal.glob("c0-*")} == left


@pytest.mark.parametrize("left", [0, 3])
def test_a_side_file_that_was_written_to_its_end_is_sealed_as_it_is(run: Run, left: int) -> None:
    """No further record fits there, nor the beginning of one."""
    writer = run.written(rows=1)
    size = 64 * 1024 - HEADER_BYTES - left
    beside = RECORD.size + len(msgpack.packb([b"x" * size])) - size
    writer.side(SideKind.EVENT, [b"x" * (size - beside)])
    assert bytes_written("side", run.path(0, "blob").read_bytes()) == 64 * 1024 - left
    seal_series(run.journal, "c0", 0)
    assert run.damages(faults=[KILL]) == []


def test_of_a_file_that_is_none_of_a_journal_nobody_says_how_much_is_written() -> None:
    with pytest.raises(InputError, match="a file that begins with b'PAR1"):
        bytes_written("here", b"PAR1" + bytes(200))


def test_a_series_that_was_sealed_for_a_dead_writer_needs_a_fault_that_took_it(run: Run) -> None:
    run.written(rows=1)
    seal_series(run.journal, "c0", 0)
    (found,) = run.damages()
    assert found.what == "was sealed as a dead writer's, though no fault took its writer away"


def test_a_kill_between_the_next_segment_and_the_seal_of_this_one_is_mended(run: Run) -> None:
    writer = run.written(rows=2)
    writer._open_segment()
    assert run.damages(faults=[KILL]) == [], "both are open, as in a run on another host"
    seal_series(run.journal, "c0", 0)
    assert run.damages(faults=[KILL]) == []
    assert [read_segment(run.path(number))[0].state for number in (0, 1)] == [FileState.SEALED, FileState.LAST_OF_DEAD]


def test_a_kill_between_seal_and_cut_is_mended(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = run.written(rows=1, records=1)
    with monkeypatch.context() as patched:
        patched.setattr(os, "truncate", lambda *_: None)
        writer.close()
    assert run.damages(faults=[KILL]) == []
    assert len(run.damages()) == 2, "no node was killed"
    seal_series(run.journal, "c0", 0)
    assert run.damages() == []
    assert run.path(0).stat().st_size == HEADER_BYTES + ROW.size


def test_a_kill_while_a_file_was_opened_is_mended(run: Run) -> None:
    run.written(rows=2)
    run.path(1).write_bytes(b"")
    seal_series(run.journal, "c0", 0)
    assert not run.path(1).exists()
    assert run.damages(faults=[KILL]) == []


def test_what_was_damaged_before_it_could_be_sealed_is_left_for_the_check(run: Run) -> None:
    run.written(rows=5)
    with run.path(1).open("r+b") as opened:
        opened.seek(HEADER_BYTES + 2 * ROW.size - 2)
        opened.write(b"\0")
    seal_series(run.journal, "c0", 0)
    assert [each.file for each in run.damages(faults=[KILL])] == ["c0-0-00001.seg"]
