"""Which finds more of random changes in the same CPU time: random schedules, or a short guided hunt?

`python -m benchmarks.hunted_mutants [--count 30] [--seed 21] [--seconds 4] [--under FOLDER ...]` draws that many
changes of functions (`benchmarks.mutations`). Each is made in two forks of this process: one plays random schedules of
the pairs that the part takes part in, one hunts them, for so many CPU seconds each.
"""

import argparse
import functools
import gc
import itertools
import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.hunt import end_right_code
from benchmarks.mutants import draw, pairs_of
from benchmarks.schedules import drawn
from benchmarks.short_hunt import short_hunt
from benchmarks.swapped_code import CannotSwapError, functions_by_code, swap
from benchmarks.table import print_table
from murmuration.hunt.chunk import Quarry
from murmuration.hunt.trial import play_schedule

ROOT = Path(__file__).parents[1]
_MANY = 1_000_000
_HANGS_S = 60
"""A fork that takes so much CPU time has found something: a run that does not end."""


def _random_schedules(pairs: Sequence[str]) -> Iterator[str]:
    """Says of each schedule what is wrong with it ("" for nothing)."""
    for seed in itertools.count():
        for pair in pairs:
            try:
                outcome = play_schedule(drawn(pair, seed))
            except Exception as error:  # whatever a protocol raises is a finding
                yield repr(error)
                continue
            numbers = outcome.judgement.numbers
            yield str(numbers["reason"]) if numbers["verdict"] == "invalid" else ""


_WAYS: dict[str, Callable[[Sequence[str]], Iterator[str]]] = {
    "random schedules": _random_schedules,
    "a short hunt": functools.partial(short_hunt, schedules=_MANY, right=ROOT),
}


def main() -> None:
    """Make the changes, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=21)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--under", action="append")
    given = parser.parse_args()
    under = given.under or ["routing", "reliability"]
    changes = [each for each in draw(given.count, given.seed, under) if each.lines is not None]
    for change in changes:  # all protocols are to be imported before their code is changed
        for pair in pairs_of(change.path):
            Quarry.named(pair).space()
    functions = functions_by_code()
    gc.freeze()
    found: list[tuple[bool, ...]] = []
    for change in changes:
        source = (ROOT / change.path).read_text()
        try:
            swap_it = functools.partial(swap, functions, str(ROOT / change.path), source, change.applied(source))
            ends = tuple(
                _in_fork(swap_it, functools.partial(way, pairs_of(change.path)), given.seconds)
                for way in _WAYS.values()
            )
        except CannotSwapError:
            continue
        found.append(ends)
        print(f"{change.path}:{change.line}: {change.what}: {dict(zip(_WAYS, ends, strict=True))}", flush=True)
    both = sum(map(all, found))
    rows = [(name, sum(ends[place] for ends in found)) for place, name in enumerate(_WAYS)]
    print_table(
        f"{len(found)} changes, {given.seconds:g} CPU seconds each", ("found by", "changes"), [*rows, ("both", both)]
    )


def _in_fork(swap_it: Callable[[], object], way: Callable[[], Iterator[str]], seconds: float) -> bool:
    """Is anything found with the change in that time? Raises `CannotSwapError`."""
    child = os.fork()
    if not child:
        code = 0
        try:
            swap_it()
            resource.setrlimit(resource.RLIMIT_CPU, (_HANGS_S, _HANGS_S))  # which ends the fork
            began = time.process_time()
            said = itertools.takewhile(lambda _: time.process_time() - began < seconds, way())
            code = int(any(said))
            end_right_code()
        except CannotSwapError:
            code = 2
        except BaseException:  # whatever the change leads to is a finding
            code = 1
        os._exit(code)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if ended == 2:
        raise CannotSwapError("not of a function in use")
    return ended != 0


if __name__ == "__main__":
    main()
