"""How many schedules a hunt needs to find each planted bug: guided, and drawn one after the other.

`python -m benchmarks.hunt FILE [--seeds 5] [--most 1000] [--bug NAME ...]` plants each bug of `benchmarks.planted_bugs`
in a process of its own and hunts until a schedule shows something wrong that the right code does not show. FILE keeps a
line of JSON for each bug, seed and kind; what is there is not played again. The table is printed at the end.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.planted_bugs import PLANTED_BUGS, PlantedBug, fits, planted

KINDS = ("plain", "guided")
_COUNT = 10
_PARENTS = 10


def hunt(bug: PlantedBug, guided: bool, seed: int, most: int) -> dict[str, Any]:
    """Plant the bug in this process and hunt it."""
    planted(bug)
    from random import Random

    from murmuration.hunt.chunk import Chunk, Quarry, play_chunk
    from murmuration.hunt.corpus import Corpus

    routing, _, reliability = bug.pair.partition("/")
    quarry, corpus, rng = Quarry(routing, reliability), Corpus(), Random(seed)
    began = time.process_time()
    played = 0
    for number in range(-(-most // _COUNT)):
        parents = corpus.parents(rng, _PARENTS) if guided else ()
        end = play_chunk(Chunk("benchmark", quarry, f"{seed}/{number}", _COUNT, parents, shrink_s=0.0))
        for found in end.found:
            if not is_wrong_without_it(dict(found.keys)):
                spent = time.process_time() - began
                return _result(played + found.number + 1, spent, found.symptom.kind, len(found.keys["faults"]))
        played += end.schedules
        for schedule, places in end.reached:
            corpus.take(schedule, places)
    return _result(None, time.process_time() - began, None, None)


def _result(schedules: int | None, cpu_s: float, symptom: str | None, faults: int | None) -> dict[str, Any]:
    return {"schedules": schedules, "cpu_s": round(cpu_s, 1), "symptom": symptom, "faults": faults}


def is_wrong_without_it(keys: dict[str, Any]) -> bool:
    """Does the schedule show something wrong in the right code?"""
    code = "import json, sys; from murmuration.hunt.symptoms import tried; print(tried(json.load(sys.stdin)).symptom)"
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, input=json.dumps(keys), capture_output=True, text=True, check=True)
    return said.stdout.strip() != "None"


def main() -> None:
    """Hunt what was not hunted yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--most", type=int, default=1_000, help="schedules after which a bug counts as not found")
    parser.add_argument("--bug", action="append", dest="bugs", help="one of them (default: all)")
    parser.add_argument("--minutes", type=float, help="begin nothing more after this time")
    parser.add_argument("--play", nargs=3, metavar=("BUG", "KIND", "SEED"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    by_name = {bug.name: bug for bug in PLANTED_BUGS}
    if given.play is not None:
        name, kind, seed = given.play
        print(json.dumps(hunt(by_name[name], kind == "guided", int(seed), given.most)))
        return
    wanted = [by_name[name] for name in given.bugs or by_name]
    fitting = [bug for bug in wanted if fits(bug)]
    for bug in wanted:
        if bug not in fitting:
            print(f"{bug.name}: {bug.file} has changed, and the bug does not fit it any more")
    done = _read(given.file)
    began = time.monotonic()
    for seed in range(given.seeds):
        for name in (bug.name for bug in fitting):
            for kind in KINDS:
                if (name, kind, seed) in done:
                    continue
                if given.minutes is not None and time.monotonic() - began > 60 * given.minutes:
                    break
                command = [sys.executable, "-m", "benchmarks.hunt", str(given.file), "--most", str(given.most)]
                said = subprocess.run([*command, "--play", name, kind, str(seed)], capture_output=True, text=True)
                if said.returncode:
                    raise SystemExit(f"{name}: {said.stderr}")
                result = json.loads(said.stdout)
                done[name, kind, seed] = result
                with given.file.open("a") as file:
                    file.write(json.dumps({"bug": name, "kind": kind, "seed": seed, **result}) + "\n")
                print(f"{name}, {kind}, seed {seed}: {result}", flush=True)
    print_table(done, given.most)


def _read(path: Path) -> dict[tuple[str, str, int], dict[str, Any]]:
    if not path.exists():
        return {}
    lines = map(json.loads, path.read_text().splitlines())
    return {(line["bug"], line["kind"], line["seed"]): line for line in lines}


def print_table(done: dict[tuple[str, str, int], dict[str, Any]], most: int) -> None:
    """The median of each bug over the seeds, and that of all; what was not found counts as `most`."""
    counts: defaultdict[str, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for (name, kind, _), result in done.items():
        counts[name][kind].append(result["schedules"] or most)
    print(f"{'bug':52}{'seeds':>6}{'plain':>9}{'guided':>9}{'ratio':>8}")
    medians: dict[str, list[float]] = {kind: [] for kind in KINDS}
    ratios = []
    for name, by_kind in counts.items():
        if any(not by_kind[kind] for kind in KINDS):
            continue
        plain, guided = (statistics.median(by_kind[kind]) for kind in KINDS)
        medians["plain"].append(plain)
        medians["guided"].append(guided)
        ratios.append(guided / plain)
        seeds = min(len(by_kind[kind]) for kind in KINDS)
        print(f"{name:52}{seeds:>6}{plain:>9,.0f}{guided:>9,.0f}{guided / plain:>8.2f}")
    if ratios:
        plain, guided = (statistics.median(medians[kind]) for kind in KINDS)
        print(f"{'median':52}{'':>6}{plain:>9,.0f}{guided:>9,.0f}{statistics.median(ratios):>8.2f}")
    for kind in KINDS:
        missed = sorted(
            {name for (name, each, _), result in done.items() if each == kind and result["schedules"] is None}
        )
        print(f"not found {kind} with some seed: {', '.join(missed) or 'none'}")


if __name__ == "__main__":
    main()
