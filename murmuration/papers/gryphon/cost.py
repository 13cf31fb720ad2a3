"""What guaranteed delivery costs beside best effort while nothing fails, and what an intermediate broker has to keep.

Cost: the same overlay, routing, events and subscribers twice, one reliability after the other. Memory: virtual time,
one subscriber that takes only so many messages a second; the messages kept are counted every second.
"""

import dataclasses
import tempfile
from pathlib import Path
from typing import Any

from murmur_pubsub.journal import RowKind
from murmur_pubsub.run_manifest import read_manifest
from murmur_virtual.run import VirtualRun
from murmuration.deployment.build_deployment import build
from murmuration.papers.gryphon.run import FailureTest, scenario
from murmuration.papers.lab.judged_run import journal, play
from murmuration.scenario.load import check_scenario
from reliability.broker import Broker
from reliability.gryphon.parameters import GryphonParameters

_QUIET = FailureTest("cost", "no failures", 0, (), ())


@dataclasses.dataclass(frozen=True, slots=True)
class Cost:
    """Of one run without failures. `cpu_s`: of all actors while events are published (of the one process in virtual
    time); `messages`, `bytes`: sent over links."""

    reliability: str
    cpu_s: float
    messages: int
    bytes: int
    deliveries: int
    verdict: str


def measure_cost(reliability: str, runtime: str, folder: Path, seconds: float, rate_per_s: float) -> Cost:
    """Run it and count."""
    test = dataclasses.replace(_QUIET, seconds=seconds)
    data = scenario(test, runtime, reliability, rate_per_s)
    _, verdict = play(data, folder)
    spent = read_manifest(folder).cpu_seconds
    rows = journal(folder)
    sent = rows[rows.kind == RowKind.SEND]
    cpu_s = spent["virtual"] if runtime == "virtual" else spent["publishing"]
    return Cost(reliability, cpu_s, len(sent), int(sent.bytes.sum()), int(verdict["delivered"]), verdict["verdict"])


@dataclasses.dataclass(frozen=True, slots=True)
class Kept:
    """Messages kept at one time: in all streams of the intermediate brokers b1 and b2, at s1, in p1's log, and those
    that the slow subscriber's client has not handed back."""

    at_s: float
    intermediate: int
    subscribers_broker: int
    log: int
    outstanding: int


def measure_memory(slow: bool, seconds: int = 60, rate_per_s: float = 50.0) -> list[Kept]:
    """The messages kept, second by second; with one slow subscriber at s1 (20 messages a second), or with none."""
    faults: tuple[dict[str, Any], ...] = ({"at": "5 s", "slow": "c4", "work": "50 ms"},) if slow else ()
    test = FailureTest("memory", "a slow subscriber", seconds, faults, ())
    loaded = check_scenario(scenario(test, "virtual", rate_per_s=rate_per_s), "memory")
    deployment = build(loaded).deployment
    found: list[Kept] = []
    with tempfile.TemporaryDirectory() as folder:
        run = VirtualRun(deployment, Path(folder), lambda *_: None)

        def look(now_us: int) -> None:
            machines = {name: node.machine for name, node in run.runtime.nodes.items()}
            gryphons: dict[str, Any] = {
                name: machine.reliability for name, machine in machines.items() if isinstance(machine, Broker)
            }
            found.append(
                Kept(
                    now_us / 1e6,
                    gryphons["b1"].messages_kept + gryphons["b2"].messages_kept,
                    gryphons["s1"].messages_kept,
                    gryphons["p1"].messages_kept,
                    gryphons["s1"].outstanding("c4"),
                )
            )
            if now_us < seconds * 1_000_000:
                run.runtime.call_at(now_us + 1_000_000, look)

        run.runtime.call_at(1_000_000, look)
        run.play()
    return found


def memory_bound() -> int:
    """How many messages two intermediate brokers may keep, by the default parameters."""
    return 2 * 4 * GryphonParameters().cache
