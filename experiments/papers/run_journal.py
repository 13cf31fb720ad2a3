"""The journal of a finished run as a table, for reproductions that read more of it than the analysis says."""

import json
from pathlib import Path

import pandas as pd

from pubsub.journal import read_segment


def node_names(folder: Path) -> list[str]:
    """Node names by number, of a run folder."""
    return [node["name"] for node in json.loads((folder / "manifest.json").read_text())["nodes"]]


def read_journal(folder: Path) -> pd.DataFrame:
    """All rows of a run, in order of time."""
    rows = [pd.DataFrame(read_segment(path)[1]) for path in sorted((folder / "journal").glob("*.seg"))]
    return pd.concat(rows).sort_values("time_us", kind="stable").reset_index(drop=True)
