"""How a failing schedule shows its cause, without names and numbers: two that have one cause mostly show it alike.

Of an event that was not delivered that is where its way ended, and what became of its last message; of one that was
delivered wrongly, the messages that it came by; of anything else, what was said.
"""

import contextlib
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from murmur_pubsub.errors import RunError
from murmur_pubsub.run_manifest import RunManifest, read_manifest
from murmuration.hunt.present import whole_scenario
from murmuration.hunt.symptoms import Symptom, without_numbers
from murmuration.hunt.trial import deployment_of, judge_faults
from murmuration.runs.driver import execute
from murmuration.scenario.load import check_scenario
from spark_analysis.event_way import EventWay, follow
from spark_analysis.history import read_history
from spark_analysis.plain_judge import Pair
from spark_analysis.verdict import COUNTS
from spark_analysis.way_ends import WayEnds


def how_it_shows(keys: Mapping[str, Any], symptom: Symptom) -> str:
    """In words, of the scenario of these keys, which has that symptom."""
    if symptom.kind in COUNTS:
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "run"
            with contextlib.suppress(RunError):
                execute(check_scenario(whole_scenario(keys), "schedule"), run, lambda *_: None)
                judgement = judge_faults(deployment_of(keys), Path(read_manifest(run).journal_at(run))).judgement
                if left := judgement.left(symptom.kind):
                    return _way_of(run, left[0], symptom.kind)
    return without_numbers(symptom.words)


def _way_of(run: Path, pair: Pair, kind: str) -> str:
    event, subscriber = pair
    manifest = read_manifest(run)
    life = read_history(manifest.journal_at(run)).lives[subscriber][0]
    way, client = follow(run, *event), manifest.names[life.node]
    if kind == "missing":
        return _without_names(WayEnds(manifest).of_missing(way, client), manifest)
    home = manifest.homes.get(client, client)
    return f"to its broker by {_brought(way, home)}, to its client by {_brought(way, client)}"


def _brought(way: EventWay, node: str) -> str:
    kinds = [visit.cause.kind for visit in way.visits if visit.node == node and visit.cause is not None]
    return ", ".join(sorted(kinds)) or "nothing"


def _without_names(words: str, manifest: RunManifest) -> str:
    roles = {node.name: node.role for node in manifest.nodes}
    return re.sub(r"[\w.-]+", lambda found: f"a {roles[found[0]]}" if found[0] in roles else found[0], words)
