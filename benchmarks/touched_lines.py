"""Which tests run which lines, and how long each test takes.

A change of a line is noticed by a test that runs it, or by none. So this is measured once, with `coverage`, and is kept
beside what the tests found; a test module is measured again when it has changed, or a file that it runs, or one that
is no module and stands in its folder (tests/golden reads what it plays).
"""

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from benchmarks.mutations import Mutation

QUICK = ("-q", "-p", "no:cacheprovider", "-m", "not slow and not ray and not spark", "--hypothesis-profile=mutants")
_CHANGED = ("murmur_pubsub", "routing", "reliability", "spark_analysis")
"""The folders whose lines are noted: a change may be of these."""
_AT_ONCE = 12
"""Test modules that are measured by one process: as many are lost if it is interrupted."""


@dataclass
class TouchedLines:
    """By test module: the digests of the files that it ran and of its own, the seconds of its tests, and who ran what.

    `lines` has by path and line the tests that ran it.
    """

    digests: dict[str, dict[str, str]] = field(default_factory=dict)
    seconds: dict[str, dict[str, float]] = field(default_factory=dict)
    lines: dict[str, dict[str, dict[int, list[str]]]] = field(default_factory=dict)

    def tests_of(self, mutation: Mutation) -> dict[str, float]:
        """The tests that may notice the change, and their seconds.

        What runs while its module is imported is reached by no test, whoever depends on it: then these are all tests
        that reach anything of that file, or all there are, if it has nothing else.
        """
        first, last = mutation.lines or (1, 0)
        found: set[str] = set()
        beside: set[str] = set()
        for by_path in self.lines.values():
            for line, tests in by_path.get(mutation.path, {}).items():
                beside.update(tests)
                if first <= line <= last:
                    found.update(tests)
        seconds = {test: taken for each in self.seconds.values() for test, taken in each.items()}
        return {test: seconds[test] for test in found or beside or seconds}


def measured(kept: Path, tree: Path, folders: Sequence[str], run: Callable[..., Any]) -> TouchedLines:
    """What that file keeps of the tests in those folders of the tree; what it lacks is measured, and kept."""
    known = TouchedLines(**_read(kept)) if kept.exists() else TouchedLines()
    modules = sorted(
        str(path.relative_to(tree))
        for folder in folders
        for path in [tree / folder, *(tree / folder).rglob("test_*.py")]
        if path.suffix == ".py"
    )
    for name in set(known.digests) - set(modules):
        for each in (known.digests, known.seconds, known.lines):
            each.pop(name, None)
    stale = [each for each in modules if known.digests.get(each) != _digests(tree, known, each)]
    for at in range(0, len(stale), _AT_ONCE):
        names = stale[at : at + _AT_ONCE]
        print(f"which lines the tests run: {at} of {len(stale)} modules", flush=True)
        run("benchmarks.touched_lines", str(kept.resolve()) + ".new", *names)
        new = _read(Path(f"{kept}.new"))
        for name in names:
            known.seconds[name] = new["seconds"].get(name, {})
            known.lines[name] = new["lines"].get(name, {})
            known.digests[name] = _digests(tree, known, name)
        kept.write_text(json.dumps({"digests": known.digests, "seconds": known.seconds, "lines": known.lines}))
        Path(f"{kept}.new").unlink()
    return known


def _read(path: Path) -> dict[str, Any]:
    read = json.loads(path.read_text())
    for by_path in read["lines"].values():
        for file, by_line in by_path.items():
            by_path[file] = {int(line): tests for line, tests in by_line.items()}
    return dict(read)


def _digests(tree: Path, known: TouchedLines, module: str) -> dict[str, str]:
    beside = (each for each in (tree / module).parent.rglob("*") if each.suffix not in ("", ".py", ".pyc"))
    paths = [module, *known.lines.get(module, {}), *(str(each.relative_to(tree)) for each in beside)]
    return {
        path: hashlib.sha256((tree / path).read_bytes()).hexdigest() if (tree / path).exists() else ""
        for path in sorted(paths)
    }


class _Watch:
    """A plugin of pytest that tells coverage which test runs."""

    def __init__(self, coverage: Any) -> None:
        self.coverage = coverage
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """The whole of a test, its fixtures included."""
        self.coverage.switch_context(item.nodeid)
        began = time.perf_counter()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = round(time.perf_counter() - began, 4)
            self.coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test that fails without any change can show nothing."""
        if report.failed:
            self.failed.add(report.nodeid)


def main() -> None:
    """`python -m benchmarks.touched_lines OUT MODULE ...`, in the tree whose tests these are."""
    from coverage import Coverage

    out, modules, tree = Path(sys.argv[1]), sys.argv[2:], Path.cwd()
    coverage = Coverage(data_file=None, include=[f"{tree}/{each}/*" for each in _CHANGED])
    watch = _Watch(coverage)
    coverage.start()
    pytest.main([*QUICK, *modules], plugins=[watch])
    coverage.stop()
    data = coverage.get_data()
    lines: dict[str, dict[str, dict[int, list[str]]]] = {each: {} for each in modules}
    for path in sorted(data.measured_files()):
        name = str(Path(path).relative_to(tree))
        for line, tests in data.contexts_by_lineno(path).items():
            for test in set(tests) - watch.failed - {""}:
                lines[test.partition("::")[0]].setdefault(name, {}).setdefault(line, []).append(test)
    seconds: dict[str, dict[str, float]] = {each: {} for each in modules}
    for test, taken in watch.seconds.items():
        if test not in watch.failed:
            seconds[test.partition("::")[0]][test] = taken
    if watch.failed:
        print(f"these fail without any change, and are left out: {sorted(watch.failed)}", file=sys.stderr)
    out.write_text(json.dumps({"seconds": seconds, "lines": lines}))


if __name__ == "__main__":
    main()
