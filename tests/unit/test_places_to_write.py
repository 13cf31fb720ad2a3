"""A place that cannot be written is named by the command that was told it, with the reason, before anything is done."""

import errno
import os
import shutil
from pathlib import Path

import pytest
import typer

from murmur_pubsub.errors import DiskError, InputError
from murmur_pubsub.whole_files import whole, write_text
from murmuration.commands.bench import BenchCutShort
from murmuration.commands.ending import CutShort, carry_out
from murmuration.commands.main import application
from murmuration.runs.driver import execute
from murmuration.scenario.load import load_scenario
from spark_analysis.tables import AnalysisFolder

SWEEP = "scenario: parity\ngrid:\n  workload.clients: [4]\n"
WRITING = {
    "run": ("run", "parity", "--no-analysis", "--out", "PLACE"),
    "init": ("init", "scenario", "PLACE"),
    "sweep": ("sweep", "sweep.yaml", "--plain", "--out", "PLACE"),
    "hunt": ("hunt", "parity", "--schedules", "1", "--out", "PLACE"),
    "live": ("hunt", "--live", "parity", "--out", "PLACE"),
    "bench": (
        "bench",
        "--workload",
        "zipf",
        "--fault",
        "none",
        "--brokers",
        "10",
        "--seeds",
        "1",
        "--only",
        "irbr/best_effort",
        "--out",
        "PLACE",
    ),
    "zoo": ("zoo", "--plain", "--out", "PLACE"),
    "paper": ("paper", "irbr", "--quick", "--out", "PLACE"),
    "churn": ("churn", "--nodes", "20", "--days", "1", "--out", "PLACE/population.png"),
    "page": ("page", "run", "--out", "PLACE/page.html"),
    "trace": ("trace", "run", "0:0", "--out", "PLACE/way.svg"),
}
LAST = {
    "analyze": ("run/report.html",),
    "sweep": ("out/table.csv", "out/table.parquet", "out/report.html"),
    "bench": ("out/table.csv", "out/table.parquet", "out/cards.json", "out/bench.html"),
}
"""What is written when everything else is done."""
FOLDERS = ("run", "init", "sweep", "hunt", "live", "bench", "zoo", "paper")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    small = ["overlay.brokers=4", "workload.clients=4", "workload.publications=5"]
    place = tmp_path_factory.mktemp("places") / "run"
    return execute(load_scenario(Path("parity"), small), place, lambda *_: None).folder


@pytest.fixture(autouse=True)
def here(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with what the commands read."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(run, "run")
    Path("sweep.yaml").write_text(SWEEP)
    Path("file").write_text("what was there")


def murmur(*arguments: str) -> None:
    application(list(arguments), standalone_mode=False)


@pytest.mark.parametrize("command", WRITING)
@pytest.mark.parametrize("place", ["file/below", "/proc/none"])
def test_a_folder_that_cannot_be_made_is_named(place: str, command: str) -> None:
    with pytest.raises(InputError, match=rf"{place}.*found .*(Not a directory|No such file or directory)"):
        murmur(*(each.replace("PLACE", place) for each in WRITING[command]))
    assert sorted(each.name for each in Path().iterdir()) == ["file", "run", "sweep.yaml"]


@pytest.mark.parametrize("command", FOLDERS)
@pytest.mark.parametrize("place", ["file", "/proc"])
def test_so_is_one_that_is_a_file_or_lets_nothing_in(place: str, command: str) -> None:
    with pytest.raises(InputError, match=rf"{place}.*found"):
        murmur(*(each.replace("PLACE", place) for each in WRITING[command]))
    assert Path("file").read_text() == "what was there"


def test_so_is_a_folder_that_cannot_be_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(dir: Path) -> None:
        raise PermissionError(13, "Permission denied", str(dir))

    monkeypatch.setattr("murmur_pubsub.whole_files.tempfile.TemporaryFile", closed)
    with pytest.raises(InputError, match=r"^closed: found .*Permission denied"):
        murmur("init", "scenario", "closed")
    assert not list(Path("closed").iterdir())


def test_a_run_folder_that_cannot_be_written_is_named() -> None:
    Path("run/tables").write_text("what was there")
    with pytest.raises(InputError, match=r"^run/tables: found no folder; allowed: the place of one"):
        murmur("analyze", "run", "--plain", "--parquet")
    assert [path.read_text() for path in Path("run").glob("*tables*")] == ["what was there"]
    Path("run/analysis").symlink_to("nowhere")
    with pytest.raises(InputError, match=r"^run/analysis: found no folder"), AnalysisFolder(Path("run")).anew():
        pass
    assert Path("run/analysis").is_symlink()
    place = "file/analysis: found no place for a folder .Not a directory."
    with pytest.raises(InputError, match=rf"^{place}"), AnalysisFolder(Path("file")).anew():
        pass


def test_a_report_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("run/report.html").mkdir()
    monkeypatch.setattr("spark_analysis.main.write_report", lambda run: write_text(run / "report.html", "text"))
    with pytest.raises(InputError, match=r"^run/report.html: found a place that cannot be written \(Is a directory\)"):
        murmur("report", "run")


@pytest.mark.parametrize(("command", "place"), [(each, place) for each, places in LAST.items() for place in places])
def test_a_folder_in_the_place_of_what_is_written_last_is_named_at_first(command: str, place: str) -> None:
    Path(place).mkdir(parents=True)
    others = sorted(Path().rglob("*"))
    arguments = (each.replace("PLACE", "out") for each in WRITING.get(command, ("analyze", "run")))
    with pytest.raises(InputError, match=rf"^{place}: found a folder; allowed: a file, or nothing"):
        murmur(*arguments)
    assert sorted(Path().rglob("*")) == others


@pytest.mark.parametrize(
    ("why", "code"), [(errno.EISDIR, 2), (errno.EROFS, 2), (errno.EACCES, 2), (errno.ENOSPC, 1), (errno.EIO, 1)]
)
@pytest.mark.parametrize("ends", ["", "run", "bench"])
def test_a_place_that_turns_out_to_be_none_is_bad_input_and_a_full_disk_is_not(
    ends: str, why: int, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    writing = typer.Typer()

    @writing.command()
    def command() -> None:
        try:
            with whole(Path("run/report.html")):
                raise OSError(why, os.strerror(why))
        except DiskError as error:
            if not ends:
                raise
            raise CutShort(Path("run"), error) if ends == "run" else BenchCutShort(str(error)) from error

    monkeypatch.setattr("sys.argv", ["murmur"])
    with pytest.raises(SystemExit) as end:
        carry_out(writing)
    assert end.value.code == code
    assert capsys.readouterr().err.startswith(f"murmur: run/report.html: {os.strerror(why)}\n")


def test_what_is_below_a_file_is_named_and_not_its_draft() -> None:
    with pytest.raises(DiskError, match=r"^file/text: Not a directory$"), whole(Path("file/text")) as draft:
        draft.write_text("text")
