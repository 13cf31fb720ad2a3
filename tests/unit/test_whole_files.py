"""Results are there whole or as they were before, also where the disk has no room for all of one."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from murmur_pubsub.errors import DiskError, InputError
from murmur_pubsub.whole_files import whole, write_text
from murmuration.commands.main import page_command, trace_command
from murmuration.papers.lab.results import PaperResult, ResultTable
from murmuration.results.parquet_copy import copy_tables
from murmuration.runs.driver import execute
from murmuration.scenario.load import load_scenario

_SMALL = ["overlay.brokers=4", "workload.clients=4", "workload.publications=5"]


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file may become larger than this: the bytes up to there are written, as on a disk that is nearly full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return execute(
        load_scenario(Path("parity"), _SMALL), tmp_path_factory.mktemp("whole") / "run", lambda *_: None
    ).folder


def test_a_text_that_finds_no_room_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "text"
    for old in (None, "before"):
        if old is not None:
            path.write_text(old)
        with room_for(1_000), pytest.raises(DiskError, match=r"/text: File too large$"):
            write_text(path, "x" * 2_000)
        assert [each.read_text() for each in tmp_path.iterdir()] == ([] if old is None else [old])


def test_what_is_interrupted_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("before")

    def interrupted() -> None:
        with whole(path) as draft:
            draft.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [each.read_text() for each in tmp_path.iterdir()] == ["before"]


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("name", ["page.html", "trace-0-0.svg"])
def test_a_picture_that_finds_no_room_leaves_the_one_before(name: str, given: bool, run: Path, tmp_path: Path) -> None:
    path = (tmp_path if given else run) / name
    path.write_text("the one before")
    out = path if given else None
    place = rf"^{'--out ' if given else ''}{path}: found a place that cannot be written \(File too large\)"
    with room_for(2_000), pytest.raises(InputError, match=place):
        page_command(run, out) if name == "page.html" else trace_command(run, "0:0", out)
    assert path.read_text() == "the one before"
    assert not list(path.parent.glob(".draft-*"))


def test_tables_that_find_no_room_are_named_and_leave_those_before(run: Path) -> None:
    (run / "tables").mkdir()
    (run / "tables" / "rows.parquet").write_text("those before")
    with room_for(2_000), pytest.raises(DiskError, match=r"run/tables: .*ile too large"):
        copy_tables(run, with_spark=False)
    assert [path.name for path in run.glob("*tables*")] == ["tables"]
    assert (run / "tables" / "rows.parquet").read_text() == "those before"


def test_nor_does_a_table_of_a_paper(tmp_path: Path) -> None:
    result = PaperResult(False, [ResultTable("numbers", "Numbers", ("n",), [(number,) for number in range(2_000)])])
    (tmp_path / "numbers.csv").write_text("before")
    with room_for(2_000), pytest.raises(DiskError, match=r"numbers.csv: File too large"):
        result.write(tmp_path)
    assert [each.read_text() for each in tmp_path.iterdir()] == ["before"]
