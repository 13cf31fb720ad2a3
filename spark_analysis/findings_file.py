"""The findings that went to `analysis/findings.csv`, read without Spark."""

from pathlib import Path

import pandas as pd

from murmur_pubsub.json_file import taken_apart
from spark_analysis.table_columns import check_columns


def read_findings(path: Path) -> pd.DataFrame:
    """The table in the file; raises `InputError` naming it for anything else."""
    with taken_apart(path, "the findings of a run that `murmur analyze` has been through"):
        findings = pd.read_csv(path, keep_default_na=False, dtype={"event": "str", "subscriber": "Int64"})
        check_columns("findings", list(findings.columns))
        odd = findings["event"][~findings["event"].str.fullmatch(r"\d+:\d+")]
        if len(odd):
            raise ValueError(f"the event {odd.iloc[0]}")
    return findings
