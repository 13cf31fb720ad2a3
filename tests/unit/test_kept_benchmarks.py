"""What `python -m benchmarks` keeps of a benchmark, and what it says to a wrong command line."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import WHOLE, Benchmark, main, run
from benchmarks.other_code import HERE, environment_of

QUIET = Benchmark("table", 0)
"""A module that prints nothing when it is run."""


def test_each_benchmark_is_a_module_that_prints_its_tables() -> None:
    for each in WHOLE:
        text = (HERE / "benchmarks" / f"{each.name}.py").read_text()
        assert "print_table(" in text, each.name
        assert '__name__ == "__main__"' in text, each.name


def test_what_was_measured_is_kept_with_the_command_the_code_and_the_computer(tmp_path: Path) -> None:
    assert run(QUIET, None, None, tmp_path / "kept")
    command, code, computer, took = (tmp_path / "kept" / "table.txt").read_text().splitlines()
    assert command == "python -m benchmarks.table"
    assert code.startswith("code: ")
    assert "cores" in computer
    assert "load before" in computer
    assert took.startswith("took ")


def test_the_same_is_measured_over_another_checkout(tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "murmur_pubsub").mkdir(parents=True)
    (other / "murmur_pubsub" / "__init__.py").write_text("")
    assert run(QUIET, other, None, tmp_path)
    assert "--- the same over the code of no commit ---" in (tmp_path / "table.txt").read_text()
    asked = "import os, benchmarks as b, murmur_pubsub as m; print(*map(os.path.realpath, (b.__file__, m.__file__)))"
    with environment_of(other) as environment:
        command = [sys.executable, "-P", "-c", asked]
        found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()
    assert Path(found[0]) == HERE / "benchmarks" / "__init__.py"
    assert Path(found[1]) == other.resolve() / "murmur_pubsub" / "__init__.py"


def test_a_benchmark_that_fails_is_told(tmp_path: Path) -> None:
    assert not run(Benchmark("no_such_benchmark", 0), None, None, tmp_path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["matchin"], "there is no benchmark matchin; allowed: matching, matching_million"),
        (["engine", "--before", "nowhere"], "nowhere: that folder is no checkout of murmur"),
    ],
)
def test_a_wrong_command_line_ends_with_code_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_folders_are_meant_from_where_the_command_is_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "earlier" / "murmur_pubsub").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    given: list[Path | None] = []

    def noting(benchmark: Benchmark, before: Path | None, quotes: Path | None, out: Path | None) -> bool:
        given.extend((before, quotes))
        return True

    monkeypatch.setattr("benchmarks.__main__.run", noting)
    assert main(["engine", "--before", "earlier", "--quotes", "quotes.tar"]) == 0
    assert given == [tmp_path / "earlier", tmp_path / "quotes.tar"]
