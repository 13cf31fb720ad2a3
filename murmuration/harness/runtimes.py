"""The virtual and the live runtime as a `ClusterRuntime`."""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from murmur_pubsub.deployment import Deployment
from murmur_pubsub.errors import RunError
from murmur_pubsub.faults import Fault
from murmur_pubsub.journal import Phase
from murmur_pubsub.script import ScriptedCommand
from murmuration.harness.runtime import ClusterRuntime
from murmuration.runs.own_modules import check_actors_modules

if TYPE_CHECKING:
    from actors.run import LiveRun


@contextlib.contextmanager
def cluster_runtime(runtime: str, deployment: Deployment, folder: Path) -> Iterator[ClusterRuntime]:
    """The runtime of that name ("virtual" or "ray"), around the deployment, for the length of the block."""
    if runtime == "virtual":
        yield _VirtualClusterRuntime(deployment, folder)
        return
    from actors.ray_session import ray_session
    from actors.room import check_room
    from actors.run import LiveRun

    check_actors_modules()
    check_room(deployment)
    hosts = 1 + max(deployment.hosts.values(), default=0)
    with ray_session(len(deployment.nodes), hosts=hosts) as session:
        run = LiveRun(deployment, folder, lambda *_: None, "127.0.0.1", session)
        yield _LiveClusterRuntime(run)


class _VirtualClusterRuntime:
    def __init__(self, deployment: Deployment, folder: Path) -> None:
        from murmur_virtual.run import VirtualRun

        self._run = VirtualRun(deployment, folder / "journal", lambda *_: None)

    @property
    def now_us(self) -> int:
        return self._run.runtime.now_us

    @property
    def observed(self) -> Mapping[int, Fault]:
        return {}  # nothing happens in virtual time that was not ordered

    def start(self) -> None:
        self._run.start()

    def enter(self, phase: Phase) -> None:
        self._run.enter(phase)

    def issue(self, name: str, commands: Sequence[ScriptedCommand]) -> None:
        for scripted in commands:
            self._run.issue(name, scripted)

    def undisturbed(self) -> contextlib.AbstractContextManager[object]:
        return contextlib.nullcontext()

    def carry_out(self, step: int, fault: Fault) -> Sequence[str]:
        return self._run.carry_out(step, fault)

    def advance(self, stretch_us: int) -> None:
        self._run.advance(stretch_us)

    def settle(self) -> None:
        self._run.settle()
        self._run.advance(1)  # what is published next is published after the settling, not in its microsecond

    def drain(self) -> None:
        self._run.drain()

    def finish(self) -> None:
        self._run.runtime.check_invariants()

    @property
    def writers(self) -> Mapping[str, int]:
        return self._run.writers

    def close(self) -> None:
        self._run.close()


class _LiveClusterRuntime:
    def __init__(self, run: "LiveRun") -> None:
        self._run = run

    @property
    def now_us(self) -> int:
        return self._run.now_us()

    @property
    def observed(self) -> Mapping[int, Fault]:
        return self._run.observed

    def start(self) -> None:
        self._run.start()

    def enter(self, phase: Phase) -> None:
        self._run.enter(phase)

    def issue(self, name: str, commands: Sequence[ScriptedCommand]) -> None:
        if name not in self._run.group.ask("issue", [name], common=(list(commands),)):
            raise RunError(f"{name} is not running")

    def undisturbed(self) -> contextlib.AbstractContextManager[object]:
        return self._run.fault_injector.undisturbed()

    def carry_out(self, step: int, fault: Fault) -> Sequence[str]:
        return self._run.fault_injector.carry_out(step, fault)

    def advance(self, stretch_us: int) -> None:
        time.sleep(self._run.wall_s(stretch_us))
        self._run.look()

    def settle(self) -> None:
        self._run.settle()

    def drain(self) -> None:
        self._run.drain()

    def finish(self) -> None:
        self._run.stop()

    @property
    def writers(self) -> Mapping[str, int]:
        return self._run.writers

    def close(self) -> None:
        self._run.end()
