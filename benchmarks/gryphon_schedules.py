"""How many random fault schedules guaranteed delivery withstands, and after how many a planted bug is found.

`python -m benchmarks.gryphon_schedules [--count 1000] [--seed 1]` plays that many schedules in virtual time and prints
what they held and what was found; `--bugs` plants each of three bugs instead and counts until it is found.
"""

import argparse
import contextlib
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.protocols.gryphon.planted_bugs import BUGS
from tests.schedules import Outcome, play, schedules

PARTS = {"routing": "cells", "reliability": "gryphon", "matching": "bitset"}
OVERLAYS = ("cells", "chain", "star")
LOSSES = (0.0, 0.1, 0.3)


class Found(Exception):
    """A schedule has shown a violation."""


def violations(outcome: Outcome) -> dict[str, int]:
    """What a guarantee of exactly-once delivery does not allow, by name."""
    verdict = outcome.verdict
    return {
        "missing": len(outcome.unexplained), "duplicate": len(verdict.duplicate),
        "spurious": len(verdict.spurious), "out of order": len(verdict.out_of_order),
    }  # fmt: skip


def run(count: int, chosen_seed: int, parts: Mapping[str, str], stop_at_first: bool) -> tuple[Counter[str], float]:
    """Play the schedules; totals of what they held and showed, and the seconds it took."""
    totals: Counter[str] = Counter()
    began = time.perf_counter()

    @seed(chosen_seed)
    @settings(max_examples=count, phases=[Phase.generate], database=None, deadline=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(schedules(parts, overlays=OVERLAYS, losses=LOSSES))
    def each(data: dict[str, Any]) -> None:
        totals["schedules"] += 1
        try:
            outcome = play(data)
        except (AssertionError, ValueError):
            totals["contradiction"] += 1
            if stop_at_first:
                raise Found from None
            return
        found = violations(outcome)
        totals.update(found)
        totals["required"] += outcome.verdict.required
        totals["explained"] += len(outcome.verdict.missing) - found["missing"]
        totals["faults"] += len(data["faults"])
        totals["lossy"] += data["links"]["loss"] > 0
        totals.update(
            verb for fault in data["faults"] for verb in fault if verb in ("kill", "stall", "partition", "cut")
        )
        if totals["schedules"] % 100 == 0:
            print(f"  {totals['schedules']} of {count}, {time.perf_counter() - began:.0f} s", flush=True)
        if stop_at_first and any(found.values()):
            raise Found

    with contextlib.suppress(Found):
        each()
    return totals, time.perf_counter() - began


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bugs", action="store_true")
    options = parser.parse_args()
    if options.bugs:
        for name, part in BUGS.items():
            totals, took_s = run(options.count, options.seed, PARTS | {"reliability": part}, stop_at_first=True)
            seen = {
                key: totals[key] for key in ("missing", "duplicate", "out of order", "contradiction") if totals[key]
            }
            what = f"found after {totals['schedules']} schedules ({seen})" if seen else f"not found in {options.count}"
            print(f"{name}: {what}, {took_s:.0f} s")
        return
    totals, took_s = run(options.count, options.seed, PARTS, stop_at_first=False)
    print(
        f"{totals['schedules']} schedules in {took_s:.0f} s: "
        + ", ".join(f"{each} {n:,}" for each, n in totals.items())
    )


if __name__ == "__main__":
    main()
