"""Multipath forwarding that delegates, beside the paper's S2: yield, path length, messages, and the busiest uplink.

The multipath paper's low rate (`murmuration.papers.multipath`): 120 brokers, fanout 35, 60 publications a second, after
240 s in which links are learned; but 60 s are measured and not 600. `python -m benchmarks.delegation FOLDER` plays what
is missing in the folder on all cores, keeps each run there, and prints the table (five seeds, 25 minutes of a core).
"""

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path

from benchmarks.table import print_table
from murmuration.commands.console import RunProgress
from murmuration.papers.lab.paper_runs import PaperRuns
from murmuration.papers.multipath.delegation import DelegationRun, RoutedSpec, measure_delegation

SECONDS = 60
BROKERS = 120
DATASETS = ("DT1", "DT2")
ROUTINGS = {"multipath": "S2", "multipath_delegation": "delegation"}
_COLUMNS = (
    "", "yield", "of", "hops", "sent/s", "busiest uplink/s", "of", "missing, duplicate, spurious",
)  # fmt: skip


def row(runs: Sequence[DelegationRun]) -> tuple[str, ...]:
    """Of the runs that differ in their seeds: means, with the smallest and the largest of some."""
    yields, busiest = [100 * run.system_yield for run in runs], [run.busiest_per_s for run in runs]
    wrong = ", ".join(str(sum(kind)) for kind in zip(*(run.wrong for run in runs), strict=True))
    spec = runs[0].spec
    return (
        f"{spec.dataset} {ROUTINGS[spec.routing]}",
        f"{statistics.mean(yields):.1f} %", f"{min(yields):.1f}-{max(yields):.1f}",
        f"{statistics.mean(run.mean_hops for run in runs):.2f}",
        f"{statistics.mean(run.sent_per_s for run in runs):,.0f}",
        f"{statistics.mean(busiest):.1f}", f"{min(busiest):.1f}-{max(busiest):.1f}",
        f"{wrong} of {sum(run.required for run in runs):,}",
    )  # fmt: skip


def main() -> None:
    """Play what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--brokers", type=int, default=BROKERS)
    asked = parser.parse_args()
    specs = [
        RoutedSpec(dataset, asked.brokers, "S2", seconds=SECONDS, seed=seed, routing=routing)
        for seed in range(1, asked.seeds + 1)
        for dataset in DATASETS
        for routing in ROUTINGS
    ]
    asked.folder.mkdir(parents=True, exist_ok=True)
    with RunProgress(quiet=False) as progress:
        found = PaperRuns(asked.folder, progress.step).spread(measure_delegation, specs, lambda _: DelegationRun)
    groups: dict[tuple[str, str], list[DelegationRun]] = {}
    for spec, run in found.items():
        groups.setdefault((spec.dataset, spec.routing), []).append(run)
    title = f"{asked.brokers} brokers, fanout 35, {SECONDS} s at 60 publications a second, {asked.seeds} seeds"
    print_table(title, _COLUMNS, [row(groups[key]) for key in sorted(groups)])


if __name__ == "__main__":
    main()
