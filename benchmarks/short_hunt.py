"""A short guided hunt over some pairs of protocols, up to the first schedule that shows something wrong.

`python -m benchmarks.short_hunt PAIR ... [--schedules 60] [--right FOLDER]` shares the schedules out over the pairs,
prints what was found, and exits with 1 then. What is wrong in the code of that folder too does not count.
"""

import argparse
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.hunt import end_right_code, is_wrong_without_it
from murmuration.hunt.chunk import Chunk, Quarry, play_chunk
from murmuration.hunt.corpus import Corpus

_COUNT = 5
"""Schedules of a chunk: what one has reached is known to the next of its pair."""


def short_hunt(pairs: Sequence[str], schedules: int, right: Path) -> Iterator[str]:
    """Says after each chunk what was found first ("" for nothing), and ends with the first that was."""
    rng = random.Random(0)
    corpora = {pair: Corpus() for pair in pairs}
    for number in range(-(-schedules // (_COUNT * max(1, len(pairs))))):
        for pair, corpus in corpora.items():
            parents = corpus.parents(rng, _COUNT)
            end = play_chunk(Chunk("short", Quarry.named(pair), str(number), _COUNT, True, parents))
            for found in end.found:
                if not is_wrong_without_it(dict(found.keys), right):
                    yield f"{pair}, schedule {number * _COUNT + found.number}: {_first(found.symptom.words)}"
                    return
            yield ""
            corpus.count(end.times)
            for schedule, places in end.reached:
                corpus.take(schedule, places)


def _first(words: Any) -> str:
    return str(words).partition("\n")[0][:200]


def main() -> None:
    """Hunt, and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="+")
    parser.add_argument("--schedules", type=int, default=60)
    parser.add_argument("--right", type=Path, default=Path.cwd())
    given = parser.parse_args()
    said = "".join(short_hunt(given.pairs, given.schedules, given.right))
    end_right_code()
    if said:
        print(said)
        raise SystemExit(1)


if __name__ == "__main__":
    main()
