"""The overlay as a random fault plan changes it: links that are taken away and others that come, brokers that join, and
walks along the links that there are."""

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from murmur_pubsub.faults import Fault, FaultKind, FaultTargets, link_key
from murmur_pubsub.links import LinkSpec
from murmur_pubsub.machine import NodeName

LinkKey = tuple[NodeName, NodeName]


def side_of(links: Iterable[LinkKey], start: NodeName, cut: LinkKey) -> dict[NodeName, None]:
    """The nodes still reached from `start` when that link is cut (all, if it lies on a cycle)."""
    left = [key for key in links if link_key(*key) != link_key(*cut)]
    reached = {start: None}
    for name in (queue := [start]):
        for key in left:
            if name in key:
                other = key[1] if key[0] == name else key[0]
                if other not in reached:
                    reached[other] = None
                    queue.append(other)
    return reached


def between_brokers(links: Iterable[LinkKey], brokers: frozenset[NodeName]) -> list[LinkKey]:
    """Those of the links that are no client's."""
    return [key for key in links if brokers.issuperset(key)]


def brokers_further(links: Iterable[LinkKey], brokers: frozenset[NodeName], walk: Sequence[NodeName]) -> list[NodeName]:
    """The brokers that a walk may go on to: neighbours of its last one, in the order of the links, not on it yet."""
    keys = [key for key in between_brokers(links, brokers) if walk[-1] in key]
    return [name for key in keys for name in key if name not in walk]


class DrawnOverlay:
    """The links at the time up to which the plan is drawn. `links`: all, those of clients too, by `link_key`;
    `newcomers`: brokers that have not joined yet."""

    def __init__(
        self, targets: FaultTargets, links: Mapping[LinkKey, LinkSpec], new_link: LinkSpec, rng: random.Random
    ) -> None:
        self.links = dict(links)
        self._brokers = targets.brokers
        self._new_link = new_link
        self._rng = rng
        ends = Counter(name for key in self.between_brokers(self.links) for name in key)
        self._degree = max(ends.values(), default=0)
        self.newcomers = [name for name in targets.nodes if name in targets.start_down & targets.brokers - ends.keys()]
        self._apart: list[tuple[int, NodeName, NodeName, LinkSpec]] = []

    def side_of(self, start: NodeName, cut: LinkKey) -> dict[NodeName, None]:
        """See `side_of`."""
        return side_of(self.links, start, cut)

    def between_brokers(self, keys: Iterable[LinkKey]) -> list[LinkKey]:
        """See `between_brokers`."""
        return between_brokers(keys, self._brokers)

    def take_away(self, key: LinkKey, began_us: int, ended_us: int) -> list[Fault]:
        """The link is one no longer; at the end of that time `joined_until` joins what it joined."""
        self._apart.append((ended_us, *key, self.links.pop(key)))
        return [Fault(began_us, FaultKind.DISCONNECT, key)]

    def joined_until(self, time_us: int, busy_at: Callable[[int], set[NodeName]]) -> list[Fault]:
        """The new links that come up to that time, each instead of one that was taken away. `busy_at`: the nodes that
        are in a fault then."""
        steps = []
        for due in sorted(each for each in self._apart if each[0] <= time_us):
            self._apart.remove(due)
            ended_us, first, second, spec = due
            key = self._instead(first, second, busy_at(ended_us))
            self.links[link_key(*key)] = spec
            steps.append(Fault(ended_us, FaultKind.CONNECT, key, link=spec))
        return steps

    def _instead(self, first: NodeName, second: NodeName, busy: set[NodeName]) -> LinkKey:
        """A link that joins the parts of the two brokers, whose ends have fewer links than the overlay's degree and are
        in no other fault; the one that was there if there is none."""
        ends = Counter(name for key in self.between_brokers(self.links) for name in key)
        parts = [
            [
                name
                for name in self.side_of(end, (first, second))
                if name in self._brokers and ends[name] < self._degree and (name == end or name not in busy)
            ]
            for end in (first, second)
        ]
        possible = [
            (here, there)
            for here, there in itertools.product(*parts)
            if here != there and link_key(here, there) not in self.links
        ]
        return self._rng.choice(possible) if possible else (first, second)

    def join(self, at_us: int, busy: set[NodeName]) -> list[Fault] | None:
        """A newcomer starts, with a link to a broker that is in no fault; None if there is none of the one or other."""
        there = [name for name in self._brokers_there() if name not in busy]
        if not self.newcomers or not there:
            return None
        name = self.newcomers.pop(self._rng.randrange(len(self.newcomers)))
        key = (name, self._rng.choice(there))
        self.links[link_key(*key)] = self._new_link
        return [Fault(at_us, FaultKind.CONNECT, key, link=self._new_link), Fault(at_us, FaultKind.RESTART, (name,))]

    def order(self, at_us: int, verb: str, called: Sequence[str], busy: set[NodeName]) -> list[Fault] | None:
        """An order to a broker that is in no fault, about brokers along a walk that begins there; None if no walk is so
        long."""
        walk = [name for name in self._brokers_there() if name not in busy]
        if not walk:
            return None
        walk = [self._rng.choice(walk)]
        while len(walk) <= len(called):
            further = brokers_further(self.links, self._brokers, walk)
            if not further:
                return None
            walk.append(self._rng.choice(further))
        arguments = tuple(zip(called, walk[1:], strict=True))
        return [Fault(at_us, FaultKind.ORDER, (walk[0],), verb=verb, arguments=arguments)]

    def _brokers_there(self) -> list[NodeName]:
        return [name for name in sorted(self._brokers) if name not in self.newcomers]
