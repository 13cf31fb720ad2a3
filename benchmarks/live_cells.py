"""Cells of `murmur bench` played on Ray beside the same cells in virtual time: `python -m benchmarks.live_cells`.

By default each system of ours beside the paper's that it was made from. Both are told by the same judge, in the figures
of that table. Counts are to agree. Delays are not: live, all brokers share this computer's cores. `SYSTEM …` plays
others, `--brokers`, `--workload`, `--fault` and `--seeds` as in `murmur bench`.
"""

import argparse
import tempfile
from collections.abc import Sequence
from typing import Any

from benchmarks.table import print_table
from murmuration.bench.plan import BenchChoice, plan_bench, scenario_with_data
from murmuration.bench.play import play_cell

OURS = (
    "irbr/best_effort", "irbr_members/best_effort", "multipath/best_effort", "multipath_delegation/best_effort",
    "vinifera_even/best_effort", "cells/gryphon", "cells/durable", "cells/end_to_end",
)  # fmt: skip
HEADINGS = (
    "system", "runtime", "seed", "judged", "required", "missing", "twice", "hops", "to nobody %", "with event",
    "messages", "p50 ms", "p99 ms",
)  # fmt: skip


def line(played: dict[str, Any]) -> Sequence[str]:
    """What the table says of a cell: messages of an event, and delays of deliveries."""
    verdict, figures = played["verdict"], played["figures"]
    return (
        verdict["verdict"],
        f"{verdict['required']:,}",
        f"{verdict['missing']:,}",
        f"{verdict['duplicate']:,}",
        f"{figures['hops']:.2f}",
        f"{100 * figures['overhead']:.1f}",
        f"{figures['event_messages']:.1f}",
        f"{figures['messages']:.1f}",
        f"{figures['delay_p50_us'] / 1_000:.1f}",
        f"{figures['delay_p99_us'] / 1_000:.1f}",
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", default=OURS)
    parser.add_argument("--brokers", type=int, default=24)
    parser.add_argument("--workload", default="uniform")
    parser.add_argument("--fault", default="none")
    parser.add_argument("--seeds", type=int, default=1)
    asked = parser.parse_args()
    plan = plan_bench(BenchChoice(asked.systems, [asked.workload], [asked.fault], asked.seeds, asked.brokers))
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for cell in sorted(plan.cells, key=lambda each: asked.systems.index(str(each.system))):
            for runtime in ("virtual", "ray"):
                scenario = {**scenario_with_data(cell), "runtime": runtime}
                played = play_cell({"scenario": scenario, "cell": str(cell), "scratch": scratch})
                rows.append((str(cell.system), runtime, str(cell.seed), *line(played)))
    print_table(f"{asked.workload}/{asked.fault}, {asked.brokers} brokers, and as many clients", HEADINGS, rows)


if __name__ == "__main__":
    main()
