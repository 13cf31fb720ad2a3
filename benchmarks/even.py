"""Vinifera with an even load beside Vinifera and its baseline: the largest load, overhead, hops.

The network and workloads of the Vinifera paper (`murmuration.papers.vinifera`): 1,000 nodes, one and three attributes.
In 16 cycles as many events are published as are measured then, 600. Each system has its own links: eight friends, eight
small-world links, eight friends at small-world distances. `python -m benchmarks.even FILE` plays what is missing in
FILE on all cores, keeps each run there, and prints the table (five seeds, 18 minutes of a core each).
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.table import print_table
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


def key_of(spec: Mapping[str, Any]) -> str:
    """By which a run's spec, as it is kept or as it is asked for, is found."""
    return json.dumps(spec, sort_keys=True)


def play(missing: Sequence[StaticSpec], kept: Path) -> None:
    """Play these runs on all cores, and keep each as it ends."""
    began = time.monotonic()
    with ProcessPoolExecutor() as pool:
        playing = [pool.submit(measure_overlay, spec) for spec in missing]
        for done, each in enumerate(as_completed(playing), 1):
            run = each.result()
            assert isinstance(run, StaticRun)
            with kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(run)) + "\n")
            left_s = (time.monotonic() - began) / done * (len(missing) - done)
            print(f"{done} of {len(missing)} runs, {left_s / 60:.0f} min left by their mean", file=sys.stderr)


def row(runs: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Of the runs that differ in their seeds: means, with the smallest and the largest."""

    def shown(values: Sequence[float], unit: str, digits: int) -> str:
        spread = f" ({min(values):.{digits}f}-{max(values):.{digits}f})" if len(values) > 1 else ""
        return f"{statistics.mean(values):.{digits}f}{unit}{spread}"

    return (
        f"{runs[0]['spec']['attributes']} {runs[0]['spec']['model']}", runs[0]["spec"]["routing"],
        shown([100 * run["most"] for run in runs], " %", 1), shown([100 * run["load"][4] for run in runs], " %", 1),
        shown([100 * run["overhead"] for run in runs], " %", 1), shown([run["copies"] for run in runs], "", 2),
        shown([run["path"] for run in runs], "", 2), f"{min(run['hit_ratio'] for run in runs):.4f}",
        shown([run["moved"] for run in runs], "", 0), f"{statistics.mean(run['cpu_s'] for run in runs):.0f} s",
    )  # fmt: skip


def read(kept: Path) -> dict[str, Mapping[str, Any]]:
    """The runs that are kept."""
    lines = kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []
    return {key_of(run["spec"]): run for run in map(json.loads, lines)}


def main() -> None:
    """Play what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=1_000)
    asked = parser.parse_args()
    wanted = specs(asked.seeds, asked.nodes)
    known = read(asked.file)
    play([spec for spec in wanted if key_of(asdict(spec)) not in known], asked.file)
    found = read(asked.file)
    groups: dict[tuple[str, int, str], list[Mapping[str, Any]]] = {}
    for spec in wanted:
        groups.setdefault((spec.model, spec.attributes, spec.routing), []).append(found[key_of(asdict(spec))])
    title = f"{asked.nodes:,} nodes, {EVENTS} events, {asked.seeds} seeds"
    print_table(title, _COLUMNS, [row(runs) for runs in groups.values()])


if __name__ == "__main__":
    main()
