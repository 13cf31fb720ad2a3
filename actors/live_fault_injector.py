"""Carries out the steps of a fault plan on live actors, and proves that each took effect.

A step is journaled twice: when it is ordered, and when it is seen to be in effect. A kill is over when the process is
gone (or its actor has answered, if the node shares it with others that live on), a stall when its actor says that the
node does nothing and the kernel that the process is stopped (if the node is alone in it), a cut or a change of a link
when both ends have answered. An end that is stalled is told before it goes on, and nothing passes until then. A step
that does not take effect is a `RunError`, because a run without the faults it claims proves nothing. What the journal
shows on top of that (a dead node writes nothing, nothing passes a cut link) the analysis checks.
"""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import ray

from actors.actor_group import ActorGroup
from actors.clock import Clock
from actors.processes import ProcessGoneError, ProcessPlace, await_state, check_there, is_here, send_signal
from murmur_pubsub.deployment import Deployment
from murmur_pubsub.errors import RunError
from murmur_pubsub.faults import COMMANDS, ENDS, Fault, FaultKind, link_key
from murmur_pubsub.journal import FaultStage
from murmur_pubsub.journal_sealing import seal_series
from murmur_pubsub.machine import NodeName, Order
from murmur_pubsub.recorder import Recorder
from murmur_pubsub.script import CommandSteps

_TO_PROCESSES = (FaultKind.KILL, FaultKind.STALL, FaultKind.RESUME, FaultKind.SLOW, *COMMANDS)
"""What is done to the process of a node that runs, or is stalled."""


class LiveFaultInjector:
    """Does to a group of actors what a fault says. `base_us`: when publishing began, for scripts of nodes that come
    back; None before that. `answered_us`: when all nodes had last answered. `lose_host(number)` takes a whole host
    away. `observed`: faults that nobody ordered, by their steps in the journal, which come after those ordered so
    far."""

    def __init__(
        self,
        deployment: Deployment,
        group: ActorGroup,
        clock: Clock,
        recorder: Recorder,
        lose_host: Callable[[int], None] | None,
    ) -> None:
        self.base_us: int | None = None
        self.answered_us = 0
        self._group = group
        self._clock = clock
        self._recorder = recorder
        self._lose_host = lose_host
        self.observed: dict[int, Fault] = {}
        self._gone: list[NodeName] = []
        self._came: list[NodeName] = []
        self._own_deaths: dict[NodeName, None] = {}
        """The nodes that died though nobody had told them to, alone or with their host, until they are started again,
        or a step ends them too."""
        self._killed: dict[tuple[NodeName, ...], list[NodeName]] = {}
        """Which nodes the kill of an actor took down."""
        self._away: dict[int, None] = {}
        """The hosts that went away by themselves."""
        self._waiting: dict[int, tuple[Fault, tuple[NodeName, ...]]] = {}
        """By their numbers the steps that are to start nodes of such a host, and these nodes."""
        self._next_step = len(deployment.faults)
        self._one_at_a_time = threading.RLock()
        """Taken again by a thread that finds out in the middle of a step that another node has died."""
        self._planned = {link_key(plan.first, plan.second): plan.spec for plan in deployment.links}
        self._hosts = deployment.hosts
        self._command_steps = CommandSteps(deployment.scripts)

    @contextlib.contextmanager
    def undisturbed(self) -> Iterator[int]:
        """The number of the next step. Until the block ends nothing else takes a number: no step is carried out, and
        nothing is seen to have happened, but by this thread."""
        with self._one_at_a_time:
            yield self._next_step

    def waits(self, step: int) -> bool:
        """Does the step that was carried out wait for a host which is away?"""
        return step in self._waiting

    def carry_out(self, step: int, fault: Fault) -> list[NodeName]:
        """Do it, and return the nodes that came (back) when it is in effect; raises `RunError` if it is not."""
        with self._one_at_a_time:
            self._next_step = max(self._next_step, step + 1)
            self._came = []
            self._carry_out(step, fault, self._clock.now_us())
            return self._came

    def host_vanished(self, number: int) -> None:
        """A host went away by itself: its nodes are out of service. Whoever finds that out says so."""
        group = self._group
        with self._one_at_a_time:
            there = self.nodes_on(number)
            lost = [name for name in there if name not in group.down]
            if number in self._away and not lost:
                return
            self._away[number] = None
            self._own_deaths |= dict.fromkeys(lost)
            group.down |= dict.fromkeys(lost)
            group.process_gone(there)
            for name in there:
                group.stalled.pop(name, None)
            self._note(*self._observe(FaultKind.LOSE_HOST, host=number))

    def died(self, places: Mapping[NodeName, ProcessPlace]) -> None:
        """The process at this place, with these nodes, is gone, though nobody has told it to. Each stays away until a
        step of the plan starts it again; or their host is gone with it. Raises `RunError` if the process is there: then
        it only says nothing."""
        group = self._group
        with self._one_at_a_time:
            # Another thread may have seen it, and a step have started them again since.
            names = [name for name in places if name not in group.down and group.places[name] == places[name]]
            if not names:
                return
            await_state(places[names[0]], "gone")
            number = self._host_of(names[0])
            if group.host_is_gone(number, ask=True):
                self.host_vanished(number)
                return
            self._died(names)
            self.seal_gone()

    def _died(self, names: Sequence[NodeName]) -> None:
        self._take_down(names)
        self._group.process_gone(names)
        self._own_deaths |= dict.fromkeys(names)
        self._note(*self._observe(FaultKind.KILL, tuple(names)))

    def host_returned(self, number: int, identifier: str) -> None:
        """The host is back, under another identifier: its nodes start on it, with the logs that are there. Those that a
        step has killed, before or meanwhile, wait for the step that starts them again; those that one should have
        started meanwhile come too."""
        with self._one_at_a_time:
            self._group.hosts[number] = identifier
            self._away.pop(number, None)
            back = tuple(name for name in self._own_deaths if self._host_of(name) == number)
            if back:
                self._carry_out(*self._observe(FaultKind.RETURN_HOST, back, number), self._clock.now_us())

    def _note(self, step: int, fault: Fault) -> None:
        """Journal what has happened by itself."""
        self._recorder.fault(self.answered_us, step, fault, FaultStage.ORDERED)
        self._recorder.fault(self._clock.now_us(), step, fault, FaultStage.IN_EFFECT)

    def _observe(self, kind: FaultKind, nodes: tuple[NodeName, ...] = (), host: int = 0) -> tuple[int, Fault]:
        base_us = self._clock.now_us() if self.base_us is None else self.base_us
        fault = Fault(max(0, self._clock.now_us() - base_us), kind, nodes, host=host)
        step, self._next_step = self._next_step, self._next_step + 1
        self.observed[step] = fault
        return step, fault

    def _carry_out(self, step: int, fault: Fault, ordered_us: int) -> None:
        self._recorder.fault(ordered_us, step, fault, FaultStage.ORDERED)
        try:
            self._do(step, fault)
        except RunError as error:
            raise RunError(f"fault {step + 1}, {fault}, did not take effect: {error}") from error
        except ray.exceptions.RayError as error:
            raise RunError(f"fault {step + 1}, {fault}, could not be carried out: {error}") from error
        self._in_effect(step, fault)
        self.seal_gone()

    def _in_effect(self, step: int, fault: Fault) -> None:
        """It is, unless it waits; and so are those that waited for nodes that are up now, whatever has started them."""
        if step not in self._waiting:
            self._recorder.fault(self._clock.now_us(), step, fault, FaultStage.IN_EFFECT)
        for waiting, (each, names) in list(self._waiting.items()):
            if not any(name in self._group.down for name in names):
                del self._waiting[waiting]
                self._recorder.fault(self._clock.now_us(), waiting, each, FaultStage.IN_EFFECT)

    def seal_gone(self) -> None:
        """Seal the journals of the nodes whose processes were seen to be gone, as far as they lie on this host. The
        file of a process that still has it mapped must not be cut: that would be the end of the process."""
        group = self._group
        while self._gone:
            name = self._gone.pop()
            if name in group.unheard:
                group.seal_unheard(name)
            elif is_here(group.places[name]):
                seal_series(group.journal_folder(name), name, group.incarnations[name])

    def _do(self, step: int, fault: Fault) -> None:
        if fault.disk_lost:
            self._group.disks_lost[fault.nodes[0]] = None
        if fault.kind in _TO_PROCESSES and fault.nodes[0] in self._group.down:
            if fault.kind is FaultKind.KILL:
                self._forget_own_deaths(fault.nodes)
            return  # it died before anybody told it to: it is as gone or silent as the step wants it
        if fault.kind in COMMANDS:
            self._issue(fault)
            return
        if fault.kind in (FaultKind.STALL, FaultKind.SLOW):
            self._group.held_up[fault.nodes[0]] = None
        match fault.kind:
            case FaultKind.KILL:
                self.kill(fault.nodes[0], fault.sigkill)
            case FaultKind.KILL_ACTOR:
                self._kill_actor(fault.nodes)
            case FaultKind.RESTART:
                self._start_again(step, fault, fault.nodes)
            case FaultKind.RESTART_ACTOR:
                self._start_again(step, fault, self._killed.pop(fault.nodes))
            case FaultKind.STALL:
                self.stall(fault.nodes[0])
            case FaultKind.RESUME:
                if fault.nodes[0] in self._group.stalled:  # else it was away then, and has come back with its host
                    self.resume(fault.nodes[0])
            case FaultKind.SLOW:
                self._confirm("slow_down", {fault.nodes[0]: (fault.work_us,)}, lambda work_us: work_us == fault.work_us)
            case FaultKind.CUT:
                self.sever([fault.nodes])
            case FaultKind.HEAL:
                self.mend([fault.nodes])
            case FaultKind.CHANGE_LINK:
                self._change_link(fault)
            case FaultKind.CONNECT:
                self._connect(fault)
            case FaultKind.DISCONNECT:
                self._disconnect(fault)
            case FaultKind.ORDER:
                order = Order(step, fault.verb, [name for _, name in fault.arguments])
                self._confirm("order", {fault.nodes[0]: (order,)}, None)
            case FaultKind.PARTITION:
                self._partition(fault.groups)
            case FaultKind.UNITE:
                self._group.partition = None
                self.mend(list(self._group.cut))
            case FaultKind.LOSE_HOST:
                self._lose(fault.host)
            case FaultKind.RETURN_HOST:
                nodes = fault.nodes or self.nodes_on(fault.host)
                self._start_again(step, fault, [name for name in nodes if name in self._group.down])

    def _issue(self, fault: Fault) -> None:
        commands = self._command_steps.commands(fault, self._clock.now_us())
        self._confirm("issue", {fault.nodes[0]: (commands,)}, lambda issued: issued == len(commands))

    def kill(self, name: NodeName, sigkill: bool = False) -> None:
        """End the node: its process, and see it gone; or the node alone, if others share that process."""
        with self._or_gone((name,)):
            if not self._group.shares(name):
                self._end_process((name,), sigkill)
            else:
                self._group.down[name] = None
                self._group.crash(name)
                self._take_down((name,))
        self._forget_own_deaths((name,))

    def _kill_actor(self, nodes: tuple[NodeName, ...]) -> None:
        down = self._group.down
        self._killed[nodes] = [name for name in nodes if name not in down or name in self._own_deaths]
        up = [name for name in nodes if name not in down]
        if up:
            with self._or_gone(up):
                self._end_process(up)
        self._forget_own_deaths(nodes)

    @contextlib.contextmanager
    def _or_gone(self, names: Sequence[NodeName]) -> Iterator[None]:
        """What is done to these nodes, unless their process turns out to have died by itself. Nobody had noticed until
        now; they are as gone, or as silent, as is wanted of them."""
        group = self._group
        try:
            yield
        except ProcessGoneError:
            for name in names:
                group.down.pop(name, None)
            group.died_by_itself(names[0])

    def _forget_own_deaths(self, names: Iterable[NodeName]) -> None:
        for name in names:
            self._own_deaths.pop(name, None)

    def _end_process(self, names: Sequence[NodeName], sigkill: bool = False) -> None:
        """End the process of these nodes, which are all that are up in it, and see it gone."""
        group, first = self._group, names[0]
        place = group.places[first]
        group.down |= dict.fromkeys(names)
        if sigkill or first in group.stalled:  # Ray would ask it first, and a stopped process does not answer
            send_signal(place, signal.SIGKILL)
        else:
            check_there(place)
            group.kill(first)
        await_state(place, "gone")
        group.process_gone(names)
        self._take_down(names)

    def _take_down(self, names: Sequence[NodeName]) -> None:
        """They are out of service; what they wrote is theirs no longer."""
        group = self._group
        group.down |= dict.fromkeys(names)
        self._gone += names
        for name in names:
            group.stalled.pop(name, None)

    def _start_again(self, step: int, fault: Fault, names: Sequence[NodeName]) -> None:
        """Start these nodes of one host. If that is away they come with it, and the step waits for that."""
        group, number = self._group, self._host_of(names[0]) if names else fault.host
        if number not in self._away and not group.host_is_gone(number, ask=True):
            try:
                self.restart(names)
                return
            except (ProcessGoneError, ray.exceptions.RayError):
                if not group.host_is_gone(number, ask=True):
                    raise
        self.host_vanished(number)
        group.process_gone(names)
        self._own_deaths |= dict.fromkeys(names)
        self._waiting[step] = fault, tuple(names)

    def restart(self, names: Sequence[NodeName]) -> None:
        """Start the next incarnations of these nodes and let them go on with their scripts."""
        group = self._group
        self._forget_own_deaths(names)  # what they die of from now on is another death
        for name in names:
            if name in group.unheard:  # it was gone with its host, which is back
                group.seal_unheard(name)
        for here, error in group.listen(names).items():
            if group.host_is_gone(self._host_of(here[0]), ask=True):
                raise error
            others = [each for each in group.together(here[0]) if each in group.addresses and each not in group.down]
            if others:
                await_state(group.places[others[0]], "gone")
            self._died([*others, *here])
        came = [name for name in names if name not in group.unheard]
        group.bring_back(came)
        self._came += came
        if self.base_us is not None:
            group.ask("catch_up", came, common=(self.base_us,))
            group.ask("issue", arguments={name: (self._command_steps.again(name),) for name in came})

    def stall(self, name: NodeName) -> None:
        """Hold the node, and stop its process and see it stopped, if no others share that."""
        group = self._group
        group.stalled[name] = []
        with self._or_gone((name,)):
            if not group.hold(name, True):
                raise RunError(f"{name} is not there to be stalled")
            if not group.shares(name):
                send_signal(group.places[name], signal.SIGSTOP)
                await_state(group.places[name], "stopped")

    def resume(self, name: NodeName) -> None:
        """Let the process go on, and then the node: a process that was only stopped would take what waits in the kernel
        before it could be told that its links are cut."""
        group = self._group
        with self._or_gone((name,)):
            if not group.shares(name):
                send_signal(group.places[name], signal.SIGCONT)
                await_state(group.places[name], "running")
            if not group.hold(name, False):
                raise RunError(f"{name} does not go on")
            del group.stalled[name]

    def sever(self, links: list[tuple[NodeName, ...]]) -> None:
        """Let nothing pass these links."""
        group = self._group
        group.cut |= dict.fromkeys(link_key(first, second) for first, second in links)
        affected = group.in_service if group.partition else dict.fromkeys(name for link in links for name in link)
        self._confirm("sever", {name: group.cut_off_from(name) for name in affected}, None)

    def mend(self, links: list[tuple[NodeName, ...]]) -> None:
        """Let these links come up again."""
        group = self._group
        for first, second in links:
            group.cut.pop(link_key(first, second), None)
        healed: dict[NodeName, list[NodeName]] = {
            name: [] for name in group.in_service
        }  # all hear of a partition's end
        for first, second in links:
            for name, peer in ((first, second), (second, first)):
                if name in healed:
                    healed[name].append(peer)
                elif name in group.stalled:
                    group.stalled[name].append(peer)
        self._confirm("mend", {name: (peers,) for name, peers in healed.items()}, None)

    def _partition(self, groups: tuple[tuple[NodeName, ...], ...]) -> None:
        group_of = {name: number for number, members in enumerate(groups) for name in members}
        self._group.partition = group_of
        self.sever([ends for ends in self._planned if group_of[ends[0]] != group_of[ends[1]]])

    def _connect(self, fault: Fault) -> None:
        first, second = fault.nodes
        assert fault.link is not None
        self._planned[link_key(first, second)] = fault.link
        self._group.add_link(first, second, fault.link)
        self._group.introduce([first, second])

    def _disconnect(self, fault: Fault) -> None:
        first, second = fault.nodes
        del self._planned[link_key(first, second)]
        dialling, dialled = self._group.remove_link(first, second)
        # The end that dials leaves first, or it would try again where it is not known any more.
        self._confirm("disconnect", {dialling: (dialled,)}, None)
        self._confirm("disconnect", {dialled: (dialling,)}, None)

    def _change_link(self, fault: Fault) -> None:
        first, second = fault.nodes
        spec = fault.link or self._planned[link_key(first, second)]
        self._group.link_specs[link_key(first, second)] = spec
        arguments = {first: (second, spec), second: (first, spec)}
        self._confirm("change_link", arguments, lambda found: found == spec)

    def _confirm(
        self, what: str, arguments: Mapping[NodeName, tuple[Any, ...]], right: Callable[..., bool] | None
    ) -> None:
        """Have the call made, and see that every node in service answered (and rightly, if that can be told)."""
        asked = [name for name in arguments if name in self._group.in_service]
        answers = self._group.ask(what, arguments={name: arguments[name] for name in asked})
        for name in asked:
            if name in self._group.down:
                continue  # it has died meanwhile
            if name not in answers or (right is not None and not right(answers[name])):
                raise RunError(f"{name} answered {answers.get(name)!r} to {what}")

    def _lose(self, host: int) -> None:
        if self._lose_host is None:
            raise RunError("this run cannot take hosts away")
        self._forget_own_deaths(self.nodes_on(host))
        lost = [name for name in self.nodes_on(host) if name not in self._group.down]
        places = [self._group.places[name] for name in lost]
        self._group.down |= dict.fromkeys(lost)
        self._lose_host(host)
        for place in set(places):
            await_state(place, "gone", 60.0)
        self._group.process_gone(self.nodes_on(host))
        self._take_down(lost)
        self._group.host_lost(host)

    def nodes_on(self, host: int) -> list[NodeName]:
        """The nodes planned for that host, as far as they were ever there."""
        return [name for name in self._group.specs if self._host_of(name) == host and name in self._group.addresses]

    def _host_of(self, name: NodeName) -> int:
        return self._hosts.get(name, 0)


class FaultTimes:
    """When the steps of a plan are due, in emulated microseconds: at their times from `base_us` on, but what ends a
    fault that came into effect late is as much later, so that the fault lasts as long as planned."""

    def __init__(self, base_us: int) -> None:
        self._base_us = base_us
        self._late_us: dict[tuple[FaultKind, tuple[NodeName, ...], int], int] = {}

    def due_us(self, fault: Fault) -> int:
        """When to carry it out."""
        began = ENDS.get(fault.kind)
        late_us = self._late_us.get(_about(fault, began), 0) if began is not None else 0
        return self._base_us + fault.time_us + late_us

    def in_effect(self, fault: Fault, now_us: int) -> None:
        """It has come into effect."""
        self._late_us[_about(fault, fault.kind)] = max(0, now_us - self._base_us - fault.time_us)


def _about(fault: Fault, kind: FaultKind) -> tuple[FaultKind, tuple[NodeName, ...], int]:
    return kind, tuple(sorted(fault.nodes)), fault.host


class FaultThread(threading.Thread):
    """Carries out a whole plan at its times, beside the driver's own work. `failure` is what ended it early."""

    def __init__(self, deployment: Deployment, fault_injector: LiveFaultInjector, clock: Clock, base_us: int) -> None:
        super().__init__(name="faults", daemon=True)
        self.failure: RunError | None = None
        self._plan = deployment.faults
        self._fault_injector = fault_injector
        self._clock = clock
        self._times = FaultTimes(base_us)
        self._cancelled = threading.Event()

    def run(self) -> None:
        """See `threading.Thread`."""
        for step, fault in enumerate(self._plan):
            wait_s = self._clock.wall_s(self._times.due_us(fault) - self._clock.now_us())
            if self._cancelled.wait(wait_s):
                return
            try:
                self._fault_injector.carry_out(step, fault)
                self._times.in_effect(fault, self._clock.now_us())
            except RunError as error:
                self.failure = error
                return
            except Exception as error:
                self.failure = RunError(f"fault {step + 1}, {fault}: {error!r}")
                return

    def cancel(self) -> None:
        """Do nothing more; returns when the step in hand is over."""
        self._cancelled.set()
        if self.is_alive():
            self.join(timeout=30.0)
