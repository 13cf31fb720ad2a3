"""A view of the network: one master overlay map with the ppaths that go with it, and what is derived from them.

A broker has one view, and during a Δ-move two: copies of a publication that were sent by the tree before the move
are passed on by it to the end, so that none is lost between the two trees.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum

from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import NodeName
from routing.multipath.messages import Path
from routing.multipath.overlay_maps import MasterOverlayMap, WorkingOverlayMap
from routing.multipath.strategies import PathComputation
from routing.multipath.subscription_tables import MasterSubscriptionTable, WorkingSubscriptionTable


class NoWay(IntEnum):
    """Why a publication is not sent on to somebody who wants it."""

    UNKNOWN_SENDER = 1
    """It came from a broker outside the map: what lies behind that one is not known."""
    NO_LINK = 2
    """A neighbour on the way is away, and no link leads past it."""


class WorkingView:
    """Working map and table for a set of links. `sent[i]` counts the publications for broker i of the map. `dropped`:
    why `forward` had to leave something out, since it was last cleared."""

    __slots__ = ("_candidates", "_funnels", "dropped", "sent", "wom", "wst")

    def __init__(self, wom: WorkingOverlayMap, wst: WorkingSubscriptionTable, candidates: Iterable[NodeName]) -> None:
        self.wom = wom
        self.wst = wst
        self.sent = [0] * len(wom.brokers)
        self.dropped: list[NoWay] = []
        self._candidates = wom.set_of(broker for broker in candidates if broker in wom.substitutes)
        self._funnels = []
        for path in wom.between:
            real = path & ~self._candidates
            self._funnels.append(1 << (real.bit_length() - 1) if real else 0)

    def forward(self, event: Event, came_from: NodeName | None, compute: PathComputation) -> int:
        """The set of brokers that the event is sent to from here: Fwrd(p), with candidates funnelled."""
        anchors = self.wst.anchors(event.attributes)
        if self.wst.cut_off and self.wst.is_cut_off(event.attributes, self.wom.direction(came_from)):
            self.dropped.append(NoWay.NO_LINK)
        if came_from is not None and anchors:
            behind = self.wom.towards.get(came_from)
            if behind is None:
                self.dropped.append(NoWay.UNKNOWN_SENDER)
                return 0
            anchors &= ~behind
        return self.spread(anchors, compute) if anchors else 0

    def spread(self, anchors: int, compute: PathComputation) -> int:
        """The set of brokers that an event for these anchors is sent to."""
        forward = rest = compute(self.wom, anchors)
        sent = self.sent
        while rest:
            lowest = rest & -rest
            rest ^= lowest
            sent[lowest.bit_length() - 1] += 1
        return self._funnelled(forward) if forward & self._candidates else forward

    def _funnelled(self, forward: int) -> int:
        """Put in the place of each candidate the last real link before it, and leave out what then lies beyond
        another: the broker that gets the event there passes it on."""
        beyond = self.wom.beyond
        funnelled = 0
        while forward:
            lowest = forward & -forward
            forward ^= lowest
            funnel = self._funnels[lowest.bit_length() - 1]
            if not funnel:
                self.dropped.append(NoWay.NO_LINK)
            funnelled |= funnel
        chosen = 0
        while funnelled:
            lowest = funnelled & -funnelled
            chosen |= lowest
            funnelled &= ~beyond[lowest.bit_length() - 1]
        return chosen

    def take_counts(self, into: dict[NodeName, int]) -> None:
        """Add the counts to those by name, and begin anew."""
        for broker, count in zip(self.wom.brokers, self.sent, strict=True):
            if count:
                into[broker] = into.get(broker, 0) + count
        self.sent = [0] * len(self.sent)


class View:
    """`mom` and `ppaths` of one time. The working part is made when it is first needed."""

    def __init__(self, mom: MasterOverlayMap, ppaths: Mapping[NodeName, Path]) -> None:
        self.mom = mom
        self.ppaths = ppaths
        self._working: WorkingView | None = None

    def working(
        self,
        mst: MasterSubscriptionTable,
        real: Sequence[NodeName],
        candidates: Iterable[NodeName],
        covering: bool,
    ) -> WorkingView:
        """The working view over these links; the one made before, until it is dropped. A candidate that is a real link
        in this view is none: beside a primary link of the tree before a move it may be one of the tree after it."""
        if self._working is None:
            candidates = [peer for peer in candidates if peer not in real]
            wom = WorkingOverlayMap(self.mom, [*real, *candidates])
            wst = WorkingSubscriptionTable(mst, wom, self.ppaths, covering)
            self._working = WorkingView(wom, wst, candidates)
        return self._working

    def drop_working(self, counts: dict[NodeName, int]) -> None:
        """Links, map or origins have changed: keep the counts, make the rest anew when it is needed."""
        if self._working is not None:
            self._working.take_counts(counts)
            self._working = None

    def changed(self, origin: NodeName, wanted: Filter, held: bool) -> None:
        """Follow a change of the master subscription table."""
        if self._working is not None:
            self._working.wst.changed(origin, wanted, held)
