"""Play a whole deployment in virtual time: start, subscribe, settle, publish, drain, stop.

`play` does all of it by the deployment's scripts and fault plan; the steps are public for callers that drive a run by
hand, command by command (`murmuration.harness.cluster`).
"""

import functools
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

from murmur_pubsub.deployment import Deployment
from murmur_pubsub.errors import RunError
from murmur_pubsub.faults import COMMANDS, Fault
from murmur_pubsub.journal import RUN_WRITER, FaultStage, JournalWriter, Phase, RowKind
from murmur_pubsub.machine import NodeName, Publish, Subscribe, Unsubscribe
from murmur_pubsub.progress import PHASE_STEPS, Progress
from murmur_pubsub.recorder import Recorder
from murmur_pubsub.script import CommandSteps, Player, ScriptedCommand
from murmur_pubsub.steering import Steering
from murmur_virtual.fault_injector import VirtualFaultInjector
from murmur_virtual.input_watch import InputWatch
from murmur_virtual.virtual_node import AFTERMATH_CODES, CONTROL_MESSAGE, MACHINE_CODES, VirtualNode
from murmur_virtual.virtual_runtime import VirtualRuntime

_STEPS_BETWEEN_PROGRESS = 20_000
_SUBSCRIBE_US = 1_000
_PUBLISH_AFTER_US = 1_000
_SETTLE_LIMIT_US = 600_000_000
"""Subscriptions that take longer never settle."""


class VirtualRun:
    """One run of a deployment; journals go to `journal_folder`, which must exist. `recorder` makes what journals the
    rows of a node."""

    def __init__(
        self,
        deployment: Deployment,
        journal_folder: Path,
        progress: Progress,
        recorder: Callable[..., Recorder] = Recorder,
        steering: Steering | None = None,
    ) -> None:
        numbers, settings = deployment.numbers, deployment.settings
        self._deployment = deployment
        self._progress = progress
        self._writer = JournalWriter(
            journal_folder, RUN_WRITER, numbers["driver"], rows_per_segment=65_536, run=settings.identifier
        )
        self._recorders = {
            name: Recorder(self._writer, number, numbers, settings.journal_hops) for name, number in numbers.items()
        }
        self.runtime = VirtualRuntime(
            settings.seed,
            self._writer,
            numbers,
            settings.default_link,
            settings.journal_hops,
            settings.detection,
            settings.sync_us,
            journal_folder if settings.keep_inputs else None,
            journal_folder.parent,
            recorder,
        )
        self._players = {
            name: Player(script) for name, script in deployment.scripts.items() if name not in deployment.start_down
        }
        self._playing: dict[NodeName, Player] = {}
        self._to_come = len(deployment.faults)
        """Faults of the plan that are still to come, and the least end of publishing."""
        self._steering = steering
        self._changed_us: deque[int] = deque()
        """When subscriptions were changed, and faults were, that have not settled."""
        self._faulted_us = -1
        """When the last fault or repair was: a journal tells what settled after it by a later time."""
        self._fault_injector = VirtualFaultInjector(self.runtime, deployment)
        self._command_steps = CommandSteps(deployment.scripts)
        self._input_watch: InputWatch | None = None
        self.published = 0

    @property
    def writers(self) -> dict[str, int]:
        """The nodes that wrote the journal, and each one's number of incarnations."""
        return {RUN_WRITER: 1}

    @property
    def emulated_us(self) -> int:
        """How long the run has been in emulated time."""
        return self.runtime.now_us

    def play(self) -> None:
        """Run to the end. The journal is closed whatever happens, and readable up to that point."""
        for _ in self.stretches():
            pass

    def stretches(self) -> Iterator[None]:
        """`play`, one stretch of publishing after the other, each as long as whoever steers lets time pass."""
        try:
            self.start()
            self._subscribe()
            yield from self._publish()
            self.enter(Phase.DRAINING)
            self.drain()
            self.enter(Phase.STOPPED)
            self.runtime.check_invariants()
        finally:
            self.close()

    def show(self) -> None:
        """Have readers of the journal see all rows so far."""
        self._writer.show()

    def close(self) -> None:
        """Close the journal."""
        if self._input_watch is not None:
            self._input_watch.cancel()
        self._writer.close()

    def start(self) -> None:
        """Add the nodes and bring up their links."""
        self._input_watch = InputWatch(self.runtime, MACHINE_CODES, AFTERMATH_CODES)
        self._input_watch.start()
        self.enter(Phase.STARTING)
        start_down = self._deployment.start_down
        self.runtime.add_nodes(spec for spec in self._deployment.nodes if spec.name not in start_down)
        for plan in self._deployment.links:
            self.runtime.connect(plan)
        self._run(until_us=_SUBSCRIBE_US)

    def advance(self, stretch_us: int) -> None:
        """Let this time pass."""
        self._run(until_us=self.runtime.now_us + stretch_us, stop=self._watch)

    def settle(self) -> None:
        """Go on until every subscription has settled and every link is up that can be, and journal that; or until
        nothing will ever happen again. Raises `ProtocolError` naming a node that keeps it from settling."""
        limit_us = self.runtime.now_us + _SETTLE_LIMIT_US
        self._run(stop=lambda: self._calm or self.runtime.now_us > limit_us)
        if self._calm:
            self._settled(self.runtime.now_us)
        elif self.runtime.now_us > limit_us:
            self._refuse_unsettled(f"{_SETTLE_LIMIT_US // 1_000_000} s")

    def _subscribe(self) -> None:
        self.enter(Phase.SUBSCRIBING)
        for name, player in self._players.items():
            node = self.runtime.nodes[name]
            for scripted in player.subscriptions():
                self._issue(node, scripted)
        self.settle()

    def _refuse_unsettled(self, waited: str) -> NoReturn:
        for node in self.runtime.nodes.values():
            if not node.down and node.says("settling"):
                node.refuse_unsettled(waited)
        moving = self.runtime.in_flight[CONTROL_MESSAGE]
        raise RunError(f"subscriptions did not settle in {waited}: {moving} control messages are still on their way")

    def _publish(self) -> Iterator[None]:
        runtime = self.runtime
        base_us = runtime.now_us + _PUBLISH_AFTER_US
        self._run(until_us=base_us)
        self.enter(Phase.PUBLISHING)
        for name, player in self._players.items():
            self._playing[name] = player
            self._schedule(runtime.nodes[name], player, base_us)
        for step, fault in enumerate(self._deployment.faults):
            act = functools.partial(self._break_by_plan, step, fault, base_us)
            runtime.call_at(base_us + fault.time_us, act)
        if self._deployment.publish_us_min:
            self._to_come += 1
            runtime.call_at(base_us + self._deployment.publish_us_min, self._lasted)
        if self._steering is not None:
            yield from self._steer(self._steering, base_us)
        self._run(stop=self._published_all)

    def _steer(self, steering: Steering, base_us: int) -> Iterator[None]:
        """Publish at the pace of whoever steers, and carry out what is ordered. An order takes effect at an instant of
        its own, before which all has happened that is due: as a step of a plan it would find the same state."""
        step, waited = len(self._deployment.faults), False
        while steering.held or not self._published_all():
            yield
            waited = steering.held or steering.waiting or self._published_all()
            if steering.waiting:
                at_us = self._free_instant_us()
                fault = steering.take(at_us - base_us, step)
                if fault is not None:
                    self.runtime.call_at(at_us, functools.partial(self._break_by_hand, step, fault, base_us))
                    self._run(until_us=at_us, stop=self._watch)
                    steering.done(step, None)
                    step += 1
                continue
            until_us = base_us + steering.pace(self.runtime.now_us - base_us)
            self._run(until_us=until_us, stop=self._watch if waited else self._published_all)
        if waited:  # all may be published for some time: a scenario with the same orders has to end here too
            at_us = self._free_instant_us()
            self.runtime.call_at(at_us, lambda _: None)
            self._run(until_us=at_us, stop=self._watch)
        steering.let_go(self.runtime.now_us - base_us if waited else 0)

    def _free_instant_us(self) -> int:
        """A time to come at which nothing is due, with all before it done."""
        runtime = self.runtime
        at_us = runtime.now_us + 1
        while (next_us := runtime.next_us) is not None and next_us <= at_us:
            self._run(until_us=at_us, stop=self._watch)
            at_us += 1
        return at_us

    def _lasted(self, now_us: int) -> None:
        self._to_come -= 1

    def drain(self) -> None:
        """Go on until nothing moves any more and no machine waits for anything, or for the deployment's limit."""
        runtime, waits_say_all = self.runtime, self._deployment.waits_say_all
        limit_us = runtime.now_us + self._deployment.drain_limit_us
        quiet_since_us = runtime.now_us
        while runtime.now_us < limit_us and not self.waits_in_vain:
            next_us = runtime.next_us
            if next_us is None:
                break
            if self._changed_us or (any(runtime.in_flight) and not waits_say_all):
                quiet_since_us = runtime.now_us
            elif next_us > quiet_since_us + self._deployment.drain_us:
                if not runtime.waiting and not (waits_say_all and runtime.settling):
                    break
                if waits_say_all:
                    quiet_since_us = runtime.now_us
            runtime.run(steps=1)
            self.after_entry()
        self._progress(PHASE_STEPS[Phase.DRAINING], self.published, 0)

    @property
    def waits_in_vain(self) -> bool:
        """May a run that drains end before its limit?"""
        return False

    def _published_all(self) -> bool:
        """Is all published that will ever be? What is stalled after the last fault stays so."""
        self.after_entry()
        nodes = self.runtime.nodes
        return not self._to_come and all(nodes[name].stalled for name in self._playing)

    def _settled_until_us(self, changed_us: int) -> int | None:
        """Up to when all has settled, faults too; None if what was changed by `changed_us` has not."""
        runtime = self.runtime
        if runtime.in_flight[CONTROL_MESSAGE] or not runtime.links.quiet or runtime.busy:
            return None
        until_us = runtime.settled_until_us(changed_us)
        return None if until_us is None or until_us <= self._faulted_us else until_us

    @property
    def _calm(self) -> bool:
        return self._settled_until_us(self.runtime.now_us) is not None

    def after_entry(self) -> None:
        """Called after each entry of the queue while events are published and while the run drains."""
        # What is on its way is asked first, since nearly always something is.
        if self._changed_us and not self.runtime.in_flight[CONTROL_MESSAGE]:
            until_us = self._settled_until_us(self._changed_us[0])
            if until_us is not None:
                self._settled(until_us)

    def _watch(self) -> bool:
        self.after_entry()
        return False

    def carry_out(self, step: int, fault: Fault) -> list[NodeName]:
        """Break or mend something now, and journal it; the nodes that came (back)."""
        driver, now_us = self._recorders["driver"], self.runtime.now_us
        driver.fault(now_us, step, fault, FaultStage.ORDERED)
        if fault.kind in COMMANDS:
            for command in self._command_steps.commands(fault, now_us):
                self.issue(fault.nodes[0], command)
            driver.fault(now_us, step, fault, FaultStage.IN_EFFECT)
            return []
        self._fault_injector.carry_out(step, fault)
        driver.fault(now_us, step, fault, FaultStage.IN_EFFECT)
        self._changed_us.append(now_us)
        self._faulted_us = now_us
        self.runtime.call_at(now_us + 1, lambda _: None)
        for name in self._fault_injector.gone:
            self._playing.pop(name, None)
        return self._fault_injector.came

    def _break_by_plan(self, step: int, fault: Fault, base_us: int, now_us: int) -> None:
        self._to_come -= 1
        self._break_by_hand(step, fault, base_us, now_us)

    def _break_by_hand(self, step: int, fault: Fault, base_us: int, now_us: int) -> None:
        for name in self.carry_out(step, fault):
            self._play_again(name, base_us, now_us)

    def _play_again(self, name: NodeName, base_us: int, now_us: int) -> None:
        node, script = self.runtime.nodes[name], self._deployment.scripts.get(name)
        player = None if script is None else Player(script)
        caught_up = [] if player is None else player.catch_up(now_us - base_us)
        for scripted in (*caught_up, *self._command_steps.again(name)):
            self._issue(node, scripted)
        if player is not None:
            self._playing[name] = player
            self._schedule(node, player, base_us)

    def _schedule(self, node: VirtualNode, player: Player, base_us: int) -> None:
        name = node.spec.name
        due_us = player.next_us
        if due_us is None:
            del self._playing[name]
            return

        def act(now_us: int) -> None:
            if self._playing.get(name) is not player or (node.disturbed and node.must_wait(act)):
                return  # its node has crashed since, or is stalled and goes on later
            if node.spec.broker is not None:
                until_us = node.congested(node.spec.broker, now_us)
                if until_us is not None:
                    self.runtime.call_at(until_us, act)  # the broker is full: publish as soon as it takes more
                    return
            self._issue(node, player.take(now_us))
            self._schedule(node, player, base_us)

        self.runtime.call_at(max(base_us + due_us, self.runtime.now_us), act)

    def issue(self, name: NodeName, scripted: ScriptedCommand) -> None:
        """Have the node carry out a command now."""
        self._issue(self.runtime.nodes[name], scripted)

    def _issue(self, node: VirtualNode, scripted: ScriptedCommand) -> None:
        now_us = self.runtime.now_us
        command, ordinal = scripted
        recorder = self._recorders[node.spec.name]
        if type(command) is Publish:
            recorder.published(now_us, command.event)
            self.published += 1
        else:
            assert isinstance(command, Subscribe | Unsubscribe)
            recorder.subscription(now_us, command.subscriber, command.filter, type(command) is Unsubscribe, ordinal)
            self._changed_us.append(now_us)
        node.take_input(command, now_us)

    def _settled(self, until_us: int) -> None:
        while self._changed_us and self._changed_us[0] <= until_us:
            self._changed_us.popleft()
        self._recorders["driver"].plain(self.runtime.now_us, RowKind.SETTLED, until_us)

    def enter(self, phase: Phase) -> None:
        """Journal that the phase begins."""
        self._recorders["driver"].plain(self.runtime.now_us, RowKind.PHASE, phase)
        self._phase_now = phase
        self._progress(PHASE_STEPS[phase], self.published, 0)

    def _run(self, until_us: int | None = None, stop: Callable[[], bool] | None = None) -> None:
        """Run in slices so that progress can be told."""
        while True:
            if stop is not None and stop():
                return
            done = self.runtime.run(until_us, stop, _STEPS_BETWEEN_PROGRESS)
            self._progress(PHASE_STEPS[self._phase_now], self.published, 0)
            if done < _STEPS_BETWEEN_PROGRESS:
                return


def play_virtual(
    deployment: Deployment, journal_folder: Path, progress: Progress, steering: Steering | None = None
) -> VirtualRun:
    """Play the deployment to its end and return the finished run."""
    run = VirtualRun(deployment, journal_folder, progress, steering=steering)
    run.play()
    return run
