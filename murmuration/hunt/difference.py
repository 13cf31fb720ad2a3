"""At which step two runs part: what each node did next, row by row of their journals."""

import contextlib
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from murmur_pubsub.deployment import Deployment
from murmur_pubsub.errors import InputError, RunError
from murmur_pubsub.faults import FaultKind
from murmur_pubsub.journal import NONE, DropReason, FaultStage, Phase, RowKind
from murmur_pubsub.journal_format import JournalRow
from murmur_pubsub.journal_rows import read_rows
from murmur_virtual.run import VirtualRun
from murmuration.hunt.trial import deployment_of
from murmuration.runs.manifest import message_kinds

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
    words = RowWords(deployment)
    return [
        *(f"with it:    {words.of(row)}" for row in ours[place : place + _SHOWN].tolist()),
        *(f"without it: {words.of(row)}" for row in theirs[place : place + _SHOWN].tolist()),
    ]


def _rows(deployment: Deployment) -> np.ndarray:
    """Of the nodes, without the driver's."""
    with tempfile.TemporaryDirectory() as folder:
        rows = play_rows(deployment, Path(folder))
    return np.asarray(rows[rows["node"] != len(deployment.nodes)])


def play_rows(deployment: Deployment, folder: Path) -> np.ndarray:
    """Play it with its journal in the folder; the rows, as far as it came."""
    with contextlib.suppress(RunError):
        VirtualRun(deployment, folder, lambda *_: None).play()
    return read_rows(folder)


def began_us_of(rows: np.ndarray) -> int:
    """When publishing began in the run of these rows; raises `InputError` if it did not."""
    phases = rows[(rows["kind"] == RowKind.PHASE) & (rows["value"] == Phase.PUBLISHING)]
    if not len(phases):
        raise InputError("--why", "a run that fails before anything is published", "one that fails later")
    return int(phases["time_us"][0])


class RowWords:
    """Rows of the journal of that deployment in words; times count from `began_us` on."""

    def __init__(self, deployment: Deployment, began_us: int = 0) -> None:
        self._names = [*(spec.name for spec in deployment.nodes), "driver"]
        self._kinds = message_kinds(deployment)
        self._began_us = began_us

    def of(self, fields: Sequence[int]) -> str:
        """Of one row."""
        row, names = JournalRow(*fields), self._names
        kind = RowKind(row.kind).name.lower().replace("_", " ")
        if row.kind in (RowKind.SEND, RowKind.RECEIVE):
            kind += f" {self._kinds.get(row.value, row.value)}"
        if row.kind == RowKind.FAULT:
            kind = f"{FaultKind(row.value).name.lower().replace('_', ' ')} {FaultStage(row.hops).name.lower()}"
        event = "" if row.sequence == NONE or row.source == NONE else f" of {row.source}:{row.sequence}"
        peer = "" if not 0 <= row.peer < len(names) else f", peer {names[row.peer]}"
        reason = f" ({DropReason(row.value).name.lower()})" if row.kind == RowKind.DROP else ""
        return f"{(row.time_us - self._began_us) / 1e6:,.6f} s  {names[row.node]}: {kind}{event}{peer}{reason}"
