"""Virtual-time events a second: Cyclon as machines on the runtime against the bare loop, in one run."""

import tempfile
import time
from pathlib import Path

from benchmarks.bare_loop import run_bare_loop
from benchmarks.cyclon import CYCLE_US, Cyclon
from benchmarks.table import print_table
from pubsub.deployment import NodeSpec
from pubsub.journal import JournalWriter
from pubsub.links import Delay, LinkSpec
from pubsub.machine import NodeContext
from simulation.simulation import Simulation

SIZES = ((1_000, 100), (10_000, 100))
_ROUNDS = 3


def run_machines(nodes: int, cycles: int) -> int:
    """Run Cyclon machines with the bare loop's delays; how many events were handled."""
    names = [str(number) for number in range(nodes)]
    link = LinkSpec(delay=Delay("uniform", 20_000, 70_000), ordered=False)
    with tempfile.TemporaryDirectory() as folder:
        writer = JournalWriter(Path(folder), "run", nodes)
        numbers = {name: number for number, name in enumerate(names)}
        simulation = Simulation(1, writer, numbers, link, journal_hops=False)
        for name in names:
            parameters = {"nodes": nodes, "names": names}
            simulation.add_node(NodeSpec(name, "broker", "", {}), Cyclon(NodeContext(name, 1, parameters)))
        simulation.run(until_us=cycles * CYCLE_US)
        writer.close()
    return simulation.processed


def measure() -> list[tuple[object, ...]]:
    """One row a size: best of interleaved rounds, so that a noisy neighbour hits both."""
    rows: list[tuple[object, ...]] = []
    for nodes, cycles in SIZES:
        best = {"bare": float("inf"), "machines": float("inf")}
        events = {"bare": 0, "machines": 0}
        for _ in range(_ROUNDS):
            for name, runner in (("bare", run_bare_loop), ("machines", run_machines)):
                began = time.perf_counter()
                events[name] = runner(nodes, cycles)
                best[name] = min(best[name], time.perf_counter() - began)
        rows.append(
            (
                f"{nodes:,}",
                f"{events['machines']:,}",
                f"{best['bare']:.2f}",
                f"{best['machines']:.2f}",
                f"{events['machines'] / best['machines']:,.0f}",
                f"{best['machines'] / best['bare']:.2f}",
            )
        )
    return rows


def main() -> None:
    """Print the table."""
    print_table(
        "Virtual time: Cyclon, 100 cycles (aim: at most 1.5 times the bare loop at 10,000 nodes)",
        ("nodes", "events", "bare loop s", "machines s", "events/s", "ratio"),
        measure(),
    )


if __name__ == "__main__":
    main()
