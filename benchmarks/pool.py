"""How busy the pool of tasks keeps the cores: sweeps, papers and hunts share it.

The same points of a sweep, played and judged by plain Python, with one worker and with one for each core. Timed from
the moment at which Ray is there to the last point's end. The ideal is one worker's time over the number of workers.
`python -m benchmarks.pool [POINTS]`, 60 points by default, of about a second each.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.table import print_table
from murmuration.sweeps.folder import SweepFolder
from murmuration.sweeps.plan import read_sweep
from murmuration.sweeps.tasks import Cores, ends_of_tasks

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
    alone_s = timed(points, 1)
    rows = [("1", f"{alone_s:.1f}", "1.00")]
    for workers in sorted({2, cores} - {1}):
        took_s = timed(points, workers)
        rows.append((str(workers), f"{took_s:.1f}", f"{alone_s / workers / took_s:.2f}"))
    print_table(f"{points} points of a sweep, {cores} cores", ("workers", "seconds", "of the ideal"), rows)


def timed(points: int, workers: int) -> float:
    """Seconds from Ray's being there to the end of the last point."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "pool.yaml"
        file.write_text(SWEEP.format(seeds=-(-points // 5)))
        plan = read_sweep(file)
        folder = SweepFolder(Path(place) / "sweep")
        began = [0.0]

        def begun() -> None:
            began[0] = time.perf_counter()

        with folder.opened(plan):
            work = {point.number: folder.work(point, judged=True) for point in plan.points[:points]}
            play = "murmuration.sweeps.folder:play_point"
            for end in ends_of_tasks(play, work.items(), Cores(workers), folder.runs, begun, shared=True):
                assert end.failure is None, end.failure
                last = time.perf_counter()
        return last - began[0]


if __name__ == "__main__":
    main()
