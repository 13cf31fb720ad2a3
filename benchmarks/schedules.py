"""Random schedules over all pairs of protocols: how many were played, what was found, and what they reached.

`python -m benchmarks.schedules [--count 100000] [--first 0] [--workers 2] [--pair cells/gryphon ...]` shares that many
schedules out over the registered pairs, plays each in virtual time and judges it. Where all faults are undone it asks
besides whether the run comes to rest, and whether brokers forget what nobody lacks (`murmuration.hunt.properties`,
`benchmarks.rest`). Each schedule with which something is wrong is printed with its seed as soon as it is found;
`--show SEED` prints one as a scenario file, which `murmur run` plays. A pair may name protocols by dotted path, such as
one with a planted bug. Interrupted, it prints the tables of what was played.
"""

import argparse
import functools
import multiprocessing
import random
import signal
import time
from collections import Counter
from collections.abc import Generator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any

import yaml

from murmur_pubsub.errors import InputError
from murmuration.hunt.chunk import Quarry
from murmuration.hunt.coverage import what_it_does
from murmuration.hunt.schedule import draw_schedule
from murmuration.hunt.space import ScheduleSpace
from murmuration.hunt.symptoms import tried
from murmuration.hunt.trial import in_force_in_recovery

PAIRS = (
    "cells/gryphon", "cells/durable", "multipath/best_effort", "forwarding/epidemic", "flooding/epidemic",
    "forwarding/best_effort", "flooding/best_effort", "cells/best_effort", "irbr/best_effort",
    "irbr_members/best_effort", "scribe/best_effort", "rpf/best_effort", "vinifera/best_effort", "ferry/best_effort",
    "vinifera_even/best_effort", "multipath_delegation/best_effort", "multipath/end_to_end", "irbr/end_to_end",
    "vinifera/end_to_end",
)  # fmt: skip
_CHUNK = 100
_ASKED = ("benchmarks.rest:KEEPS_NOTHING",)


@dataclass
class Tally:
    """What some schedules of one pair came to."""

    schedules: int = 0
    cpu_s: float = 0.0
    verdicts: Counter[str] = field(default_factory=Counter)
    required: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    in_recovery: Counter[str] = field(default_factory=Counter)
    """Of the faults, those in force while what another one had disturbed was being mended."""
    findings: list[tuple[int, str]] = field(default_factory=list)
    """(seed, reason) of those that are not valid, or do not come to rest."""

    def add(self, other: "Tally") -> None:
        """Count the other's too."""
        self.schedules += other.schedules
        self.cpu_s += other.cpu_s
        self.verdicts += other.verdicts
        self.required += other.required
        self.faults += other.faults
        self.in_recovery += other.in_recovery
        self.findings += other.findings


@functools.cache
def space_named(pair: str) -> ScheduleSpace:
    """The schedules of a pair written as ROUTING/RELIABILITY, or ROUTING/RELIABILITY/VARIANT."""
    return Quarry.named(pair).space()


def drawn(pair: str, seed: int) -> dict[str, Any]:
    """The schedule of that seed, as a scenario."""
    return draw_schedule(random.Random(seed), space_named(pair))


def play(pair: str, first: int, count: int) -> tuple[str, Tally]:
    """The schedules of these seeds."""
    tally = Tally()
    began = time.process_time()
    for seed in range(first, first + count):
        tally.schedules += 1
        try:
            played = tried(drawn(pair, seed), _ASKED)
        except InputError as error:  # a schedule that cannot be is a finding about its draw
            tally.verdicts["raised"] += 1
            tally.findings.append((seed, str(error)))
            continue
        outcome, symptom = played.outcome, played.symptom
        restless = symptom is not None and symptom.kind.startswith("property")
        tally.verdicts["restless" if restless else played.verdict] += 1
        if symptom is not None:
            tally.findings.append((seed, symptom.words))
        if outcome is not None:
            tally.required += outcome.verdict.required
            tally.faults.update(what_it_does(fault) for fault in outcome.deployment.faults)
            tally.in_recovery.update(what_it_does(fault) for fault in in_force_in_recovery(outcome))
    tally.cpu_s = time.process_time() - began
    return pair, tally


def all_of(pairs: list[str], count: int, first: int, workers: int) -> Generator[tuple[str, Tally], None, None]:
    """The schedules, the same number for each pair, on that many processes; tallies as they come."""
    each = -(-count // len(pairs))
    chunks = [
        (pair, begin, min(_CHUNK, first + each - begin))
        for begin in range(first, first + each, _CHUNK)
        for pair in pairs
    ]
    ignored = (signal.SIGINT, signal.SIG_IGN)  # of Ctrl-C the processes hear, too: it is this one's to end them
    with ProcessPoolExecutor(workers, initializer=signal.signal, initargs=ignored) as pool:
        try:
            begun = [pool.submit(play, *chunk) for chunk in chunks]
            for ended in as_completed(begun):
                yield ended.result()
        except BaseException:
            for process in multiprocessing.active_children():  # each would play what it has begun
                process.terminate()
            raise


def main() -> None:
    """Play them and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1_200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--pair", action="append", dest="pairs")
    parser.add_argument(
        "--show", type=int, help="print the schedule of this seed of the (first) pair, and play nothing"
    )
    parser.add_argument("--fail", action="store_true", help="exit with 1 if a schedule is not valid")
    given = parser.parse_args()
    pairs = given.pairs or list(PAIRS)
    if given.show is not None:
        print(yaml.safe_dump(drawn(pairs[0], given.show), sort_keys=False))
        return
    tallies = {pair: Tally() for pair in pairs}
    began = time.monotonic()
    try:
        for number, (pair, tally) in enumerate(all_of(pairs, given.count, given.first, given.workers), 1):
            tallies[pair].add(tally)
            for seed, reason in tally.findings:
                print(f"{pair} {seed}: {reason}", flush=True)
            if not number % 20:
                done = sum(each.schedules for each in tallies.values())
                took_s = time.monotonic() - began
                print(f"{done:,} of {given.count:,}, {took_s * (given.count / done - 1):.0f} s left", flush=True)
    except KeyboardInterrupt:
        print("interrupted: what was played until then")
    print_tables(tallies)
    if given.fail and any(tally.findings for tally in tallies.values()):
        raise SystemExit(1)


def print_tables(tallies: dict[str, Tally]) -> None:
    """What each pair came to, and each kind of fault."""
    total = Tally()
    print(f"\n{'pair':24}{'schedules':>10}{'a CPU hour':>12}{'required':>14}{'faults':>9}  verdicts")
    for pair, tally in tallies.items():
        total.add(tally)
        _print_row(pair, tally)
    _print_row("all", total)
    print(f"\n{'fault':44}{'times':>10}{'in a recovery':>15}")
    for kind in sorted(total.faults, key=lambda kind: -total.faults[kind]):
        print(f"{kind:44}{total.faults[kind]:>10,}{total.in_recovery[kind]:>15,}")


def _print_row(name: str, tally: Tally) -> None:
    verdicts = ", ".join(f"{count:,} {verdict}" for verdict, count in tally.verdicts.most_common())
    rate = 3_600 * tally.schedules / tally.cpu_s if tally.cpu_s else 0
    faults = sum(tally.faults.values())
    print(f"{name:24}{tally.schedules:>10,}{rate:>12,.0f}{tally.required:>14,}{faults:>9,}  {verdicts}")


if __name__ == "__main__":
    main()
