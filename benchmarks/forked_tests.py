"""A process that has collected all quick tests, and plays some of them, for one change at a time, in a fork of itself.

To start pytest and to import all that tests need takes seconds, most tests milliseconds. The other process is a
`ForkedTests`; the two speak JSON, a line each, over two pipes.
"""

import gc
import json
import os
import resource
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from benchmarks.swapped_code import CannotSwapError, functions_by_code, swap
from benchmarks.touched_lines import QUICK

_BYTES_MAX = 4 << 30


class ForkedTests:
    """The side that asks. `folders`: whose quick tests there are; `tree`: in which they are."""

    def __init__(self, tree: Path, folders: Sequence[str]) -> None:
        asked, self._asks = os.pipe()
        self._told, tells = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.forked_tests", str(asked), str(tells), *folders],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree), "CI": "true"},
            pass_fds=(asked, tells),
            stdout=subprocess.DEVNULL,
        )
        os.close(asked)
        os.close(tells)
        self._answers = os.fdopen(self._told)
        self.tests: list[str] = json.loads(self._answers.readline())
        """Those there are."""

    def play(
        self, path: str, after: str, tests: Sequence[str], pairs: Sequence[str], schedules: int, seconds_max: float
    ) -> dict[str, Any]:
        """Make the file at that path be the text `after`, then run the tests up to the first that fails, then hunt the
        pairs with that many schedules, up to the first that shows something wrong.

        Returns `said`: what failed, and how ("" if nothing has), and `seconds` of CPU of each test that has passed;
        or `cannot`: why this change cannot be made so. One that nothing has noticed cannot, if a function has run while
        modules were imported: what it left behind then, such as what it decorated, is as before.
        """
        request = {
            "path": path, "after": after, "tests": tests, "pairs": pairs, "schedules": schedules,
            "seconds_max": seconds_max,
        }  # fmt: skip
        os.write(self._asks, json.dumps(request).encode() + b"\n")
        return dict(json.loads(self._answers.readline()))

    def close(self) -> None:
        """End the process."""
        os.close(self._asks)
        self._answers.close()
        self._process.wait()


class _Server:
    """The other side, a plugin of pytest."""

    def __init__(self, asked: int, tells: int) -> None:
        self._asked, self._tells = os.fdopen(asked), os.fdopen(tells, "w")
        self._said = ""
        self._ran: dict[int, CodeType] = {}
        """Code that has run while modules were imported; by number, since to hash code takes long."""
        sys.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            self._ran[id(frame.f_code)] = frame.f_code

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In place of running what was collected."""
        import benchmarks.short_hunt  # noqa: F401 (not earlier: pytest has to see murmuration's plugin imported)

        sys.setprofile(None)

        items = {item.nodeid: item for item in session.items}
        functions = functions_by_code()
        gc.freeze()  # what a fork does not touch need not be copied
        self._tell(sorted(items))
        for line in self._asked:
            request = json.loads(line)
            path = str(Path.cwd() / request["path"])
            reads, writes = os.pipe()
            child = os.fork()
            if not child:
                os.close(reads)
                with os.fdopen(writes, "w") as out:
                    self._play(request, path, functions, items, out)
                os._exit(0)
            os.close(writes)
            self._tell(_outcome(reads, child, request["seconds_max"]))
        return True

    def _play(self, request: Any, path: str, functions: Any, items: Any, out: Any) -> None:
        def say(**what: Any) -> None:
            out.write(json.dumps(what) + "\n")
            out.flush()

        try:
            changed = swap(functions, path, Path(path).read_text(), request["after"])
        except CannotSwapError as error:
            say(cannot=str(error))
            return
        from benchmarks.hunt import end_right_code
        from benchmarks.short_hunt import short_hunt

        tests = [items[each] for each in request["tests"]]
        for item, following in zip(tests, [*tests[1:], None], strict=True):
            say(begins=item.nodeid)
            began = time.process_time()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._said:
                say(said=self._said)
                return
            say(passed=item.nodeid, seconds=round(time.process_time() - began, 4))
        say(begins="the hunt")
        for said in short_hunt(request["pairs"], request["schedules"], Path.cwd()):
            if said:
                end_right_code()
                say(said=said)
                return
        if any(code in changed for code in self._ran.values() if code.co_filename == path):
            say(cannot="a function has run while modules were imported")
        else:
            say(said="")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The first that fails, and why."""
        if report.failed and not self._said:
            why = str(report.longrepr).strip().splitlines()
            self._said = f"FAILED {report.nodeid} - {why[-1] if why else ''}"

    def _tell(self, what: Any) -> None:
        self._tells.write(json.dumps(what) + "\n")
        self._tells.flush()


def _outcome(reads: int, child: int, seconds_max: float) -> dict[str, Any]:
    """What the child says, up to its end or that time."""
    until = time.monotonic() + seconds_max
    said = b""
    while select.select([reads], [], [], max(0.0, until - time.monotonic()))[0]:
        more = os.read(reads, 1 << 16)
        if not more:
            break
        said += more
    else:
        os.kill(child, 9)
    os.close(reads)
    os.waitpid(child, 0)
    lines = [json.loads(line) for line in said.splitlines()]
    if not lines:
        return {"cannot": "the fork has ended before it began"}
    if "cannot" in lines[-1]:
        return dict(lines[-1])
    seconds = {each["passed"]: each["seconds"] for each in lines if "passed" in each}
    end = lines[-1]
    return {"said": end["said"] if "said" in end else f"FAILED {end['begins']} - it does not end", "seconds": seconds}


def main() -> None:
    """`python -m benchmarks.forked_tests ASKED TELLS FOLDER ...`."""
    resource.setrlimit(resource.RLIMIT_DATA, (_BYTES_MAX, _BYTES_MAX))
    server = _Server(int(sys.argv[1]), int(sys.argv[2]))
    pytest.main([*QUICK, "-p", "benchmarks.cpu_limit", *sys.argv[3:]], plugins=[server])


if __name__ == "__main__":
    main()
