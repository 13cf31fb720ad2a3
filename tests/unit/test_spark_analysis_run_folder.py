"""What is wrong with a run folder is found before Spark starts, and named."""

import errno
import os
from pathlib import Path

import pytest

from murmur_pubsub.errors import DiskError
from murmur_pubsub.journal import JournalWriter, RowKind, SideKind
from murmur_pubsub.journal_store import store_at
from spark_analysis.journal_source import journal_files
from spark_analysis.main import main


def _write(folder: Path, rows: int = 3, name: str = "c0", rows_per_segment: int = 8_192) -> JournalWriter:
    writer = JournalWriter(folder, name, 1, rows_per_segment=rows_per_segment)
    for number in range(rows):
        writer.row(number, RowKind.PUBLISH, 1, 0, number)
    writer.side(SideKind.SUBSCRIBE, (0, 1, 0, "x = 1", 0))
    writer.close()
    return writer


def test_the_command_line_exits_with_2_and_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "manifest.json" in said.err


def test_the_command_line_wants_one_run_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "the folder of a run" in capsys.readouterr().err


@pytest.mark.parametrize(("why", "code"), [(errno.ENOSPC, 1), (errno.EROFS, 2)])
def test_a_full_disk_exits_with_1_and_no_place_with_2_and_the_name_of_the_file(
    why: int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unwritable(run: Path) -> None:
        raise DiskError.of(run / "report.html", OSError(why, os.strerror(why)))

    monkeypatch.setattr("spark_analysis.main.analyze", unwritable)
    assert main([str(tmp_path)]) == code
    assert capsys.readouterr() == ("", f"{tmp_path / 'report.html'}: {os.strerror(why)}\n")


def test_positions_go_on_over_the_segments_of_a_writer(tmp_path: Path) -> None:
    _write(tmp_path, rows=9, rows_per_segment=2)
    _write(tmp_path, rows=1, name="c0-x")
    files = journal_files(store_at(str(tmp_path)), "seg")
    assert [file.name for file in files] == [
        "c0-0-00000.seg",
        "c0-0-00001.seg",
        "c0-0-00002.seg",
        "c0-x-0-00000.seg",
    ]
    assert [file.first_position for file in files] == [0, 2, 6, 0]


@pytest.mark.parametrize("content", [b"", bytes(500)])
def test_a_file_that_was_just_being_opened_is_left_out(tmp_path: Path, content: bytes) -> None:
    _write(tmp_path, rows=2, rows_per_segment=2)
    (tmp_path / "c0-0-00001.seg").write_bytes(content)
    assert len(journal_files(store_at(str(tmp_path)), "seg")) == 1
