"""At which step two runs part: what each node did next, row by row of their journals."""

import contextlib
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from murmur_pubsub.deployment import Deployment
from murmur_pubsub.errors import RunError
from murmur_pubsub.journal import NONE, RowKind
from murmur_virtual.run import VirtualRun
from murmuration.hunt.trial import deployment_of
from spark_analysis.plain_judge import JournalRow, read_history

_SHOWN = 5


def first_difference(keys: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """In words: the first rows of the nodes of each run behind their common beginning; both have the same nodes."""
    deployment = deployment_of(keys)
    ours, theirs = _rows(deployment), _rows(deployment_of(other))
    shared = min(len(ours), len(theirs))
    unequal = np.flatnonzero(ours[:shared] != theirs[:shared])
    if not len(unequal) and len(ours) == len(theirs):
        return ["no step differs"]
    place = int(unequal[0]) if len(unequal) else shared
    names = [spec.name for spec in deployment.nodes]
    return [
        *(f"with it:    {_words(row, names)}" for row in ours[place : place + _SHOWN].tolist()),
        *(f"without it: {_words(row, names)}" for row in theirs[place : place + _SHOWN].tolist()),
    ]


def _rows(deployment: Deployment) -> np.ndarray:
    """Of the nodes, without the driver's."""
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.suppress(RunError):  # what it did until then is there
            VirtualRun(deployment, Path(folder), lambda *_: None).play()
        rows = read_history(Path(folder)).rows
    return np.asarray(rows[rows["node"] != len(deployment.nodes)])


def _words(fields: tuple[int, ...], names: list[str]) -> str:
    row = JournalRow(*fields)
    kind = RowKind(row.kind).name.lower().replace("_", " ")
    event = "" if row.sequence == NONE or row.source == NONE else f" of {row.source}:{row.sequence}"
    peer = "" if not 0 <= row.peer < len(names) else f", peer {names[row.peer]}"
    return f"{row.time_us / 1e6:,.6f} s  {names[row.node]}: {kind}{event}{peer}"
