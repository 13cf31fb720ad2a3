"""What a command reads of a folder that it goes on with may have become anything: that is told by the file's name."""

import shutil
from pathlib import Path

import pytest

from murmur_pubsub.errors import InputError
from murmuration.live.run_list import runs_in
from murmuration.sweeps.kept_lines import kept_lines
from tests.unit.written_folders import commands, write_folders

BROKEN = {
    "nothing": b"",
    "half": b'{"format": "mur',
    "a list": b"[]",
    "a text": b'"text"',
    "nothing in it": b"{}",
    "other bytes": b'{"format": "\xff\xfe"}',
    "endless": b"[" * 100_000,
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was analysed, a sweep, a hunt and a bench, each in a folder of that name."""
    place = tmp_path_factory.mktemp("read_back")
    write_folders(place)
    return place


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("compare", "run/manifest.json"),
        ("compare", "run/analysis/verdict.json"),
        ("report", "run/analysis/verdict.json"),
        ("report", "run/analysis/summary.json"),
        ("report", "run/analysis/findings.csv"),
        ("report", "run/analysis/traffic.parquet"),
        ("page", "run/layout.json"),
        ("page", "run/analysis/verdict.json"),
        ("trace", "run/analysis/findings.csv"),
        ("sweep", "sweep/sweep.json"),
        ("sweep", "sweep/points/0001.json"),
        ("bench", "bench/bench.json"),
        ("hunt", "hunt/hunt.json"),
        ("hunt", "hunt/findings/001-lost/finding.json"),
    ],
)
def test_what_is_no_longer_what_it_was_is_named(
    command: str, file: str, how: str, folders: Path, tmp_path: Path
) -> None:
    place = tmp_path / "folders"
    shutil.copytree(folders, place)
    path = place / file
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes(BROKEN[how])
    with pytest.raises(InputError, match=f"^{path}"):
        commands(place)[command]()


@pytest.mark.parametrize("line", [b"[]", b'"text"', b"{}", b'{"chunk": 0, "pair": 1}', b'{"chunk": 0, "lost": 1}'])
@pytest.mark.parametrize("name", ["log.jsonl", "corpus.jsonl"])
def test_so_is_a_line_of_a_hunt_that_is_none(name: str, line: bytes, folders: Path, tmp_path: Path) -> None:
    place = tmp_path / "folders"
    shutil.copytree(folders, place)
    with (place / "hunt" / name).open("ab") as file:
        file.write(line + b"\n")
    with pytest.raises(InputError, match=f"^{place / 'hunt' / name}"):
        commands(place)["hunt"]()


@pytest.mark.parametrize("line", [BROKEN["half"], BROKEN["other bytes"], BROKEN["endless"]])
def test_a_line_that_is_no_json_counts_as_not_there(line: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    path.write_bytes(b"1\n" + line + b"\n2\n")
    assert list(kept_lines(path)) == [1, 2]


@pytest.mark.parametrize("verdict", [*BROKEN.values(), b'{"verdict": "valid"}'])
def test_one_broken_verdict_hides_no_run_from_the_list(verdict: bytes, folders: Path, tmp_path: Path) -> None:
    shutil.copytree(folders / "run", tmp_path / "run")
    (tmp_path / "run" / "analysis" / "verdict.json").write_bytes(verdict)
    (listed,) = runs_in(tmp_path)
    assert listed.state == "complete"
