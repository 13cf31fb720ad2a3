"""The random schedule that finds each broken promise again when its mend is taken out.

`python -m benchmarks.broken_promises FILE [--most 2000] [--minutes 20] [--mend NAME ...]` takes out each of
`benchmarks.mends`, in a process of its own, and plays the schedules of its pair from the seeds 0, 1, 2 and so on, until
one shows something wrong that the whole code does not show. They are those that `benchmarks.schedules` draws, or the
part of them that the mend says. A seed that had shown it once is played first. For some mends a test that draws what
it does (`benchmarks.drawn_tests`) is played in place of schedules. `--minutes` is the most that one mend may take.
`--show` prints the schedules that were found.

FILE keeps a line of JSON for each turn. What was found is not sought again, and what was not goes on where it had
ended. The table of all lines is printed at the end.
"""

import argparse
import dataclasses
import json
import random
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from benchmarks.hunt import end_right_code, found_without_it, is_wrong_without_it
from benchmarks.mends import MENDS, Mend
from benchmarks.planted_bugs import ROOT, planted
from benchmarks.table import print_table


def drawn_for(mend: Mend, seed: int) -> dict[str, Any]:
    """The schedule of that seed, as a scenario."""
    from benchmarks.schedules import space_named
    from murmuration.hunt.schedule import draw_schedule

    space = dataclasses.replace(space_named(mend.without.pair), **mend.among.fields)
    if mend.among.parameters:
        space = dataclasses.replace(space, broker={**space.broker, "parameters": dict(mend.among.parameters)})
    return draw_schedule(random.Random(seed), space)


def seek(mend: Mend, first: int, last: int, minutes: float) -> dict[str, Any]:
    """Play these seeds without the mend, in a process that has imported no protocol yet."""
    planted(mend.without)
    began, ends = time.process_time(), time.monotonic() + 60 * minutes
    find = _find_by_test if mend.drawn_test else _find_by_schedule
    found = {} if mend.known is None or first else find(mend, mend.known)
    seed = first
    while seed < last and not found and time.monotonic() < ends:
        found = find(mend, seed)
        seed += 1
    end_right_code()
    return {"mend": mend.without.name, "next": seed, "cpu_s": round(time.process_time() - began, 1), **found}


def _find_by_test(mend: Mend, seed: int) -> dict[str, Any]:
    from benchmarks.drawn_tests import wrong_in

    words = wrong_in(mend.drawn_test, seed)
    if words:
        command = [sys.executable, "-m", "benchmarks.drawn_tests", mend.drawn_test, str(seed)]
        if subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode:
            words = ""  # it is wrong with the mend, too
    return {"seed": seed, "symptom": words} if words else {}


def _find_by_schedule(mend: Mend, seed: int) -> dict[str, Any]:
    from murmur_pubsub.errors import InputError
    from murmuration.hunt.symptoms import tried

    try:
        keys = drawn_for(mend, seed)
        played = tried(keys, mend.asked)
    except InputError:
        return {}  # a schedule that cannot be
    numbers = {} if played.outcome is None else played.outcome.judgement.numbers
    count = numbers.get(mend.unpromised, 0)
    words = "" if played.symptom is None else played.symptom.words
    if words and is_wrong_without_it(keys, ROOT, mend.asked):
        words = ""
    if not words and count and not found_without_it(keys, mend.unpromised):
        words = f"{count} deliveries are {mend.unpromised}, and none with the mend"
    return {"seed": seed, "symptom": words, "faults": len(keys["faults"])} if words else {}


def results(file: Path) -> dict[str, dict[str, Any]]:
    """By mend: its last line, with the CPU time of all."""
    by_mend: dict[str, dict[str, Any]] = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        result = json.loads(line)
        result["cpu_s"] += by_mend.get(result["mend"], {"cpu_s": 0.0})["cpu_s"]
        by_mend[result["mend"]] = result
    return by_mend


def main() -> None:
    """Seek what was not found yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--most", type=int, default=2_000)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--mend", action="append", metavar="NAME")
    parser.add_argument("--show", action="store_true", help="print the schedules that were found, and play nothing")
    parser.add_argument("--seek", type=int, metavar="FIRST", help=argparse.SUPPRESS)  # this is the process of one mend
    arguments = parser.parse_args()
    mends = [each for each in MENDS if arguments.mend is None or each.without.name in arguments.mend]
    if arguments.seek is not None:
        print(json.dumps(seek(mends[0], arguments.seek, arguments.most, arguments.minutes)))
        return
    known = results(arguments.file)
    if arguments.show:
        for mend in mends:
            if "seed" in (found := known.get(mend.without.name, {})) and not mend.drawn_test:
                print(f"# without the mend: {mend.without.name}")
                print(yaml.safe_dump(drawn_for(mend, found["seed"]), sort_keys=False))
        return
    left = [each for each in mends if _first(known.get(each.without.name, {})) < arguments.most]
    for number, mend in enumerate(left):
        name = mend.without.name
        print(f"{number} of {len(left)}: {name}", file=sys.stderr, flush=True)
        first = _first(known.get(name, {}))
        command = [sys.executable, "-m", "benchmarks.broken_promises", str(arguments.file), "--mend", name]
        command += ["--seek", str(first), "--most", str(arguments.most), "--minutes", str(arguments.minutes)]
        line = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        with arguments.file.open("a") as file:
            file.write(line)
    _show(mends, results(arguments.file))


def _first(known: Mapping[str, Any]) -> float:
    """The seed to go on with; none if a schedule was found."""
    return float("inf") if "seed" in known else int(known.get("next", 0))


def _show(mends: list[Mend], known: Mapping[str, Mapping[str, Any]]) -> None:
    rows = []
    for mend in mends:
        result = known.get(mend.without.name)
        if result is not None:
            found = "seed" in result
            where = mend.drawn_test or mend.without.pair
            schedule = f"{where} {result['seed']}" if found else f"{where}: none of {result['next']:,}"
            if mend.among.words:
                schedule += f" ({mend.among.words})"
            shown = f"{result['symptom'][:80]}" if found else ""
            rows.append((mend.promise, mend.without.name, schedule, result.get("faults", ""), result["cpu_s"], shown))
    title = "The schedule that finds each broken promise without its mend"
    print_table(title, ("what had happened", "without the mend", "schedule", "faults", "CPU s", "what it shows"), rows)


if __name__ == "__main__":
    main()
