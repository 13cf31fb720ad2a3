"""What is written about a finding: scenario, trace, where it leaves the way that it takes without the fault, a test.

- `scenario.yaml` is played by `murmur run`;
- `trace.txt` and `trace.svg` follow the event that the judge found something about;
- `difference.txt` says for each fault at which step the run first differs from the same one without it;
- `test_finding.py` fails as long as the schedule does.
"""

import tempfile
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from murmur_pubsub.errors import InputError, RunError
from murmur_pubsub.promise import DEFAULT_RECOVERY_LIMIT_US
from murmur_pubsub.whole_files import write_text
from murmuration.hunt.difference import first_difference
from murmuration.hunt.symptoms import Symptom, Tried, tried
from murmuration.hunt.trial import LOSSY_LIMIT_US, deployment_of
from murmuration.runs.driver import execute
from murmuration.runs.manifest import manifest_of_deployment
from murmuration.scenario.durations import duration_text
from murmuration.scenario.load import check_scenario
from spark_analysis.event_way import follow
from spark_analysis.lamport import draw_way
from spark_analysis.way_text import way_lines

_LONG_S = 15.0
_WIDTH = 100
_TEST = '''"""{words}
"""

import yaml

from murmuration.hunt.symptoms import tried

SCHEDULE = """
{text}"""


def test_the_schedule_shows_nothing_wrong() -> None:
    symptom = tried(yaml.safe_load(SCHEDULE), properties={properties!r}).symptom
    assert symptom is None, symptom.words
'''


class Sizes(NamedTuple):
    """How large a schedule is."""

    brokers: int
    clients: int
    publications: int
    faults: int


def sizes_of(keys: Mapping[str, Any]) -> Sizes:
    """Of a scenario that can be."""
    deployment = deployment_of(keys)
    brokers = sum(node.role == "broker" for node in deployment.nodes)
    publications = sum(1 for script in deployment.scripts.values() for _ in script.publications)
    return Sizes(brokers, len(deployment.nodes) - brokers, publications, len(keys["faults"]))


def whole_scenario(keys: Mapping[str, Any]) -> dict[str, Any]:
    """With the key that the hunt judges by and a scenario leaves out."""
    lossy = manifest_of_deployment(deployment_of(keys), "schedule", "virtual").lossy
    limit_us = LOSSY_LIMIT_US if lossy else DEFAULT_RECOVERY_LIMIT_US
    return {**keys, "recovery_limit": duration_text(limit_us)}


def write_schedule(
    folder: Path, keys: Mapping[str, Any], symptom: Symptom, before: Sizes, properties: Sequence[str] = ()
) -> None:
    """Write the scenario and the test."""
    text = yaml.safe_dump(whole_scenario(keys), sort_keys=False)
    write_text(folder / "scenario.yaml", text)
    first = symptom.words.partition("\n")[0].replace('"""', "'''")
    sizes = f"Shrunk from {_told(before)} to {_told(sizes_of(keys))}."
    told = (
        f"Found by `murmur hunt`: {first}",
        f"{sizes} `murmur run` plays scenario.yaml, which has the same schedule.",
    )
    words = "\n\n".join(textwrap.fill(each, _WIDTH) for each in told)
    test = _TEST.format(words=words, text=text, properties=tuple(properties))
    write_text(folder / "test_finding.py", test)


def write_story(folder: Path, keys: Mapping[str, Any], symptom: Symptom, properties: Sequence[str] = ()) -> None:
    """Write the difference and the trace, which take some more runs. What cannot be had is left out: the trace of a run
    that was never judged, and all of it where a machine does not come back for a long time."""
    began = time.monotonic()
    played = tried(keys, properties)
    if time.monotonic() - began > _LONG_S:
        return
    write_text(folder / "difference.txt", "\n".join(_differences(keys, properties)) + "\n")
    event = _event(played, symptom)
    if event is not None:
        _trace(folder, whole_scenario(keys), event, symptom)


def _told(sizes: Sizes) -> str:
    return ", ".join(f"{count} {name}" for name, count in sizes._asdict().items())


def _differences(keys: Mapping[str, Any], properties: Sequence[str]) -> Iterator[str]:
    for number, entry in enumerate(keys["faults"]):
        without = {**keys, "faults": [each for other, each in enumerate(keys["faults"]) if other != number]}
        try:
            told = first_difference(keys, without)
            symptom = tried(without, properties).symptom
        except InputError as error:
            yield f"without {entry}: cannot be ({error})"
            continue
        verdict = "the same symptom, or another" if symptom is not None else "nothing wrong"
        yield f"without {entry}: {verdict}"
        yield from (f"  {line}" for line in told)


def _event(played: Tried, symptom: Symptom) -> tuple[int, int] | None:
    """The event that the judge found something about."""
    if played.outcome is None:
        return None
    judgement = played.outcome.judgement
    if not hasattr(judgement.pairs, symptom.kind):
        return None
    left = judgement.left(symptom.kind)
    return left[0][0] if left else None


def _trace(folder: Path, keys: Mapping[str, Any], event: tuple[int, int], symptom: Symptom) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        run = Path(scratch) / "run"
        try:
            execute(check_scenario(keys, "schedule"), run, lambda *_: None)
        except RunError:
            return
        way = follow(run, *event)
        lines = list(way_lines(way, [f"the judge: {symptom.words}"]))
        write_text(folder / "trace.txt", "\n".join(lines) + "\n")
        draw_way(way, folder / "trace.svg")
