"""Where the time of a hunted schedule goes: `python -m benchmarks.hunt_parts [PAIR] [--schedules 100] [--plain]`.

Plays the schedules in one process, as a hunt with one worker and seed 0 does, and prints CPU milliseconds a schedule by
part; what a part leaves to another one is not counted twice. Then schedules a CPU hour and places reached.
"""

import argparse
import functools
import random
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import murmuration.hunt.chunk
import murmuration.hunt.symptoms
import murmuration.hunt.trial
import spark_analysis.plain_judge
from murmur_virtual.virtual_node import VirtualNode
from murmuration.hunt.chunk import Chunk, Quarry, play_chunk
from murmuration.hunt.corpus import Corpus
from murmuration.hunt.coverage import ObservedRun, Reached
from murmuration.hunt.schedule import Schedule

_COUNT = 20
_PARTS: tuple[tuple[str, object, str], ...] = (
    ("drawing it", murmuration.hunt.chunk, "next_schedule"),
    ("drawing it", murmuration.hunt.chunk, "draw_parts"),
    ("fitting its faults to the nodes", Schedule, "keys"),
    ("building its deployment", murmuration.hunt.symptoms, "deployment_of"),
    ("playing it", ObservedRun, "play"),
    ("invariants", VirtualNode, "check_invariants"),
    ("fingerprints, places and properties", ObservedRun, "_look"),
    ("fingerprints, places and properties", Reached, "places"),
    ("judging it: did the faults take effect", spark_analysis.plain_judge, "check_faults"),
    ("judging it: the rest", murmuration.hunt.trial, "judge_faults"),
)


class _Clock:
    """CPU seconds by part."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._inner: list[float] = []

    def around(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, timed."""

        @functools.wraps(function)
        def timed(*given: Any, **named: Any) -> Any:
            began = time.process_time()
            self._inner.append(0.0)
            try:
                return function(*given, **named)
            finally:
                took = time.process_time() - began
                self.seconds[part] += took - self._inner.pop()
                if self._inner:
                    self._inner[-1] += took

        return timed


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pair", nargs="?", default="cells/gryphon")
    parser.add_argument("--schedules", type=int, default=100)
    parser.add_argument("--plain", action="store_true")
    given = parser.parse_args()
    clock = _Clock()
    for part, owner, name in _PARTS:
        setattr(owner, name, clock.around(part, getattr(owner, name)))
    quarry, corpus, rng, cpu_s = Quarry.named(given.pair), Corpus(), random.Random(0), 0.0
    chunks = -(-given.schedules // _COUNT)
    for number in range(chunks):
        parents = () if given.plain else corpus.parents(rng, _COUNT)
        end = play_chunk(Chunk("parts", quarry, f"0/{number}", _COUNT, not given.plain, parents))
        cpu_s += end.cpu_s
        corpus.count(end.times)
        for schedule, places in end.reached:
            corpus.take(schedule, places)
    schedules = chunks * _COUNT
    for part, seconds in sorted(clock.seconds.items(), key=lambda each: -each[1]):
        print(f"{part:42}{1_000 * seconds / schedules:>8.1f} ms")
    rest_s = cpu_s - sum(clock.seconds.values())
    print(f"{'the rest':42}{1_000 * rest_s / schedules:>8.1f} ms")
    print(f"{schedules} schedules, {3_600 * schedules / cpu_s:,.0f} a CPU hour, {len(corpus.places):,} places")


if __name__ == "__main__":
    main()
