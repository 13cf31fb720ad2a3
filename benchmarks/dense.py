"""Many nodes in few actors: `python -m benchmarks.dense` (some minutes; `--sizes` without the thousand and thousand).

Each line is one live run with kills of single nodes and of whole actors, judged by the plain judge. `start s` is from
the first actor to the last link. Memory is that of all processes of the run but the driver, at its highest: RSS counts
what processes share once for each, PSS once for all. The yardstick of the small sizes is density 1, each node a process
of its own; that of the large one are 60 s and 6 GB.
"""

import argparse
import contextlib
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from benchmarks.table import print_table
from murmur_pubsub.run_manifest import read_manifest
from murmuration.runs.driver import execute
from murmuration.scenario.load import check_scenario
from spark_analysis.plain_judge import judge_run

SIZES = ((32, 1), (32, 4), (32, 16))
"""Brokers (and as many clients), and nodes in an actor."""
LARGE = (1_000, 50)
_LOOK_EVERY_S = 1.0
HEADINGS = (
    "brokers", "clients", "density", "actors", "start s", "RSS GB", "PSS GB", "of actors GB", "published",
    "required", "kills of processes", "in process", "late", "verdict",
)  # fmt: skip


def scenario(brokers: int, density: int) -> dict[str, Any]:
    """A tree of brokers with a client each; three nodes are killed, and two actors with all that is in them. Values are
    few, so that clients have filters in common: a thousand unlike ones would have a million messages settle."""
    broker, other = f"b{brokers // 2}", f"b{brokers - 1}"
    return {
        "name": "dense",
        "overlay": {"kind": "balanced", "brokers": brokers},
        "workload": {
            "kind": "zipf", "clients": brokers, "subscribers_per_actor": 1, "publishers": 8, "publications": 400,
            "rate_per_s": 20, "attributes": 1, "predicates": 1, "integers": 40, "matching_rate": 0.03,
        },
        "density": density,
        "failure_detection": {"heartbeat": "5 s", "timeout": "30 s"},
        "faults": [
            {"at": "1 s", "kill": "b1", "for": "2 s"},
            {"at": "5 s", "kill_actor": broker, "for": "3 s"},
            {"at": "11 s", "kill": other, "for": "1 s"},
            {"at": "13 s", "kill": "c3", "for": "1 s"},
            {"at": "15 s", "kill_actor": f"c{brokers - 1}", "for": "2 s"},
        ],
    }  # fmt: skip


class MemoryWatch(threading.Thread):
    """Looks at the processes below this one again and again; the highest sums so far, in bytes."""

    def __init__(self) -> None:
        super().__init__(name="memory", daemon=True)
        self.rss = self.pss = self.of_actors = 0
        self._over = threading.Event()

    def run(self) -> None:
        """See `threading.Thread`."""
        while not self._over.wait(_LOOK_EVERY_S):
            rss = pss = of_actors = 0
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    name, memory = process.cmdline()[:1], process.memory_full_info()
                    rss, pss = rss + memory.rss, pss + memory.pss
                    of_actors += memory.pss if name and name[0].startswith("ray::NodeActor") else 0
            self.rss, self.pss = max(self.rss, rss), max(self.pss, pss)
            self.of_actors = max(self.of_actors, of_actors)

    def end(self) -> None:
        """Look no more."""
        self._over.set()
        self.join()


@contextlib.contextmanager
def memory_watched() -> Iterator[MemoryWatch]:
    """For the length of the block."""
    watch = MemoryWatch()
    watch.start()
    try:
        yield watch
    finally:
        watch.end()


def measure(brokers: int, density: int) -> tuple[object, ...]:
    """One line."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        with memory_watched() as watch:
            execute(check_scenario(scenario(brokers, density), "dense"), folder, lambda *_: None)
        numbers, manifest = judge_run(folder).numbers, read_manifest(folder)
    actors = len(manifest.actors) or 2 * brokers
    due, late = manifest.lateness.due, manifest.lateness.late
    return (
        brokers, brokers, density, actors, f"{manifest.wall_seconds['starting']:.1f}", f"{watch.rss / 1e9:.2f}",
        f"{watch.pss / 1e9:.2f}", f"{watch.of_actors / 1e9:.2f}", f"{numbers['published']:,}",
        f"{numbers['required']:,}", numbers["kills_of_processes"], numbers["kills_in_process"],
        f"{late / due:.1%}" if due else "-", f"{numbers['verdict']}: {numbers['missing']:,} missing",
    )  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", action="store_true", help="the small sizes only")
    parser.add_argument("--large", action="store_true", help="the large size only")
    chosen = parser.parse_args()
    rows = [measure(*size) for size in SIZES if not chosen.large]
    if not chosen.sizes:
        rows.append(measure(*LARGE))
    print_table("Live: nodes in shared actors (aim at 1,000 and 1,000: 60 s, 6 GB, valid)", HEADINGS, rows)


if __name__ == "__main__":
    main()
