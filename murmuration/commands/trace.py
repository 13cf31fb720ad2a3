"""What `murmur trace` prints and writes: one event's way, as text and as a Lamport diagram."""

import re
from collections.abc import Iterator
from pathlib import Path

from murmur_pubsub.errors import InputError
from murmuration.commands.ending import result_at
from spark_analysis.event_way import follow
from spark_analysis.findings_file import read_findings
from spark_analysis.lamport import draw_way
from spark_analysis.way_text import way_lines

_FORMATS = (".svg", ".png", ".pdf")


def trace_event(run: Path, event: str, out: Path | None) -> None:
    """Print the way of the event and draw it to `out` (default: an SVG in the run folder)."""
    named = re.fullmatch(r"(\d+):(\d+)", event)
    if named is None:
        raise InputError("event", repr(event), "PUBLISHER:NUMBER, as in analysis/findings.csv, such as 3:17")
    source, sequence = map(int, named.groups())
    path = out or run / f"trace-{source}-{sequence}.svg"
    if path.suffix not in _FORMATS:
        raise InputError("--out", str(path), "a file that ends with " + ", ".join(_FORMATS))
    way = follow(run, source, sequence)
    found = list(judged(run / "analysis" / "findings.csv", event))
    for line in way_lines(way, found):
        print(line)
    with result_at(path, out):
        drawn = draw_way(way, path)
    part = "" if drawn == len(way.visits) else f" (the first {drawn} of {len(way.visits):,} visits)"
    print(f"diagram: {path}{part}")


def judged(findings: Path, event: str) -> Iterator[str]:
    """What the judge found about the event, if the run was judged."""
    if not findings.exists():
        yield "what the judge found is not kept here: murmur analyze writes it"
        return
    listed = read_findings(findings)
    about = listed[listed["event"] == event].to_dict("records")
    for row in about:
        why = f"; explained by {row['explanation']}" if row["explanation"] else ""
        finding = row["finding"].replace("_", " ")
        yield f"judged: {finding} at subscriber {row['subscriber']} ({row['client']}): {row['detail']}{why}"
    if not about:
        yield "judged: nothing missing, duplicate, spurious or out of order"
