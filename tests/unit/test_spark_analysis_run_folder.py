"""What is wrong with a run folder is found before Spark starts, and named."""

import json
from pathlib import Path
from typing import Any

import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.journal import JournalWriter, RowKind, SideKind
from murmur_pubsub.journal_store import store_at
from spark_analysis.journal_source import journal_files
from spark_analysis.main import main
from spark_analysis.run_folder import read_manifest

MANIFEST: dict[str, Any] = {
    "format": "murmur-run",
    "schema_version": 1,
    "name": "small",
    "runtime": "virtual",
    "seed": 3,
    "run": "00",
    "writers": {"c0": 1},
    "status": "complete",
    "withdrawal_grace_us": 10,
    "overlay": {"brokers": ["b0"], "edges": []},
    "nodes": [
        {"name": "b0", "role": "broker", "broker": None},
        {"name": "c0", "role": "client", "broker": "b0"},
        {"name": "driver", "role": "driver", "broker": None},
    ],
}


def _run(folder: Path, **changes: Any) -> Path:
    (folder / "journal").mkdir()
    (folder / "manifest.json").write_text(json.dumps(MANIFEST | changes))
    return folder


def _write(folder: Path, rows: int = 3, name: str = "c0", rows_per_segment: int = 8_192) -> JournalWriter:
    writer = JournalWriter(folder, name, 1, rows_per_segment=rows_per_segment)
    for number in range(rows):
        writer.row(number, RowKind.PUBLISH, 1, 0, number)
    writer.side(SideKind.SUBSCRIBE, (0, 1, 0, "x = 1", 0))
    writer.close()
    return writer


def test_a_manifest_resolves_the_numbers_of_nodes(tmp_path: Path) -> None:
    manifest = read_manifest(_run(tmp_path))
    assert manifest.home_broker() == {0: 0, 1: 0}
    assert [node.role for node in manifest.nodes] == ["broker", "client", "driver"]
    assert manifest.withdrawal_grace_us == 10


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"format": "other"}, "format"),
        ({"schema_version": 2}, "schema_version"),
        ({"status": "lost"}, "status"),
        ({"seed": "x"}, "seed"),
        ({"run": "x"}, "run"),
        ({"writers": None}, "writers"),
        ({"writers": {"c0": "1"}}, "writers"),
        ({"nodes": {}}, "nodes"),
        ({"nodes": [{"name": "b0", "role": "king"}]}, "nodes[0].role"),
        ({"nodes": [{"role": "broker"}]}, "nodes[0]"),
        ({"overlay": {"edges": [["b0"]]}}, "overlay.edges"),
    ],
)
def test_a_manifest_with_a_wrong_key_names_it(tmp_path: Path, changes: dict[str, Any], key: str) -> None:
    with pytest.raises(InputError) as caught:
        read_manifest(_run(tmp_path, **changes))
    assert caught.value.place == f"{tmp_path / 'manifest.json'}, key {key}"


def test_a_folder_without_manifest_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a folder without manifest\.json"):
        read_manifest(tmp_path)
    with pytest.raises(InputError, match="no such folder"):
        read_manifest(tmp_path / "nowhere")


def test_a_manifest_that_is_no_json_is_refused(tmp_path: Path) -> None:
    _run(tmp_path)
    (tmp_path / "manifest.json").write_text('{"format": "murm')
    with pytest.raises(InputError, match="no readable JSON"):
        read_manifest(tmp_path)


def test_the_command_line_exits_with_2_and_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "manifest.json" in said.err


def test_the_command_line_wants_one_run_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "the folder of a run" in capsys.readouterr().err


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
