"""What brokers keep, beside guaranteed delivery, while one subscriber takes only so many messages a second.

In virtual time; the messages kept are counted every second.
"""

import dataclasses
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from murmur_virtual.run import VirtualRun
from murmuration.deployment.build_deployment import build
from murmuration.papers.gryphon.plan import failure_scenario, without_failures
from murmuration.scenario.load import check_scenario
from reliability.broker import Broker
from reliability.gryphon.parameters import GryphonParameters


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
    data = failure_scenario(without_failures("virtual", spec.seconds, spec.rate_per_s))
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
