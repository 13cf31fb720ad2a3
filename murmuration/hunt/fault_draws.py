"""The faults of a schedule: some at any time, some just after another one has begun or ended, some for good.

Faults in the middle of what follows a fault are where protocols break, and chance seldom puts them there; two in five
are drawn to begin within a tenth of a second of another fault's begin or end. Of a schedule in bursts nearly all are,
and between two bursts is time to recover.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from murmur_pubsub.deployment import Deployment, specs_of
from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import CELL
from murmur_pubsub.machine import NodeName
from murmuration.deployment.fault_entries import FaultReader
from murmuration.hunt.commanding import commanding
from murmuration.hunt.outages import outage
from murmuration.hunt.replacing import replacing
from murmuration.hunt.space import (
    COMMANDS,
    NODE_FAULTS,
    OUTAGES,
    REPLACEMENTS,
    STAND_INS,
    TOGETHER,
    ScheduleSpace,
    TimedEntry,
)
from murmuration.scenario.load import LoadedScenario
from workloads.random_overlay import between_brokers, brokers_further, side_of

_CHANGES: Mapping[str, Mapping[str, Any]] = {
    "loss": {"loss": 0.5},
    "duplication": {"duplication": 0.5},
    "reordering": {"reordering": 0.5},
    "delay": {"delay": "30 ms"},
    "bandwidth": {"messages_per_s": 50},
    "storm": {"loss": 0.3, "duplication": 0.3, "reordering": 0.3},
}
"""What each kind does to a link."""
LASTING_MS = (50, 200, 600, 1_200, 3_000)
SOON_MS = (0, 1, 5, 20, 100)
"""How long after another fault's begin or end one begins that is to meet it."""
_SOON = 0.4
_FOR_GOOD = 0.15
_BURSTS_MAX = 4
_AT_THE_END = 0.5
"""So many schedules have their last burst when the last event is published: what is lost then no later one shows."""
_LAST_FOR_GOOD = 0.33
"""In so many the last fault is not undone: something is not in as many of those that are drawn plainly."""
_LASTING_IN_BURST_MS = LASTING_MS[:-1]
_NEAR = 0.5
_AT_BROKERS = 0.6
"""So many are surely at brokers. The others are anywhere, and half of all nodes are clients."""
_NOT_FOR_GOOD = ("bandwidth",)
"""A link that never again carries what is published is no failure that a protocol could recover from."""
_TAKING = ("kill", "stall", "cut", "partition")
"""What is away for long: a node, a link, or all links to a part."""
_MILD = ("slow", "duplication", "reordering", "delay", "bandwidth")
"""What takes nothing away. In a burst half as often as elsewhere: most of what breaks protocols is something lost."""
_SEEDED = ("rewire", "order", "move", *STAND_INS, *REPLACEMENTS, *COMMANDS, *OUTAGES, *TOGETHER)
"""Kinds that are about several nodes or links, which are drawn: the number of such a fault is a seed."""


class DrawnFault(NamedTuple):
    """A fault before it is known what there is to break: the number says which node or link, over any overlay."""

    at_ms: int
    kind: str
    number: int
    lasting_ms: int | None
    """None: for good."""
    near: int | None = None
    """Of a link that moves, an order or a client that moves: the broker by its number that it is about. None: any."""

    @property
    def place(self) -> int:
        """The broker, or the link by the same number, that it is at."""
        return self.number if self.near is None else self.near

    @property
    def moments_ms(self) -> list[int]:
        """When it begins, and when it ends."""
        return [self.at_ms] if self.lasting_ms is None else [self.at_ms, self.at_ms + self.lasting_ms]

    def moved(self, rng: random.Random, place: int) -> "DrawnFault":
        """The same at that broker or link."""
        if self.kind in _SEEDED:
            return self._replace(number=rng.randrange(10_000), near=place)
        return self._replace(number=place, near=None)


def draw_faults(rng: random.Random, space: ScheduleSpace) -> list[DrawnFault]:
    """Faults of about half of the kinds, in order of time."""
    kinds = [kind for kind in space.kinds if rng.random() < 0.5] or list(space.kinds)
    drawn: list[DrawnFault] = []
    moments = [0]
    for _ in range(rng.randint(0, space.faults_max)):
        fault = draw_fault(rng, space, kinds, moments)
        moments += fault.moments_ms
        drawn.append(fault)
    return sorted(drawn, key=lambda each: each.at_ms)


def draw_fault(rng: random.Random, space: ScheduleSpace, kinds: Sequence[str], moments_ms: Sequence[int]) -> DrawnFault:
    """One of these kinds; it may begin soon after one of these moments, if there is more than the first."""
    soon = len(moments_ms) > 1 and rng.random() < _SOON
    at_ms = rng.choice(moments_ms) + rng.choice(SOON_MS) if soon else rng.randrange(0, space.latest_ms, 10)
    kind = rng.choice(kinds)
    for_good = kind not in _NOT_FOR_GOOD and rng.random() < _FOR_GOOD
    lasting_ms = None if for_good else rng.choice(LASTING_MS)
    return DrawnFault(at_ms, kind, rng.randrange(10_000), lasting_ms)


def in_bursts(
    rng: random.Random, space: ScheduleSpace, publishing_ms: int, burst: Callable[[], Sequence[DrawnFault]]
) -> list[DrawnFault]:
    """Such bursts one after the other, at the space's tempo, with time to recover while events are published.

    All faults are undone but perhaps the last: behind one that is not nothing is promised, and later ones show little.
    """
    burst_ms = space.tempo.burst_ms
    most = max(1, min(_BURSTS_MAX, publishing_ms // burst_ms))
    count = rng.randint(max(1, most - 1), most)
    drawn: list[DrawnFault] = []
    for number in range(count):
        at_ms = number * publishing_ms // count + rng.randrange(0, burst_ms // 2, 10)
        if number == count - 1 and rng.random() < _AT_THE_END:
            at_ms = max(at_ms, publishing_ms - rng.randrange(10, burst_ms // 3, 10))
        for _ in range(space.tempo.at_once):
            drawn += _begun_at(at_ms, burst())
    last = drawn[-1]
    if last.kind not in _NOT_FOR_GOOD and rng.random() < _LAST_FOR_GOOD:
        drawn[-1] = last._replace(lasting_ms=None)
    return sorted(drawn, key=lambda each: each.at_ms)


def _begun_at(at_ms: int, burst: Sequence[DrawnFault]) -> Iterator[DrawnFault]:
    """The same faults, of which the first begins then, and each is undone."""
    earlier_ms = at_ms - min(each.at_ms for each in burst)
    for each in burst:
        lasting_ms = _LASTING_IN_BURST_MS[-1] if each.lasting_ms is None else each.lasting_ms
        yield each._replace(at_ms=each.at_ms + earlier_ms, lasting_ms=lasting_ms)


def draw_burst(
    rng: random.Random, space: ScheduleSpace, brokers: int, absence: DrawnFault | None = None
) -> list[DrawnFault]:
    """Two or three faults that meet: each but the first begins soon after another's begin or end, half of the time at
    the same node or link, or the next. `brokers`: how many there are. `absence`: the first is half of the time there or
    next to it."""
    place = draw_number(rng, brokers) if absence is None else _place_by(rng, absence, brokers)
    burst = [_in_burst(rng, space, 0, place)]
    for _ in range(rng.choice((1, 1, 2))):
        burst.append(draw_meeting(rng, space, burst, brokers))
    return burst


def draw_absence(rng: random.Random, space: ScheduleSpace, publishing_ms: int, brokers: int) -> DrawnFault | None:
    """A node that is away, or a link, for most of the time: others have given it up, and go on without it, when bursts
    come and when it is back. None where no kind of fault takes anything away."""
    kinds = [kind for kind in space.kinds if kind in _TAKING]
    if not kinds:
        return None
    lasting_ms = publishing_ms * rng.randint(30, 70) // 100
    at_ms = rng.randrange(0, space.tempo.burst_ms // 2, 10)
    return DrawnFault(at_ms, rng.choice(kinds), draw_number(rng, brokers), lasting_ms)


def draw_meeting(rng: random.Random, space: ScheduleSpace, faults: Sequence[DrawnFault], brokers: int) -> DrawnFault:
    """A fault that meets one of these."""
    met = rng.choice(faults)
    at_ms = rng.choice(met.moments_ms) + rng.choice(SOON_MS)
    return _in_burst(rng, space, at_ms, _place_by(rng, met, brokers))


def _place_by(rng: random.Random, fault: DrawnFault, brokers: int) -> int:
    """Half of the time that of the fault, or the next; else any."""
    return fault.place + rng.randrange(2) if rng.random() < _NEAR else draw_number(rng, brokers)


def _in_burst(rng: random.Random, space: ScheduleSpace, at_ms: int, place: int) -> DrawnFault:
    """Of any kind. A changed link may stay so while the next bursts come: all goes on, and worse."""
    kind = draw_kind(rng, space)
    lasting_ms = rng.choice(LASTING_MS if kind in _CHANGES else _LASTING_IN_BURST_MS)
    return DrawnFault(at_ms, kind, 0, lasting_ms).moved(rng, place)


def draw_kind(rng: random.Random, space: ScheduleSpace) -> str:
    """That of a fault in a burst."""
    kind = rng.choice(space.kinds)
    return rng.choice(space.kinds) if kind in _MILD else kind


def draw_number(rng: random.Random, brokers: int) -> int:
    """Mostly that of a broker, or of a link between brokers: these come first, and half of all nodes are clients."""
    return rng.randrange(brokers) if rng.random() < _AT_BROKERS else rng.randrange(10_000)


class FaultWriter:
    """Writes drawn faults as the entries of `faults`, for one deployment that has none but those of churn."""

    def __init__(self, space: ScheduleSpace, loaded: LoadedScenario, deployment: Deployment) -> None:
        self._nodes = [each.name for each in deployment.nodes if space.clients_fail or each.role == "broker"]
        self._links = [(plan.first, plan.second) for plan in deployment.links]
        self._brokers = [each.name for each in deployment.nodes if each.role == "broker"]
        rules = self._rules = deployment.rules
        self._homes = {spec.name: spec.broker for spec in deployment.nodes if spec.broker is not None}
        self._orders = {
            verb: called
            for verb, called in rules.orders.items()
            if rules.cells is None or not (CELL in called or verb in rules.for_good)
        }
        self._roaming = sorted(deployment.rules.roaming)
        self._disks = space.disks
        self._together: Mapping[str, Sequence[object]] = {
            "lose_host": sorted({*deployment.hosts.values()} - {0}),
            "kill_actor": [nodes[0] for nodes in deployment.actors],
        }
        self._publishing_at = {client: sorted(at) for client, at in deployment.rules.publishing_at.items()}
        self._taking_clients = sorted(deployment.rules.taking_clients)
        targets = deployment.fault_targets
        self._broker_set = targets.brokers
        specs = specs_of(deployment.links)
        self._churn = deployment.faults
        self._reader = FaultReader(targets, specs, loaded.scenario.links.spec(), 0, loaded.error_at)
        self._has_cells = "cells" in loaded.data["overlay"]
        self._has_links = bool(between_brokers(self._links, self._broker_set))

    def written(self, drawn: Sequence[DrawnFault]) -> list[dict[str, Any]]:
        """The entries of those that can be, beside the earlier ones; they come in order of time. A node or link takes
        part in one fault of a kind at a time: of two changes of a link the second would end the first."""
        timed: list[TimedEntry] = []
        busy_until_ms: dict[object, float] = {}
        for fault in drawn:
            at_ms, lasting_ms = fault.at_ms, fault.lasting_ms
            entries, about = self._entries(fault)
            if not entries or busy_until_ms.get(about, -1) >= at_ms:
                continue
            candidate = sorted([*timed, *entries], key=lambda each: each[0])
            try:
                self._reader.read([_written(*each) for each in candidate], self._churn)
            except InputError:
                continue
            timed = candidate
            busy_until_ms[about] = at_ms + lasting_ms if lasting_ms is not None else float("inf")
        return [_written(*each) for each in timed]

    def least(self, fault: DrawnFault) -> DrawnFault:
        """The same fault with the least number, by which it hits the same node or link where there are fewer of them:
        brokers, and links between them, come first. A number that is a seed stays."""
        if fault.kind in _SEEDED or (fault.kind == "partition" and not self._has_links):
            return fault if fault.near is None else fault._replace(near=fault.near % len(self._brokers))
        count = len(self._nodes if fault.kind in NODE_FAULTS else self._links)
        return fault._replace(number=fault.number % max(1, count))

    def _entries(self, fault: DrawnFault) -> tuple[list[TimedEntry], object]:
        """The entries by their times, and what they keep busy. The number says which node or link is hit."""
        at_ms, kind, number, lasting_ms, _ = fault
        near = None if fault.near is None else self._brokers[fault.near % len(self._brokers)]
        lasting = {} if lasting_ms is None else {"for": f"{lasting_ms} ms"}
        if kind in NODE_FAULTS:
            name = self._nodes[number % len(self._nodes)]
            work = {"work": "2 ms"} if kind == "slow" else {}
            return [(at_ms, {kind: name, **work, **lasting})], name
        if kind == "order":
            return self._order(at_ms, number, near), (kind, at_ms)
        if kind == "move":
            return self._move(at_ms, number, lasting_ms, near), (kind, at_ms)
        if kind in REPLACEMENTS:
            return replacing(self._rules, self._homes, at_ms, kind, number, lasting_ms), (kind, at_ms)
        if kind in COMMANDS:
            return commanding(self._rules, self._homes, at_ms, kind, number, lasting_ms, near), (kind, at_ms)
        if kind in OUTAGES:
            return outage(self._brokers, at_ms, kind, number, lasting_ms, near), (kind, at_ms)
        if kind in TOGETHER:
            there = self._together[kind]
            which = there[number % len(there)] if there else None
            return ([] if which is None else [(at_ms, {kind: which, **lasting})]), (kind, which)
        if kind in STAND_INS:
            return self._stand_in(at_ms, kind, number, lasting)
        if kind == "rewire":
            return self._rewire(at_ms, number, lasting_ms, near), kind
        if kind == "partition" and not self._has_links:
            return [(at_ms, {kind: [self._some(number)], **lasting})], kind
        if not self._links:  # brokers without links, that deliver themselves
            return [], kind
        link = list(self._links[number % len(self._links)])
        if kind == "partition":
            return [(at_ms, {kind: [self._side(link)], **lasting})], kind
        change = {"cut": link} if kind == "cut" else {"link": link, **_CHANGES[kind]}
        return [(at_ms, {**change, **lasting})], (kind == "cut", *link)

    def _order(self, at_ms: int, number: int, near: NodeName | None) -> list[TimedEntry]:
        """An order for a broker, about brokers that are one link further each: what orders are mostly about."""
        if not self._orders:
            return []
        rng = random.Random(number)
        verb = rng.choice(sorted(self._orders))
        names = [near or rng.choice(self._brokers)]
        for _ in self._orders[verb]:
            further = brokers_further(self._links, self._broker_set, names)
            names.append(rng.choice(further or self._brokers))
        return [(at_ms, {verb: names[0], **dict(zip(self._orders[verb], names[1:], strict=True))})]

    def _move(self, at_ms: int, number: int, lasting_ms: int | None, near: NodeName | None) -> list[TimedEntry]:
        """A client goes to another broker, and from there to one more (or back), if it does not stay for good. It comes
        from the broker `near`, or goes there."""
        if not self._roaming or len(self._taking_clients) < 2:
            return []
        rng = random.Random(number)
        comes = near is not None and rng.random() < 0.5
        there = [client for client in self._roaming if comes and self._homes[client] == near]
        client, to = rng.choice(there or self._roaming), rng.choice(self._taking_clients)
        if not there and near in self._taking_clients:
            to = near
        entries = [(at_ms, {"move_client": client, "to": to})]
        if lasting_ms is not None:
            entries.append((at_ms + lasting_ms, {"move_client": client, "to": rng.choice(self._taking_clients)}))
        return entries

    def _stand_in(
        self, at_ms: int, kind: str, number: int, lasting: Mapping[str, str]
    ) -> tuple[list[TimedEntry], object]:
        """A fault of a publishers' broker or of its backup; or a client goes from the one to the other."""
        if not self._publishing_at:
            return [], kind
        rng = random.Random(number)
        client, twins = rng.choice(sorted(self._publishing_at.items()))
        if kind == "stand_in":
            return [(at_ms, {"move_client": client, "to": rng.choice(twins)})], (kind, at_ms)
        if kind == "part_twins":
            return [(at_ms, {"partition": [[rng.choice(twins)]], **lasting})], "partition"
        name = rng.choice(twins)
        if kind == "lose_disk":
            name = rng.choice(self._disks)
            return [(at_ms, {"kill": name, "disk": "lost", **lasting})], name
        return [(at_ms, {kind.removesuffix("_twin"): name, **lasting})], name

    def _rewire(self, at_ms: int, number: int, lasting_ms: int | None, near: NodeName | None) -> list[TimedEntry]:
        """A link goes, and after a while another one joins what it had joined."""
        rng = random.Random(number)
        between = between_brokers(self._links, self._broker_set)
        if not between:
            return []
        link = rng.choice([each for each in between if near in each] or between)
        there = [name for name in self._side(link) if name in self._brokers]
        here = [name for name in self._brokers if name not in there]
        joined = [rng.choice(here or there), rng.choice(there)]
        return [(at_ms, {"disconnect": list(link)}), (at_ms + (lasting_ms or LASTING_MS[0]), {"connect": joined})]

    def _side(self, cut: Sequence[str]) -> list[str]:
        """The nodes of a tree on the second end's side of the link; where there are cells, that end and its clients."""
        if self._has_cells:
            ends = {cut[1]} | {name for link in self._links for name in link if cut[1] in link and name.startswith("c")}
            return sorted(ends)
        return list(side_of(self._links, cut[1], (cut[0], cut[1])))

    def _some(self, number: int) -> list[str]:
        """Some of the brokers, but not all: where they have no links, any may be together."""
        rng = random.Random(number)
        return sorted(rng.sample(self._brokers, rng.randrange(1, max(2, len(self._brokers)))))


def _written(at_ms: int, entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"at": f"{at_ms} ms", **entry}
