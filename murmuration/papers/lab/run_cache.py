"""The finished runs of a reproduction, kept in its folder as they end: with the same folder it goes on where it was.

`runs.jsonl` has one line a run: what was to be run and what came out, as JSON. A run whose description has changed
since is another run; a line that cannot be read, of an interrupted write or of another version, counts as not there.
"""

import json
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from murmur_pubsub.progress import Progress
from murmuration.papers.lab.framework import WORKERS, in_parallel

Point = TypeVar("Point", bound=Hashable)
Result = TypeVar("Result")


def carry_out(
    function: Callable[[Point], Result],
    points: Iterable[Point],
    folder: Path,
    progress: Progress,
    result_type: Callable[[Point], Any],
    workers: int = WORKERS,
) -> dict[Point, Result]:
    """The function's result for each point, of those kept in the folder or else of a run now; each point is run once.
    `result_type`: what a point's result is read back as; `workers`: how many are run at a time."""
    wanted = list(dict.fromkeys(points))
    path = folder / "runs.jsonl"
    found = read_kept(path, wanted, result_type)
    waiting = [point for point in wanted if point not in found]
    before = len(found)
    with path.open("a") as file:
        if path.stat().st_size and not path.read_bytes().endswith(b"\n"):
            file.write("\n")  # what an interrupted run left ends here

        def keep(point: Point, result: Result) -> None:
            file.write(json.dumps({"point": to_jsonable_python(point), "result": to_jsonable_python(result)}) + "\n")
            file.flush()

        results = in_parallel(
            function,
            waiting,
            lambda step, done, _: progress(step, before + done, len(wanted)),
            workers=workers,
            keep=keep,
        )
    return found | dict(zip(waiting, results, strict=True))


def read_kept(path: Path, points: Sequence[Point], result_type: Callable[[Point], Any]) -> dict[Point, Any]:
    """What the file keeps of these points."""
    by_text = {_text(to_jsonable_python(point)): point for point in points}
    found: dict[Point, Any] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            kept = json.loads(line)
            point = by_text.get(_text(kept["point"]))
            if point is not None:
                found[point] = TypeAdapter(result_type(point)).validate_python(kept["result"])
        except (json.JSONDecodeError, KeyError, TypeError, ValidationError):
            continue
    return found


def _text(point: Any) -> str:
    return json.dumps(point, sort_keys=True)
