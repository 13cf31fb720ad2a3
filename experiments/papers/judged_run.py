"""One run of a scenario made of keys, its verdict, and its journal as a frame."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.driver import FinishedRun, execute
from experiments.scenario import check_scenario
from pubsub.journal import Phase, RowKind, read_segment


def play(data: Mapping[str, Any], folder: Path) -> tuple[FinishedRun, Mapping[str, Any]]:
    """Run the scenario and judge it."""
    from spark_analysis.main import judge

    finished = execute(check_scenario(dict(data), str(data["name"])), folder, lambda *_: None)
    return finished, judge(folder)


def node_names(folder: Path) -> list[str]:
    """Node names by number, of a run folder."""
    return [node["name"] for node in json.loads((folder / "manifest.json").read_text())["nodes"]]


def journal(folder: Path) -> pd.DataFrame:
    """All rows of a run, in order of time."""
    rows = [pd.DataFrame(read_segment(path)[1]) for path in sorted((folder / "journal").glob("*.seg"))]
    return pd.concat(rows).sort_values("time_us", kind="stable").reset_index(drop=True)


def publishing_from_us(rows: pd.DataFrame) -> int:
    """When publishing began."""
    return int(rows[(rows.kind == RowKind.PHASE) & (rows.value == Phase.PUBLISHING)].time_us.iloc[0])
