"""Golden schedules: what each of some random schedules came to, in a line of a file for its pair of protocols.

A line has the schedule's seed and a digest of the scenario that is drawn from it; a digest of the journal; and how many
rows of each kind the journal has. A mend that was to change one case and moves messages in others is seen at once.

`python -m tests.golden.schedule PAIR SECONDS SEEDS` chooses anew which schedules the file has. Of so many seeds it
takes the one that reaches most new places (`murmuration.hunt.coverage`) for its time, again and again, until all taken
together play for so many seconds.
"""

import hashlib
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.schedules import drawn
from murmur_pubsub.journal import RowKind
from murmur_pubsub.journal_format import HEADER_BYTES
from murmur_pubsub.journal_rows import read_segment
from murmur_virtual.run import VirtualRun
from murmuration.hunt.coverage import ObservedRun, Reached
from murmuration.hunt.trial import deployment_of

FOLDER = Path(__file__).parent / "schedules"
_COUNTED = (RowKind.SEND, RowKind.RECEIVE, RowKind.DELIVER, RowKind.DROP, RowKind.PROTOCOL)


def file_of(pair: str) -> Path:
    """The file of a pair written as ROUTING/RELIABILITY, maybe with which backups there are."""
    return FOLDER / f"{pair.replace('/', '-')}.txt"


def came_to(pair: str, seed: int) -> str:
    """The line of that schedule; raises what a protocol raises."""
    schedule = drawn(pair, seed)
    with tempfile.TemporaryDirectory() as folder:
        VirtualRun(deployment_of(schedule), Path(folder), lambda *_: None).play()
        rows, journal = np.zeros(0, dtype=np.int64), hashlib.blake2b(digest_size=4)
        for path in sorted(Path(folder).iterdir()):
            journal.update(path.read_bytes()[HEADER_BYTES:])
            if path.suffix == ".seg":
                rows = np.concatenate([rows, read_segment(path)[1]["kind"]])
    counts = np.bincount(rows, minlength=max(RowKind) + 1)
    named = ", ".join(f"{kind.name.lower()} {counts[kind]}" for kind in _COUNTED)
    text = hashlib.blake2b(json.dumps(schedule, sort_keys=True).encode(), digest_size=4)
    return f"{seed}: schedule {text.hexdigest()}, journal {journal.hexdigest()}: {named}"


def choose(pair: str, seconds: float, seeds: int) -> list[int]:
    """Those of so many seeds whose schedules reach most in so many seconds."""
    places: dict[int, set[str]] = {}
    took: dict[int, float] = {}
    for seed in range(seeds):
        deployment, reached = deployment_of(drawn(pair, seed)), Reached()
        with tempfile.TemporaryDirectory() as folder:
            ObservedRun(reached, (), deployment, Path(folder), lambda *_: None).play()
        began = time.process_time()
        came_to(pair, seed)
        places[seed], took[seed] = reached.places(), time.process_time() - began
    chosen: list[int] = []
    while seconds > 0 and places:
        best = max(places, key=lambda seed: len(places[seed]) / took[seed])
        new = places.pop(best)
        if took[best] <= seconds:
            chosen.append(best)
            seconds -= took[best]
            places = {seed: left - new for seed, left in places.items()}
    return sorted(chosen)


def write(pair: str, seeds: list[int]) -> None:
    """Play these, and write the file of the pair."""
    file_of(pair).write_text("".join(f"{came_to(pair, seed)}\n" for seed in seeds))


if __name__ == "__main__":
    write(sys.argv[1], choose(sys.argv[1], float(sys.argv[2]), int(sys.argv[3])))
