"""Runs side by side: what their scenarios differ in, what they delivered, how fast, and what it cost.

Delays of runs that delivered different things mean little beside each other: where links lose, what is left are the
near deliveries. So delays are given again for the deliveries that all runs made: the same event to the same subscriber.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from murmur_pubsub.errors import InputError
from murmur_pubsub.run_manifest import RunManifest
from murmur_pubsub.verdict_file import read_verdict
from murmuration.results.load import load_run

_DELIVERY = ["publisher", "sequence", "subscriber"]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the comparison: what it is about, in which unit, and a value for each run (None: it has none)."""

    what: str
    unit: str
    values: tuple[Any, ...]


def compare(folders: Sequence[Path]) -> list[Line]:
    """The lines for these runs, judged or not; raises `InputError` for fewer than two, or one that cannot be read."""
    if len(folders) < 2:
        raise InputError("murmur compare", f"{len(folders)} run folders", "two or more")
    runs = [load_run(folder) for folder in folders]
    manifests = [run.manifest for run in runs]
    lines = list(_differences(manifests))
    verdicts = [read_verdict(folder) or {} for folder in folders]
    lines += [
        Line(name.replace("_", " "), "", tuple(each.get(name) for each in verdicts))
        for name in ("verdict", "required", "missing", "duplicate", "spurious", "out_of_order", "explained")
        if any(name in each for each in verdicts)
    ]
    delivered = [run.deliveries.drop_duplicates(_DELIVERY) for run in runs]
    common = delivered[0][_DELIVERY]
    for each in delivered[1:]:
        common = common.merge(each[_DELIVERY], "inner", _DELIVERY)
    lines += [
        Line("published", "", tuple(len(run.events) for run in runs)),
        Line("delivered", "", tuple(len(run.deliveries) for run in runs)),
        Line("delivered by all of them", "", (len(common),) * len(runs)),
        *_delays("delay", [run.deliveries for run in runs]),
        *_delays("delay of what all delivered", [each.merge(common, "inner", _DELIVERY) for each in delivered]),
        Line("hops of a delivery, mean", "", tuple(_mean(run.deliveries["hops"]) for run in runs)),
    ]
    sent = [run.rows[run.rows["kind"] == "SEND"] for run in runs]
    dropped = [int((run.rows["kind"] == "DROP").sum()) for run in runs]
    lines += [
        Line("messages", "", tuple(len(each) for each in sent)),
        Line("bytes", "", tuple(int(each["bytes"].sum()) for each in sent)),
        Line(
            "messages a delivery",
            "",
            tuple(_ratio(len(s), len(run.deliveries)) for s, run in zip(sent, runs, strict=True)),
        ),
        Line("messages dropped", "", tuple(dropped)),
        Line("faults", "", tuple(len(manifest.faults) for manifest in manifests)),
    ]
    return lines


def _differences(manifests: Sequence[RunManifest]) -> Iterator[Line]:
    """The keys in which the scenarios differ."""
    flat = [
        dict(_flat(manifest.scenario)) | {"seed": manifest.seed, "runtime": manifest.runtime} for manifest in manifests
    ]
    for key in dict.fromkeys(key for each in flat for key in each):
        values = tuple(each.get(key) for each in flat)
        if any(value != values[0] for value in values) and key != "description":
            yield Line(key, "scenario", values)


def _flat(section: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in section.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        elif isinstance(value, list):
            yield f"{above}{key}", json.dumps(value)
        else:
            yield f"{above}{key}", value


def _delays(what: str, deliveries: Sequence[pd.DataFrame]) -> Iterator[Line]:
    for share, name in ((0.5, "median"), (0.99, "p99"), (1.0, "longest")):
        values = [each["delay_us"].dropna() for each in deliveries]
        quantiles = tuple(int(each.quantile(share, "lower")) if len(each) else None for each in values)
        yield Line(f"{what}, {name}", "us", quantiles)


def _mean(values: "pd.Series[Any]") -> float | None:
    return round(float(values.mean()), 3) if len(values) else None


def _ratio(count: int, of: int) -> float | None:
    return round(count / of, 3) if of else None
