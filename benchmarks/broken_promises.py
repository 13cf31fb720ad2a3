"""The random schedule that finds each broken promise again when its mend is taken out.

`python -m benchmarks.broken_promises FILE [--most 2000] [--minutes 20] [--mend NAME ...]` takes out each of
`benchmarks.mends`, in a process of its own, and plays the schedules of its pair that `benchmarks.schedules` draws from
the seeds 0, 1, 2 and so on, until one shows something wrong that the whole code does not show. `--minutes` is the most
that one mend may take; `python -m benchmarks.schedules --pair PAIR --show SEED` prints the schedule that was found.

FILE keeps a line of JSON for each turn. What was found is not sought again, and what was not goes on where it had
ended. The table of all lines is printed at the end.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.hunt import end_right_code, is_wrong_without_it, missing_without_it
from benchmarks.mends import MENDS, Mend
from benchmarks.planted_bugs import planted
from benchmarks.table import print_table


def seek(mend: Mend, first: int, last: int, minutes: float) -> dict[str, Any]:
    """Play the schedules of these seeds without the mend, in a process that has imported no protocol yet."""
    planted(mend.without)
    from benchmarks.schedules import drawn
    from murmur_pubsub.errors import InputError
    from murmuration.hunt.symptoms import tried

    began, ends = time.process_time(), time.monotonic() + 60 * minutes
    found: dict[str, Any] = {}
    seed = first
    while seed < last and not found and time.monotonic() < ends:
        try:
            keys = drawn(mend.without.pair, seed)
            played = tried(keys)
        except InputError:
            continue  # a schedule that cannot be
        finally:
            seed += 1
        missing = 0 if played.outcome is None else played.outcome.judgement.numbers["missing"]
        words = "" if played.symptom is None else played.symptom.words
        if words and is_wrong_without_it(keys):
            words = ""
        if mend.is_missed and not words and missing and not missing_without_it(keys):
            words = f"{missing} required deliveries are missing, and none with the mend"
        if words:
            found = {"seed": seed - 1, "symptom": words, "faults": len(keys["faults"])}
    end_right_code()
    return {"mend": mend.without.name, "next": seed, "cpu_s": round(time.process_time() - began, 1), **found}


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
    parser.add_argument("--seek", type=int, metavar="FIRST", help=argparse.SUPPRESS)  # this is the process of one mend
    arguments = parser.parse_args()
    mends = [each for each in MENDS if arguments.mend is None or each.without.name in arguments.mend]
    if arguments.seek is not None:
        print(json.dumps(seek(mends[0], arguments.seek, arguments.most, arguments.minutes)))
        return
    known = results(arguments.file)
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
            schedule = f"{mend.without.pair} {result['seed']}" if found else f"none of {result['next']:,}"
            shown = f"{result['symptom'][:80]}" if found else ""
            rows.append((mend.promise, mend.without.name, schedule, result.get("faults", ""), result["cpu_s"], shown))
    title = "The schedule that finds each broken promise without its mend"
    print_table(title, ("what had happened", "without the mend", "schedule", "faults", "CPU s", "what it shows"), rows)


if __name__ == "__main__":
    main()
