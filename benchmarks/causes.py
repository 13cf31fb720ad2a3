"""What tells causes apart: kinds of faults, or how a schedule shows its cause.

`python -m benchmarks.causes FILE [--schedules 3] [--seconds 15] [--bug NAME ...]` plants each bug of
`benchmarks.planted_bugs` in a process of its own, draws schedules in bursts until that many show it, and shrinks each
for so many seconds. FILE keeps a line of JSON for each, and a bug that is there is not hunted again. Then it prints, of
all pairs of shrunk schedules, by each way of telling: how many of different bugs (of the same pair of protocols) count
as two causes, and how many of one bug as one.
"""

import argparse
import itertools
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.hunt import end_right_code, is_wrong_without_it
from benchmarks.planted_bugs import PLANTED_BUGS, PlantedBug, planted
from benchmarks.table import print_table

_SOON_SHOWN = (
    "a new link hears of own filters only", "filters behind a lost link stay wanted",
    "what a withdrawn filter covered stays hidden", "silence is told over a gap", "acknowledgements are not repeated",
    "an older acknowledgement counts", "an epoch waits for one who is gone", "a client is not told again",
    "a gap behind the last message is not asked for", "answers go to no branch that asked before",
    "a branch that has said nothing is not waited for", "a neighbour that is back is not told",
)  # fmt: skip
"""Bugs that some of the first schedules show."""
_DRAWN_MAX = 150
_WAYS: Mapping[str, Callable[[Mapping[str, Any]], object]] = {
    "the symptom": lambda each: each["symptom"],
    "and the kinds of faults": lambda each: (each["symptom"], each["faults"]),
    "and the sorts of faults": lambda each: (each["symptom"], each["sorts"]),
    "and how it shows": lambda each: (each["symptom"], each["shows"]),
    "and how it shows, and sorts": lambda each: (each["symptom"], each["shows"], each["sorts"]),
    "and how it shows, and kinds": lambda each: (each["symptom"], each["shows"], each["faults"]),
}


def shrunk_schedules(bug: PlantedBug, count: int, seconds: float) -> Iterator[dict[str, Any]]:
    """So many schedules that show the bug planted in this process, shrunk."""
    from murmur_pubsub.errors import InputError
    from murmuration.hunt.chunk import Quarry
    from murmuration.hunt.findings import cause_of, kinds_of
    from murmuration.hunt.mutation import drawn_in_bursts
    from murmuration.hunt.shrink import shrink
    from murmuration.hunt.symptoms import tried

    space, rng = Quarry.named(bug.pair).space(), random.Random(bug.name)
    found = 0
    for _ in range(_DRAWN_MAX):
        schedule = drawn_in_bursts(rng, space)
        try:
            keys = schedule.keys(space)
        except InputError:
            continue
        symptom = tried(keys).symptom
        if symptom is None or is_wrong_without_it(keys):
            continue
        small = shrink(schedule, space, symptom, seconds)
        shows, sorts = cause_of(small.keys, small.symptom)
        yield {
            "bug": bug.name, "pair": bug.pair, "symptom": symptom.kind, "faults": kinds_of(small.keys),
            "shows": shows, "sorts": sorts, "keys": small.keys,
        }  # fmt: skip
        found += 1
        if found == count:
            return


def table(lines: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """A row for each way of telling."""
    pairs = [(one, other) for one, other in itertools.combinations(lines, 2) if one["pair"] == other["pair"]]
    for name, told_by in _WAYS.items():
        apart = [told_by(one) != told_by(other) for one, other in pairs if one["bug"] != other["bug"]]
        together = [told_by(one) == told_by(other) for one, other in pairs if one["bug"] == other["bug"]]
        yield name, f"{sum(apart)} of {len(apart)}", f"{sum(together)} of {len(together)}"


def main() -> None:
    """Hunt the bugs that were not hunted yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--schedules", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--bug", action="append", dest="bugs", help="one of them (default: those that are soon shown)")
    parser.add_argument("--play", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    by_name = {bug.name: bug for bug in PLANTED_BUGS}
    for name in given.bugs or _SOON_SHOWN:
        if given.play:
            planted(by_name[name])
            for each in shrunk_schedules(by_name[name], given.schedules, given.seconds):
                print(json.dumps(each), flush=True)
            end_right_code()
        elif name not in {line["bug"] for line in _lines(given.file)}:
            command = [sys.executable, "-m", "benchmarks.causes", str(given.file), "--play", "--bug", name]
            command += ["--schedules", str(given.schedules), "--seconds", str(given.seconds)]
            said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
            with given.file.open("a") as file:
                file.write(said)
            print(f"{name}: {len(said.splitlines())} schedules", flush=True)
    if not given.play:
        print_table(
            "pairs of shrunk schedules",
            ("told by", "two bugs, two causes", "one bug, one cause"),
            table(_lines(given.file)),
        )


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


if __name__ == "__main__":
    main()
