"""The nodes of a live run in their actors: started, asked, killed, started again.

A node is in service unless a fault took it out: it is `down` (its actor is dead) or `stalled` (it does nothing, and its
process is stopped, if that is its own). Asking skips nodes out of service, and one that goes out of service while it is
asked is no error. An actor that has died without being told to is such a fault too, of each node in it; one that lives
and does not answer ends the run by name, with the input that its machine has not come back from. Faults come from a
thread of their own, so a node is marked before anything is done to it.
"""

import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from actors.actor_settings import ActorSettings
from actors.clock import Clock
from actors.node_actor import NodeActor
from actors.processes import ProcessGoneError, ProcessPlace, await_answer, done_on, has_died, living_hosts
from actors.resident import Arrival, Listening
from murmur_pubsub.deployment import Deployment
from murmur_pubsub.errors import InputError, RunError
from murmur_pubsub.faults import link_key
from murmur_pubsub.journal_sealing import seal_unheard
from murmur_pubsub.links import LinkSpec
from murmur_pubsub.machine import NodeName
from murmur_pubsub.protocol_error import ProtocolError, unsettled_error

BETWEEN_QUESTIONS_S = 0.005
"""Between asking one actor how it is and asking the next. A question costs both sides a millisecond: put to all at
once, it would hold up every node's messages at the same moment."""
_ANSWER_TIMEOUT_S = 180.0
"""An actor that does not answer within this time never will; the longest answer is to a call that starts actors."""
_LOOK_AGAIN_S = 0.25
_OVERDUE_S = 20.0
"""An actor that does not answer for this long is asked what its machine is at,"""
_OVERDUE_LOOK_S = 5.0
"""and once more after this: if it is at the same input then, it will never come back."""
_LOSS_NOTICED_S = 60.0
"""Ray takes a host for dead after this number of missed health checks; by default that takes a quarter of a minute."""

_Pending = dict[tuple[NodeName, ...], tuple[Any, Any]]
"""Calls under way: by the nodes of one actor that it is for, that actor and Ray's reference to the answer."""


class ActorGroup:
    """All actors of one run.

    Nodes that share an actor are asked by one call, and those of the others by one each. `hosts`: Ray's identifiers of
    the hosts, by their number in the deployment; `scratch`: the folders of those that keep journals and logs for
    themselves. `watched`: a `HostWatch` notices when a host is gone. `on_death(places)` is told of an actor that has
    died by itself, alone or with its host, by where its nodes were, and takes them out of service. `held_up` were
    stalled or slowed down once: their lag is no fault of the host. `cut` are the links that a fault keeps down,
    `partition` is the group of each node while datagrams pass within groups only.
    """

    def __init__(
        self,
        deployment: Deployment,
        settings: ActorSettings,
        clock: Clock,
        hosts: Sequence[str],
        scratch: Mapping[int, str] = MappingProxyType({}),
        watched: bool = False,
    ) -> None:
        for spec in deployment.nodes:
            if spec.uplink is not None:
                found = f"{spec.name} has one in a live run"
                raise InputError("uplink", found, "uplinks on the virtual runtime only: a live node's links share none")
        self.hosts = list(hosts)
        self.down: dict[NodeName, None] = dict.fromkeys(sorted(deployment.start_down))
        self.stalled: dict[NodeName, list[NodeName]] = {}
        """Each with the peers to which its links have healed since."""
        self.held_up: dict[NodeName, None] = {}
        self.cut: dict[tuple[NodeName, NodeName], None] = {}
        self.partition: dict[NodeName, int] | None = None
        self.places: dict[NodeName, ProcessPlace] = {}
        self.incarnations: dict[NodeName, int] = {}
        self.link_specs: dict[tuple[NodeName, NodeName], LinkSpec] = {}
        self.specs = {spec.name: spec for spec in deployment.nodes}
        self._deployment = deployment
        self.settings = settings
        self._settings_at = {
            number: dataclasses.replace(
                settings, journal_folder=f"{folder}/journal", storage_folder=f"{folder}/storage", scratch=folder
            )
            for number, folder in scratch.items()
        }
        self._watched = watched
        self._clock = clock
        self.disks_lost: dict[NodeName, None] = {}
        """The nodes that start without what they had stored."""
        self.unheard: dict[NodeName, None] = {}
        """The nodes whose last process has not answered yet, or was gone before it had, until its journal is sealed."""
        self._ahead_us: dict[NodeName, int] = {}
        """By how much each node's clock is ahead of the driver's, at most: a question takes its time."""
        self._zeros_ns: dict[str, int] = {}
        """Of each host: what its monotonic clock showed at emulated time zero, as the first node there has it."""
        self.on_death: Callable[[Mapping[NodeName, ProcessPlace]], None] | None = None
        options: dict[str, Any] = {"num_cpus": 0, "max_restarts": 0, "max_task_retries": 0}
        self._remote = ray.remote(**options, concurrency_groups={"watch": 1})(NodeActor)
        shared = {name: number for number, nodes in enumerate(deployment.actors) for name in nodes}
        alone = [spec.name for spec in deployment.nodes if spec.name not in shared]
        self._actor_of = shared | {name: number for number, name in enumerate(alone, len(deployment.actors))}
        """The number of each node's actor."""
        self._actors: dict[int, Any] = {}
        self._without_process: dict[int, None] = {}
        """The actors whose processes were seen to be gone."""
        self.addresses: dict[NodeName, tuple[str, int]] = {}
        self._brokers = frozenset(spec.name for spec in deployment.nodes if spec.role == "broker")
        self._peers: dict[NodeName, list[NodeName]] = {spec.name: [] for spec in deployment.nodes}
        self._dials: dict[NodeName, list[NodeName]] = {spec.name: [] for spec in deployment.nodes}
        for plan in deployment.links:
            self.add_link(plan.first, plan.second, plan.spec)

    def add_link(self, first: NodeName, second: NodeName, spec: LinkSpec) -> None:
        """A link from now on, which the first end dials; the nodes do not know it yet."""
        self.link_specs[link_key(first, second)] = spec
        self._peers[first].append(second)
        self._peers[second].append(first)
        self._dials[first].append(second)

    def remove_link(self, first: NodeName, second: NodeName) -> list[NodeName]:
        """A link no longer; its ends, that which dials it first."""
        ends = [first, second] if second in self._dials[first] else [second, first]
        self._dials[ends[0]].remove(ends[1])
        self._peers[first].remove(second)
        self._peers[second].remove(first)
        del self.link_specs[link_key(first, second)]
        self.cut.pop(link_key(first, second), None)
        return ends

    @property
    def in_service(self) -> list[NodeName]:
        """The nodes that are there and can be asked."""
        return [name for name in list(self.addresses) if self._serves(name)]

    @property
    def actor_count(self) -> int:
        """How many actors there are when no node is down."""
        return len(set(self._actor_of.values()))

    def shares(self, name: NodeName) -> bool:
        """Are there other nodes, up or down, that belong into the actor of that one?"""
        return self._actor_of[name] < len(self._deployment.actors) and len(self.together(name)) > 1

    def together(self, name: NodeName) -> tuple[NodeName, ...]:
        """The nodes that belong into the actor of that one, itself among them."""
        number = self._actor_of[name]
        return self._deployment.actors[number] if number < len(self._deployment.actors) else (name,)

    def waves(self, names: Sequence[NodeName], actors: int) -> list[list[NodeName]]:
        """The nodes, this number of actors after the other, each with all of its nodes."""
        numbers = list(dict.fromkeys(self._actor_of[name] for name in names))
        waves = [numbers[begin : begin + actors] for begin in range(0, len(numbers), actors)]
        return [[name for name in names if self._actor_of[name] in set(wave)] for wave in waves]

    def scripted(self) -> list[NodeName]:
        """The nodes in service that have a script to play."""
        return [name for name in self.in_service if name in self._deployment.scripts]

    def journal_folder(self, name: NodeName) -> Path:
        """Where the node keeps its journal, on its own host."""
        number = self._deployment.hosts.get(name, 0)
        return Path(self._settings_at.get(number, self.settings).journal_folder)

    def peers(self, name: NodeName) -> list[NodeName]:
        """The nodes with a planned link to that one."""
        return self._peers[name]

    def cut_off_from(self, name: NodeName) -> tuple[list[NodeName], frozenset[NodeName]]:
        """The peers whose links with the node are cut, and all with which it may exchange no datagrams."""
        severed = [peer for peer in self._peers[name] if link_key(name, peer) in self.cut]
        groups = self.partition or {}
        return severed, frozenset(other for other in groups if groups[other] != groups[name])

    # ------------------------------------------------------------------------------------------ starting
    def start(self, names: Sequence[NodeName]) -> None:
        """Make (the next incarnation of) these nodes, in new processes where theirs are not there, and have them
        listen; `introduce` starts their machines. Raises `ProcessGoneError` for a process that dies of it."""
        for error in self.listen(names).values():
            raise error

    def listen(self, names: Sequence[NodeName]) -> dict[tuple[NodeName, ...], ProcessGoneError]:
        """The same; the nodes of each process that has died before it had answered, with the error about it."""
        pending: _Pending = {}
        died: dict[tuple[NodeName, ...], ProcessGoneError] = {}
        for number, nodes in self._by_actor(names).items():
            if number not in self._actors or number in self._without_process:
                self._actors[number] = self._new_process(nodes[0])
                self._without_process.pop(number, None)
            actor = self._actors[number]
            pending[tuple(nodes)] = actor, actor.listen.remote([self._arrival(name) for name in nodes])
        for here, (actor, reference) in pending.items():
            try:
                found: dict[NodeName, Listening] = self._answer(here, actor, reference, wanted=True)
            except ProcessGoneError as error:
                if not has_died(error.__cause__):
                    raise
                died[here] = error
                continue
            for name, listening in found.items():
                self.addresses[name] = (listening.host, listening.port)
                self.places[name] = listening.place
                for known_of_the_former in (self.unheard, self.disks_lost, self._ahead_us):
                    known_of_the_former.pop(name, None)
                if listening.zero_ns is not None:
                    self._zeros_ns.setdefault(listening.place.host, listening.zero_ns)
        return died

    def _new_process(self, name: NodeName) -> Any:
        number = self._deployment.hosts.get(name, 0)
        options: dict[str, Any] = {}
        if len(self.hosts) > 1:
            options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(node_id=self.hosts[number], soft=False)
        return self._remote.options(**options).remote(self._settings_at.get(number, self.settings))

    def _arrival(self, name: NodeName) -> Arrival:
        incarnation = self.incarnations[name] = self.incarnations.get(name, -1) + 1
        self.unheard[name] = None
        host, former = self.hosts[self._deployment.hosts.get(name, 0)], self.places.get(name)
        zero_ns, ahead_us, not_before_us = self._zeros_ns.get(host), self._ahead_us.get(name, 0), 0
        if former is not None and (former.host != host or zero_ns is None):
            # Of the former incarnation's clock only this is known, and its last input lies behind the driver's now.
            not_before_us = self._clock.now_us() + ahead_us
        script, disk_lost = self._deployment.scripts.get(name), name in self.disks_lost
        return Arrival(self.specs[name], script, incarnation, not_before_us, zero_ns, disk_lost)

    def introduce(self, names: Sequence[NodeName]) -> None:
        """Tell these nodes their links and the addresses of all nodes, which starts their machines, and only then let
        them dial."""
        self.tell("meet", self._brokers, self.addresses, nodes=names)
        self.ask("attach", arguments={name: (self._links_of(name),) for name in names})
        self.ask("dial", arguments={name: (self._dials[name],) for name in names})

    def bring_back(self, names: Sequence[NodeName]) -> None:
        """Nodes that were down, and `listen`, start again, under their old names at new addresses. The others are told
        of that first, so that they can answer what these send as they start."""
        moved = {name: self.addresses[name] for name in names}
        for other in list(self.stalled):
            self._actors[self._actor_of[other]].moved.remote(moved)  # it hears of it later
        self.tell("moved", moved)
        for name in names:
            del self.down[name]
        self.ask("sever", arguments={name: self.cut_off_from(name) for name in names})
        self.introduce(names)

    def seal_unheard(self, name: NodeName) -> None:
        """Seal the journal of a node whose process was gone before it had said that it keeps one, if its host is
        there."""
        number = self._deployment.hosts.get(name, 0)
        folder, incarnation, run = self.journal_folder(name), self.incarnations[name], self.settings.run.identifier
        what = folder, name, self.settings.numbers[name], incarnation, run
        try:
            if len(self.hosts) == 1:
                seal_unheard(*what)
            else:
                done_on(self.hosts[number], seal_unheard, *what)
            del self.unheard[name]
        except ray.exceptions.RayError:
            if self.hosts[number] in living_hosts():
                raise

    # -------------------------------------------------------------------------------------------- asking
    def ask(
        self,
        what: str,
        nodes: Iterable[NodeName] | None = None,
        arguments: Mapping[NodeName, tuple[Any, ...]] | None = None,
        common: tuple[Any, ...] = (),
    ) -> dict[NodeName, Any]:
        """The answers of the actors in service to one call, by node. Raises what a call raised, and `RunError` naming
        an actor that does not answer; one that has died is out of service from then on."""
        names = list(nodes) if nodes is not None else list(arguments if arguments is not None else self.addresses)
        pending: _Pending = {}
        for number, here in self._by_actor(names).items():
            given = {name: common if arguments is None else arguments[name] for name in here if self._serves(name)}
            if given:
                actor = self._actors[number]
                pending[tuple(given)] = actor, actor.ask.remote(what, given)
        return self._answers(pending)

    def tell(self, what: str, *arguments: Any, nodes: Iterable[NodeName] | None = None) -> None:
        """Make a call that is for an actor as a whole, of all with nodes (of these) in service."""
        serving = [name for name in (self.in_service if nodes is None else nodes) if self._serves(name)]
        pending: _Pending = {}
        for number, here in self._by_actor(serving).items():
            actor = self._actors[number]
            pending[tuple(here)] = actor, getattr(actor, what).remote(*arguments)
        self._answers(pending)

    def status(self) -> dict[NodeName, dict[str, Any]]:
        """What each node in service says of itself, asked actor by actor; raises why one has failed."""
        asked_us: dict[NodeName, int] = {}
        pending: _Pending = {}
        for number, here in self._by_actor(self.in_service).items():
            asked_us |= dict.fromkeys(here, self._clock.now_us())
            actor = self._actors[number]
            pending[tuple(here)] = actor, actor.ask.remote("status", dict.fromkeys(here, ()))
            time.sleep(BETWEEN_QUESTIONS_S)
        answers = self._answers(pending)
        for name, status in answers.items():
            if status["failure"] is not None:
                raise self._told(name, status["failure"])
            ahead_us = status["now_us"] - asked_us[name]
            self._ahead_us[name] = min(ahead_us, self._ahead_us.get(name, ahead_us))
        return answers

    def unlinked(self, statuses: Mapping[NodeName, Mapping[str, Any]]) -> list[NodeName]:
        """The nodes whose links are not as they should be: all up between nodes in service that are not cut, to
        the incarnation that is there now, and none to any other node."""
        wrong = []
        for name, status in statuses.items():
            wanted = {
                (peer, self.incarnations[peer])
                for peer in self._peers[name]
                if self._serves(peer) and link_key(name, peer) not in self.cut
            }
            if {tuple(link) for link in status["links"]} != wanted:
                wrong.append(name)
        return wrong

    # -------------------------------------------------------------------------------------------- ending
    def kill(self, name: NodeName) -> None:
        """Kill the node's actor."""
        ray.kill(self._actors[self._actor_of[name]])

    def crash(self, name: NodeName) -> None:
        """Have the node gone, and the others of its actor go on. It is out of service already."""
        actor = self._actors[self._actor_of[name]]
        self._answer((name,), actor, actor.crash.remote(name), wanted=True)

    def hold(self, name: NodeName, held: bool) -> bool:
        """Stall the node, or tell it what has become of its links since and have it go on, and the others of its actor
        with it; is it so? The node is marked as out of service already, or still."""
        actor = self._actors[self._actor_of[name]]
        if held:
            reference = actor.ask.remote("stall", {name: ()})
        else:
            links = self.stalled[name], *self.cut_off_from(name), self._links_of(name)
            reference = actor.ask.remote("resume", {name: links})
        answers: dict[NodeName, bool] = self._answer((name,), actor, reference, wanted=True)
        return answers.get(name, False)

    def process_gone(self, names: Iterable[NodeName]) -> None:
        """The processes of these nodes are gone: they start in new ones."""
        for name in names:
            self._without_process[self._actor_of[name]] = None

    def kill_all(self) -> None:
        """Kill every actor; those that are dead already stay so."""
        for actor in list(self._actors.values()):
            ray.kill(actor)

    def host_lost(self, number: int) -> None:
        """Nodes of that host start on the next one from now on."""
        left = [each for each in self.hosts if each != self.hosts[number]]
        self.hosts[number] = left[number % len(left)]

    def _links_of(self, name: NodeName) -> dict[NodeName, LinkSpec]:
        return {peer: self.link_specs[link_key(name, peer)] for peer in self._peers[name]}

    def _by_actor(self, names: Iterable[NodeName]) -> dict[int, list[NodeName]]:
        together: dict[int, list[NodeName]] = {}
        for name in names:
            together.setdefault(self._actor_of[name], []).append(name)
        return together

    def _serves(self, name: NodeName) -> bool:
        return name in self.addresses and name not in self.down and name not in self.stalled

    def _answers(self, pending: _Pending) -> dict[NodeName, Any]:
        """What the nodes said, by node."""
        answers: dict[NodeName, Any] = {}
        for names, (actor, reference) in pending.items():
            answers |= self._answer(names, actor, reference) or {}
        return answers

    def _answer(self, names: Sequence[NodeName], actor: Any, reference: Any, wanted: bool = False) -> Any:
        """What the actor of these nodes answers; None if none of them is in service any more, or none in that actor."""
        asked = time.monotonic()
        look_again = asked + _OVERDUE_S
        at: tuple[int, ...] | None = None
        while True:
            try:
                return ray.get(reference, timeout=_LOOK_AGAIN_S)
            except ray.exceptions.RayTaskError as error:
                raise self._told(names[0], error.cause) from error
            except ray.exceptions.RayActorError as error:
                if wanted or self.on_death is None:
                    raise ProcessGoneError(f"the actor of {names[0]} died: {error}") from error
                if self._actors[self._actor_of[names[0]]] is actor:  # else they are back already, in a new one
                    self._note_death(names[0])
                return None
            except ray.exceptions.GetTimeoutError as error:
                if not wanted and not any(map(self._serves, names)):
                    return None
                waited = time.monotonic() - asked
                if waited > _ANSWER_TIMEOUT_S:
                    raise RunError(f"the actor of {names[0]} did not answer in {_ANSWER_TIMEOUT_S:.0f} s") from error
                if asked + waited > look_again:
                    look_again = asked + waited + _OVERDUE_LOOK_S
                    before, (at, overdue) = at, self._at_work(names[0], f"{waited:.0f} s")
                    if overdue is not None and at == before:
                        raise self._told(names[0], overdue) from error

    def _note_death(self, name: NodeName) -> None:
        """The process that holds this node seems to be gone."""
        serving = [each for each in self.together(name) if self._serves(each)]
        if serving and self._is_dead(serving[0]):
            self.died_by_itself(name)

    def died_by_itself(self, name: NodeName) -> None:
        """The process that holds this node is gone."""
        # Those that are stalled do not answer, and die with the others all the same.
        there = [each for each in self.together(name) if each in self.addresses and each not in self.down]
        if self.on_death is not None:
            self.on_death({each: self.places[each] for each in there})

    def host_is_gone(self, number: int, ask: bool = False) -> bool:
        """Has that host gone away by itself, as Ray knows? `ask` it first: Ray knows some seconds later."""
        if not self._watched:
            return False
        if ask:
            await_answer(self.hosts[number])
        return self.hosts[number] not in living_hosts()

    def _at_work(self, name: NodeName, waited: str) -> tuple[tuple[int, ...] | None, ProtocolError | None]:
        """What the node's machine is at, and the error if it never comes back; twice None if nobody can say."""
        try:
            actor = self._actors[self._actor_of[name]]
            said = ray.get(actor.at_work.remote(waited), timeout=_OVERDUE_LOOK_S)
        except ray.exceptions.RayError:
            return None, None
        return said or (None, None)

    def unsettled(self, name: NodeName, waited: str) -> Exception:
        """The error about a node for which the run has waited."""
        return self._told(name, unsettled_error(name, self.incarnations[name], self._clock.now_us(), waited))

    def _told(self, name: NodeName, error: BaseException) -> Exception:
        """What a node has raised, in words for whoever runs it."""
        if isinstance(error, ProtocolError):
            return error.in_run(Path(self.settings.journal_folder).parent, self.settings.run.keep_inputs)
        return error if isinstance(error, InputError | RunError) else RunError(f"the actor of {name} failed: {error!r}")

    def _is_dead(self, name: NodeName) -> bool:
        """Is the actor dead that holds this node, and was not heard? Ray knows that of a host which went away only some
        seconds later, and does not hear one whose connection broke."""
        deadline = time.monotonic() + _LOSS_NOTICED_S
        while self._watched and self._serves(name) and time.monotonic() < deadline:
            try:
                actor = self._actors[self._actor_of[name]]
                ray.get(actor.ask.remote("status", {name: ()}), timeout=_LOOK_AGAIN_S)
                return False
            except ray.exceptions.ActorDiedError:
                return True
            except ray.exceptions.RayError:
                time.sleep(_LOOK_AGAIN_S)
        return self._serves(name)
