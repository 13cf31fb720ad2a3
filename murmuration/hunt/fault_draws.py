"""The faults of a schedule: some at any time, some just after another one has begun or ended, some for good.

Faults in the middle of what follows a fault are where protocols break, and chance seldom puts them there; two in five
are drawn to begin within a tenth of a second of another fault's begin or end.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from murmur_pubsub.deployment import Deployment
from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import FaultTargets, link_key
from murmuration.deployment.fault_entries import FaultReader
from murmuration.hunt.space import NODE_FAULTS, ScheduleSpace
from murmuration.scenario.load import LoadedScenario

_CHANGES: Mapping[str, Mapping[str, Any]] = {
    "loss": {"loss": 0.5},
    "duplication": {"duplication": 0.5},
    "reordering": {"reordering": 0.5},
    "delay": {"delay": "30 ms"},
    "bandwidth": {"messages_per_s": 50},
    "storm": {"loss": 0.3, "duplication": 0.3, "reordering": 0.3},
}
"""What each kind does to a link."""
_LATEST_MS = 3_000
_LASTING_MS = (50, 200, 600, 1_200, 3_000)
_SOON_MS = (0, 1, 5, 20, 100)
_SOON = 0.4
_FOR_GOOD = 0.15
_NOT_FOR_GOOD = ("bandwidth",)
"""A link that never again carries what is published is no failure that a protocol could recover from."""

_Drawn = tuple[int, str, int, int | None]
"""(when, what kind, which node or link, for how long: None for good), in milliseconds."""
_Timed = tuple[int, dict[str, Any]]
"""(when in milliseconds, an entry of `faults` without its time)."""


def draw_entries(
    rng: random.Random, space: ScheduleSpace, loaded: LoadedScenario, deployment: Deployment
) -> list[dict[str, Any]]:
    """The entries of `faults`, in order of time, without those that could not take effect beside the earlier ones."""
    kinds = [kind for kind in space.kinds if rng.random() < 0.5] or list(space.kinds)
    drawn: list[_Drawn] = []
    moments = [0]
    for _ in range(rng.randint(0, space.faults_max)):
        soon = len(moments) > 1 and rng.random() < _SOON
        at_ms = rng.choice(moments) + rng.choice(_SOON_MS) if soon else rng.randrange(0, _LATEST_MS, 10)
        kind = rng.choice(kinds)
        for_good = not space.heals_always and kind not in _NOT_FOR_GOOD and rng.random() < _FOR_GOOD
        lasting_ms = None if for_good else rng.choice(_LASTING_MS)
        moments += [at_ms] if lasting_ms is None else [at_ms, at_ms + lasting_ms]
        drawn.append((at_ms, kind, rng.randrange(10_000), lasting_ms))
    return _Possible(space, loaded, deployment).of(sorted(drawn, key=lambda each: each[0]))


class _Possible:
    def __init__(self, space: ScheduleSpace, loaded: LoadedScenario, deployment: Deployment) -> None:
        self._nodes = [each.name for each in deployment.nodes if space.clients_fail or each.role == "broker"]
        self._links = [(plan.first, plan.second) for plan in deployment.links]
        self._brokers = [each.name for each in deployment.nodes if each.role == "broker"]
        self._orders = deployment.rules.orders
        every = [each.name for each in deployment.nodes]
        brokers = frozenset(self._brokers)
        targets = FaultTargets(every, self._links, deployment.hosts, brokers=brokers, rules=deployment.rules)
        specs = {link_key(plan.first, plan.second): plan.spec for plan in deployment.links}
        self._reader = FaultReader(targets, specs, loaded.scenario.links.spec(), 0, loaded.error_at)
        self._has_cells = "cells" in loaded.data["overlay"]

    def of(self, drawn: Sequence[_Drawn]) -> list[dict[str, Any]]:
        """Those that can be, one after the other. A node or link takes part in one fault of a kind at a time: of two
        changes of a link the second would end the first."""
        timed: list[_Timed] = []
        busy_until_ms: dict[object, float] = {}
        for at_ms, kind, number, lasting_ms in drawn:
            entries, about = self._entries(at_ms, kind, number, lasting_ms)
            if not entries or busy_until_ms.get(about, -1) >= at_ms:
                continue
            candidate = sorted([*timed, *entries], key=lambda each: each[0])
            try:
                self._reader.read([_written(*each) for each in candidate])
            except InputError:
                continue
            timed = candidate
            busy_until_ms[about] = at_ms + lasting_ms if lasting_ms is not None else float("inf")
        return [_written(*each) for each in timed]

    def _entries(self, at_ms: int, kind: str, number: int, lasting_ms: int | None) -> tuple[list[_Timed], object]:
        """The entries by their times, and what they keep busy. The number says which node or link is hit."""
        lasting = {} if lasting_ms is None else {"for": f"{lasting_ms} ms"}
        if kind in NODE_FAULTS:
            name = self._nodes[number % len(self._nodes)]
            work = {"work": "2 ms"} if kind == "slow" else {}
            return [(at_ms, {kind: name, **work, **lasting})], name
        if kind == "order":
            return self._order(at_ms, number), (kind, at_ms)
        link = list(self._links[number % len(self._links)])
        if kind == "rewire":
            return self._rewire(at_ms, number, lasting_ms), kind
        if kind == "partition":
            return [(at_ms, {kind: [self._side(link)], **lasting})], kind
        change = {"cut": link} if kind == "cut" else {"link": link, **_CHANGES[kind]}
        return [(at_ms, {**change, **lasting})], (kind == "cut", *link)

    def _order(self, at_ms: int, number: int) -> list[_Timed]:
        """An order for a broker, about brokers that are one link further each: what orders are mostly about."""
        if not self._orders:
            return []
        rng = random.Random(number)
        verb = rng.choice(sorted(self._orders))
        names = [rng.choice(self._brokers)]
        for _ in self._orders[verb]:
            near = [name for name in self._neighbours(names[-1]) if name not in names]
            names.append(rng.choice(near or self._brokers))
        return [(at_ms, {verb: names[0], **dict(zip(self._orders[verb], names[1:], strict=True))})]

    def _rewire(self, at_ms: int, number: int, lasting_ms: int | None) -> list[_Timed]:
        """A link goes, and after a while another one joins what it had joined."""
        rng = random.Random(number)
        between = [link for link in self._links if not {*link} - {*self._brokers}]
        if not between:
            return []
        link = rng.choice(between)
        there = [name for name in self._side(link) if name in self._brokers]
        here = [name for name in self._brokers if name not in there]
        joined = [rng.choice(here or there), rng.choice(there)]
        return [(at_ms, {"disconnect": list(link)}), (at_ms + (lasting_ms or _LASTING_MS[0]), {"connect": joined})]

    def _neighbours(self, name: str) -> list[str]:
        peers = [other for link in self._links if name in link for other in link if other != name]
        return [peer for peer in peers if peer in self._brokers]

    def _side(self, cut: Sequence[str]) -> list[str]:
        """The nodes of a tree on the second end's side of the link; where there are cells, that end and its clients."""
        if self._has_cells:
            ends = {cut[1]} | {name for link in self._links for name in link if cut[1] in link and name.startswith("c")}
            return sorted(ends)
        reached = [cut[1]]
        for name in reached:
            for first, second in self._links:
                if {first, second} != set(cut):
                    reached += [
                        other
                        for here, other in ((first, second), (second, first))
                        if here == name and other not in reached
                    ]
        return reached


def _written(at_ms: int, entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"at": f"{at_ms} ms", **entry}
