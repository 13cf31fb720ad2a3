"""`murmur sweep`: many runs of one scenario, played as Ray tasks and judged here as they finish.

Playing is what can be spread: each point is a run in virtual time, a task on any core of any host. Judging is done
in one Spark session of this process while the next points are played: a session for each point would cost more than
most runs. A point is done when its record is written. Its run is removed then, unless its verdict is not `valid` or
all are to be kept.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from murmur_pubsub.progress import Progress
from murmur_pubsub.run_manifest import read_manifest
from murmuration.sweeps.folder import SweepFolder
from murmuration.sweeps.plan import SweepPlan, SweepPoint, plain
from murmuration.sweeps.tasks import Cores, ends_of_tasks

_PLAY = "murmuration.sweeps.folder:play_point"
_COUNTS = ("published", "required", "delivered", "missing", "duplicate", "spurious", "out_of_order", "explained")


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """How a sweep is carried out. `judged` False only plays; `keep_runs` keeps the journal of every run."""

    cores: Cores = field(default_factory=Cores)
    judged: bool = True
    keep_runs: bool = False


@dataclass(frozen=True, slots=True)
class SweepEnd:
    """`kept`: points that were done before; `failed`: (point, why) of those that could not be played."""

    kept: int
    done: int
    failed: Sequence[tuple[SweepPoint, str]]


class SweepRun:
    """One sweep in its folder, begun or gone on with."""

    def __init__(self, plan: SweepPlan, folder: Path, options: SweepOptions) -> None:
        self._plan = plan
        self._folder = SweepFolder(folder)
        self._options = options

    def run(self, progress: Progress) -> SweepEnd:
        """Do what is missing; raises `InputError` before anything starts, `RunError` if Ray is lost."""
        with self._folder.opened(self._plan), contextlib.ExitStack() as stack:
            open_points = [point for point in self._plan.points if not self._is_done(point)]
            kept = len(self._plan.points) - len(open_points)
            if not open_points:
                return SweepEnd(kept, 0, ())
            if self._options.judged:
                from spark_analysis.session import start_session

                progress("starting Spark", 0, 0)
                stack.callback(start_session(small=True).stop)
            failed: list[tuple[SweepPoint, str]] = []
            done = 0
            for point, failure in self._played(open_points, stack, progress):
                if failure is not None:
                    failed.append((point, failure))
                elif self._options.judged:
                    self._judge(point)
                done += failure is None
                progress("points", done + len(failed), len(open_points))
            return SweepEnd(kept, done, failed)

    def table(self) -> pd.DataFrame:
        """One row for each judged point: its number, parameters, seed, verdict, counts and figures."""
        records = [record for point in self._plan.points if (record := self._folder.record(point)) is not None]
        table = pd.DataFrame([_row(record) for record in records])
        for key in self._plan.keys:
            if table[key].dtype == object:  # of several kinds, such as null beside numbers
                table[key] = table[key].map(plain)
        return table

    def _is_done(self, point: SweepPoint) -> bool:
        if self._folder.record(point) is not None:
            return True
        return not self._options.judged and self._folder.is_played(point)

    def _played(
        self, points: Sequence[SweepPoint], stack: contextlib.ExitStack, progress: Progress
    ) -> Iterator[tuple[SweepPoint, str | None]]:
        """Each point once there is a whole run of it, or with the reason why there is none."""
        missing = {point.number: point for point in points if not self._folder.is_played(point)}
        for point in points:
            if point.number not in missing:
                yield point, None
        if not missing:
            return

        def begun() -> None:
            progress("points", len(points) - len(missing), len(points))

        progress("starting Ray", 0, 0)
        work = {number: self._folder.work(point) for number, point in missing.items()}
        ends = ends_of_tasks(_PLAY, work, self._options.cores, self._folder.runs, begun, shared=True)
        for end in stack.enter_context(contextlib.closing(ends)):
            yield missing[end.key], end.failure

    def _judge(self, point: SweepPoint) -> None:
        from spark_analysis.main import judge_and_measure

        run = self._folder.runs / self._folder.name(point)
        manifest = read_manifest(run)
        verdict, figures = judge_and_measure(run)
        record = {
            "point": point.number,
            "parameters": dict(point.parameters),
            "seed": point.seed,
            "verdict": verdict,
            "figures": figures,
            "wall_seconds": dict(manifest.wall_seconds),
        }
        self._folder.write_record(point, record)
        if verdict["verdict"] == "valid" and not self._options.keep_runs:
            self._folder.forget_run(point)


def _row(record: dict[str, Any]) -> dict[str, Any]:
    """A record as a row of the table; times in microseconds, parameters that are no plain values as text."""
    verdict, figures = record["verdict"], record["figures"]
    required, published = verdict["required"], verdict["published"]
    messages, sent_bytes = figures["messages"], figures["message_bytes"]
    parameters = {
        key: value if isinstance(value, int | float | str) else plain(value)
        for key, value in record["parameters"].items()
    }
    return (
        {"point": record["point"]}
        | parameters
        | {"seed": record["seed"], "verdict": verdict["verdict"]}
        | {name: verdict[name] for name in _COUNTS}
        | {
            "delivery_rate": (required - verdict["missing"]) / required if required else None,
            "delay_p50_us": figures["delay_p50_us"],
            "delay_p99_us": figures["delay_p99_us"],
            "hops": figures["hops"],
            "yield": figures["yield"],
            "messages_per_publication": None if messages is None or not published else messages / published,
            "bytes_per_publication": None if sent_bytes is None or not published else sent_bytes / published,
            "wall_s": sum(record["wall_seconds"].values()),
            "reason": verdict["reason"],
        }
    )
