"""What the page shows of findings: groups by where the way ended, and the ways of some events to draw."""

from pathlib import Path
from typing import Any

import pandas as pd

from murmur_pubsub.run_manifest import RunManifest
from spark_analysis.event_way import EventWay, follow_all
from spark_analysis.way_ends import WayEnds
from spark_analysis.way_picture import way_plain

_EVENTS_FOLLOWED = 300
_EVENTS_IN_GROUP = 8
_WAYS_DRAWN = 40


def found_picture(run: Path, manifest: RunManifest, findings: pd.DataFrame) -> dict[str, Any]:
    """`findings`: as `AnalysisFolder.read_findings` gives them. Only the first events with findings are followed; the
    others are a group of their own."""
    if not len(findings):
        return {}
    events = list(dict.fromkeys(findings["event"]))
    ids = [(int(source), int(sequence)) for source, sequence in (each.split(":") for each in events[:_EVENTS_FOLLOWED])]
    ways = {f"{source}:{sequence}": way for (source, sequence), way in follow_all(run, ids).items()}
    ends = WayEnds(manifest)
    groups: dict[tuple[str, str], dict[str, Any]] = {}
    for finding, event, client, subscriber, explanation in findings[
        ["finding", "event", "client", "subscriber", "explanation"]
    ].itertuples(index=False):
        where = _where(finding, ways.get(event), str(client), ends)
        if explanation:
            where = f"{where} (explained: {explanation})" if event in ways else f"explained: {explanation}"
        group = groups.setdefault((finding, where), {"finding": finding, "where": where, "count": 0, "events": []})
        group["count"] += 1
        if len(group["events"]) < _EVENTS_IN_GROUP:
            group["events"].append({"event": event, "text": f"to subscriber {subscriber} of {client}"})
    listed = sorted(groups.values(), key=lambda group: -group["count"])
    for group in listed:
        group["command"] = f"murmur trace {run} {group['events'][0]['event']}"
    shown = dict.fromkeys(each["event"] for group in listed for each in group["events"])
    drawn = [event for event in shown if event in ways][:_WAYS_DRAWN]
    return {"findings": listed[:30], "ways": {event: way_plain(ways[event]) for event in drawn}}


def _where(finding: str, way: EventWay | None, client: str, ends: WayEnds) -> str:
    if way is None:
        return "not followed: see analysis/findings.csv"
    if finding == "missing":
        return ends.of_missing(way, client)
    return f"at {client}"
