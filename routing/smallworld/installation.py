"""Installing subscriptions: a node tells its next hops what is wanted by way of it.

Theory of operation (Vinifera IV-B3). What a node wants is what its own subscribers want and what neighbours have
installed at it. It is aggregated and cut into parts by the next hop towards each part's rendezvous node. Each next hop
is sent its part, and later what is added to it, while every heartbeat confirms the version alone. An entry that is not
confirmed expires; what is wanted no more is taken back in the rounds that follow, hop by hop. When the next hop of a
part changes, the new one is told at once and the old one a round later, so that events find one path or the other.
Where many filters meet, all events of their ranges are asked for, and each node further down looks at its own filters.
"""

import functools
import sys
from collections.abc import Callable
from typing import ClassVar

from murmur_pubsub.machine import Effect, NodeName, Send
from routing.smallworld.content_table import ContentTable, Entry
from routing.smallworld.messages import Beat, BeatAnswer, Install
from routing.smallworld.overlay import GossipOverlay
from routing.smallworld.ring import KnownRing
from routing.smallworld.subscription_regions import (
    SubscriptionRegions,
    aggregate,
    coarse,
    extended,
    from_wire,
    to_wire,
    within,
)
from routing.smallworld.uplinks import Uplinks

EXPIRES_ROUNDS = 3


class Installation:
    """What is installed at this node (`table`) and what this node installs at its next hops (`uplinks`).
    `own_regions()`: what the node's own subscribers want."""

    remembers: ClassVar = ("_cut", "_last_round", "_parts", "_wanted")  # made anew of what is wanted now

    def __init__(
        self,
        overlay: GossipOverlay,
        table: ContentTable,
        uplinks: Uplinks,
        own_regions: Callable[[], SubscriptionRegions],
    ) -> None:
        self._overlay = overlay
        self._table = table
        self._uplinks = uplinks
        self._own_regions = own_regions
        self._filters_max = overlay.parameters.filters_max or sys.maxsize
        self._outdated = True
        """May the next hops of what is wanted have changed, or what the node itself wants?"""
        self._grown: list[SubscriptionRegions] = []
        """What neighbours have come to want since something was installed last."""
        self._excess = False
        """May more be installed than is wanted?"""
        self._wanted: SubscriptionRegions | None = None
        """What is wanted, if that has not changed since it was aggregated."""
        self._cut: SubscriptionRegions = {}
        """What was wanted when it was last cut into parts, by the ring as it was known then."""
        self._cut_by: KnownRing | None = None
        self._parts: dict[NodeName, SubscriptionRegions] = {}
        self._last_round: dict[NodeName, SubscriptionRegions] = {}
        """What was wanted by way of each next hop in the last round."""

    @property
    def due(self) -> bool:
        """Is there something that should be installed soon?"""
        return self._outdated or bool(self._grown)

    # -------------------------------------------------------------------------------- what has changed
    def own_changed(self) -> None:
        """The node's own subscribers want something else than before."""
        self._wanted = None
        self._outdated = True

    def ring_changed(self) -> None:
        """The next hops may be other ones."""
        self._outdated = True

    def peer_failed(self, peer: NodeName) -> None:
        """Nothing is installed at the peer any more, and it wants nothing."""
        self._last_round.pop(peer, None)
        if self._uplinks.drop(peer):
            self._outdated = True
        if self._table.drop(peer):
            self._wants_less()

    def expire(self) -> None:
        """Drop the entries of the table that have not been confirmed for some rounds."""
        if self._table.expire(self._overlay.round - EXPIRES_ROUNDS):
            self._wants_less()

    def on_install(self, source: NodeName, install: Install) -> bool:
        """A neighbour installs something here; True if it wants something that it did not want before."""
        regions = from_wire(install.regions, install.filters)
        entry, now = Entry(install.incarnation, install.version, regions), self._overlay.round
        before = self._table.regions(source)
        if install.since:
            changed = self._table.extend(source, entry, install.since, now)
            self._wanted = None
        else:
            changed = self._table.install(source, entry, now)
            if changed:
                self._wants_less()
        if changed and not within(regions, self._cut):
            self._grown.append(regions)
        return changed and not within(regions, before)

    def on_versions(self, source: NodeName, said: Beat | BeatAnswer) -> list[Effect]:
        """A heartbeat says which versions the two nodes hold of each other; what was lost is sent again."""
        if self._table.confirm(source, said.incarnation, said.version, self._overlay.round):
            self._wants_less()
        if source not in self._uplinks or said.held == self._uplinks.version(source):
            return []
        return [self._install(source, 0, self._uplinks.regions(source))]

    def _wants_less(self) -> None:
        """A neighbour wants something else, or nothing: the next round takes back what it has ceased to want."""
        self._wanted = None
        self._excess = True

    # ------------------------------------------------------------------------------------- what is wanted
    def wanted(self) -> SubscriptionRegions:
        """What is wanted by way of this node, its own subscribers included."""
        if self._wanted is None:
            self._wanted = aggregate([self._own_regions(), *(entry.regions for _, entry in self._table)])
        return self._wanted

    def _cut_into_parts(self) -> dict[NodeName, SubscriptionRegions]:
        """What is wanted, by next hop."""
        ring, wanted = self._overlay.ring, self.wanted()
        if ring is not self._cut_by or wanted is not self._cut:
            parts = _parts_of(wanted, ring)
            self._cut, self._cut_by = wanted, ring
            self._parts = {name: coarse(part, self._filters_max) for name, part in parts.items()}
        return self._parts

    # ----------------------------------------------------------------------------------------- installing
    def install_soon(self) -> list[Effect]:
        """Install what has come to be wanted, a little after that has changed."""
        if self._outdated or self._cut_by is None:
            return self._install_all(False)
        return self._install_grown(self._cut_by)

    def install_in_round(self) -> list[Effect]:
        """Install what has come to be wanted, and take back what is wanted no more and was not in the last round
        either: until then what replaces it has come into effect."""
        return self._install_all(True)

    def _install_all(self, in_round: bool) -> list[Effect]:
        calm = not self._excess and self._overlay.ring is self._cut_by
        if not self._overlay.joined or not (self.due or (in_round and not calm)):
            return []
        self._outdated = False
        self._grown.clear()
        parts = self._cut_into_parts()
        self._excess = not in_round or parts != self._last_round
        effects: list[Effect] = []
        for name in dict.fromkeys((*parts, *self._uplinks)):
            wanted, installed = parts.get(name, {}), self._uplinks.regions(name)
            if wanted == installed or (not in_round and within(wanted, installed)):
                continue
            kept = self._last_round.get(name) if in_round else installed
            if kept:
                wanted = aggregate([wanted, kept])
                if wanted == installed:
                    continue
            self._uplinks.put(name, wanted)
            effects.append(self._install(name, 0, wanted))
            if not wanted:
                self._uplinks.drop(name)
        if in_round:
            self._last_round = parts
        return effects

    def _install_grown(self, ring: KnownRing) -> list[Effect]:
        """Install what neighbours have come to want, by the ring as it was known when all was cut last: no next hop
        has been lost since, and those that were found are taken in the next round."""
        grown, self._grown = self._grown, []
        effects: list[Effect] = []
        for name, part in _parts_of(functools.reduce(extended, grown, {}), ring).items():
            before, installed = self._uplinks.version(name), self._uplinks.regions(name)
            if within(part, installed):
                continue
            self._last_round[name] = extended(self._last_round.get(name, {}), part)
            both = extended(installed, part)
            whole = coarse(both, self._filters_max)
            self._uplinks.put(name, whole)
            effects.append(self._install(name, before, part) if whole is both else self._install(name, 0, whole))
        return effects

    def _install(self, name: NodeName, since: int, regions: SubscriptionRegions) -> Send:
        numbers, filters = to_wire(regions)
        incarnation, version = self._overlay.me.incarnation, self._uplinks.version(name)
        return Send(name, Install(incarnation, version, since, numbers, filters))

    def check_invariants(self) -> None:
        """Raise AssertionError if the state contradicts itself."""
        self._table.check_invariants()
        assert self._overlay.me.name not in self._uplinks


def _parts_of(regions: SubscriptionRegions, ring: KnownRing) -> dict[NodeName, SubscriptionRegions]:
    """The regions cut by the next hop towards each part's rendezvous node, without those of this node itself."""
    parts: dict[NodeName, SubscriptionRegions] = {}
    for key, ranges in regions.items():
        for low, high in ranges:
            for begin, end, hop in ring.split_range(low, high):
                if hop is not None:
                    part = parts.get(hop)
                    if part is None:
                        parts[hop] = {key: [(begin, end)]}
                    elif key in part:
                        part[key].append((begin, end))
                    else:
                        part[key] = [(begin, end)]
    return parts
