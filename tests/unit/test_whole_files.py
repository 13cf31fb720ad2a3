"""Results are there whole or as they were before, also where the disk has no room for all of one."""

import errno
import json
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from matplotlib.figure import Figure

from murmur_pubsub.errors import DiskError, InputError
from murmur_pubsub.whole_files import whole, whole_folder, write_text
from murmuration.commands.main import page_command, trace_command
from murmuration.hunt.folder import HuntFolder
from murmuration.hunt.present import sizes_of, write_schedule, write_story
from murmuration.hunt.summary import write_summary
from murmuration.hunt.symptoms import Symptom
from murmuration.hunt.why import Certainty, Why
from murmuration.hunt.why_report import write_why
from murmuration.papers.lab.results import PaperResult, ResultTable
from murmuration.results.parquet_copy import copy_tables
from murmuration.runs.driver import execute
from murmuration.scenario.load import load_scenario
from murmuration.sweeps.kept_lines import keep_lines
from spark_analysis import main as analysis
from spark_analysis.table_columns import TABLES
from spark_analysis.tables import AnalysisFolder
from tests.hunt.hunting import hunt
from tests.hunt.test_coverage import CHAIN

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


def test_nor_does_a_table_of_an_analysis(tmp_path: Path) -> None:
    folder, drops = AnalysisFolder(tmp_path), pd.DataFrame({"reason": ["full"] * 2_000, "messages": range(2_000)})
    findings = pa.table({name: pa.array(range(2_000)) for name in TABLES["findings"].columns})
    writings: dict[str, tuple[int, Callable[[], object]]] = {
        "drops.parquet": (1_000, lambda: folder.write_frame("drops", drops)),
        "drops.csv": (14_000, lambda: folder.write_frame("drops", drops)),
        "findings.parquet": (1_000, lambda: folder.write_findings(findings)),
        "verdict.json": (1_000, lambda: folder.write_json("verdict", {"reason": "x" * 2_000})),
    }
    with folder.anew():
        folder.write_json("summary", {"of": "before"})
    for name, (room, write) in writings.items():
        place = rf"^{tmp_path}/analysis/{name}: .*ile too large"
        with room_for(room), pytest.raises(DiskError, match=place), folder.anew():
            write()
        assert [path.name for path in tmp_path.iterdir()] == ["analysis"]
        assert (folder.folder / "summary.json").read_text() == '{\n "of": "before"\n}\n'


class _Local:
    """Stands for a Spark session of this host."""

    class sparkContext:
        master = "local[1]"


@pytest.mark.parametrize("end", [KeyboardInterrupt(), InputError("journal", "another version", "3")])
def test_an_analysis_that_does_not_come_to_its_end_leaves_the_one_before(
    end: BaseException, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(*_: object) -> None:
        raise end

    monkeypatch.setattr(analysis, "spark_session", lambda *_: nullcontext(_Local()))
    monkeypatch.setattr(analysis, "read_journal_here", ended)
    folder = AnalysisFolder(run)
    with folder.anew():
        folder.write_json("verdict", {"of": "before"})
    with pytest.raises(type(end)):
        analysis.analyze(run)
    assert json.loads((folder.folder / "verdict.json").read_text()) == {"of": "before"}
    assert [path.name for path in run.glob("*analysis*")] == ["analysis"]


@pytest.mark.parametrize("killed_in", ["the exchange", "the removal"])
def test_of_a_folder_whose_exchange_was_killed_the_whole_one_stays(killed_in: str, tmp_path: Path) -> None:
    (tmp_path / ".former-tables").mkdir()
    (tmp_path / ".former-tables" / "rows").write_text("before")
    if killed_in == "the removal":
        (tmp_path / "tables").mkdir()
        (tmp_path / "tables" / "rows").write_text("new")

    def interrupted() -> None:
        with whole_folder(tmp_path / "tables") as draft:
            (draft / "rows").write_text("newer")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [path.name for path in tmp_path.iterdir()] == ["tables"]
    assert (tmp_path / "tables" / "rows").read_text() == ("before" if killed_in == "the exchange" else "new")


@pytest.mark.parametrize(
    "name", ["scenario.yaml", "test_finding.py", "difference.txt", "trace.txt", "why.txt", "why.svg", "curve.svg"]
)
def test_nor_does_what_a_hunt_writes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {**CHAIN, "links": {"loss": 0.1}}
    keys["faults"] = [{"at": "100 ms", "kill": "b1", "for": "100 ms"}]
    symptom = Symptom("missing", "an event did not come")
    (tmp_path / name).write_text("before")
    _fill_the_disk_at(name, monkeypatch)

    def write_all() -> None:
        write_schedule(tmp_path, keys, symptom, sizes_of(keys))
        write_story(tmp_path, keys, symptom)
        write_why(Why(symptom, [Certainty(0, 0, 2), Certainty(1_000, 2, 2)], 0, 1_000), keys, tmp_path)
        write_summary(hunt(tmp_path, 1), HuntFolder(tmp_path))

    with pytest.raises(DiskError, match=rf"^{tmp_path / name}: No space left on device$"):
        write_all()
    assert (tmp_path / name).read_text() == "before"
    assert not list(tmp_path.glob(".draft-*"))


def _fill_the_disk_at(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a text or picture of that name a part is written, and no more."""

    def patched(kept: Callable[..., object]) -> Callable[..., object]:
        def write(*arguments: Any, **options: Any) -> object:
            path = next(each for each in arguments if isinstance(each, Path))
            if not path.name.endswith(name):
                return kept(*arguments, **options)
            path.write_bytes(b"half")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        return write

    for owner, writes in ((Path, "write_text"), (Figure, "savefig")):
        monkeypatch.setattr(owner, writes, patched(getattr(owner, writes)))


def test_a_line_that_finds_no_room_is_named_by_its_file(tmp_path: Path) -> None:
    with room_for(1_000), pytest.raises(DiskError, match=r"/log.jsonl: File too large$"):
        keep_lines(tmp_path / "log.jsonl", ["x" * 2_000])
