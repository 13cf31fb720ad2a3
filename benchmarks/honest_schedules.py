"""How many random fault schedules of honest protocols the judge flags: `python -m benchmarks.honest_schedules [N]`.

N schedules (500) are divided among the registered pairs of protocols, played in virtual time and judged by the plain
judge. A flagged one is printed with its seed and what the judge says; the exit code is 1 then.
"""

import sys
import time
from collections import Counter
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings

from benchmarks.table import print_table
from tests.judge.honest import PAIRS, schedules_of
from tests.schedules import play


def judge(routing: str, reliability: str, schedules: int) -> Counter[str]:
    """What that many schedules of the pair came to; those that were flagged are printed."""
    counts: Counter[str] = Counter()

    @settings(
        max_examples=schedules, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(schedules_of(routing, reliability))
    def each(data: dict[str, Any]) -> None:
        numbers = play(data).judgement.numbers
        counts["schedules"] += 1
        counts["faults"] += numbers["faults_took_effect"] + numbers["faults_not_exercised"]
        for name in ("required", "missing", "explained", "explained_by_tables"):
            counts[name] += numbers[name]
        if numbers["verdict"] == "invalid":
            counts["flagged"] += 1
            print(f"seed {data['seed']}: {numbers['reason']}\n{data}", file=sys.stderr)

    each()
    return counts


def main(total: int) -> int:
    """Print the table; how many were flagged."""
    names = ("schedules", "faults", "required", "missing", "explained", "explained_by_tables", "flagged")
    rows, flagged = [], 0
    for routing, reliability in PAIRS:
        began = time.perf_counter()
        counts = judge(routing, reliability, -(-total // len(PAIRS)))
        flagged += counts["flagged"]
        took_s = time.perf_counter() - began
        rows.append([f"{routing}, {reliability}", *(f"{counts[name]:,}" for name in names), f"{took_s:.0f} s"])
        print(f"{len(rows)} of {len(PAIRS)} pairs", file=sys.stderr)
    heads = ["pair", "schedules", "faults", "required", "missing", "excused", "by tables", "flagged", "took"]
    print_table("honest protocols under random faults", heads, rows)
    return flagged


if __name__ == "__main__":
    sys.exit(1 if main(int(sys.argv[1]) if len(sys.argv) > 1 else 500) else 0)
