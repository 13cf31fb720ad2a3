"""How many random changes to the protocols' code are noticed: by the quick tests, by a short hunt, or by neither.

`python -m benchmarks.mutants FILE [--count 300] [--seed 1] [--under reliability/gryphon ...]` draws that many changes
(`benchmarks.mutations`) of `murmur_pubsub`, `routing` and `reliability`, or under these folders and files: modules of
`spark_analysis` that need no Spark may be among them. It makes one at a time: in a fork of a process that has imported
all tests, or in a copy of the tree, if the change is of what runs while a module is imported. Then it runs the tests of
that part that reach the changed line, the quickest first, until one fails; then others that do and need neither Ray nor
Spark, up to `--others` seconds of them; then a short guided hunt (`benchmarks.short_hunt`) with `--schedules` schedules
of the pairs that the part takes part in. FILE keeps a line of JSON for each; a run that was interrupted goes on where
it was. FILE.lines keeps which test runs what. `--again` plays again what nothing had noticed, and `--seconds` begins no
change after that time. The table and the survivors are printed at the end.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from io import BytesIO
from itertools import accumulate, islice
from pathlib import Path
from typing import Any
from zlib import crc32

from benchmarks.forked_tests import ForkedTests
from benchmarks.mutations import Mutation, compiles, mutations_of
from benchmarks.touched_lines import QUICK, TouchedLines, measured

ROOT = Path(__file__).parents[1]
_ALL_PAIRS = [
    "cells/gryphon",
    "multipath/best_effort",
    "forwarding/epidemic",
    "irbr/best_effort",
    "vinifera/best_effort",
]
_STRUCTURED = ["irbr/best_effort", "scribe/best_effort", "rpf/best_effort"]
_SMALL_WORLD = ["vinifera/best_effort", "vinifera_even/best_effort", "ferry/best_effort"]
_PARTS: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "reliability/gryphon": (["gryphon"], ["cells/gryphon"]),
    "reliability/durable": (["durable"], ["cells/durable"]),
    "reliability/epidemic": (["epidemic"], ["forwarding/epidemic", "flooding/epidemic"]),
    "routing/cells": (["gryphon", "cells"], ["cells/gryphon", "cells/best_effort"]),
    "routing/multipath": (["multipath"], ["multipath/best_effort"]),
    "routing/pastry": (["pastry", "irbr", "scribe_and_rpf"], _STRUCTURED),
    "routing/irbr": (["irbr"], ["irbr/best_effort"]),
    "routing/scribe": (["scribe_and_rpf"], ["scribe/best_effort"]),
    "routing/rpf": (["scribe_and_rpf"], ["rpf/best_effort"]),
    "routing/smallworld": (["vinifera"], _SMALL_WORLD),
    "routing/vinifera": (["vinifera"], ["vinifera/best_effort", "vinifera_even/best_effort"]),
    "routing/ferry": (["vinifera"], ["ferry/best_effort"]),
    "routing": (["forwarding", "multipath", "irbr"], _ALL_PAIRS),
    "reliability": (["gryphon", "epidemic"], _ALL_PAIRS),
    "murmur_pubsub": ([], _ALL_PAIRS),
    "spark_analysis": ([], _ALL_PAIRS),
}
"""Folders of tests/protocols and pairs of protocols, by part; the first part whose folder holds the file counts."""
_OF_WHAT_IS_IMPORTED = ("tests/docs/test_reference.py", "tests/golden/test_formats.py")
_ALL_TESTS = (
    "tests/unit", "tests/golden", "tests/conformance", "tests/virtual", "tests/protocols", "tests/judge", "tests/hunt",
    "tests/docs/test_reference.py",
)  # fmt: skip
_BASELINE_SECONDS_MAX = 3_000
_SECONDS_MAX = 1_000
"""Tests or schedules that take so long with a change have noticed it."""
_BYTES_MAX = 4 << 30


def draw(count: int, seed: int, under: Sequence[str]) -> list[Mutation]:
    """The changes, in a random order that a larger count only continues."""
    files = sorted(path for each in under for path in [*(ROOT / each).rglob("*.py"), ROOT / each] if path.is_file())
    every = [each for path in files for each in mutations_of(ROOT, path)]
    random.Random(seed).shuffle(every)
    sound = (each for each in every if compiles(each.applied((ROOT / each.path).read_text())))
    return list(islice(sound, count))


def copy_tree(to: Path) -> None:
    """What git has of the tree, as it is committed."""
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as file:
        file.extractall(to, filter="data")


@dataclass(frozen=True)
class Effort:
    """What is played besides a part's own tests: other tests that took so many seconds together, the quickest first,
    and so many schedules."""

    others_s: float
    schedules: int


def noticed_by(
    tree: Path, forked: ForkedTests, mutation: Mutation, touched: TouchedLines, effort: Effort
) -> tuple[str, str]:
    """Make the change, and say what notices it: "its tests", "other tests", "the hunt" or "nothing"; and who first."""
    folders, pairs = _PARTS[part_of(mutation.path)]
    own = tuple(f"tests/protocols/{name}/" for name in folders) or ("tests/unit/",)
    own = (*own, "tests/golden/")
    tests = touched.tests_of(mutation)
    if mutation.lines is None:  # such as a default or a number, which these tests tell
        tests |= {test: taken for each in _OF_WHAT_IS_IMPORTED for test, taken in touched.seconds[each].items()}
    by_cost = sorted((each for each in forked.tests if each in tests), key=tests.__getitem__)
    ours = [each for each in by_cost if each.startswith(own)]
    others = [each for each in by_cost if not each.startswith(own)]
    together = list(accumulate(tests[each] for each in others))
    asked = [*ours, *others[: bisect_right(together, effort.others_s)]]
    changed = mutation.applied((tree / mutation.path).read_text())
    said: str | None = None
    if mutation.lines is not None:
        said = forked.play(mutation.path, changed, asked, pairs, effort.schedules, _SECONDS_MAX).get("said")
    if said is None:
        said = _played_anew(tree, mutation.path, changed, asked, pairs, effort.schedules)
    if not said:
        return "nothing", ""
    name = said.partition(" ")[2]
    return "its tests" if name.startswith(own) else "other tests" if name.startswith("tests/") else "the hunt", said


def _played_anew(
    tree: Path, name: str, changed: str, tests: Sequence[str], pairs: Sequence[str], schedules: int
) -> str:
    """The same as `ForkedTests.play`, by processes that import the changed file."""
    path = tree / name
    source, written = path.read_text(), path.stat()
    try:
        path.write_text(changed)
        # Byte code is kept between changes, and belongs to a second and a size of its source.
        os.utime(path, (0, crc32(path.read_bytes())))
        if tests and (said := _complaint(tree, "pytest", *QUICK, "-x", "-p", "benchmarks.cpu_limit", *tests)):
            return said
        asked = ["--schedules", str(schedules), "--right", str(ROOT)]
        return _complaint(tree, "benchmarks.short_hunt", *pairs, *asked) if schedules else ""
    finally:
        path.write_text(source)
        os.utime(path, ns=(written.st_atime_ns, written.st_mtime_ns))


def pairs_of(path: str) -> Sequence[str]:
    """The pairs of protocols that the file's part takes part in."""
    return _PARTS[part_of(path)][1]


def part_of(path: str) -> str:
    """The part that a file belongs to."""
    return next(each for each in _PARTS if path.startswith(f"{each}/"))


def _complaint(tree: Path, module: str, *arguments: str) -> str:
    """What the command says when it does not end well; one that hangs has noticed, too."""
    try:
        done = _run(tree, _SECONDS_MAX, module, *arguments)
    except subprocess.TimeoutExpired:
        return f"{module} hangs"
    if done.returncode == 0:
        return ""
    said = done.stdout.splitlines()
    return next((line for line in said if line.startswith(("FAILED", "ERROR"))), said[-1] if said else "it breaks off")


def _run(tree: Path, seconds_max: float, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(tree), "CI": "true"}
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=tree, env=environment, capture_output=True, text=True, check=False, timeout=seconds_max,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (_BYTES_MAX, _BYTES_MAX)),
    )  # fmt: skip


class Played:
    """What became of each change; FILE keeps it, and the later of two lines about one change counts."""

    def __init__(self, file: Path) -> None:
        self._file = file
        kept = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        self.ends: dict[tuple[str, int, str], dict[str, Any]] = {_key(each): each for each in kept}

    def play(self, mutations: Sequence[Mutation], effort: Effort, seconds_max: float) -> None:
        """Play these, as far as the time goes."""
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder, self._file.open("a") as out:
            tree = Path(folder)
            copy_tree(tree)

            def measure(module: str, *arguments: str) -> None:
                done = _run(tree, _BASELINE_SECONDS_MAX, module, *arguments)
                if done.returncode:
                    raise RuntimeError(f"the tests cannot be measured: {done.stderr}")

            touched = measured(Path(f"{self._file}.lines"), tree, _ALL_TESTS, measure)
            with closing(ForkedTests(tree, _ALL_TESTS)) as forked:
                for number, mutation in enumerate(mutations):
                    at = time.monotonic()
                    if at - began > seconds_max:
                        print(f"{len(mutations) - number} are left")
                        return
                    who, said = noticed_by(tree, forked, mutation, touched, effort)
                    took = round(time.monotonic() - at, 1)
                    end = {**asdict(mutation), "noticed_by": who, "said": said, "seconds": took}
                    self.ends[_key(end)] = end
                    out.write(json.dumps(end) + "\n")
                    out.flush()
                    print(f"{number + 1} of {len(mutations)}, {took} s: {place(end)} {who}: {said}", flush=True)

    def table(self) -> str:
        """What noticed how many, by part; and what nothing noticed."""
        by_part: dict[str, Counter[str]] = {}
        for each in self.ends.values():
            for part in (part_of(each["path"]), "~all"):
                by_part.setdefault(part, Counter())[each["noticed_by"]] += 1
        names = ("its tests", "other tests", "the hunt", "nothing")
        lines = [f"{'part':24}{'changes':>8}" + "".join(f"{name:>{len(name) + 2}}" for name in names)]
        for part, counts in sorted(by_part.items()):
            columns = "".join(f"{counts[name]:>{len(name) + 2}}" for name in names)
            lines.append(f"{part.lstrip('~'):24}{counts.total():>8}{columns}")
        lines += [place(each) for each in self.ends.values() if each["noticed_by"] == "nothing"]
        return "\n".join(lines)


def _key(end: Mapping[str, Any]) -> tuple[str, int, str]:
    return end["path"], end["begin"], end["text"]


def place(end: Mapping[str, Any]) -> str:
    """A change, in a line."""
    return f"{end['path']}:{end['line']}: {end['what']}: {end['text']!r}"


def main() -> None:
    """Play the changes, and print what noticed them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--under", action="append", help="a folder or a file (all three folders, if none is given)")
    parser.add_argument("--again", action="store_true", help="only those that nothing had noticed")
    parser.add_argument("--others", type=float, default=15, help="seconds of tests of other parts")
    parser.add_argument("--schedules", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    given = parser.parse_args()
    played = Played(given.file)
    if given.again:
        names = [each.name for each in fields(Mutation)]
        left = [each for each in played.ends.values() if each["noticed_by"] == "nothing"]
        mutations = [Mutation(**{name: each[name] for name in names}) for each in left]
    else:
        drawn = draw(given.count, given.seed, given.under or ["murmur_pubsub", "routing", "reliability"])
        mutations = [each for each in drawn if _key(asdict(each)) not in played.ends]
    played.play(mutations, Effort(given.others, given.schedules), given.seconds)
    print(played.table())


if __name__ == "__main__":
    main()
