"""Vinifera with an even load beside Vinifera and its baseline: the largest load, overhead, hops.

The network and workloads of the Vinifera paper (`murmuration.papers.vinifera`): 1,000 nodes, one and three attributes.
In 16 cycles as many events are published as are measured then, 600. Each system has its own links: eight friends, eight
small-world links, eight friends at small-world distances. `python -m benchmarks.even FOLDER` plays what is missing in
the folder on all cores, keeps each run there, and prints the table (five seeds, half an hour of a core each and more).
"""

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path

from benchmarks.table import print_table
from murmuration.commands.console import RunProgress
from murmuration.papers.lab.paper_runs import PaperRuns
from murmuration.papers.vinifera.run import Routing, StaticRun, StaticSpec, measure_overlay
from murmuration.papers.vinifera.workload import Model

EVENTS = 600
CYCLES = 16
_COLUMNS = (
    "interests", "system", "largest load", "up to 20 %", "overhead", "copies", "hops", "hit ratio", "moved", "core",
)  # fmt: skip


def specs(seeds: int, nodes: int) -> list[StaticSpec]:
    """All runs, those with three attributes and a skew first: the criterion on load."""
    links: dict[Routing, tuple[int, int, int]] = {
        "vinifera": (8, 0, 20), "ferry": (0, 8, 0), "vinifera_even": (0, 8, 5)
    }  # fmt: skip
    workloads: tuple[tuple[Model, int], ...] = (("skewed", 3), ("skewed", 1), ("random", 1), ("random", 3))
    return [
        StaticSpec(
            routing, nodes, model, attributes=attributes, friends=friends, small_world=small_world, beta=beta,
            cycles=CYCLES, events=EVENTS, seed=seed,
        )
        for model, attributes in workloads
        for seed in range(1, seeds + 1)
        for routing, (friends, small_world, beta) in links.items()
    ]  # fmt: skip


def row(runs: Sequence[StaticRun]) -> tuple[str, ...]:
    """Of the runs that differ in their seeds: means, with the smallest and the largest."""

    def shown(values: Sequence[float], unit: str, digits: int) -> str:
        spread = f" ({min(values):.{digits}f}-{max(values):.{digits}f})" if len(values) > 1 else ""
        return f"{statistics.mean(values):.{digits}f}{unit}{spread}"

    spec = runs[0].spec
    return (
        f"{spec.attributes} {spec.model}", spec.routing,
        shown([100 * run.most for run in runs], " %", 1), shown([100 * run.load[4] for run in runs], " %", 1),
        shown([100 * run.overhead for run in runs], " %", 1), shown([run.copies for run in runs], "", 2),
        shown([run.path for run in runs], "", 2), f"{min(run.hit_ratio for run in runs):.4f}",
        shown([run.moved for run in runs], "", 0), f"{statistics.mean(run.cpu_s for run in runs):.0f} s",
    )  # fmt: skip


def main() -> None:
    """Play what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=1_000)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    with RunProgress(quiet=False) as progress:
        found = PaperRuns(asked.folder, progress.step).spread(
            measure_overlay, specs(asked.seeds, asked.nodes), lambda _: StaticRun
        )
    groups: dict[tuple[str, int, str], list[StaticRun]] = {}
    for spec, run in found.items():
        assert isinstance(run, StaticRun)
        groups.setdefault((spec.model, spec.attributes, spec.routing), []).append(run)
    title = f"{asked.nodes:,} nodes, {EVENTS} events, {asked.seeds} seeds"
    print_table(title, _COLUMNS, [row(runs) for runs in groups.values()])


if __name__ == "__main__":
    main()
