"""How busy the pool of tasks keeps the cores: sweeps, papers and hunts share it.

The same points of a sweep, played and judged by plain Python, with one worker and with one for each core. Timed from
the moment at which Ray is there to the last point's end. The ideal is one worker's time over the number of workers.
Beside it the same by bare processes without Ray, which share caches and memory too. And over a cluster of three raylets
on this computer, each with one worker: the ideal is what the computer's cores would do.
`python -m benchmarks.pool [POINTS]`, 60 points by default, of about a second each.
"""

import functools
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.table import print_table
from murmuration.sweeps.folder import SweepFolder, play_point
from murmuration.sweeps.plan import read_sweep
from murmuration.sweeps.tasks import Cores, ends_of_tasks
from tests.actors.joined import JoinedCluster

Work = dict[int, dict[str, Any]]
Played = Callable[[Work, int, Path], float]
RAYLETS = 3
SWEEP = """
scenario: parity
set: {{overlay.brokers: 12, workload.clients: 12, workload.publications: 1000}}
grid: {{links.loss: [0.0, 0.02, 0.05, 0.1, 0.2]}}
seeds: {seeds}
"""


def main() -> None:
    """Print the table."""
    points = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    cores = os.cpu_count() or 1
    rows = [*measured("tasks", as_tasks, points, cores), *measured("bare processes", by_bare_processes, points, cores)]
    with tempfile.TemporaryDirectory() as place:
        cluster = JoinedCluster(Path(place), scratch=False)
        os.environ.update(cluster.environment(RAY_worker_niceness="0"))  # as a Ray that murmur starts has it
        with cluster:
            rows += on_cluster(cluster.address, points)
    print_table(f"{points} points of a sweep, {cores} cores", ("workers", "seconds", "of the ideal"), rows)


def on_cluster(address: str, points: int) -> list[tuple[str, str, str]]:
    """Rows of the cluster. In a process of its own: Ray looks once in a process whether it is to show a token."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as other:
        played = functools.partial(as_tasks, address=address)
        return other.submit(measured, "three raylets", played, points, RAYLETS).result()


def measured(name: str, played: Played, points: int, workers: int) -> list[tuple[str, str, str]]:
    """Rows of one worker, and of so many, which cannot do more than the cores do."""
    alone_s, took_s = timed(played, points, 1), timed(played, points, workers)
    ideal_s = alone_s / min(workers, os.cpu_count() or 1)
    return [
        (f"{name}, 1", f"{alone_s:.1f}", "1.00"),
        (f"{name}, {workers}", f"{took_s:.1f}", f"{ideal_s / took_s:.2f}"),
    ]


def timed(played: Played, points: int, workers: int) -> float:
    """Seconds from the workers' being there to the end of the last point."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "pool.yaml"
        file.write_text(SWEEP.format(seeds=-(-points // 5)))
        plan = read_sweep(file)
        folder = SweepFolder(Path(place) / "sweep")
        with folder.opened(plan):
            work = {point.number: folder.work(point, judged=True) for point in plan.points[:points]}
            return played(work, workers, folder.runs)


def as_tasks(work: Work, workers: int, runs: Path, address: str | None = None) -> float:
    """As a sweep plays its points, here or on the cluster."""
    times: list[float] = []

    def note() -> None:
        times.append(time.perf_counter())

    play = f"{play_point.__module__}:{play_point.__qualname__}"
    for end in ends_of_tasks(play, work.items(), Cores(workers, address), runs, begun=note, shared=True):
        assert end.failure is None, end.failure
        note()
    return times[-1] - times[0]


def by_bare_processes(work: Work, workers: int, runs: Path) -> float:
    """Each point by whichever process is free."""
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        pool.map(time.sleep, [0.5] * workers, chunksize=1)
        began = time.perf_counter()
        pool.map(play_point, list(work.values()), chunksize=1)
        return time.perf_counter() - began


if __name__ == "__main__":
    main()
