"""Short runs of every registered protocol, and a hash of all that each left behind: the same wherever Python runs.

`python -m murmuration.lessons.witnesses` prints the table of this Python.
"""

import dataclasses
import hashlib
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from murmur_pubsub.errors import InputError
from murmur_pubsub.journal_format import HEADER_BYTES
from murmur_virtual.run import play_virtual
from murmuration.deployment.build_deployment import build
from murmuration.registry import RELIABILITIES, ROUTINGS
from murmuration.runs.manifest import manifest_of
from murmuration.runs.run_folder import RunFolder
from murmuration.scenario.load import check_scenario
from reliability.epidemic.epidemic import EPIDEMIC
from routing.protocol import RunsOn
from spark_analysis.plain_judge import judge_run

_OVERLAYS: Mapping[RunsOn, Mapping[str, Any]] = {
    RunsOn.LINKS: {"kind": "ring", "brokers": 8},
    RunsOn.ACYCLIC: {"kind": "random", "brokers": 8},
    RunsOn.CELLS: {
        "kind": "cells",
        "cells": {"p": ["b0"], "left": ["b1", "b2"], "right": ["b3", "b4"], "s": ["b5"], "t": ["b6"], "u": ["b7"]},
        "links": [["p", "left"], ["p", "right"], ["left", "s"], ["left", "t"], ["right", "u"]],
        "redundancy": {"left": 2, "right": 2},
    },
    RunsOn.STRUCTURED: {"kind": "structured", "brokers": 8},
}


class Witness(NamedTuple):
    """What one run came to. `journal`: the SHA-256 of its journal's files. `events`: inputs that machines took."""

    routing: str
    reliability: str
    journal: str
    verdict: str
    deliveries: int
    events: int


@cache
def pairs() -> Sequence[tuple[str, str]]:
    """Every routing protocol with every reliability protocol that works over it."""
    return [pair for pair in product(ROUTINGS, RELIABILITIES) if _works(*pair)]


def _works(routing: str, reliability: str) -> bool:
    try:
        build(check_scenario(keys_of(routing, reliability), "witness"))
    except InputError:
        return False
    return True


def keys_of(routing: str, reliability: str) -> dict[str, Any]:
    """The scenario: eight brokers, events that every one's subscribers want, a link that loses, a crash."""
    epidemic = reliability == EPIDEMIC.name
    runs_on = ROUTINGS[routing].runs_on
    if epidemic and runs_on is RunsOn.CELLS:
        runs_on = RunsOn.ACYCLIC  # gossip follows the only way
    overlay = _OVERLAYS[runs_on]
    structured = overlay["kind"] == "structured"
    parameters = {reliability: {"algorithm": "push"}} if epidemic and structured else {}
    return {
        "name": f"{routing}-{reliability}",
        "runtime": "virtual",
        "seed": 7,
        "overlay": overlay,
        "workload": {
            "kind": "paced",
            "publishers": {"b0": 2},
            "subscribers": {f"b{number}": 2 for number in range(5, 8)},
            "rate_per_s": 20,
            "seconds": 3,
            "share": 0.7,
        },
        "broker": {"routing": routing, "reliability": reliability, "parameters": parameters},
        "links": {"delay": {"uniform": ["1 ms", "5 ms"]}, "loss": 0.0 if structured else 0.05},
        "datagrams": {"delay": "1 ms"},
        "failure_detection": {"heartbeat": "100 ms", "timeout": "500 ms", "reconnect": "50 ms"},
        "faults": [{"at": "1 s", "kill": "b1", "for": "500 ms"}],
        "drain": {"quiet": "500 ms", "limit": "5 s"},
    }


def witness(routing: str, reliability: str) -> Witness:
    """Play the run, and judge it."""
    loaded = check_scenario(keys_of(routing, reliability), "witness")
    built = build(loaded)
    with tempfile.TemporaryDirectory() as folder:
        run_folder = RunFolder.make(Path(folder) / "run", manifest_of(loaded, built))
        run = play_virtual(built.deployment, run_folder.journal, lambda *_: None)
        run_folder.write(dataclasses.replace(run_folder.manifest, status="complete", writers=run.writers))
        judgement = judge_run(run_folder.folder)
        journal = journal_hash(run_folder.journal)
    numbers = judgement.numbers
    return Witness(routing, reliability, journal, numbers["verdict"], numbers["delivered"], run.runtime.processed)


def journal_hash(journal: Path) -> str:
    """The SHA-256 of what a journal's files hold, and of their names; not of their headers, which name the run."""
    digest = hashlib.sha256()
    for path in sorted(journal.iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes()[HEADER_BYTES:])
    return digest.hexdigest()


def table(witnesses: Iterable[Witness]) -> list[str]:
    """They as the lines of a table in Markdown."""
    lines = ["| routing | reliability | inputs of machines | deliveries | verdict | SHA-256 of the journal |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for routing, reliability, journal, verdict, deliveries, events in witnesses:
        lines.append(f"| {routing} | {reliability} | {events:,} | {deliveries} | {verdict} | `{journal[:32]}…` |")
    return lines


def main() -> None:
    """Print the table."""
    print(*table(witness(*pair) for pair in pairs()), sep="\n")


if __name__ == "__main__":
    main()
