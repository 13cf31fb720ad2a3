"""Play a whole deployment live on Ray: start in waves, subscribe, settle, publish, drain, stop.

The driver asks and never guesses: links are up when every actor says so, subscriptions have settled when as
many control messages were received as sent and nothing changed between two rounds of asking, and the run has
drained when the same holds for all messages.
"""

import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ray

from actors.clock import Clock
from actors.node_actor import ActorSettings, Address, NodeActor
from pubsub.deployment import Deployment
from pubsub.errors import RunError
from pubsub.journal import JournalWriter, Phase, RowKind
from pubsub.machine import NodeName
from pubsub.recorder import Recorder

Progress = Callable[[Phase, int], None]
"""Called now and then with the phase and a count: actors started, then events published so far."""

_WAVE = 8
_POLL_S = 0.1
_POLL_S_AN_ACTOR = 0.005
"""Asking an actor costs both sides about a millisecond: many actors are asked less often."""
_PUBLISH_AFTER_US = 200_000
_LINK_TIMEOUT_S = 60.0
_SETTLE_TIMEOUT_S = 60.0
_ANSWER_TIMEOUT_S = 180.0
"""An actor that does not answer for so long never will; the longest answer is to a call that starts actors."""


class LiveRun:
    """One live run of a deployment; Ray must be initialised, journals go to `journal_folder`."""

    def __init__(self, deployment: Deployment, journal_folder: Path, progress: Progress, host: str) -> None:
        self._deployment = deployment
        self._progress = progress
        self._origin_wall_ns = time.time_ns()
        self._clock = Clock(self._origin_wall_ns, deployment.time_dilation)
        numbers = deployment.numbers
        self._writer = JournalWriter(journal_folder, "driver", numbers["driver"])
        self._recorder = Recorder(self._writer, numbers["driver"], numbers)
        self._settings = ActorSettings(
            seed=deployment.seed,
            token=secrets.token_hex(16),
            journal_folder=str(journal_folder),
            numbers=numbers,
            origin_wall_ns=self._origin_wall_ns,
            time_dilation=deployment.time_dilation,
            journal_hops=deployment.journal_hops,
            host=host,
        )
        self._actors: dict[NodeName, Any] = {}
        self._poll_s = max(_POLL_S, _POLL_S_AN_ACTOR * len(deployment.nodes))
        self._changes = any(script.changes for script in deployment.scripts.values())
        self._published = 0
        self.wall_seconds: dict[str, float] = {}
        self.addresses: dict[NodeName, Address] = {}
        self.totals: dict[str, int] = {}

    def play(self) -> None:
        """Run to the end. Whatever happens, actors are killed and the journal is closed and readable."""
        try:
            for phase, step in (
                (Phase.STARTING, self._start),
                (Phase.SUBSCRIBING, self._subscribe),
                (Phase.PUBLISHING, self._publish),
                (Phase.DRAINING, self._drain),
                (Phase.STOPPED, self._stop),
            ):
                began = time.perf_counter()
                self._recorder.plain(self._clock.now_us(), RowKind.PHASE, phase)
                self._phase = phase
                self._progress(phase, self._published)
                step()
                self.wall_seconds[phase.name.lower()] = time.perf_counter() - began
        finally:
            for actor in self._actors.values():
                ray.kill(actor)
            self._writer.close()

    def _start(self) -> None:
        remote = ray.remote(num_cpus=0, max_restarts=0, max_task_retries=0)(NodeActor)
        specs = self._deployment.nodes
        for begin in range(0, len(specs), _WAVE):
            wave = specs[begin : begin + _WAVE]
            for spec in wave:
                script = self._deployment.scripts.get(spec.name)
                self._actors[spec.name] = remote.remote(spec, self._settings, script, 0)
            self.addresses.update(self._ask("listen", [spec.name for spec in wave]))
            self._progress(Phase.STARTING, begin + len(wave))
        links: dict[NodeName, dict[NodeName, Any]] = {spec.name: {} for spec in specs}
        dial: dict[NodeName, dict[NodeName, Address]] = {spec.name: {} for spec in specs}
        for plan in self._deployment.links:
            links[plan.first][plan.second] = links[plan.second][plan.first] = plan.spec
            dial[plan.first][plan.second] = self.addresses[plan.second]
        brokers = frozenset(spec.name for spec in specs if spec.role == "broker")
        attach: dict[NodeName, tuple[Any, ...]] = {name: (links[name], brokers, {}) for name in self._actors}
        self._ask("attach", arguments=attach)  # both ends must know a link before one of them dials
        self._ask("attach", arguments={name: ({}, frozenset(), dial[name]) for name in self._actors})
        deadline = time.monotonic() + _LINK_TIMEOUT_S
        while not all(self._ask("linked").values()):
            if time.monotonic() > deadline:
                missing = [name for name, linked in self._ask("linked").items() if not linked]
                raise RunError(f"links of {', '.join(missing[:5])} did not come up in {_LINK_TIMEOUT_S:.0f} s")
            time.sleep(self._poll_s)

    def _subscribe(self) -> None:
        self._ask("subscribe", list(self._deployment.scripts))
        asked_us = self._clock.now_us()
        before = None
        moved = time.monotonic()
        while True:
            totals = self._status()
            now = (totals["control_sent"], totals["control_received"])
            if now != before:
                moved = time.monotonic()
            elif now[0] == now[1]:
                break
            elif time.monotonic() - moved > _SETTLE_TIMEOUT_S:
                raise RunError(f"subscriptions did not settle: {now[0]} messages sent, {now[1]} received")
            before = now
            time.sleep(self._poll_s)
        self._recorder.plain(self._clock.now_us(), RowKind.SETTLED, asked_us)

    def _publish(self) -> None:
        base_us = self._clock.now_us() + int(_PUBLISH_AFTER_US / self._deployment.time_dilation)
        self._ask("publish", list(self._deployment.scripts), common=(base_us,))
        before = None
        while True:
            asked_us = self._clock.now_us()
            totals = self._status()
            if self._changes:
                now = (totals["control_sent"], totals["control_received"])
                if before is not None and now == before[0] and now[0] == now[1]:
                    self._recorder.plain(self._clock.now_us(), RowKind.SETTLED, before[1])
                before = (now, asked_us)
            if not totals["playing"]:
                return
            time.sleep(self._poll_s)

    def _drain(self) -> None:
        quiet_s = max(2 * self._poll_s, self._clock.wall_s(self._deployment.drain_us))
        limit = time.monotonic() + max(10.0, self._clock.wall_s(self._deployment.drain_limit_us))
        quiet_since = time.monotonic()
        before = self._status()
        while time.monotonic() < limit:
            time.sleep(self._poll_s)
            totals = self._status()
            if any(totals[name] != before[name] for name in ("sent", "received", "delivered")):
                quiet_since = time.monotonic()
            elif time.monotonic() - quiet_since >= quiet_s:
                break
            before = totals
        if self._changes:
            self._recorder.plain(self._clock.now_us(), RowKind.SETTLED, self._clock.now_us() - 1)

    def _stop(self) -> None:
        self.totals = self._status()
        self._ask("leave")
        self._ask("stop")

    def _status(self) -> dict[str, int]:
        totals: dict[str, int] = {}
        for name, status in self._ask("status").items():
            if status["failure"] is not None:
                raise RunError(f"the machine of {name} failed:\n{status['failure']}")
            for key, value in status.items():
                if key == "lag_us_max":
                    totals[key] = max(totals.get(key, 0), value)
                elif key not in ("failure", "pid"):
                    totals[key] = totals.get(key, 0) + value
        self._published = totals["published"]
        self._progress(self._phase, self._published)
        return totals

    def _ask(
        self,
        what: str,
        nodes: list[NodeName] | None = None,
        arguments: dict[NodeName, tuple[Any, ...]] | None = None,
        common: tuple[Any, ...] = (),
    ) -> dict[NodeName, Any]:
        """The answers of the actors to one call, by node; raises `RunError` naming an actor that died."""
        names = nodes if nodes is not None else list(arguments or self._actors)
        pending = {}
        for name in names:
            call = getattr(self._actors[name], what)
            pending[name] = call.remote(*(arguments[name] if arguments is not None else common))
        answers = {}
        for name, reference in pending.items():
            try:
                answers[name] = ray.get(reference, timeout=_ANSWER_TIMEOUT_S)
            except ray.exceptions.RayActorError as error:
                raise RunError(f"the actor of {name} died: {error}") from error
            except ray.exceptions.GetTimeoutError as error:
                raise RunError(f"the actor of {name} did not answer in {_ANSWER_TIMEOUT_S:.0f} s") from error
        return answers
