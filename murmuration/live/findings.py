"""What a page shows beside frames: what the judge found in a run, and the way of one event."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from murmur_pubsub.run_manifest import read_manifest


def found(run: Path) -> dict[str, Any]:
    """The findings by where ways ended, and the ways, as `spark_analysis.found_picture` has them; nothing if the run
    was not judged. Raises `InputError` for a file that has none."""
    path = run / "analysis" / "findings.csv"
    if not path.exists():
        return {}
    from spark_analysis.findings_file import read_findings
    from spark_analysis.found_picture import found_picture

    return found_picture(run, read_manifest(run), read_findings(path))


def way_of(run: Path, source: int, sequence: int) -> Mapping[str, Any]:
    """The way of the event so far; raises `InputError` for one that was not published."""
    from spark_analysis.event_way import follow
    from spark_analysis.way_picture import way_plain

    return way_plain(follow(run, source, sequence))
