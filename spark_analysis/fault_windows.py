"""When faults were in force, and which findings they explain.

A fault is in force from its order until everything is right again: until the first SETTLED row that covers the
effect of its repair (for ever, if it was never undone). On an overlay without cycles an event has one way from its
publisher to a subscriber; a missing delivery is *explained* if a fault that can destroy messages was in force on
that way while the event could be on it: between its publication and the longest delivery delay of the run's quiet
times. Where links form cycles, or there are none, any fault in force explains it, and that is said.

Plain Python over small tables, so that tests on the virtual runtime use the same rules as Spark does.
"""

import bisect
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pubsub.faults import REPAIRS, FaultKind

NEVER_US = 1 << 62
_NODE_FAULTS = (FaultKind.KILL, FaultKind.STALL, FaultKind.SLOW, FaultKind.LOSE_MACHINE)
_REPAIR_OF = {
    FaultKind.KILL: (FaultKind.RESTART, FaultKind.RETURN_MACHINE),
    FaultKind.STALL: (FaultKind.RESUME, FaultKind.KILL, FaultKind.LOSE_MACHINE),
    FaultKind.SLOW: (FaultKind.SLOW, FaultKind.KILL, FaultKind.LOSE_MACHINE),
    FaultKind.CUT: (FaultKind.HEAL,),
    FaultKind.CHANGE_LINK: (FaultKind.CHANGE_LINK,),
    FaultKind.PARTITION: (FaultKind.UNITE,),
    FaultKind.LOSE_MACHINE: (FaultKind.RETURN_MACHINE,),
}


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the plan and when it happened: ordered, and seen to be in effect (None: not, or not yet)."""

    number: int
    kind: FaultKind
    text: str
    nodes: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...] = ()
    link: Mapping[str, Any] | None = None
    work_us: int = 0
    ordered_us: int | None = None
    in_effect_us: int | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """A fault in force. `undone_us` is when its repair was ordered, `until_us` when all was right again."""

    step: Step
    from_us: int
    in_effect_us: int
    undone_us: int
    until_us: int
    nodes: frozenset[str] = frozenset()
    links: frozenset[frozenset[str]] = frozenset()

    @property
    def destroys(self) -> bool:
        """Can it cost messages?"""
        return self.step.kind is not FaultKind.CHANGE_LINK or bool(
            self._link("loss") or (self._link("on_overflow") == "drop")
        )

    @property
    def holds_up(self) -> bool:
        """Can it keep messages from going on?"""
        return self.step.kind in (FaultKind.STALL, FaultKind.SLOW, FaultKind.CHANGE_LINK)

    @property
    def duplicates(self) -> bool:
        """Can it make a message arrive twice?"""
        return bool(self._link("duplication"))

    @property
    def reorders(self) -> bool:
        """Can it make a message overtake another?"""
        return bool(self._link("reordering"))

    def _link(self, key: str) -> Any:
        return None if self.step.link is None else self.step.link[key]


def fault_windows(
    steps: Sequence[Step], settled: Iterable[tuple[int, int]], links: Sequence[tuple[str, str]]
) -> list[Window]:
    """The windows of all faults that were ordered; `settled`: (time_us, covers_us) of the SETTLED rows."""
    settlings = sorted(settled)
    covered = list(itertools.accumulate((covers_us for _, covers_us in settlings), max))
    later_about: dict[str, list[Step]] = {}
    for step in steps:
        for name in step.nodes or ("",):
            later_about.setdefault(name, []).append(step)
    windows = []
    for step in steps:
        if step.ordered_us is None or step.kind in REPAIRS or _changes_nothing(step):
            continue
        candidates = (later for name in step.nodes or ("",) for later in later_about[name])
        repairs = (later for later in candidates if later.number > step.number and _undoes(later, step))
        repair = min(repairs, key=lambda later: later.number, default=None)
        undone_us = NEVER_US if repair is None or repair.ordered_us is None else repair.ordered_us
        effect_us = NEVER_US if repair is None or repair.in_effect_us is None else repair.in_effect_us
        settling = bisect.bisect_right(covered, effect_us)
        until_us = settlings[settling][0] if settling < len(settlings) else NEVER_US
        in_effect_us = NEVER_US if step.in_effect_us is None else step.in_effect_us
        nodes = frozenset(step.nodes) if step.kind in _NODE_FAULTS else frozenset[str]()
        windows.append(Window(step, step.ordered_us, in_effect_us, undone_us, until_us, nodes, _links_of(step, links)))
    return windows


def _changes_nothing(step: Step) -> bool:
    return (step.kind is FaultKind.CHANGE_LINK and step.link is None) or (
        step.kind is FaultKind.SLOW and not step.work_us
    )


def _undoes(later: Step, step: Step) -> bool:
    if later.kind not in _REPAIR_OF[step.kind]:
        return False
    if step.kind in (FaultKind.CUT, FaultKind.CHANGE_LINK):
        return set(later.nodes) == set(step.nodes)
    return step.kind is FaultKind.PARTITION or bool(set(later.nodes) & set(step.nodes))


def _links_of(step: Step, links: Sequence[tuple[str, str]]) -> frozenset[frozenset[str]]:
    if step.kind in (FaultKind.CUT, FaultKind.CHANGE_LINK):
        return frozenset({frozenset(step.nodes)})
    group = {name: number for number, members in enumerate(step.groups) for name in members}
    return frozenset(frozenset(ends) for ends in links if step.groups and group[ends[0]] != group[ends[1]])


@dataclass(slots=True)
class Explainer:
    """Explains findings by faults. `exposure_us`: how long an event can be on its way in quiet times, `held_up_us`
    after something held it up; `homes`: where each client is attached (what a client gets from itself has been to its
    broker, too)."""

    windows: Sequence[Window]
    links: Sequence[tuple[str, str]]
    exposure_us: int
    held_up_us: int
    homes: Mapping[str, str] = field(default_factory=dict)
    looks_at_order: ClassVar[bool] = False
    """Does `explain` need to be told what overtook an event?"""
    _neighbours: dict[str, list[str]] = field(default_factory=dict)
    _about: dict[str | frozenset[str], list[Window]] = field(default_factory=dict)
    _parents: dict[str, dict[str, str | None]] = field(default_factory=dict)
    _ways: dict[tuple[str, str], list[str | frozenset[str]]] = field(default_factory=dict)
    _one_way: bool = False

    def __post_init__(self) -> None:
        for window in self.windows:  # under churn there are thousands, and few about any one node
            things: list[str | frozenset[str]] = [*window.nodes, *window.links]
            for thing in things:
                self._about.setdefault(thing, []).append(window)
        for first, second in self.links:
            self._neighbours.setdefault(first, []).append(second)
            self._neighbours.setdefault(second, []).append(first)
        # A connected graph with one link less than it has nodes is a tree.
        connected = not self._neighbours or len(self._tree(next(iter(self._neighbours)))) == len(self._neighbours)
        self._one_way = bool(self.links) and connected and len(self.links) == len(self._neighbours) - 1

    def explain(
        self,
        finding: str,
        publisher: str | None,
        subscriber: str,
        published_us: int,
        overtaken_us: int | None = None,
    ) -> str | None:
        """The fault that explains the finding ("missing", "duplicate", "out_of_order"), or None. When a later event
        overtook it says nothing here: best effort keeps no order across a loss."""
        if self._one_way and publisher is not None:
            things = self._way(publisher, subscriber)
            found = [window for thing in things for window in self._about.get(thing, ())]
            there = sorted(found, key=lambda window: window.step.number)
            where = ""
        else:
            there, where = list(self.windows), " (somewhere)"
        until_us = published_us + self.exposure_us
        for window in there:  # in order of time
            over_us = window.until_us + self.held_up_us  # what it held up has gone on by then
            if window.holds_up and window.from_us <= until_us and published_us <= over_us:
                until_us = max(until_us, over_us)
        for window in there:
            able = {"missing": window.destroys, "duplicate": window.duplicates, "out_of_order": window.reorders}
            if able.get(finding, False) and window.from_us <= until_us and published_us <= window.until_us:
                return window.step.text + where
        return None

    def _way(self, first: str, last: str) -> list[str | frozenset[str]]:
        """The nodes and links that an event passes."""
        if (first, last) not in self._ways:
            parents = self._tree(first)
            nodes = [last]
            while (parent := parents.get(nodes[-1])) is not None:
                nodes.append(parent)
            if first == last and first in self.homes:
                nodes.append(self.homes[first])
            self._ways[first, last] = [*nodes, *(frozenset(ends) for ends in itertools.pairwise(nodes))]
        return self._ways[first, last]

    def _tree(self, root: str) -> dict[str, str | None]:
        if root not in self._parents:
            parents: dict[str, str | None] = {root: None}
            for name in (queue := [root]):
                for peer in self._neighbours.get(name, ()):
                    if peer not in parents:
                        parents[peer] = name
                        queue.append(peer)
            self._parents[root] = parents
        return self._parents[root]
