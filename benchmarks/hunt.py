"""How many schedules a hunt needs to find each planted bug: guided, and drawn one after the other.

`python -m benchmarks.hunt FILE [--seeds 5] [--most 1000] [--bug NAME ...] [--kind KIND ...]` plants each bug of
`benchmarks.planted_bugs` in a process of its own and hunts until a schedule shows something wrong that the right code
does not show. FILE keeps a line of JSON for each bug, kind and seed; what is there is not played again, so that the
comparison can be interrupted, or played in pieces (`--minutes`). Bugs that took little time so far come first. A line
says how much is left; the table is printed at the end.

Kinds: `plain` draws every schedule; `guided` hunts as `murmur hunt` does; `alone` draws schedules with one fault on
links that lose nothing: what these do not show needs two faults to meet.
"""

import argparse
import dataclasses
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.planted_bugs import PLANTED_BUGS, ROOT, PlantedBug, fits, planted

KINDS = ("plain", "guided", "alone")
Results = Mapping[tuple[str, str, int], Mapping[str, Any]]
"""Lines of FILE by bug, kind and seed."""
_COMPARED = ("plain", "guided")
_COUNT = 10
_PARENTS = 10
_NOT_ONE = 100
"""Draws without exactly one fault in a row: such a space has none with one."""


class Wrong:
    """A schedule that shows something wrong: `number` counts from 1."""

    def __init__(self, number: int, symptom: str, keys: dict[str, Any]) -> None:
        self.number, self.symptom, self.keys = number, symptom, keys


def hunt(bug: PlantedBug, kind: str, seed: int, most: int) -> dict[str, Any]:
    """Hunt the bug that is planted in this process."""
    began = time.process_time()
    hunted = _alone(bug, seed, most) if kind == "alone" else _in_chunks(bug, kind == "guided", seed, most)
    for wrong in hunted:
        if not is_wrong_without_it(wrong.keys):
            return {
                "schedules": wrong.number,
                "cpu_s": round(time.process_time() - began, 1),
                "symptom": wrong.symptom,
                "faults": len(wrong.keys["faults"]),
            }
    return {"schedules": None, "cpu_s": round(time.process_time() - began, 1), "symptom": None, "faults": None}


def _in_chunks(bug: PlantedBug, guided: bool, seed: int, most: int) -> Iterator[Wrong]:
    """As a hunt with one worker plays them."""
    from murmuration.hunt.chunk import Chunk, Quarry, play_chunk
    from murmuration.hunt.corpus import Corpus

    quarry, corpus, rng = Quarry.named(bug.pair), Corpus(), random.Random(seed)
    for number in range(-(-most // _COUNT)):
        parents = corpus.parents(rng, _PARENTS) if guided else ()
        name = f"{bug.name}/{guided}/{seed}"
        end = play_chunk(Chunk(name, quarry, f"{seed}/{number}", _COUNT, guided, parents))
        for found in end.found:
            yield Wrong(number * _COUNT + found.number + 1, found.symptom.kind, dict(found.keys))
        corpus.count(end.times)
        for schedule, places in end.reached:
            corpus.take(schedule, places)


def _alone(bug: PlantedBug, seed: int, most: int) -> Iterator[Wrong]:
    """Schedules with one fault each."""
    from murmur_pubsub.errors import InputError
    from murmuration.hunt.chunk import Quarry
    from murmuration.hunt.schedule import draw_parts
    from murmuration.hunt.symptoms import tried

    space = dataclasses.replace(Quarry.named(bug.pair).space(), faults_max=1, harm=(0.0,))
    rng = random.Random(seed)
    number = drawn = 0
    while number < most and drawn < _NOT_ONE + 10 * most:
        schedule, drawn = draw_parts(rng, space), drawn + 1
        if len(schedule.faults) != 1:
            continue
        number += 1
        try:
            keys = schedule.keys(space)
        except InputError:
            continue
        symptom = tried(keys).symptom
        if symptom is not None:
            yield Wrong(number, symptom.kind, keys)


_RIGHT_CODE = """
import json, sys
from murmuration.hunt.symptoms import tried
from spark_analysis.verdict import COUNTS
for line in sys.stdin:
    played = tried(*json.loads(line))
    numbers = {} if played.outcome is None else played.outcome.judgement.numbers
    print(json.dumps([played.symptom is not None, {each: numbers.get(each, 0) for each in COUNTS}]), flush=True)
"""
_right: list[subprocess.Popen[str]] = []


def is_wrong_without_it(keys: dict[str, Any], root: Path = ROOT, properties: Sequence[str] = ()) -> bool:
    """Does the schedule show something wrong in the right code, which is in that folder? `properties`: see
    `murmuration.hunt.symptoms.tried`."""
    return bool(_played_without_it(keys, root, properties)[0])


def found_without_it(keys: dict[str, Any], finding: str) -> int:
    """How often the schedule has that finding in the right code, with or without an excuse."""
    return int(_played_without_it(keys, ROOT, ())[1][finding])


def _played_without_it(keys: dict[str, Any], root: Path, properties: Sequence[str]) -> list[Any]:
    """Of the process that plays the right code, which is kept."""
    if not _right:
        command = [sys.executable, "-c", _RIGHT_CODE]
        environment = {**os.environ, "PYTHONPATH": str(root)}
        pipe = subprocess.PIPE
        _right.append(subprocess.Popen(command, cwd=root, env=environment, stdin=pipe, stdout=pipe, text=True))
    asked, said = _right[0].stdin, _right[0].stdout
    assert asked is not None
    assert said is not None
    print(json.dumps([keys, list(properties)]), file=asked, flush=True)
    return list(json.loads(said.readline()))


def end_right_code() -> None:
    """End that process."""
    for process in _right:
        process.terminate()
        process.wait()
    _right.clear()


def main() -> None:
    """Hunt what was not hunted yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--most", type=int, default=1_000, help="schedules after which a bug counts as not found")
    parser.add_argument("--bug", action="append", dest="bugs", help="one of them (default: all)")
    parser.add_argument("--kind", action="append", dest="kinds", choices=KINDS, help="default: plain and guided")
    parser.add_argument("--minutes", type=float, help="begin nothing more after this time")
    parser.add_argument("--play", nargs=2, metavar=("BUG", "WHAT"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    by_name = {bug.name: bug for bug in PLANTED_BUGS}
    if given.play is not None:
        _play(by_name[given.play[0]], json.loads(given.play[1]), given.most)
        return
    wanted = [by_name[name] for name in given.bugs or by_name]
    fitting = [bug for bug in wanted if fits(bug)]
    for bug in wanted:
        if bug not in fitting:
            print(f"{bug.name}: {bug.file} has changed, and the bug does not fit it any more")
    ends_at = float("inf") if given.minutes is None else time.monotonic() + 60 * given.minutes
    kinds = given.kinds or list(_COMPARED)
    for seed in range(given.seeds):
        spent = seconds_spent(read_results(given.file))
        for bug in sorted(fitting, key=lambda each: spent.get(each.name, float("inf"))):
            done = read_results(given.file)
            left = [(kind, seed) for kind in kinds if (bug.name, kind, seed) not in done]
            if left and time.monotonic() < ends_at:
                print(what_is_left(done, [each.name for each in fitting], kinds, given.seeds), flush=True)
                _play_apart(bug, left, given)
    print_table(read_results(given.file), given.most)


def seconds_spent(done: Results) -> dict[str, float]:
    """CPU seconds that a hunt of each bug took, on the average of those that are done."""
    spent: defaultdict[str, list[float]] = defaultdict(list)
    for (name, _, _), result in done.items():
        spent[name].append(result["cpu_s"])
    return {name: statistics.fmean(each) for name, each in spent.items()}


def what_is_left(done: Results, names: Sequence[str], kinds: Sequence[str], seeds: int) -> str:
    """In words; a bug that was not hunted yet is taken for one like the others."""
    spent = seconds_spent(done)
    usual_s = statistics.fmean(spent.values()) if spent else 0.0
    wanted = [(name, kind, seed) for name in names for kind in kinds for seed in range(seeds)]
    left = [name for name, kind, seed in wanted if (name, kind, seed) not in done]
    seconds = sum(spent.get(name, usual_s) for name in left)
    hours = f", about {seconds / 3_600:.1f} CPU hours" if spent else ""
    return f"{len(left):,} of {len(wanted):,} hunts left{hours}"


def _play_apart(bug: PlantedBug, left: Sequence[tuple[str, int]], given: argparse.Namespace) -> None:
    """Hunt it in another process, which writes a line as soon as it has an end."""
    command = [sys.executable, "-m", "benchmarks.hunt", str(given.file), "--most", str(given.most)]
    command += ["--play", bug.name, json.dumps(left)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as playing:
        assert playing.stdout is not None
        for line in playing.stdout:
            with given.file.open("a") as file:
                file.write(line)
            print(line, end="", flush=True)
    if playing.returncode:
        raise SystemExit(f"{bug.name}: the process ended with {playing.returncode}")


def _play(bug: PlantedBug, what: Sequence[tuple[str, int]], most: int) -> None:
    planted(bug)
    for kind, seed in what:
        result = hunt(bug, kind, seed, most)
        print(json.dumps({"bug": bug.name, "kind": kind, "seed": seed, "most": most, **result}), flush=True)
    end_right_code()


def read_results(path: Path) -> dict[tuple[str, str, int], dict[str, Any]]:
    """The lines of FILE by bug, kind and seed."""
    if not path.exists():
        return {}
    lines = map(json.loads, path.read_text().splitlines())
    return {(line["bug"], line["kind"], line["seed"]): line for line in lines}


def print_table(done: Results, most: int) -> None:
    """The median of each bug over the seeds, and that of all; what was not found counts as `most`."""
    counts: defaultdict[str, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for (name, kind, _), result in done.items():
        counts[name][kind].append(result["schedules"] or most)
    print(f"{'bug':52}{'seeds':>6}{'plain':>9}{'guided':>9}{'ratio':>8}")
    medians: dict[str, list[float]] = {kind: [] for kind in _COMPARED}
    ratios = []
    for name, by_kind in counts.items():
        if any(not by_kind[kind] for kind in _COMPARED):
            continue
        plain, guided = (statistics.median(by_kind[kind]) for kind in _COMPARED)
        medians["plain"].append(plain)
        medians["guided"].append(guided)
        ratios.append(guided / plain)
        seeds = min(len(by_kind[kind]) for kind in _COMPARED)
        print(f"{name:52}{seeds:>6}{plain:>9,.0f}{guided:>9,.0f}{guided / plain:>8.2f}")
    if ratios:
        plain, guided = (statistics.median(medians[kind]) for kind in _COMPARED)
        print(f"{'median':52}{'':>6}{plain:>9,.0f}{guided:>9,.0f}{statistics.median(ratios):>8.2f}")
    for kind in KINDS:
        missed = sorted(
            {name for (name, each, _), result in done.items() if each == kind and result["schedules"] is None}
        )
        print(f"not found {kind} with some seed: {', '.join(missed) or 'none'}")


if __name__ == "__main__":
    main()
