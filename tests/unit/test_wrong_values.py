"""One value that is none of its kind, anywhere in what a command reads again: that is told, and never a traceback."""

import contextlib
import json
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from murmur_pubsub.errors import InputError
from murmuration.live.run_list import runs_in
from tests.unit.written_folders import commands, write_folders

WRONG: tuple[Any, ...] = (None, "text", "", -1, 0, 1.5, True, 10**30, float("nan"), [], [None], {}, {"x": None})
CASES = 8
READ = {
    "run/manifest.json": ("compare", "analyze", "report", "page", "trace", "list"),
    "run/analysis/verdict.json": ("compare", "report", "page", "list"),
    "run/analysis/summary.json": ("report",),
    "run/layout.json": ("page",),
    "sweep/sweep.json": ("sweep",),
    "sweep/points/0001.json": ("sweep",),
    "bench/bench.json": ("bench",),
    "bench/cells.jsonl": ("bench",),
    "hunt/hunt.json": ("hunt",),
    "hunt/findings/001-lost/finding.json": ("hunt",),
    "hunt/log.jsonl": ("hunt",),
    "hunt/corpus.jsonl": ("hunt",),
}
"""What reads each file."""
FOUND: list[tuple[str, str, tuple[str | int, ...], Any]] = [
    ("report", "run/analysis/verdict.json", ("missing",), None),
    ("report", "run/analysis/verdict.json", ("delivered",), "text"),
    ("report", "run/analysis/verdict.json", ("verdict",), "text"),
    ("report", "run/analysis/verdict.json", ("reason",), -1),
    ("report", "run/analysis/verdict.json", ("expectations",), [{"name": "rate"}]),
    ("report", "run/analysis/summary.json", ("bucket_us",), 0),
    ("report", "run/analysis/summary.json", ("last_us",), []),
    ("sweep", "sweep/points/0001.json", ("figures", "hops"), "text"),
    ("sweep", "sweep/points/0001.json", ("figures", "delay_p50_us"), []),
    ("sweep", "sweep/points/0001.json", ("verdict", "explained"), "text"),
    ("sweep", "sweep/points/0001.json", ("verdict", "delivered"), 10**30),
    ("hunt", "hunt/log.jsonl", ("found", 0, "keys", "faults"), None),
    ("hunt", "hunt/log.jsonl", ("found", 0, "number"), True),
    ("hunt", "hunt/corpus.jsonl", ("scenario", "overlay"), []),
    ("hunt", "hunt/corpus.jsonl", ("faults",), [[1, "text", 0, None, None]]),
]
"""What ended in a traceback, or later."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wrong_values")
    write_folders(place)
    return place


@pytest.fixture(autouse=True)
def nothing_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell whose line cannot be read counts as one that was not played."""

    def no_ends(*_: object, **__: object) -> Iterator[Any]:
        yield from ()

    monkeypatch.setattr("murmuration.bench.bench.ends_of_tasks", no_ends)


@pytest.mark.parametrize(("file", "command"), [(file, command) for file in READ for command in READ[file]])
def test_a_wrong_value_anywhere_ends_in_no_traceback(file: str, command: str, folders: Path, tmp_path: Path) -> None:
    rng = random.Random(f"{file} {command}")
    for number in range(CASES):
        place = _copied(folders, tmp_path / str(number))
        lines = _documents(place / file)
        line = rng.choice(lines)
        where, value = rng.choice(_places(line, 2 if number % 2 else 9)), rng.choice(WRONG)
        lines[lines.index(line)] = _with(line, where, value)
        _write(place / file, lines)
        told = _told(place, command, f"{where} = {value!r}")
        assert told is None or told.startswith(str(place / file)), f"{where} = {value!r}"


@pytest.mark.parametrize(("command", "file", "where", "value"), FOUND)
def test_it_is_told_by_the_name_of_the_file(
    command: str, file: str, where: tuple[str | int, ...], value: Any, folders: Path, tmp_path: Path
) -> None:
    place = _copied(folders, tmp_path / "folders")
    lines = _documents(place / file)
    _write(place / file, [*lines[:-1], _with(lines[-1], where, value)])
    with pytest.raises(InputError, match=f"^{place / file}"):
        _carry_out(place, command)


@pytest.mark.parametrize(
    ("command", "file", "key"),
    [
        ("page", "verdict.json", "kills_in_process"),
        ("compare", "verdict.json", "reason"),
        ("report", "verdict.json", "delay_live_p99_us"),
        ("report", "summary.json", "last_us"),
    ],
)
def test_of_a_key_that_an_older_version_did_not_write_it_says_what_writes_it(
    command: str, file: str, key: str, folders: Path, tmp_path: Path
) -> None:
    place = _copied(folders, tmp_path / "folders")
    path = place / "run" / "analysis" / file
    (document,) = _documents(path)
    del document[key]
    _write(path, [document])
    told = (
        f"{path}, key {key}: found nothing; allowed: what this version of murmur writes there (`murmur analyze {place}"
    )
    with pytest.raises(InputError, match=f"^{re.escape(told)}/run` judges the run again"):
        _carry_out(place, command)


def test_a_wrong_line_of_a_bench_counts_as_not_there(folders: Path, tmp_path: Path) -> None:
    place = _copied(folders, tmp_path / "folders")
    path = place / "bench" / "cells.jsonl"
    (line,) = _documents(path)
    wrong = [_with(line, ("figures", name), value) for name in ("hops", "messages") for value in WRONG[1:3]]
    wrong += [_with(line, ("verdict", "missing"), 10**30), _with(line, ("figures",), {})]
    _write(path, [*wrong, {**line, "cpu_s": 7.0}])
    commands(place)["bench"]()
    assert "7.0" in (place / "bench" / "table.csv").read_text()


def _told(place: Path, command: str, what: str) -> str | None:
    """The message that the command ended with, or None; anything else that ends it is an error of ours."""
    try:
        _carry_out(place, command)
    except InputError as error:
        return str(error)
    except Exception as error:
        raise AssertionError(what) from error
    return None


def _carry_out(place: Path, command: str) -> None:
    if command == "list":
        assert len(runs_in(place)) == 2
        return
    with contextlib.suppress(typer.Exit):  # of what is read, and not valid
        commands(place)[command]()


def _copied(folders: Path, place: Path) -> Path:
    shutil.copytree(folders, place)
    return place


def _documents(path: Path) -> list[Any]:
    text = path.read_text()
    return [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else [json.loads(text)]


def _write(path: Path, documents: list[Any]) -> None:
    path.write_text("".join(json.dumps(each) + "\n" for each in documents))


def _places(document: Any, depth: int, above: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Where values are, down to that depth."""
    if not depth or not isinstance(document, dict | list):
        return [above]
    inner = document.items() if isinstance(document, dict) else enumerate(document)
    return [above, *(place for key, each in inner for place in _places(each, depth - 1, (*above, key)))]


def _with(document: Any, where: tuple[str | int, ...], value: Any) -> Any:
    """A copy with another value there."""
    if not where:
        return value
    copied = json.loads(json.dumps(document))
    place = copied
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = value
    return copied
