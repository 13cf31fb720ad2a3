"""Play a whole deployment live on Ray: start in waves, subscribe, settle, publish, drain, stop.

The driver asks and never guesses. Links are up when both ends say so. Subscriptions have settled when every link
that should be up is, and over the connections that there are as many control messages were received as sent, twice
in a row with the same numbers: so it holds after faults too, where what was on a broken connection is never
received. A machine may know that something has not settled all the same. The run has drained when no count moves any
more.
"""

import contextlib
import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from actors.actor_group import BETWEEN_QUESTIONS_S, ActorGroup
from actors.actor_settings import ActorSettings
from actors.clock import Clock, origin_now
from actors.host_watch import HostWatch
from actors.live_fault_injector import FaultThread, LiveFaultInjector
from actors.processes import ProcessPlace
from actors.ray_session import RaySession
from actors.search_path import own_search_path
from murmur_pubsub.deployment import Deployment
from murmur_pubsub.errors import RunError
from murmur_pubsub.faults import Fault
from murmur_pubsub.journal import FAULTS_WRITER, JournalWriter, Phase, RowKind
from murmur_pubsub.machine import NodeName
from murmur_pubsub.progress import PHASE_STEPS, Progress
from murmur_pubsub.recorder import Recorder
from murmur_pubsub.run_manifest import Lateness
from murmur_pubsub.steering import Steering

_WAVE = 8
_POLL_S = 0.1
"""A round of questions takes no less, its rest at the end included."""
_CALM_S = 0.5
"""How long the driver leaves the nodes alone while nothing is to settle and nothing is ordered."""
_PUBLISH_AFTER_US = 200_000
_LINK_TIMEOUT_S = 60.0
_SETTLE_TIMEOUT_S = 60.0
_SETTLE_LIMIT_US = 600_000_000
"""Subscriptions that take longer never settle, though something moves all the time."""

Heard = Callable[[Mapping[NodeName, Mapping[str, Any]]], None]
"""Takes the status of each node in service (`Resident.status`)."""


class LiveRun:
    """One live run of a deployment; Ray must be initialised.

    Journals go to `folder`/journal, stable logs to `folder`/storage; below the folder in `scratch` on the hosts
    (by number) that keep them for themselves. `heard` is told what all nodes said, each time that they are asked.
    `cpu_seconds`: what the nodes' processes that are there at the end have spent before publishing began, and since.
    `emulated_us`: how long the run was in emulated time, once it has stopped.
    """

    def __init__(
        self,
        deployment: Deployment,
        folder: Path,
        progress: Progress,
        host: str | None,
        session: RaySession,
        scratch: Mapping[int, str] = MappingProxyType({}),
        steering: Steering | None = None,
        heard: Heard | None = None,
    ) -> None:
        self._deployment = deployment
        self._heard = heard
        self._progress = progress
        origin = origin_now()
        self._clock = Clock(origin, deployment.settings.time_dilation)
        numbers = deployment.numbers
        journal_folder = folder / "journal"
        driver = numbers["driver"]
        self._writers = [
            JournalWriter(journal_folder, name, number, run=deployment.settings.identifier)
            for name, number in (("driver", driver), (FAULTS_WRITER, driver + 1))
        ]
        self._recorder, fault_recorder = (Recorder(writer, driver, numbers) for writer in self._writers)
        settings = ActorSettings(
            run=deployment.settings,
            token=secrets.token_hex(16),
            journal_folder=str(journal_folder),
            storage_folder=str(folder / "storage"),
            numbers=numbers,
            origin=origin,
            host=host,
            search_path=own_search_path(),
        )
        self._steering = steering
        self._session = session
        watched = len(session.known_as) > 1
        self.group = ActorGroup(deployment, settings, self._clock, session.hosts, scratch, watched)
        self.fault_injector = LiveFaultInjector(deployment, self.group, self._clock, fault_recorder, session.lose_host)
        self.group.on_death = self._note_death
        self._watch = HostWatch(session, self.fault_injector) if watched else None
        self._faults: FaultThread | None = None
        asking_s = BETWEEN_QUESTIONS_S * self.group.actor_count
        self._round_s = max(_POLL_S, asking_s)
        self._rest_s = self._round_s - asking_s
        self._changing = any(script.changes for script in deployment.scripts.values())
        self._unsettled = self._changing or bool(deployment.faults) or watched or steering is not None
        self._asked_us = 0
        self._before: tuple[tuple[int, int], int] | None = None
        self._settled_us = -1
        """What was asked for up to then is in effect, as the journal says."""
        self._published = 0
        self._published_by: dict[tuple[NodeName, int], int] = {}
        self._phase = Phase.STARTING
        self.now_us = self._clock.now_us
        self.wall_s = self._clock.wall_s
        self.wall_seconds: dict[str, float] = {}
        self.cpu_seconds: dict[str, float] = {}
        self.emulated_us = 0
        self.totals: dict[str, int] = {}
        self.lateness = Lateness()

    @property
    def observed(self) -> Mapping[int, Fault]:
        """The faults that nobody ordered, by their steps."""
        return self.fault_injector.observed

    @property
    def writers(self) -> dict[str, int]:
        """The nodes that wrote the journal, and each one's number of incarnations so far."""
        nodes = {name: last + 1 for name, last in self.group.incarnations.items()}
        return nodes | {"driver": 1, FAULTS_WRITER: 1}

    def play(self) -> None:
        """Run to the end. Whatever happens, actors are killed and the journal is closed and readable."""
        try:
            for phase, step in (
                (Phase.STARTING, self.start),
                (Phase.SUBSCRIBING, self._subscribe),
                (Phase.PUBLISHING, self._publish),
                (Phase.DRAINING, self.drain),
                (Phase.STOPPED, self.stop),
            ):
                began = time.perf_counter()
                self.enter(phase)
                step()
                self.wall_seconds[phase.name.lower()] = time.perf_counter() - began
        finally:
            self.end()

    def end(self) -> None:
        """Kill every actor and close the driver's journals."""
        for thread in (self._faults, self._watch):
            if thread is not None:
                thread.cancel()
        with contextlib.suppress(RunError):
            self._session.check()
            self.group.kill_all()
        for writer in self._writers:
            writer.close()

    def enter(self, phase: Phase) -> None:
        """Journal that the phase begins."""
        self._recorder.plain(self._clock.now_us(), RowKind.PHASE, phase)
        self._phase = phase
        self._progress(PHASE_STEPS[phase], self._published, 0)

    def start(self) -> None:
        """Start the actors and wait for their links."""
        group = self.group
        names = [spec.name for spec in self._deployment.nodes if spec.name not in group.down]
        begun = 0
        for wave in group.waves(names, _WAVE):
            group.start(wave)
            begun += len(wave)
            self._progress(PHASE_STEPS[Phase.STARTING], begun, len(names))
        group.introduce(names)
        if self._watch is not None:
            self._watch.start()
        deadline = time.monotonic() + _LINK_TIMEOUT_S
        while unlinked := group.unlinked(self._ask_all()):
            if time.monotonic() > deadline:
                raise RunError(f"links of {', '.join(unlinked[:5])} did not come up in {_LINK_TIMEOUT_S:.0f} s")
            time.sleep(self._rest_s)

    def _subscribe(self) -> None:
        self.group.ask("subscribe", self.group.scripted())
        self.settle()
        self.cpu_seconds["before publishing"] = self._total(self._ask_all())["cpu_us"] / 1e6

    def settle(self) -> None:
        """Wait until every subscription issued so far has settled, and journal that. Raises `ProtocolError` naming a
        node that keeps it from settling, and `RunError` if none says so."""
        self._before = None
        began = moved = time.monotonic()
        limit_s = max(_SETTLE_TIMEOUT_S, self._clock.wall_s(_SETTLE_LIMIT_US))
        counts = None
        while not self._look_for_settling(statuses := self._ask_all()):
            now = self._total(statuses)
            if (now["control_sent"], now["control_received"]) != counts:
                counts = (now["control_sent"], now["control_received"])
                moved = time.monotonic()
            elif time.monotonic() - moved > _SETTLE_TIMEOUT_S:
                self._refuse_unsettled(statuses, f"{_SETTLE_TIMEOUT_S:.0f} s")
            if time.monotonic() - began > limit_s:
                self._refuse_unsettled(statuses, f"{limit_s:.0f} s")
            time.sleep(self._rest_s)

    def _refuse_unsettled(self, statuses: Mapping[NodeName, Mapping[str, Any]], waited: str) -> NoReturn:
        for name, status in statuses.items():
            if status["settling"]:
                raise self.group.unsettled(name, waited)
        unlinked = self.group.unlinked(statuses)
        moved = [sum(status[f"control_{what}"] for status in statuses.values()) for what in ("sent", "received")]
        why = f"links of {', '.join(unlinked[:5])} are not up" if unlinked else f"sent and received: {moved}"
        raise RunError(f"subscriptions did not settle in {waited}: {why}")

    def look(self) -> None:
        """Ask all nodes how they are: raises `RunError` for one that failed, and journals what has settled."""
        self._look_for_settling(self._ask_all())

    def _look_for_settling(self, statuses: dict[NodeName, dict[str, Any]]) -> bool:
        """Is everything settled that was issued before the round of questions ahead of this one? Then journal it."""
        totals = self._total(statuses)
        counts = (totals["control_sent"], totals["control_received"])
        still = counts[0] == counts[1] and not self.group.unlinked(statuses)
        before, self._before = self._before, (counts, self._asked_us) if still else None
        if before is None or before[0] != counts or not statuses:
            return False
        until_us = min(before[1], *(status["settled_until_us"] for status in statuses.values()))
        if until_us > self._settled_us:
            self._settled_us = until_us
            self._recorder.plain(self._clock.now_us(), RowKind.SETTLED, until_us)
        return not totals["settling"]

    def _publish(self) -> None:
        deployment = self._deployment
        self.group.tell("begin")
        base_us = self._clock.now_us() + int(_PUBLISH_AFTER_US / deployment.settings.time_dilation)
        self.fault_injector.base_us = base_us
        faults = self._faults = FaultThread(deployment, self.fault_injector, self._clock, base_us)
        faults.start()
        end_us = base_us + deployment.publish_us_min
        self.group.ask("publish", self.group.scripted(), common=(base_us,))
        while True:
            breaking = faults.is_alive()
            statuses = self._ask_all()
            if faults.failure is not None:
                raise faults.failure
            settled = not self._unsettled or self._look_for_settling(statuses)
            calm = settled and not breaking and not self._changing and self._watch is None
            playing = self._total(statuses)["playing"] or breaking or self._clock.now_us() < end_us
            if self._steering is not None:
                playing = self._steered(self._steering, base_us) or playing
            if not playing:
                break
            time.sleep(self._rest_s)
            if calm:
                self._leave_alone(end_us)
        if self._steering is not None:
            self._steering.let_go(self._clock.now_us() - base_us)

    def _leave_alone(self, end_us: int) -> None:
        """Ask nothing for a while, or until there is something to do: an order, or the end of what is published if
        nobody steers. To be asked holds up what a node sends, and asking is most of what the driver does."""
        until = time.monotonic() + _CALM_S
        while time.monotonic() < until and (
            self._clock.now_us() < end_us if self._steering is None else not self._steering.waiting
        ):
            time.sleep(_POLL_S)

    def _steered(self, steering: Steering, base_us: int) -> bool:
        """Carry out what is ordered; True if there was something, or there may be more."""
        if self._clock.now_us() < base_us:
            return True  # publishing begins in a moment: times count from then on
        if not steering.waiting:
            return steering.held
        injector = self.fault_injector
        with injector.undisturbed() as step:
            fault = steering.take(self._clock.now_us() - base_us, step)
            if fault is None:
                return steering.held
            try:
                injector.carry_out(step, fault)
                failure = f"{fault}, whose host is away: that waits for its return" if injector.waits(step) else None
            except RunError as error:
                failure = str(error)  # the journal has no row that it took effect: the judge sees it too
        steering.done(step, failure)
        return True

    def drain(self) -> None:
        """Wait until nothing moves any more and no machine waits for anything."""
        quiet_s = max(2 * self._round_s, self._clock.wall_s(self._deployment.drain_us))
        limit = time.monotonic() + max(10.0, self._clock.wall_s(self._deployment.drain_limit_us))
        quiet_since = time.monotonic()
        before: dict[str, int] = {}
        settled = False
        while time.monotonic() < limit:
            statuses = self._ask_all()
            settled = self._look_for_settling(statuses) or settled
            totals = self._total(statuses)
            moved = any(totals[name] != before.get(name) for name in ("sent", "received", "delivered"))
            waited = totals["waiting"] or totals["settling"]
            if waited if self._deployment.waits_say_all else moved:
                quiet_since = time.monotonic()
            elif time.monotonic() - quiet_since >= quiet_s and settled and not totals["waiting"]:
                break
            before = totals
            time.sleep(self._rest_s)

    def stop(self) -> None:
        """Let every node in service leave and close its journal."""
        if self._watch is not None:
            self._watch.cancel()
        self.totals = self._total(self._ask_all())
        self.emulated_us = self._clock.now_us()
        spent = self.totals["cpu_us"] / 1e6
        self.cpu_seconds["publishing"] = spent - self.cpu_seconds.get("before publishing", 0.0)
        self.group.ask("leave")
        self.group.ask("stop")
        for name in list(self.group.stalled):
            self.fault_injector.kill(name, sigkill=True)
        self.fault_injector.seal_gone()

    def _note_death(self, places: Mapping[NodeName, ProcessPlace]) -> None:
        self.fault_injector.died(places)
        self._unsettled = True  # those that are left have to settle without it

    def _ask_all(self) -> dict[NodeName, dict[str, Any]]:
        self._session.check()
        if self._watch is not None and self._watch.failure is not None:
            raise self._watch.failure
        self._asked_us = self._clock.now_us()
        statuses = self.group.status()
        self.fault_injector.answered_us = self._asked_us
        if self._heard is not None:
            self._heard(statuses)
        return statuses

    def _total(self, statuses: dict[NodeName, dict[str, Any]]) -> Counter[str]:
        timed = [status for name, status in statuses.items() if name not in self.group.held_up]
        due, late = (sum(status[key] for status in timed) for key in ("due", "late"))
        self.lateness = Lateness(due, late, max((status["lag_us_max"] for status in timed), default=0))
        totals: Counter[str] = Counter()  # nothing of all, where every node is away
        for status in statuses.values():
            for key, value in status.items():
                if key not in ("failure", "links", "due", "late", "lag_us_max", "now_us", "settled_until_us"):
                    totals[key] += value
        for name, status in statuses.items():
            self._published_by[name, self.group.incarnations[name]] = status["published"]
        self._published = sum(self._published_by.values())
        self._progress(PHASE_STEPS[self._phase], self._published, 0)
        return totals
