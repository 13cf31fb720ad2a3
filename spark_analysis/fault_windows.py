"""When faults were in force, and when what they had disturbed was mended.

A fault is in force from its order until everything is right again: until the first SETTLED row that covers the
effect of its repair (for ever, if it was never undone). How long mending may take has a limit, which a protocol cannot
lengthen by saying that it has not settled.

Plain Python over small tables, so that tests on the virtual runtime use the same rules as Spark does.
"""

import bisect
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from murmur_pubsub.dead_nodes import Dead
from murmur_pubsub.faults import (
    COMMANDS,
    DEATHS,
    RECONFIGURES,
    REPAIRS,
    RETURNS,
    UNDONE_BY,
    FaultKind,
    link_key,
    takes_back,
)
from murmur_pubsub.links import HARD_LIMIT_FACTOR, LinkSpec
from murmur_pubsub.promise import Recovery

NEVER_US = 1 << 62
_NODE_FAULTS = (*DEATHS, FaultKind.STALL, FaultKind.SLOW)
_LINK_FAULTS = (FaultKind.CUT, FaultKind.CHANGE_LINK, *RECONFIGURES)
_UNTIL_BACK = (*DEATHS, FaultKind.ORDER)
"""Kinds of faults that are over for each node once that is back: it had died, or an order had given it up."""


@dataclass(frozen=True, slots=True)
class FaultStep:
    """A step of the plan, or what was done by hand or happened `by_itself`, and when: ordered, and seen to be in effect
    (None: not, or not yet)."""

    number: int
    kind: FaultKind
    text: str
    nodes: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...] = ()
    link: LinkSpec | None = None
    work_us: int = 0
    ordered_us: int | None = None
    in_effect_us: int | None = None
    given_up: tuple[str, ...] = ()
    issuer: int = -1
    disk_lost: bool = False
    for_good: bool = False
    by_itself: bool = False

    @property
    def turn(self) -> tuple[int, int]:
        """When it was its turn among the others, and its number. A death that nobody ordered may have been any time
        since the last answer, but what had been ordered by when it was seen had come before it."""
        seen = self.by_itself and self.kind in DEATHS
        time_us = self.in_effect_us if seen else self.ordered_us
        return NEVER_US if time_us is None else time_us, self.number


@dataclass(frozen=True, slots=True)
class Window:
    """A fault in force, in emulated microseconds (`NEVER_US`: not).

    from_us: it was ordered. in_effect_us: it took effect. absorbed_us: the others had settled without what it broke.
    undone_us: its repair was ordered. repaired_us: the repair took effect. until_us: all was right again. settled:
    did that come before the limit on mending?
    """

    step: FaultStep
    from_us: int
    in_effect_us: int
    undone_us: int
    until_us: int
    nodes: frozenset[str] = frozenset()
    links: frozenset[frozenset[str]] = frozenset()
    absorbed_us: int = NEVER_US
    repaired_us: int = NEVER_US
    settled: bool = True

    def in_force(self, from_us: int, until_us: int) -> bool:
        """Was it in force at any time of that stretch, or not mended yet?"""
        return self.from_us <= until_us and from_us <= self.until_us

    def disturbs(self, from_us: int, until_us: int) -> bool:
        """Were tables that it disturbed not mended yet at any time of that stretch?"""
        return any(begin <= until_us and from_us <= end for begin, end in self.disturbances)

    def is_about(self, name: str) -> bool:
        """Is it about this node and its links alone?"""
        things = [*({each} for each in self.nodes), *self.links]
        return bool(things) and all(name in thing for thing in things)

    @property
    def disturbances(self) -> tuple[tuple[int, int], ...]:
        """From when to when tables may be wrong: after the fault, and after its repair."""
        return (self.from_us, self.absorbed_us), (self.undone_us, self.until_us)

    def separates(self, first: str, second: str) -> bool:
        """Is it a partition with the two nodes on different sides?"""
        return any(first in group and second not in group for group in self.step.groups)

    @property
    def shown_until_us(self) -> int:
        """Until when the journal must show it: a new link has to come up, anything else lasts until it is undone."""
        return self.until_us if self.step.kind is FaultKind.CONNECT else self.undone_us

    @property
    def kills(self) -> bool:
        """Does it end processes?"""
        return self.step.kind in DEATHS

    @property
    def severs(self) -> bool:
        """Does it take brokers or links out of the overlay?"""
        return self.step.for_good or self.step.kind in (*DEATHS, FaultKind.STALL, FaultKind.CUT, FaultKind.PARTITION)

    @property
    def destroys(self) -> bool:
        """Can it cost messages?"""
        link = self.step.link
        if self.step.kind in (FaultKind.CONNECT, FaultKind.ORDER):
            return False
        return self.step.kind is not FaultKind.CHANGE_LINK or (
            link is not None and (link.loss > 0 or link.on_overflow == "drop")
        )

    @property
    def keeps_events_from(self) -> bool:
        """Can it keep an event from coming, by the messages that it costs, or since nobody sends one on? A new link
        costs none, and what is wanted behind it is not known at once."""
        return self.destroys or self.step.kind is FaultKind.CONNECT

    @property
    def diverts(self) -> bool:
        """Can events go another way while it is in force, or while others pass what it holds up?"""
        return self.severs or self.holds_up or self.step.kind in RECONFIGURES

    @property
    def holds_up(self) -> bool:
        """Can it keep messages from going on?"""
        return self.step.kind in (FaultKind.STALL, FaultKind.SLOW, FaultKind.CHANGE_LINK)

    @property
    def carried_us(self) -> int:
        """When all that it had held up has passed, at the latest. What waits for a narrow link when that is mended
        still goes at the narrow link's rate; how large those messages are nobody says."""
        link = self.step.link
        if link is None or self.undone_us == NEVER_US:
            return self.until_us
        if link.messages_per_s is None:
            return self.until_us if link.bytes_per_s is None else NEVER_US
        waiting = HARD_LIMIT_FACTOR * link.queue_messages
        return max(self.until_us, self.undone_us + waiting * 1_000_000 // link.messages_per_s)

    @property
    def duplicates(self) -> bool:
        """Can it make a message arrive twice?"""
        return self.step.link is not None and self.step.link.duplication > 0

    @property
    def reorders(self) -> bool:
        """Can it make a message overtake another?"""
        return self.step.link is not None and self.step.link.reordering > 0


def fault_windows(
    steps: Sequence[FaultStep],
    settled: Iterable[tuple[int, int]],
    links: Sequence[tuple[str, str]],
    limit_us: int = NEVER_US,
    has_links: bool = True,
    recovers: Recovery | None = None,
    brokers: frozenset[str] = frozenset(),
) -> list[Window]:
    """The windows of all faults that were ordered; `steps`: in the order in which they happened. Of a death after which
    nodes come back by different steps there is one for each of these.

    `settled`: (time_us, covers_us) of the SETTLED rows. `links`: those that the run began with. `limit_us`: how long
    after a fault or its repair tables may be disturbed at most. `has_links`: brokers hear of a failure over their
    links, before anything settles; without links they find out in their own time, so that the whole of `limit_us` is
    theirs, and a node that comes for the first time disturbs them too. With links a client that comes does, which
    publishes before its link is up. `recovers`: what these `brokers` need at most, if that is less.
    """
    settlings = sorted(settled)
    covered = list(itertools.accumulate((covers_us for _, covers_us in settlings), max))

    anew = [] if recovers is None else _founded_anew(steps, brokers, recovers.repaired_us)

    def limited(effect_us: int) -> int:
        if recovers is None:
            return effect_us + limit_us
        until_us = effect_us + recovers.repaired_us
        if any(begin_us <= until_us and effect_us <= end_us for begin_us, end_us in anew):
            until_us += recovers.founded_us
        return min(until_us, effect_us + limit_us)

    def mended(effect_us: int) -> tuple[int, bool]:
        """When all was right after a change of that time, and whether it had settled by then."""
        place = bisect.bisect_right(covered, effect_us)
        settled_us = settlings[place][0] if place < len(settlings) else NEVER_US
        at_most_us = min(NEVER_US, limited(effect_us))
        return min(settled_us, at_most_us) if has_links else at_most_us, settled_us <= at_most_us

    repairs = _Ends(steps)
    windows = []
    dead = Dead()
    there = {link_key(*ends): ends for ends in links}
    for place, step in enumerate(steps):
        if step.kind is FaultKind.CONNECT:
            there[link_key(*step.nodes)] = (step.nodes[0], step.nodes[1])
        elif step.kind is FaultKind.DISCONNECT:
            there.pop(link_key(*step.nodes), None)
        first = step.kind is FaultKind.RESTART and dead.names.isdisjoint(step.nodes)
        client = first and has_links and not brokers & set(step.nodes)
        comes = client or (first and not has_links)
        hit = dead.hit_by(step)
        if step.ordered_us is None or (step.kind in REPAIRS and not comes) or _breaks_nothing(step):
            continue
        comes = comes or step.kind is FaultKind.CONNECT
        nodes = hit if client or step.kind in _NODE_FAULTS else frozenset(step.given_up)
        in_effect_us = NEVER_US if step.in_effect_us is None else step.in_effect_us
        absorbed_us, _ = mended(in_effect_us)
        broken = _links_of(step, there.values(), has_links)
        for repair, names in [(step, nodes)] if comes else repairs.of(place, nodes):
            undone_us = NEVER_US if repair is None or repair.ordered_us is None else repair.ordered_us
            repaired_us = NEVER_US if repair is None or repair.in_effect_us is None else repair.in_effect_us
            until_us, in_time = (NEVER_US, True) if repaired_us == NEVER_US else mended(repaired_us)
            if step.kind is FaultKind.DISCONNECT:  # the overlay is another one, and not broken
                until_us, repaired_us = absorbed_us, NEVER_US
            elif step.kind is FaultKind.ORDER:
                repaired_us = NEVER_US
            windows.append(
                Window(
                    step, step.ordered_us, in_effect_us, undone_us, until_us, names, broken, absorbed_us, repaired_us,
                    in_time,
                )
            )  # fmt: skip
    return windows


def _founded_anew(steps: Iterable[FaultStep], brokers: frozenset[str], joining_us: int) -> list[tuple[int, int]]:
    """From when to when no broker was part of the overlay, or of a side of it while it was divided: then one of those
    that are back founds it. One that has just come is not part of it for as long as `joining_us`."""
    dead = Dead()
    away_until: dict[str, int] = {}
    sides: Sequence[frozenset[str]] = (brokers,)
    found = []
    happened = [
        (step, step.ordered_us, step.in_effect_us)
        for step in steps
        if step.ordered_us is not None and step.in_effect_us is not None
    ]
    ends_us = [*(ordered_us for _, ordered_us, _ in happened[1:]), NEVER_US]
    for (step, ordered_us, in_effect_us), end_us in zip(happened, ends_us, strict=False):
        for name in brokers & dead.hit_by(step):
            if step.kind in DEATHS:
                away_until[name] = NEVER_US
            elif step.kind in RETURNS:
                away_until[name] = in_effect_us + joining_us
        if step.kind is FaultKind.PARTITION:
            sides = [brokers.intersection(group) for group in step.groups]
        elif step.kind is FaultKind.UNITE:
            sides = (brokers,)
        for side in filter(None, sides):
            if all(away_until.get(name, 0) >= ordered_us for name in side):  # of thousands the first few tell
                found.append((ordered_us, min(end_us, *(away_until[name] for name in side))))
    return found


def _breaks_nothing(step: FaultStep) -> bool:
    if step.kind is FaultKind.ORDER:
        return not step.given_up or step.in_effect_us is None
    if step.kind in COMMANDS:
        return True
    return takes_back(step.kind, step.link, step.work_us)


class _Ends:
    """By which step each fault was over, and for which of its nodes."""

    def __init__(self, steps: Sequence[FaultStep]) -> None:
        self._steps = steps
        self._about: dict[str, list[int]] = {}
        self._back: dict[str, list[int]] = {}
        self._started: dict[int, frozenset[str]] = {}
        """Whom the return at that place has started. A host may have nodes that run already, on another one."""
        dead = Dead()
        up_us: dict[str, int] = {}
        for place, step in enumerate(steps):
            for name in step.nodes or ("",):
                self._about.setdefault(name, []).append(place)
            hit = dead.hit_by(step)
            if step.kind not in RETURNS:
                continue
            for name in hit:
                self._back.setdefault(name, []).append(place)
            # A start that was ordered before may have waited for the host, and its nodes have come with that.
            waited = {name for name in step.nodes if up_us.get(name, 0) > step.turn[0]}
            self._started[place] = hit | waited
            up_us |= dict.fromkeys(hit, NEVER_US if step.in_effect_us is None else step.in_effect_us)

    def of(self, place: int, nodes: frozenset[str]) -> list[tuple[FaultStep | None, frozenset[str]]]:
        """The steps that ended the fault at that place, each with those of its `nodes` for which it did."""
        step = self._steps[place]
        if step.kind in _UNTIL_BACK:
            by: dict[int | None, list[str]] = {}
            for name in sorted(nodes):
                back = None if step.for_good else _first_after(place, self._back.get(name, ()))
                by.setdefault(back, []).append(name)
            found = [(None if back is None else self._steps[back], frozenset(names)) for back, names in by.items()]
            return found or [(step, nodes)]  # what nobody is hit by is over at once
        later = (each for name in step.nodes or ("",) for each in self._about.get(name, ()) if each > place)
        last = min((each for each in later if self._undoes(each, step)), default=None)
        return [(None if last is None else self._steps[last], nodes)]

    def _undoes(self, place: int, step: FaultStep) -> bool:
        """Does the step at that place, which has a node of the other, end that?"""
        later = self._steps[place]
        if later.kind not in UNDONE_BY.get(step.kind, ()):
            return False
        if step.kind in _LINK_FAULTS:
            return set(later.nodes) == set(step.nodes)
        if step.kind is FaultKind.PARTITION:
            return True
        return not self._started.get(place, frozenset(later.nodes)).isdisjoint(step.nodes)


def _first_after(place: int, places: Sequence[int]) -> int | None:
    following = bisect.bisect_right(places, place)
    return places[following] if following < len(places) else None


def _links_of(step: FaultStep, links: Iterable[tuple[str, str]], has_links: bool) -> frozenset[frozenset[str]]:
    """The links that it breaks; without links between brokers any two nodes are as if they had one."""
    if step.kind in _LINK_FAULTS:
        return frozenset({frozenset(step.nodes)})
    group = {name: number for number, members in enumerate(step.groups) for name in members}
    if not has_links:
        links = itertools.combinations(group, 2)
    return frozenset(frozenset(ends) for ends in links if step.groups and group[ends[0]] != group[ends[1]])
