"""Multipath forwarding that delegates to brokers which want the publication themselves. This is murmur's own.

Under S2 (`routing.multipath.strategies`) a publication often goes to a broker that does not want it: one that has a
link and lies on the way to subscribers behind it. Here such a relay is spared where a broker that gets the publication
in any case can do its work. Only publications already due at a *delegate* give it more to do, and no link is added.

1. *Behind the relay.* Of the linked brokers behind it that S2 would have had it serve, one that wants the publication
   gets it instead, and serves all that lies behind the relay, as the relay would have done.
2. *Beside the relay.* If there is none: the way to the relay leads past others that get the publication from here too.
   Of those which are nearer to the relay than this broker, the nearest gets it for the whole branch of the tree in
   which both lie. The branch is the smallest that has such a broker.

In Publiy the receiver answers for all that lies behind it as seen from the sender. A delegate answers for more, so its
copy says where that ends: the header names the *borders*, brokers beyond which another copy serves. What a broker
answers for is all that can be reached without passing a border. It shares this out among its own copies. A copy of a
part with a border in it names that border too, so all parts together are what the broker answered for, and no two
overlap. Thus each broker gets the publication once, as in Publiy. No broker is made a delegate for a part with a
border that lies outside its map.

In the zone of a Δ-move (`routing.multipath.moves`) no broker delegates: it passes publications on as S2 does, within
the borders that they came with.
"""

import dataclasses
import functools
import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from murmur_pubsub.errors import InputError
from murmur_pubsub.event import Event
from murmur_pubsub.machine import NodeContext, NodeName, Record
from murmur_pubsub.promise import Survival
from routing.multipath.overlay_maps import MasterOverlayMap, WorkingOverlayMap
from routing.multipath.parameters import MultipathParameters
from routing.multipath.router import MULTIPATH, NO_WAY, MultipathRouter, survives
from routing.multipath.strategies import compute_forwarding_s2
from routing.multipath.subscription_tables import WorkingSubscriptionTable
from routing.multipath.view import NoWay, View, WorkingView
from routing.protocol import OverlayTraits
from routing.router import Hop


class Copy(NamedTuple):
    """A copy for all that lies behind `root` as seen from here, `root` included. `receiver`: the number in the working
    map of the broker that it is sent to."""

    root: NodeName
    receiver: int


@functools.lru_cache(maxsize=1 << 16)
def border_number(broker: NodeName) -> int:
    """What the broker is called in a header: below 0, where the numbers of moves are above, and within 57 bits."""
    return -1 - int.from_bytes(hashlib.blake2b(broker.encode(), digest_size=7).digest(), "big")


def distance(mom: MasterOverlayMap, first: NodeName, second: NodeName) -> int:
    """Hops between two brokers of the map."""
    ways = mom.path(first), mom.path(second)
    shared = sum(1 for one, other in zip(*ways, strict=False) if one == other)
    return len(ways[0]) + len(ways[1]) - 2 * shared


class Delegation:
    """Who gets a copy for what, over one working map. `bits`: the number of each origin (`MasterSubscriptionTable`)."""

    def __init__(self, wom: WorkingOverlayMap, wst: WorkingSubscriptionTable, bits: dict[NodeName, int]) -> None:
        self.wom = wom
        self._mom = wom.mom
        self._wst = wst
        self._wants = [bits.get(broker, 0) for broker in wom.brokers]
        """Of each linked broker, its bit in a set of origins."""
        self._paths = [wom.mom.path(broker) for broker in wom.brokers]

    def copies(self, origins: int, borders: Sequence[NodeName]) -> list[Copy]:
        """The copies to send for these origins by a broker that answers for all within the borders."""
        # Nothing goes past a border, even if the tables do not fit the map yet.
        anchors = self._wst.anchors_of(origins) & ~self.wom.past(borders)
        forward = compute_forwarding_s2(self.wom, anchors)
        copies: list[Copy] = []
        while forward:
            lowest = forward & -forward
            forward ^= lowest
            relay = lowest.bit_length() - 1
            root = self.wom.brokers[relay]
            behind = () if origins & self._wants[relay] else _numbers(anchors & self.wom.beyond[relay] & ~lowest)
            able = (each for each in behind if origins & self._wants[each] and self._knows(each, root, borders))
            copies.append(Copy(root, next(able, relay)))
        at = 0
        while at < len(copies):
            shared = None if origins & self._wants[copies[at].receiver] else self._beside(at, copies, origins, borders)
            if shared is None:
                at += 1
            else:
                copies = [*(copy for copy in copies if shared.root not in self._paths[copy.receiver]), shared]
                at = 0
        return copies

    def _beside(self, at: int, copies: Sequence[Copy], origins: int, borders: Sequence[NodeName]) -> Copy | None:
        """One copy for the relay's and some others, sent to a broker beside it."""
        way = self._paths[copies[at].receiver]
        for depth in range(len(way) - 1, 0, -1):
            root = way[depth - 1]
            distances = {
                copy.receiver: len(way) + len(self._paths[copy.receiver]) - 2 * depth
                for copy in copies
                if origins & self._wants[copy.receiver]
                and root in self._paths[copy.receiver]
                and self._knows(copy.receiver, root, borders)
            }
            if distances:
                nearest = min(distances, key=distances.__getitem__)
                if distances[nearest] < len(way):
                    return Copy(root, nearest)
        return None

    def _knows(self, receiver: int, root: NodeName, borders: Sequence[NodeName]) -> bool:
        """Are all borders behind the root in the receiver's map?"""
        mom, name = self._mom, self.wom.brokers[receiver]
        return all(distance(mom, name, border) <= mom.delta for border in borders_behind(mom, root, borders))


def borders_behind(mom: MasterOverlayMap, root: NodeName, borders: Sequence[NodeName]) -> list[NodeName]:
    """Those that end the part behind the root: the way to them leads over it."""
    return [border for border in borders if root in mom.path(border)[:-1]]


def _numbers(members: int) -> Iterable[int]:
    while members:
        lowest = members & -members
        members ^= lowest
        yield lowest.bit_length() - 1


class DelegatingRouter(MultipathRouter):
    """See `MultipathRouter`."""

    def __init__(self, context: NodeContext, parameters: MultipathParameters) -> None:
        super().__init__(context, parameters)
        self._working: WorkingView | None = None
        """That of which the two below were made."""
        self._numbered: MasterOverlayMap | None = None
        self._names: dict[int, NodeName] = {}
        """The brokers of that map, by their numbers in headers."""
        self._real: Delegation
        """Over the links in use."""
        self._profiled: Delegation
        """Over candidate links too: what would go over them counts for their gain."""

    def next_hops(self, event: Event, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        moves = self.moves
        if moves.zone is None:
            working, mark = self.knowledge.working(), moves.mark
        else:
            working, mark = moves.choose(came_from, header)
        origins = self.knowledge.mst.matching_origins(event.attributes)
        borders = self._borders(working.wom, came_from, header)
        if borders is None:
            if working.wst.anchors_of(origins):
                self._remarks.append(Record(NO_WAY, NoWay.UNKNOWN_SENDER, came_from, event))
            return ()
        for border in borders:
            origins &= ~working.wst.behind(border)
        if any(origins & cut_off for cut_off in working.wst.cut_off.values()):
            self._remarks.append(Record(NO_WAY, NoWay.NO_LINK, came_from, event))
        if not origins:
            return ()
        if moves.zone is None:
            hops = self._delegate(working, origins, borders, mark)
        else:
            anchors = working.wst.anchors_of(origins) & ~working.wom.past(borders)
            forward = working.spread(anchors, compute_forwarding_s2)
            brokers = working.wom.names(forward)
            hops = [_hop(working.wom.mom, broker, broker, borders, mark) for broker in brokers]
        if working.dropped:
            self._remarks += [Record(NO_WAY, why, came_from, event) for why in dict.fromkeys(working.dropped)]
            working.dropped.clear()
        self._output += len(hops)
        return hops

    def _borders(
        self, wom: WorkingOverlayMap, came_from: NodeName | None, header: Sequence[int]
    ) -> list[NodeName] | None:
        """The borders that the copy came with, or else the neighbour in the direction of its sender; None if not all
        are in the map."""
        named = [number for number in header if number < 0]
        if named:
            if self._numbered is not wom.mom:
                self._numbered, self._names = wom.mom, {border_number(broker): broker for broker in wom.mom.brokers}
            known = [self._names[number] for number in named if number in self._names]
            return known if len(known) == len(named) else None
        if came_from is None:
            return []
        direction = wom.direction(came_from)
        return None if direction is None else [direction]

    def _delegate(
        self, working: WorkingView, origins: int, borders: Sequence[NodeName], mark: tuple[int, ...]
    ) -> list[Hop]:
        if working is not self._working:
            self._prepare(working)
        for copy in self._profiled.copies(origins, borders):
            working.sent[copy.receiver] += 1
        real = self._real
        mom, brokers = real.wom.mom, real.wom.brokers
        return [_hop(mom, copy.root, brokers[copy.receiver], borders, mark) for copy in real.copies(origins, borders)]

    def _prepare(self, working: WorkingView) -> None:
        knowledge = self.knowledge
        bits, network = knowledge.mst.bits, knowledge.network
        self._working = working
        self._profiled = Delegation(working.wom, working.wst, bits)
        links = [*(peer for peer in network.peers if peer not in network.down), *knowledge.links.soft]
        real = View(working.wom.mom, knowledge.view.ppaths).working(knowledge.mst, links, (), covering=False)
        self._real = Delegation(real.wom, real.wst, bits)


def _hop(
    mom: MasterOverlayMap, root: NodeName, receiver: NodeName, borders: Sequence[NodeName], mark: tuple[int, ...]
) -> Hop:
    """A copy for what lies behind the root, within the borders."""
    beyond = borders_behind(mom, root, borders)
    if receiver == root and not beyond:
        return Hop(receiver, mark)  # the receiver answers for all behind itself, as in Publiy
    before = (mom.centre, *mom.path(root))[-2]
    return Hop(receiver, (*mark, border_number(before), *map(border_number, beyond)))


def _survives(parameters: MultipathParameters, traits: OverlayTraits) -> Survival:
    return dataclasses.replace(survives(parameters, traits), by_delegates=True)


def _check(parameters: MultipathParameters, traits: OverlayTraits) -> None:
    if parameters.strategy != "S2":
        raise InputError("strategy", parameters.strategy, "S2: what is delegated is what S2 would send to relays")
    if parameters.covering:
        raise InputError("covering", "true", "false: a broker delegates by what each broker behind it wants")
    parameters.check_overlay(traits.degree, traits.has_datagrams)


MULTIPATH_DELEGATION = dataclasses.replace(
    MULTIPATH,
    name="multipath_delegation",
    make=DelegatingRouter,
    survives=_survives,
    check=_check,
    tried={**MULTIPATH.tried, "strategy": ("S2",), "covering": (False,)},
)
