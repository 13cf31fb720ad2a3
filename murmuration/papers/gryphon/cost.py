"""What guaranteed delivery costs beside best effort while nothing fails, and what an intermediate broker has to keep.

Cost: the same overlay, routing, events and subscribers twice, one reliability after the other. Memory: virtual time,
one subscriber that takes only so many messages a second; the messages kept are counted every second.
"""

import dataclasses
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from murmur_pubsub.journal import RowKind
from murmur_pubsub.run_manifest import read_manifest
from murmur_virtual.run import VirtualRun
from murmuration.deployment.build_deployment import build
from murmuration.papers.gryphon.run import FailureTest, failure_scenario
from murmuration.papers.lab.judged_run import Runtime, journal, play_judged
from murmuration.scenario.load import check_scenario
from reliability.broker import Broker
from reliability.gryphon.parameters import GryphonParameters


@dataclasses.dataclass(frozen=True, slots=True)
class ReliabilityCostSpec:
    """A run without failures."""

    reliability: str
    runtime: Runtime
    seconds: float
    rate_per_s: float


@dataclasses.dataclass(frozen=True, slots=True)
class ReliabilityCost:
    """Of one run without failures. `cpu_s`: of all actors while events are published (of the one process in virtual
    time); `messages`, `bytes`: sent over links."""

    reliability: str
    cpu_s: float
    messages: int
    bytes: int
    deliveries: int
    verdict: str


def measure_reliability(spec: ReliabilityCostSpec, address: str | None = None) -> ReliabilityCost:
    """Run it and count."""
    test = FailureTest("cost", "no failures", spec.runtime, spec.seconds, (), ())
    with TemporaryDirectory() as place:
        folder = Path(place) / "run"
        _, verdict = play_judged(failure_scenario(test, spec.reliability, spec.rate_per_s), folder, address)
        spent = read_manifest(folder).cpu_seconds
        rows = journal(folder)
    sent = rows[rows.kind == RowKind.SEND]
    cpu_s = spent["virtual"] if spec.runtime == "virtual" else spent["publishing"]
    delivered, outcome = int(verdict["delivered"]), str(verdict["verdict"])
    return ReliabilityCost(spec.reliability, cpu_s, len(sent), int(sent.bytes.sum()), delivered, outcome)


@dataclasses.dataclass(frozen=True, slots=True)
class MemorySpec:
    """A run in virtual time; `slow`: one subscriber at s1 takes 20 messages a second."""

    slow: bool
    seconds: int
    rate_per_s: float = 50.0


@dataclasses.dataclass(frozen=True, slots=True)
class Kept:
    """Messages kept at one time: in all streams of the intermediate brokers b1 and b2, at s1, in p1's log, and those
    that the slow subscriber's client has not handed back."""

    at_s: float
    intermediate: int
    subscribers_broker: int
    log: int
    outstanding: int


def measure_memory(spec: MemorySpec) -> list[Kept]:
    """The messages kept, second by second."""
    test = FailureTest("memory", "a slow subscriber", "virtual", spec.seconds, (), ())
    data = failure_scenario(test, rate_per_s=spec.rate_per_s)
    data["faults"] = [{"at": "5 s", "slow": "c4", "work": "50 ms"}] if spec.slow else []
    loaded = check_scenario(data, "memory")
    deployment = build(loaded).deployment
    found: list[Kept] = []
    with TemporaryDirectory() as folder:
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
                    gryphons["s1"].sessions.outstanding("c4"),
                )
            )
            if now_us < spec.seconds * 1_000_000:
                run.runtime.call_at(now_us + 1_000_000, look)

        run.runtime.call_at(1_000_000, look)
        run.play()
    return found


def memory_bound() -> int:
    """How many messages two intermediate brokers may keep, by the default parameters."""
    return 2 * 4 * GryphonParameters().cache
