"""Random fault plans: drawn from the run's seed, each fault with its repair, never one that could not take effect.

Faults come as a Poisson process. A node or link takes part in one fault at a time, a partition comes only while
nothing is cut, and what is broken is mended before the plan ends: a run shows first that nothing bad happens, then
that all comes right again.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import Fault, FaultKind, FaultTargets, NewLinks
from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.machine import NodeName
from murmur_pubsub.units import Microseconds
from workloads.random_overlay import DrawnOverlay

_PERFECT = LinkSpec()
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
    "join",
    "kill_actor",
)
"""What may be drawn beside orders; the five from `loss` on change a link."""


_DRAWN_MAX = 1_000_000


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
    """`kill`, `sigkill`, `stall`, `slow`, `cut`, `partition`, `loss`, `delay`, `duplication`, `reordering`,
    `bandwidth`, `reconfigure`, `join`, `kill_actor` and the verbs of the protocols' orders, drawn with equal
    probability: a kind listed twice is twice as likely. `reconfigure` takes a link between brokers away, and joins what
    it joined by another one. `join` starts a newcomer. `kill_actor` is for nodes that share actors. An order is about
    brokers along a walk from the one that gets it."""
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
        if self.every_us < 1:
            raise InputError("every_us", f"{self.every_us} us", "a time above zero")
        if (self.until_us - self.from_us) // self.every_us > _DRAWN_MAX:
            allowed = "a time of which at most a million are in all: the whole plan is drawn before the run"
            raise InputError("every_us", f"{self.every_us} us", allowed)
        if not self.kinds:
            raise InputError("kinds", "an empty list", "one kind or more")
        if self.at_once < 1:
            raise InputError("at_once", str(self.at_once), "1 or more")
        if not 0 <= self.from_us < self.until_us:
            raise InputError("until_us", f"{self.until_us} us", f"after {self.from_us}, where faults begin")
        if not 0 < self.outage_us[0] <= self.outage_us[1]:
            raise InputError("outage_us", str(self.outage_us), "a shortest and a longest time above zero")


def draw_faults(
    settings: RandomFaults,
    targets: FaultTargets,
    links: Mapping[tuple[NodeName, NodeName], LinkSpec],
    seed: object,
    new_link: LinkSpec = _PERFECT,
) -> list[Fault]:
    """The plan, in order of time; `links` are the planned links (key: `murmur_pubsub.faults.link_key`), `new_link` what
    that of a broker which joins is like.

    Raises `InputError` if `only` or `spare` names no node of the run, nothing is left to break, or a kind is none of
    `RANDOM_FAULT_KINDS` and no order that the run's protocols take, or cannot be in this run.
    """
    known = (*RANDOM_FAULT_KINDS, *targets.rules.orders)
    for kind in settings.kinds:
        if kind not in known:
            raise InputError("kinds", repr(kind), ", ".join(known))
    if "reconfigure" in settings.kinds and targets.rules.new_links is not NewLinks.ANY:
        raise InputError(
            "kinds", "'reconfigure' over this routing", "a routing that takes links between any two brokers"
        )
    if "join" in settings.kinds and not targets.start_down & targets.brokers:
        raise InputError("kinds", "'join' without newcomers", "brokers that are not there at first")
    if "join" in settings.kinds and targets.rules.new_links is NewLinks.CELLS:
        raise InputError("kinds", "'join' over cells", "entries that say which cell a broker joins")
    if "kill_actor" in settings.kinds and not targets.actors:
        raise InputError("kinds", "'kill_actor' where no nodes share an actor", "kill; or a density above 1")
    for name in (*(settings.only or ()), *settings.spare):
        if name not in targets.nodes:
            raise InputError("only" if name in (settings.only or ()) else "spare", repr(name), "nodes of the run")
    rng = random.Random(f"{seed}/faults")
    return _Drawer(settings, targets, rng, DrawnOverlay(targets, links, new_link, rng)).draw()


@dataclass(slots=True)
class _Drawer:
    settings: RandomFaults
    targets: FaultTargets
    rng: random.Random
    overlay: DrawnOverlay
    _until_us: dict[object, int] = field(default_factory=dict)

    def draw(self) -> list[Fault]:
        settings, rng = self.settings, self.rng
        hit = [name for name in self.targets.nodes if self._may_hit(name)]
        if not hit:
            raise InputError("random faults", "no node left to hit", "at least one node in `only` and not in `spare`")
        edges, changes = self._edges(), "reconfigure" in settings.kinds or "join" in settings.kinds
        steps: list[Fault] = []
        now_us = float(settings.from_us)
        count = 0
        while count != settings.limit:
            now_us += rng.expovariate(1.0) * settings.every_us
            if now_us >= settings.until_us:
                break
            began_us = int(now_us)
            ended_us = min(began_us + rng.randint(*settings.outage_us), settings.until_us)
            if changes:
                steps += self.overlay.joined_until(began_us, self._busy)
                edges = self._edges()
            pair = self._pair(rng.choice(settings.kinds), hit, edges, began_us, ended_us)
            if pair is not None:
                steps += pair
                count += 1
        steps += self.overlay.joined_until(settings.until_us, self._busy)
        return sorted(steps, key=lambda fault: fault.time_us)

    def _edges(self) -> list[tuple[NodeName, NodeName]]:
        return [key for key in self.overlay.links if all(self._may_hit(name) for name in key)]

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
        rng, now_us, overlay = self.rng, began_us, self.overlay
        orders = self.targets.rules.orders
        if kind in orders or kind == "join":
            if not self._free("partition", now_us=now_us):
                return None
            busy = {*self._busy(now_us), *(name for name in self.targets.nodes if not self._may_hit(name))}
            return overlay.order(now_us, kind, orders[kind], busy) if kind in orders else overlay.join(now_us, busy)
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
            free = [name for name in hit if name not in busy and name not in overlay.newcomers]
            if not free or not self._free("partition", now_us=now_us):
                return None
            name = rng.choice(free)
            self._until_us[(name,)] = ended_us
            return self._node_pair(kind, name, began_us, ended_us)
        if kind == "kill_actor":
            return self._actor_pair(began_us, ended_us)
        busy = self._busy(now_us)
        if kind == "reconfigure":
            edges = overlay.between_brokers(edges)
        candidates = [key for key in edges if not busy & set(key)]
        if not candidates or not self._free("partition", now_us=now_us):
            return None
        key = rng.choice(candidates)
        self._until_us[key] = ended_us
        if kind == "reconfigure":
            return overlay.take_away(key, began_us, ended_us)
        if kind == "cut":
            return [Fault(began_us, FaultKind.CUT, key), Fault(ended_us, FaultKind.HEAL, key)]
        spec = self._changed(kind, overlay.links[key])
        return [
            Fault(began_us, FaultKind.CHANGE_LINK, key, link=spec),
            Fault(ended_us, FaultKind.CHANGE_LINK, key),
        ]

    def _busy(self, now_us: int) -> set[NodeName]:
        return {name for thing, until_us in self._until_us.items() if until_us >= now_us for name in _names(thing)}

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

    def _actor_pair(self, began_us: int, ended_us: int) -> list[Fault] | None:
        """One that holds no node which is in trouble, spared, or yet to come."""
        taken = {*self._busy(began_us), *self.overlay.newcomers}
        free = [
            nodes
            for nodes in self.targets.actors
            if taken.isdisjoint(nodes) and all(self._may_hit(name) for name in nodes)
        ]
        if not free or not self._free("partition", now_us=began_us):
            return None
        nodes = self.rng.choice(free)
        self._until_us[nodes] = ended_us
        return [Fault(began_us, FaultKind.KILL_ACTOR, nodes), Fault(ended_us, FaultKind.RESTART_ACTOR, nodes)]

    def _partition(
        self, edges: Sequence[tuple[NodeName, NodeName]], began_us: int, ended_us: int
    ) -> list[Fault] | None:
        if not edges or any(until_us >= began_us for until_us in self._until_us.values()):
            return None
        first, second = self.rng.choice(edges)
        side = self.overlay.side_of(second, (first, second))
        groups = (tuple(name for name in self.targets.nodes if name not in side), tuple(side))
        if not groups[0]:
            return None
        self._until_us["partition"] = ended_us
        return [Fault(began_us, FaultKind.PARTITION, groups=groups), Fault(ended_us, FaultKind.UNITE)]

    def _changed(self, kind: str, spec: LinkSpec) -> LinkSpec:
        settings = self.settings
        if kind == "delay":
            return replace(spec, delay=Delay("constant", settings.delay_us))
        if kind == "bandwidth":
            return replace(spec, messages_per_s=settings.messages_per_s)
        return replace(spec, **{kind: getattr(settings, kind)})


def _names(thing: object) -> tuple[NodeName, ...]:
    return thing if isinstance(thing, tuple) else ()
