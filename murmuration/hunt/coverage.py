"""What a schedule has reached: states of brokers, with the faults near them and the phase; what was lost, and why.

A run is looked at when a fault begins or ends and some times after that: then things change. Each look asks every
broker that runs for its fingerprint (`murmur_pubsub.machine.Machine.fingerprint`). A place is one of its facts, in one
phase, with one fault at the broker or a neighbour, or with two: what needs two faults to meet, few schedules reach.
"""

import functools
import heapq
import itertools
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from operator import or_
from pathlib import Path
from typing import Any

from murmur_pubsub.deployment import Deployment
from murmur_pubsub.errors import RunError
from murmur_pubsub.event import Event
from murmur_pubsub.faults import COMMANDS, DEATHS, REPAIRS, RETURNS, UNDONE_BY, Fault, FaultKind, takes_back
from murmur_pubsub.fingerprint import Fact
from murmur_pubsub.journal import DropReason, Phase
from murmur_pubsub.machine import Answer, NodeName
from murmur_pubsub.progress import Progress
from murmur_pubsub.recorder import Recorder
from murmur_virtual.run import VirtualRun
from murmur_virtual.virtual_node import NEVER_US, VirtualNode
from murmuration.hunt.memory import Place, kept_by
from murmuration.hunt.properties import ALWAYS_ASKED, Property, Sight

_LOOKS_US = (0, 2_000, 20_000, 200_000, 1_000_000)
"""How long after each step of the fault plan."""
_ENTRIES_MAX = 3_000_000
"""Of the event queue; schedules have a few thousand."""
_IN_VAIN_US = 30_000_000
"""What protocols repeat comes every 4 s at most, with all parameters that are drawn, and leases run out after 10."""
_AT_ONCE = (FaultKind.ORDER, *COMMANDS)
"""Steps that last no longer than what follows from them."""
_MILD = (FaultKind.SLOW, FaultKind.CHANGE_LINK)
_LOSSY = "lossy link"
_PATIENCE_US = 200_000_000
"""Where a link goes on losing half of its messages, what is asked for ever more seldom takes minutes now and then."""
_CALM = "calm"


COARSE = {
    "kill": "kill", "stall": "stall", "slow": "slow", "cut": "cut", "partition": "partition", "rewire": "disconnect",
    "loss": _LOSSY, "storm": _LOSSY, "duplication": "unruly link", "reordering": "unruly link",
    "delay": "slow link", "bandwidth": "slow link",
}  # fmt: skip
"""What coverage calls each kind of drawn faults; orders go by their verbs."""


class EndlessRun(RunError):
    """A run that does not end."""


@dataclass(slots=True)
class Reached:
    """What was reached, of one schedule or of many."""

    states: set[tuple[Fact, str, str]] = field(default_factory=set)
    """(fact, faults in force, phase)."""
    losses: set[tuple[str, str]] = field(default_factory=set)
    """(class of the message, why it was lost)."""
    meetings: set[tuple[str, str]] = field(default_factory=set)
    """(fault, what was being mended or in force when it began)."""
    held: set[str] = field(default_factory=set)
    """The properties that hold sometimes, and did."""
    broken: dict[str, str] = field(default_factory=dict)
    """The properties that did not hold, with what was wrong first."""
    delivered_us: int = 0
    """When an event was delivered last."""
    answered: set[int] = field(default_factory=set)
    """The numbers of the orders that a node has answered."""

    def places(self) -> set[str]:
        """All of it, as text: the same in every process."""
        states = {f"{kind}.{name} {held} | {fault} | {phase}" for (kind, name, held), fault, phase in self.states}
        losses = {f"lost {message} | {why}" for message, why in self.losses}
        meetings = {f"{fault} during {other}" for fault, other in self.meetings}
        return states | losses | meetings | {f"sometimes {name}" for name in self.held}


def what_it_does(fault: Fault) -> str:
    """Its kind, of a changed link what is changed, of an order its verb."""
    kind = fault.kind.name.lower().replace("_", " ")
    if fault.kind is FaultKind.ORDER:
        return f"{kind} {fault.verb}"
    if fault.kind is not FaultKind.CHANGE_LINK or fault.link is None:
        return kind
    harm = [name for name in ("loss", "duplication", "reordering", "messages_per_s") if getattr(fault.link, name)]
    return f"{kind}: {', '.join(harm) or 'delay'}"


def _coarsely(fault: Fault) -> str:
    """The same, with changes of links in three kinds."""
    if fault.kind is not FaultKind.CHANGE_LINK or fault.link is None:
        return what_it_does(fault)
    if fault.link.loss:
        return _LOSSY
    return "unruly link" if fault.link.duplication or fault.link.reordering else "slow link"


class FaultsInForce:
    """Which faults are in force, and which were until lately: until all had settled after their end. `absent`: nodes
    that are not there at first."""

    def __init__(self, absent: Iterable[NodeName] = ()) -> None:
        self._faults: dict[tuple[FaultKind, tuple[NodeName, ...]], str] = {}
        self._dead = set(absent)
        self._after: dict[tuple[str, tuple[NodeName, ...]], None] = {}

    def step(self, fault: Fault, gone: Sequence[NodeName] = (), came: Sequence[NodeName] = ()) -> None:
        """It has taken effect, by which these nodes died, or are back."""
        self._dead = (self._dead | {*gone}) - {*came}
        nodes = tuple(sorted(gone if fault.kind in DEATHS else fault.nodes))
        ended = [key for key in self._faults if self._is_ended(key, fault.kind, nodes)]
        if fault.kind is FaultKind.CONNECT and not ended and self._dead.isdisjoint(nodes):
            # It joins anew what another link had joined.
            ended = [key for key in self._faults if key[0] is FaultKind.DISCONNECT][:1]
        for key in ended:
            self._after[f"after {self._faults.pop(key)}", key[1]] = None
        if fault.kind in _AT_ONCE:
            self._after[_coarsely(fault), nodes] = None
        elif _begins(fault):
            self._faults[fault.kind, nodes] = _coarsely(fault)

    def _is_ended(
        self, key: tuple[FaultKind, tuple[NodeName, ...]], by: FaultKind, nodes: tuple[NodeName, ...]
    ) -> bool:
        kind, whose = key
        if kind in DEATHS:  # a host brings back those who had died before it, too
            return by in RETURNS and self._dead.isdisjoint(whose)
        return by in UNDONE_BY.get(kind, ()) and set(whose) <= set(nodes)

    def settled(self) -> None:
        """All has settled: what follows now does not follow from what has ended."""
        self._after.clear()

    @property
    def any_left(self) -> bool:
        """Is one of them in force?"""
        return bool(self._faults)

    @property
    def any_away(self) -> bool:
        """Is a node or a link away, or held up? A slow node is there, and so is a link that loses some messages."""
        return any(kind not in _MILD for kind, _ in self._faults)

    @property
    def any_lossy(self) -> bool:
        """Does a link lose messages?"""
        return _LOSSY in self._faults.values()

    @property
    def names(self) -> list[str]:
        """What they do, each once, in order."""
        return sorted({*self._faults.values(), *(what for what, _ in self._after)})

    def near(self, there: Set[NodeName]) -> list[str]:
        """What those do that are about one of these nodes, or about no node alone."""
        found = {what for (_, nodes), what in self._faults.items() if not nodes or not there.isdisjoint(nodes)}
        found |= {what for what, nodes in self._after if not nodes or not there.isdisjoint(nodes)}
        return sorted(found)


def _begins(fault: Fault) -> bool:
    ends = fault.kind in REPAIRS or takes_back(fault.kind, fault.link, fault.work_us)
    return not ends and fault.kind is not FaultKind.CONNECT


class ObservedRun(VirtualRun):
    """A run in virtual time that notes what it reaches. Raises `EndlessRun` for one that does not end."""

    def __init__(
        self,
        reached: Reached,
        properties: Sequence[Property],
        deployment: Deployment,
        journal_folder: Path,
        progress: Progress,
    ) -> None:
        super().__init__(deployment, journal_folder, progress, functools.partial(_LossRecorder, reached))
        self._reached = reached
        self._properties = (*ALWAYS_ASKED, *properties)
        self._steps_left = len(deployment.faults)
        self._last_step_us = 0
        self._drains_from_us = 0
        self._limit_us = NEVER_US
        self._due_us: dict[str, int] = {}
        self._settled_properties: set[str] = set()
        self._in_force = FaultsInForce(deployment.start_down)
        self._ordered: dict[int, NodeName] = {}
        self._lost_order = False
        self._looks_us: list[int] = []
        self._kept_at_first: Counter[Place] = Counter()
        self._kept_soon: Counter[Place] | None = None
        self._latecomers = False
        self._entries = 0
        promised = deployment.promise
        self._waits_for_the_away = promised.excuses_by_connection or promised.recovers is not None
        self._known_facts: dict[VirtualNode, tuple[int, Set[Fact]]] = {}
        self._there = _neighbourhoods(deployment)

    def carry_out(self, step: int, fault: Fault) -> list[NodeName]:
        """See `VirtualRun`."""
        mended = self._in_force.names
        self._note_what_is_kept_soon()
        came = super().carry_out(step, fault)
        self._latecomers |= any(self.runtime.nodes[name].incarnation == 0 for name in came)
        self._in_force.step(fault, self._fault_injector.gone, came)
        if fault.kind is FaultKind.ORDER:
            self._ordered[step] = fault.nodes[0]
        unanswered = {who for number, who in self._ordered.items() if number not in self._reached.answered}
        self._lost_order |= not unanswered.isdisjoint(self._fault_injector.gone)
        self._reached.meetings.update((_coarsely(fault), other) for other in mended)
        self._steps_left -= 1
        self._last_step_us = self.runtime.now_us
        for after_us in _LOOKS_US:
            heapq.heappush(self._looks_us, self.runtime.now_us + after_us)
        if not self._steps_left:
            for each in self._properties:
                if each.mode == "eventually":
                    self._due_us[each.name] = self.runtime.now_us + each.within_us
                    heapq.heappush(self._looks_us, self._due_us[each.name])
        return came

    def after_entry(self) -> None:
        """See `VirtualRun`."""
        super().after_entry()
        self._entries += 1
        if self._reached.delivered_us and self._kept_soon is None:
            self._note_what_is_kept_soon()
        if self._looks_us and self._looks_us[0] <= self.runtime.now_us:
            while self._looks_us and self._looks_us[0] <= self.runtime.now_us:
                heapq.heappop(self._looks_us)
            self._look()
        if self._entries > _ENTRIES_MAX:
            raise EndlessRun(f"the run does not end: {self._entries:,} entries, {self.runtime.now_us / 1e6:,.0f} s")

    def enter(self, phase: Phase) -> None:
        """See `VirtualRun`."""
        super().enter(phase)
        if phase is Phase.PUBLISHING:
            self._kept_at_first = self._kept_now()
        if phase in (Phase.PUBLISHING, Phase.STOPPED):
            self._look()

    def _kept_now(self) -> Counter[Place]:
        """What some node keeps, at most, in each place."""
        return functools.reduce(or_, (kept_by(node.machine) for node in self.runtime.nodes.values()))

    def _note_what_is_kept_soon(self) -> None:
        if self._kept_soon is None:
            self._kept_soon = self._kept_now()

    def drain(self) -> None:
        """See `VirtualRun`."""
        self._drains_from_us = self.runtime.now_us
        self._limit_us = self.runtime.now_us + self._deployment.drain_limit_us
        super().drain()

    def _look(self) -> None:
        phase = "mending" if self._changed_us else self._phase_now.name.lower()
        calm = not self._in_force.names
        states, nodes = self._reached.states, self.runtime.nodes
        for name, there in self._there.items():
            node = nodes.get(name)
            if node is None or node.down:
                continue
            facts = self._facts(node)
            near = self._in_force.near(there)
            if not near and not calm:
                continue  # what is broken elsewhere changes little here
            faults = [*near, *map(" + ".join, itertools.combinations(near, 2))] or [_CALM]
            states.update(itertools.product(facts, faults, (phase,)))
        self._ask()

    def _facts(self, node: VirtualNode) -> Set[Fact]:
        """Its fingerprint, with its invariants looked at. A machine that was given nothing since the last look is as it
        was then: so are a third of them."""
        known = self._known_facts.get(node)
        if known is None or known[0] != node.inputs:
            node.check_invariants()
            known = self._known_facts[node] = node.inputs, node.machine.fingerprint()
        return known[1]

    def _ask(self) -> None:
        """Ask each property that is to be asked now."""
        runtime, reached, due_us = self.runtime, self._reached, self._due_us
        ended = self._phase_now is Phase.STOPPED
        sight: Sight | None = None
        for each in self._properties:
            if each.mode == "eventually":
                # Asked once: in time, or at the end of a run that ends before.
                due = ended or due_us.get(each.name, NEVER_US) <= runtime.now_us
                if not due or self._steps_left or self._excused(each) or each.name in self._settled_properties:
                    continue
                self._settled_properties.add(each.name)
            sight = sight or self._sight()
            wrong = each.wrong(sight)
            if each.mode == "sometimes":
                if wrong is None:
                    reached.held.add(each.name)
            elif wrong is not None:
                reached.broken.setdefault(each.name, f"{each.name}, {each.mode}: {wrong}, {self._when()}")

    def _excused(self, asked: Property) -> bool:
        """Does something stay broken for which it need not hold? Who promises a delivery to all that are connected
        waits for who is away. So does a node that is back for an overlay that it could join, if all its peers are
        silent (`routing.founding`). All others come to rest without it. A node that died before it had carried out an
        order is not told again: who was to join then stays outside."""
        if self._lost_order:
            return True
        if asked.over_faults:
            was_cut_short = self._limit_us <= self.runtime.now_us < self._last_step_us + _PATIENCE_US
            if self._in_force.any_lossy and was_cut_short:
                return True
            return self._waits_for_the_away and self._in_force.any_away
        return self._in_force.any_left

    def _when(self) -> str:
        return f"{self.runtime.now_us / 1e6:,.3f} s into the run"

    def _sight(self) -> Sight:
        nodes = {name: node for name, node in self.runtime.nodes.items() if not node.down and not node.stalled}
        return Sight(
            {name: node.machine for name, node in nodes.items()},
            {name: len(node.storage) for name, node in nodes.items()},
            self.runtime.now_us,
            self._in_force.names,
            self._kept_at_first,
            self._kept_soon or {},
        )

    def _settled(self, until_us: int) -> None:
        super()._settled(until_us)
        if self._latecomers:
            self._kept_soon = (self._kept_soon or Counter()) | self._kept_now()
            self._latecomers = self._in_force.any_away  # its broker may be, and has to hear yet what it wants
        self._in_force.settled()


def _neighbourhoods(deployment: Deployment) -> dict[NodeName, frozenset[NodeName]]:
    """Of each broker: it and its neighbours as planned; all nodes where brokers have no links to each other."""
    brokers = [spec.name for spec in deployment.nodes if spec.role == "broker"]
    ends = [{plan.first, plan.second} for plan in deployment.links]
    if not any(each <= set(brokers) for each in ends):
        return dict.fromkeys(brokers, frozenset(spec.name for spec in deployment.nodes))
    return {name: frozenset({name}.union(*(each for each in ends if name in each))) for name in brokers}


class ImpatientRun(ObservedRun):
    """The same, but a run in which something stays broken does not wait in vain: it ends when for long no event was
    delivered. What protocols still try then, they would try until the limit of the run: as much again and again."""

    @property
    def waits_in_vain(self) -> bool:
        """See `VirtualRun`."""
        since_us = max(self._reached.delivered_us, self._drains_from_us)
        if self.runtime.now_us - since_us <= _IN_VAIN_US or not self._in_force.any_away:
            return False
        return not self._looks_us or self._looks_us[0] > self._limit_us


class _LossRecorder(Recorder):
    """Notes which messages are lost, which orders are answered, and when an event was delivered last, too."""

    __slots__ = ("_reached",)

    def __init__(self, reached: Reached, *given: Any) -> None:
        super().__init__(*given)
        self._reached = reached

    def delivered(self, now_us: int, event: Event, hops: int, subscribers: Sequence[int]) -> None:
        """See `Recorder`."""
        self._reached.delivered_us = now_us
        super().delivered(now_us, event, hops, subscribers)

    def answered(self, now_us: int, answer: Answer) -> None:
        """See `Recorder`."""
        self._reached.answered.add(answer.number)
        super().answered(now_us, answer)

    def dropped(self, now_us: int, message: Any, to: str, reason: DropReason) -> None:
        """See `Recorder`."""
        self._reached.losses.add((type(message).__name__, reason.name.lower()))
        super().dropped(now_us, message, to, reason)
