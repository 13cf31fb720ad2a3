"""What the judge found in a run, for its page; nothing if it was not judged."""

from pathlib import Path
from typing import Any

import pandas as pd

from murmur_pubsub.run_manifest import read_manifest


def found(run: Path) -> dict[str, Any]:
    """The findings by where ways ended, and the ways, as `spark_analysis.found_picture` has them."""
    path = run / "analysis" / "findings.csv"
    if not path.exists():
        return {}
    from spark_analysis.found_picture import found_picture

    try:
        findings = pd.read_csv(path, keep_default_na=False, dtype={"subscriber": "Int64"})
    except pd.errors.EmptyDataError:
        return {}
    return found_picture(run, read_manifest(run), findings)
