"""Random schedules play as they did: a change of a protocol that changes a run is seen, and has to be meant.

Regenerate with `MURMUR_REWRITE=1 pytest tests/golden/test_schedules.py`, read which schedules changed and how, and say
in the commit why. See tests/golden/schedule.py, which also chooses the schedules of a pair.
"""

import os

import pytest

from benchmarks.schedules import PAIRS
from tests.golden.schedule import came_to, file_of, write

SELECTED = (
    "multipath/end_to_end/backups",
    "multipath/end_to_end/crossed",
    "cells/gryphon/replaced",
    "cells/durable/replaced",
)
"""Parts of what may be drawn of a pair: with backups, or with brokers that are replaced."""


@pytest.mark.parametrize("pair", [*PAIRS, *SELECTED])
def test_schedules_come_to_what_they_came_to(pair: str) -> None:
    lines = file_of(pair).read_text().splitlines()
    seeds = [int(line.partition(":")[0]) for line in lines]
    if os.environ.get("MURMUR_REWRITE"):
        write(pair, seeds)
        return
    assert len(seeds) >= 8
    for seed, line in zip(seeds, lines, strict=True):
        assert came_to(pair, seed) == line, f"python -m benchmarks.schedules --pair {pair} --show {seed} > it.yaml"
