"""The neighbours that a node has selected: its routing table, which it exchanges with others (Vinifera IV-B1)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from murmur_pubsub.machine import NodeName
from routing.smallworld.contacts import Contacts
from routing.smallworld.messages import Beat, BeatAnswer, GossipPeer
from routing.smallworld.ring import RING_SIZE, clockwise
from routing.smallworld.selection import NeighbourSelection

_Spoke = tuple[GossipPeer, int]
"""A peer, and the round in which it last spoke for itself."""


class Reselected(NamedTuple):
    """What a new selection has changed."""

    newcomers: list[_Spoke]
    changed: bool
    """Are the neighbours other ones than before?"""
    ring_changed: bool
    """Is the predecessor or successor another one?"""
    entered: list[NodeName]
    """Those that are the predecessor or successor now, and were not before."""
    displaced: list[_Spoke]
    """Those that were, and have given way to these."""


class SelectedNeighbours:
    """The selected peers of one node; as a collection, their names, those next on the ring first."""

    def __init__(self, selection: NeighbourSelection) -> None:
        self._selection = selection
        self._table: dict[NodeName, _Spoke] = {}
        self._outdated = True
        """Is the last selection no measure for others, since a neighbour or what is sought has changed?"""
        self._declined: set[GossipPeer] = set()
        """Peers that were found to be no better than those selected last."""

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[NodeName]:
        return iter(self._table)

    def __contains__(self, name: object) -> bool:
        return name in self._table

    @property
    def ring(self) -> Sequence[NodeName]:
        """The predecessor and the successor (one, if there is but one peer)."""
        return self._selection.ring

    def lacks(self, own: int, name: NodeName, identifier: int) -> bool:
        """Is the peer of that name no neighbour, though it is closer to this node on the ring than all that are?"""
        if name in self._table:
            return False
        ahead = [clockwise(own, peer.identifier) for peer in self.peers()]
        distance = clockwise(own, identifier)
        return distance < min(ahead, default=RING_SIZE) or distance > max(ahead, default=0)

    def is_beyond_another(self, own: int, name: NodeName, said: Beat | BeatAnswer) -> bool:
        """Is this the predecessor or successor, and says that it has a neighbour between the two?"""
        distance = clockwise(own, said.identifier)
        ahead = [clockwise(own, identifier) for identifier in said.reach] if name in self.ring else []
        return (name == self.ring[-1] and any(0 < each < distance for each in ahead)) or (
            name == self.ring[0] and any(each > distance for each in ahead)
        )

    def peer(self, name: NodeName) -> GossipPeer:
        """The neighbour of that name."""
        return self._table[name][0]

    def peers(self) -> Iterator[GossipPeer]:
        """All of them."""
        return (peer for peer, _ in self._table.values())

    def mean_utility(self) -> float:
        """Of the neighbours, by their profiles."""
        return sum(self._selection.utility(peer.profile) for peer in self.peers()) / max(1, len(self._table))

    def written(self, round: int, besides: Iterable[_Spoke] = ()) -> list[Sequence[Any]]:
        """The table, and those besides, as it is written in messages of that round."""
        more = (entry for entry in besides if entry[0].name not in self._table)
        return [(*peer, round - spoke) for peer, spoke in (*self._table.values(), *more)]

    def hear(self, name: NodeName, said: Beat | BeatAnswer, round: int) -> None:
        """A peer has spoken for itself; it may be a neighbour."""
        entry = self._table.get(name)
        if entry is None:
            return
        peer = entry[0]
        if peer.identifier != said.identifier or peer.incarnation != said.incarnation:
            peer = peer._replace(identifier=said.identifier, incarnation=said.incarnation)
            self._outdated = True
        self._table[name] = peer, round

    def refresh(self, told: Iterable[Sequence[Any]]) -> None:
        """Take later profiles of neighbours from others, who may have been told before this node is."""
        for name, incarnation, _, profile, revision, _ in told:
            entry = self._table.get(name)
            if entry is not None and entry[0].incarnation == incarnation and entry[0].revision < revision:
                self._table[name] = entry[0]._replace(profile=profile, revision=revision), entry[1]
                self._outdated = True

    def drop(self, name: NodeName) -> GossipPeer | None:
        """The neighbour is gone; None if it was none."""
        entry = self._table.pop(name, None)
        if entry is None:
            return None
        self._outdated = True
        return entry[0]

    def reselect(self) -> None:
        """What is sought in neighbours has changed: select anew when peers are next considered."""
        self._outdated = True

    def consider(
        self,
        own: GossipPeer,
        told: Sequence[Sequence[Any]],
        view: Mapping[NodeName, _Spoke],
        contacts: Contacts,
        round: int,
    ) -> Reselected | None:
        """Select among the neighbours, the peers that were told of and those of the view. None if all stay: most often
        none of the others is better than a neighbour, and what is known of neighbours only becomes younger."""
        table, declined, prefers = self._table, self._declined, self._selection.prefers
        select = self._outdated
        heard: dict[NodeName, _Spoke] = {}
        self.refresh(told)
        for name, incarnation, identifier, profile, revision, age in told:
            known = table.get(name) or heard.get(name)
            if name == own.name or (known is not None and known[1] >= round - age):
                continue
            peer = contacts.placed(GossipPeer(name, incarnation, identifier, profile, revision))
            if known is not None:
                peer = peer.with_later_profile(known[0])
                select = select or (peer != known[0] and name in table)
            if not select and peer not in declined:
                select = prefers(own.identifier, peer)
                declined.add(peer)
            heard[name] = peer, round - age
        if not select:
            for name, (peer, _) in view.items():
                if peer not in declined and name not in table and name not in heard:
                    select = prefers(own.identifier, contacts.placed(peer))
                    if select:
                        break
                    declined.add(peer)
        if not select:
            table.update((name, entry) for name, entry in heard.items() if name in table)
            return None
        candidates = {**table, **heard}
        for name, (peer, spoke) in view.items():
            if name not in candidates:
                candidates[name] = contacts.placed(peer), spoke
        return self._select(own.identifier, candidates)

    def _select(self, own: int, candidates: dict[NodeName, _Spoke]) -> Reselected:
        self._outdated = False
        self._declined.clear()
        before, ring_before = self._table, self.ring
        chosen = self._selection.select(own, {name: peer for name, (peer, _) in candidates.items()}, before)
        self._table = {name: candidates[name] for name in chosen}
        return Reselected(
            newcomers=[entry for name, entry in self._table.items() if name not in before],
            changed=self._table.keys() != before.keys(),
            ring_changed=set(self.ring) != set(ring_before),
            entered=[name for name in self.ring if name not in ring_before],
            displaced=[candidates[name] for name in ring_before if name in before and name not in self.ring],
        )
