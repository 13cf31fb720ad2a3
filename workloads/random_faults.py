"""Random fault plans: drawn from the run's seed, each fault with its repair, never one that could not take effect.

Faults come as a Poisson process. A node or link takes part in one fault at a time, a partition comes only while
nothing is cut, and what is broken is mended before the plan ends: a run shows first that nothing bad happens, then
that all comes right again.
"""

import itertools
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import Fault, FaultKind, FaultTargets, NewLinks, link_key
from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.machine import NodeName
from murmur_pubsub.units import Microseconds

RANDOM_FAULT_KINDS = (
    "kill",
    "sigkill",
    "stall",
    "slow",
    "cut",
    "partition",
    "loss",
    "delay",
    "duplication",
    "reordering",
    "bandwidth",
    "reconfigure",
)
"""What may be drawn; the five before the last change a link."""


@dataclass(frozen=True, slots=True)
class RandomFaults:
    """Faults drawn from the run's seed, for each of which the plan has its repair."""

    every_us: Microseconds
    """Mean time between faults."""
    until_us: Microseconds
    """When the last fault may come, after the start of publishing."""
    from_us: Microseconds = 0
    """When the first fault may come, after the start of publishing."""
    kinds: tuple[str, ...] = ("kill", "cut", "stall")
    """`kill`, `sigkill`, `stall`, `slow`, `cut`, `partition`, `loss`, `delay`, `duplication`, `reordering`, `bandwidth`
    and `reconfigure`, drawn with equal probability: a kind listed twice is twice as likely. `reconfigure` takes a link
    between brokers away, and joins what it joined by another one."""
    outage_us: tuple[Microseconds, Microseconds] = (1_000_000, 5_000_000)
    """The shortest and the longest time until a fault is repaired, drawn uniformly between."""
    at_once: int = 3
    """How many faults are in force together at most."""
    limit: int | None = None
    """How many faults there are at most."""
    only: tuple[NodeName, ...] | None = None
    """The nodes, and links between them, that may be hit (none: all)."""
    spare: tuple[NodeName, ...] = ()
    """The nodes that are exempt."""
    loss: float = 0.3
    """Probability of loss on a link hit by `loss`."""
    duplication: float = 0.3
    """Probability of a second copy on a link hit by `duplication`."""
    reordering: float = 0.3
    """Probability that a message is held back on a link hit by `reordering`."""
    delay_us: Microseconds = 20_000
    """Delay of a link hit by `delay`."""
    messages_per_s: int = 100
    """Messages a second on a link hit by `bandwidth`."""
    work_us: Microseconds = 2_000
    """What each message costs a node hit by `slow`."""

    def __post_init__(self) -> None:
        for kind in self.kinds:
            if kind not in RANDOM_FAULT_KINDS:
                raise InputError("kinds", repr(kind), ", ".join(RANDOM_FAULT_KINDS))
        if self.every_us < 1 or not self.kinds or self.at_once < 1:
            raise InputError("every_us", "no time between faults, or no kind", "a time above 0, one kind or more")
        if not 0 <= self.from_us < self.until_us:
            raise InputError("until_us", f"{self.until_us} us", f"after {self.from_us}, where faults begin")
        if not 0 < self.outage_us[0] <= self.outage_us[1]:
            raise InputError("outage_us", str(self.outage_us), "a shortest and a longest time above zero")


def draw_faults(
    settings: RandomFaults, targets: FaultTargets, links: Mapping[tuple[NodeName, NodeName], LinkSpec], seed: object
) -> list[Fault]:
    """The plan, in order of time; `links` are the planned links (key: `murmur_pubsub.faults.link_key`).

    Raises `InputError` if `only` or `spare` names no node of the run, nothing is left to break, or the run's protocols
    take no link between any two brokers and one is to be made.
    """
    if "reconfigure" in settings.kinds and targets.rules.new_links is not NewLinks.ANY:
        raise InputError(
            "kinds", "'reconfigure' over this routing", "a routing that takes a link between any two brokers"
        )
    for name in (*(settings.only or ()), *settings.spare):
        if name not in targets.nodes:
            raise InputError("only" if name in (settings.only or ()) else "spare", repr(name), "nodes of the run")
    drawer = _Drawer(settings, targets, links, random.Random(f"{seed}/faults"))
    return drawer.draw()


@dataclass(slots=True)
class _Drawer:
    settings: RandomFaults
    targets: FaultTargets
    links: Mapping[tuple[NodeName, NodeName], LinkSpec]
    rng: random.Random
    _until_us: dict[object, int] = field(default_factory=dict)
    _there: dict[tuple[NodeName, NodeName], LinkSpec] = field(default_factory=dict)
    """The links at the time up to which the plan is drawn."""
    _degree: int = 0
    """The most links between brokers that one has at first."""
    _apart: list[tuple[int, NodeName, NodeName, LinkSpec]] = field(default_factory=list)
    """Links that were taken away, and when others are to join what they joined."""

    def __post_init__(self) -> None:
        self._there = dict(self.links)
        ends = Counter(name for key in self._between_brokers() for name in key)
        self._degree = max(ends.values(), default=0)

    def draw(self) -> list[Fault]:
        settings, rng = self.settings, self.rng
        hit = [name for name in self.targets.nodes if self._may_hit(name)]
        if not hit:
            raise InputError("random faults", "no node left to hit", "at least one node in `only` and not in `spare`")
        edges = self._edges()
        steps: list[Fault] = []
        now_us = float(settings.from_us)
        count = 0
        while count != settings.limit:
            now_us += rng.expovariate(1.0) * settings.every_us
            if now_us >= settings.until_us:
                break
            began_us = int(now_us)
            ended_us = min(began_us + rng.randint(*settings.outage_us), settings.until_us)
            joined = self._join_until(began_us)
            if joined or self._apart:
                steps += joined
                edges = self._edges()
            pair = self._pair(rng.choice(settings.kinds), hit, edges, began_us, ended_us)
            if pair is not None:
                steps += pair
                count += 1
        steps += self._join_until(settings.until_us)
        return sorted(steps, key=lambda fault: fault.time_us)

    def _edges(self) -> list[tuple[NodeName, NodeName]]:
        return [key for key in self._there if all(self._may_hit(name) for name in key)]

    def _may_hit(self, name: NodeName) -> bool:
        only = self.settings.only
        return (only is None or name in only) and name not in self.settings.spare

    def _free(self, *things: object, now_us: int) -> bool:
        return all(self._until_us.get(thing, -1) < now_us for thing in things)

    def _pair(
        self,
        kind: str,
        hit: Sequence[NodeName],
        edges: Sequence[tuple[NodeName, NodeName]],
        began_us: int,
        ended_us: int,
    ) -> list[Fault] | None:
        """The fault and its repair, or None if nothing is free for it at that time."""
        rng, now_us = self.rng, began_us
        if (
            ended_us <= began_us
            or sum(until_us >= now_us for until_us in self._until_us.values()) >= self.settings.at_once
        ):
            return None
        if kind == "partition":
            return self._partition(edges, began_us, ended_us)
        if kind in ("kill", "sigkill", "stall", "slow"):
            # A node next to a link in trouble stays up, so that the link's trouble can be seen.
            busy = self._busy(now_us)
            free = [name for name in hit if name not in busy]
            if not free or not self._free("partition", now_us=now_us):
                return None
            name = rng.choice(free)
            self._until_us[(name,)] = ended_us
            return self._node_pair(kind, name, began_us, ended_us)
        busy = self._busy(now_us)
        if kind == "reconfigure":
            edges = [key for key in edges if self.targets.brokers.issuperset(key)]
        candidates = [key for key in edges if not busy & set(key)]
        if not candidates or not self._free("partition", now_us=now_us):
            return None
        key = rng.choice(candidates)
        self._until_us[key] = ended_us
        if kind == "reconfigure":
            self._apart.append((ended_us, *key, self._there.pop(key)))
            return [Fault(began_us, FaultKind.DISCONNECT, key)]
        if kind == "cut":
            return [Fault(began_us, FaultKind.CUT, key), Fault(ended_us, FaultKind.HEAL, key)]
        spec = self._changed(kind, self._there[key])
        return [
            Fault(began_us, FaultKind.CHANGE_LINK, key, link=spec),
            Fault(ended_us, FaultKind.CHANGE_LINK, key),
        ]

    def _busy(self, now_us: int) -> set[NodeName]:
        return {name for thing, until_us in self._until_us.items() if until_us >= now_us for name in _names(thing)}

    def _between_brokers(self) -> list[tuple[NodeName, NodeName]]:
        return [key for key in self._there if self.targets.brokers.issuperset(key)]

    def _join_until(self, time_us: int) -> list[Fault]:
        """The new links that come up to that time, each instead of one that was taken away."""
        steps: list[Fault] = []
        if not self._apart:
            return steps
        for due in sorted(each for each in self._apart if each[0] <= time_us):
            self._apart.remove(due)
            ended_us, first, second, spec = due
            key = self._new_link(first, second, ended_us)
            self._there[link_key(*key)] = spec
            steps.append(Fault(ended_us, FaultKind.CONNECT, key, link=spec))
        return steps

    def _new_link(self, first: NodeName, second: NodeName, now_us: int) -> tuple[NodeName, NodeName]:
        """A link that joins the parts of the two brokers, whose ends have fewer links than the overlay's degree and are
        in no other fault; the one that was there if there is none."""
        links = self._between_brokers()
        ends = Counter(name for key in links for name in key)
        busy = self._busy(now_us) - {first, second}
        parts = [
            [name for name in self._side_of(end, (first, second)) if ends[name] < self._degree and name not in busy]
            for end in (first, second)
        ]
        possible = [
            (here, there)
            for here, there in itertools.product(*parts)
            if here != there and self.targets.brokers >= {here, there} and link_key(here, there) not in self._there
        ]
        return self.rng.choice(possible) if possible else (first, second)

    def _node_pair(self, kind: str, name: NodeName, began_us: int, ended_us: int) -> list[Fault]:
        if kind == "stall":
            return [Fault(began_us, FaultKind.STALL, (name,)), Fault(ended_us, FaultKind.RESUME, (name,))]
        if kind == "slow":
            work_us = self.settings.work_us
            return [
                Fault(began_us, FaultKind.SLOW, (name,), work_us=work_us),
                Fault(ended_us, FaultKind.SLOW, (name,)),
            ]
        return [
            Fault(began_us, FaultKind.KILL, (name,), sigkill=kind == "sigkill"),
            Fault(ended_us, FaultKind.RESTART, (name,)),
        ]

    def _partition(
        self, edges: Sequence[tuple[NodeName, NodeName]], began_us: int, ended_us: int
    ) -> list[Fault] | None:
        if not edges or any(until_us >= began_us for until_us in self._until_us.values()):
            return None
        first, second = self.rng.choice(edges)
        side = self._side_of(second, (first, second))
        groups = (tuple(name for name in self.targets.nodes if name not in side), tuple(side))
        if not groups[0]:
            return None
        self._until_us["partition"] = ended_us
        return [Fault(began_us, FaultKind.PARTITION, groups=groups), Fault(ended_us, FaultKind.UNITE)]

    def _side_of(self, start: NodeName, cut: tuple[NodeName, NodeName]) -> dict[NodeName, None]:
        """The nodes still reached from `start` when that link is cut (all, if it lies on a cycle)."""
        reached = {start: None}
        for name in (queue := [start]):
            for key in self._there:
                if name in key and key != link_key(*cut):
                    other = key[1] if key[0] == name else key[0]
                    if other not in reached:
                        reached[other] = None
                        queue.append(other)
        return reached

    def _changed(self, kind: str, spec: LinkSpec) -> LinkSpec:
        settings = self.settings
        if kind == "delay":
            return replace(spec, delay=Delay("constant", settings.delay_us))
        if kind == "bandwidth":
            return replace(spec, messages_per_s=settings.messages_per_s)
        return replace(spec, **{kind: getattr(settings, kind)})


def _names(thing: object) -> tuple[NodeName, ...]:
    return thing if isinstance(thing, tuple) else ()
