"""How many random changes to the protocols' code are noticed: by the quick tests, by random schedules, or by neither.

`python -m benchmarks.mutants FILE [--count 300] [--seed 1] [--under reliability/gryphon ...]` draws that many changes
(`benchmarks.mutations`) of `murmur_pubsub`, `routing` and `reliability`. It makes one at a time in a copy of the
tree, and runs the tests of that part, then all others that need neither Ray nor Spark, then random schedules of the
pairs that the part takes part in. FILE keeps a line of JSON for each; a run that was interrupted goes on where it was.
The table and the survivors are printed at the end.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import Any

from benchmarks.mutations import Mutation, mutations_of

ROOT = Path(__file__).parents[1]
_QUICK = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not slow and not ray and not spark"]
_ALL_PAIRS = [
    "cells/gryphon",
    "multipath/best_effort",
    "forwarding/epidemic",
    "irbr/best_effort",
    "vinifera/best_effort",
]
_STRUCTURED = ["irbr/best_effort", "scribe/best_effort", "rpf/best_effort"]
_SMALL_WORLD = ["vinifera/best_effort", "ferry/best_effort"]
_PARTS: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "reliability/gryphon": (["gryphon"], ["cells/gryphon"]),
    "reliability/epidemic": (["epidemic"], ["forwarding/epidemic", "flooding/epidemic"]),
    "routing/cells": (["gryphon"], ["cells/gryphon", "cells/best_effort"]),
    "routing/multipath": (["multipath"], ["multipath/best_effort"]),
    "routing/pastry": (["pastry", "irbr", "scribe_and_rpf"], _STRUCTURED),
    "routing/irbr": (["irbr"], ["irbr/best_effort"]),
    "routing/scribe": (["scribe_and_rpf"], ["scribe/best_effort"]),
    "routing/rpf": (["scribe_and_rpf"], ["rpf/best_effort"]),
    "routing/smallworld": (["vinifera"], _SMALL_WORLD),
    "routing/vinifera": (["vinifera"], ["vinifera/best_effort"]),
    "routing/ferry": (["vinifera"], ["ferry/best_effort"]),
    "routing": (["forwarding", "multipath", "irbr"], _ALL_PAIRS),
    "reliability": (["gryphon", "epidemic"], _ALL_PAIRS),
    "murmur_pubsub": ([], _ALL_PAIRS),
}
"""Folders of tests/protocols and pairs of protocols, by part; the first part whose folder holds the file counts."""
_ALL_TESTS = ["tests/unit", "tests/golden", "tests/conformance", "tests/virtual", "tests/protocols", "tests/judge"]
_SECONDS_MAX = 600
"""Each of the three takes a fifth of it. A change that makes them take all of it has been noticed."""
_SCHEDULES = 150


def draw(count: int, seed: int, under: Sequence[str]) -> list[Mutation]:
    """The changes, in a random order that a larger count only continues."""
    files = sorted(path for folder in under for path in (ROOT / folder).rglob("*.py"))
    every = [each for path in files for each in mutations_of(ROOT, path)]
    random.Random(seed).shuffle(every)
    return every[:count]


def copy_tree(to: Path) -> None:
    """What git has of the tree, as it is committed."""
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as file:
        file.extractall(to, filter="data")


def noticed_by(tree: Path, mutation: Mutation) -> str:
    """Make the change, and say what notices it: "its tests", "other tests", "schedules" or "nothing"."""
    path = tree / mutation.path
    source = path.read_text()
    part = next(each for each in _PARTS if mutation.path.startswith(f"{each}/"))
    tests, pairs = _PARTS[part]
    own = [f"tests/protocols/{name}" for name in tests] or ["tests/unit"]
    try:
        path.write_text(mutation.applied(source))
        if not _passes(tree, "pytest", *_QUICK, *own):
            return "its tests"
        others = [f"--ignore={each}" for each in own]
        if not _passes(tree, "pytest", *_QUICK, *(each for each in _ALL_TESTS if each not in own), *others):
            return "other tests"
        asked = [argument for pair in pairs for argument in ("--pair", pair)]
        count = str(_SCHEDULES * len(pairs))
        if not _passes(tree, "benchmarks.schedules", "--fail", "--workers", "1", "--count", count, *asked):
            return "schedules"
        return "nothing"
    finally:
        path.write_text(source)


def _passes(tree: Path, module: str, *arguments: str) -> bool:
    """Does the command end well, in time? One that hangs has noticed, too."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "CI": "true", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=tree, env=environment, capture_output=True, check=False, timeout=_SECONDS_MAX,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def played(file: Path, mutations: Sequence[Mutation]) -> Iterator[dict[str, Any]]:
    """What became of each change; what the file keeps is not played again."""
    kept = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    known = {(each["path"], each["begin"], each["text"]): each for each in kept}
    began, new = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder, file.open("a") as out:
        copy_tree(Path(folder))
        for number, mutation in enumerate(mutations, 1):
            key = (mutation.path, mutation.begin, mutation.text)
            if key not in known:
                known[key] = {**asdict(mutation), "noticed_by": noticed_by(Path(folder), mutation)}
                out.write(json.dumps(known[key]) + "\n")
                out.flush()
                new += 1
                left_s = (time.monotonic() - began) / new * (len(mutations) - number)
                told = f"{mutation.path}:{mutation.line} {mutation.what}: {known[key]['noticed_by']}"
                print(f"{number} of {len(mutations)}, {left_s:.0f} s left: {told}", flush=True)
            yield known[key]


def main() -> None:
    """Play the changes, and print what noticed them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--under", action="append", help="a folder (all three, if none is given)")
    given = parser.parse_args()
    mutations = draw(given.count, given.seed, given.under or ["murmur_pubsub", "routing", "reliability"])
    ends = list(played(given.file, mutations))
    by_part: dict[str, Counter[str]] = {}
    for each in ends:
        part = next(part for part in _PARTS if each["path"].startswith(f"{part}/"))
        by_part.setdefault(part, Counter())[each["noticed_by"]] += 1
    print(f"\n{'part':24}{'changes':>8}{'its tests':>11}{'other tests':>13}{'schedules':>11}{'nothing':>9}")
    for part, counts in [*sorted(by_part.items()), ("all", Counter(each["noticed_by"] for each in ends))]:
        columns = "".join(
            f"{counts[name]:>{len(name) + 2}}" for name in ("its tests", "other tests", "schedules", "nothing")
        )
        print(f"{part:24}{counts.total():>8}{columns}")
    for each in ends:
        if each["noticed_by"] == "nothing":
            print(f"{each['path']}:{each['line']}: {each['what']}: {each['text']!r}")


if __name__ == "__main__":
    main()
