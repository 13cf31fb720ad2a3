"""The peers that have spoken to a node themselves, and the ring as the node knows it by them.

Hearsay does not prove that a peer is alive, so routing uses contacts alone: neighbours that have answered a heartbeat,
and, if a node routes over inbound links too, contacts that have selected this node.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from murmur_pubsub.machine import NodeName
from routing.smallworld.messages import Beat, BeatAnswer, GossipPeer
from routing.smallworld.ring import KnownRing, clockwise

_LIKE_ENOUGH = 0.5
"""Found by looking: with 0.5 and with 0.8 the largest load and hops were about the same (300 nodes)."""


class Contact:
    """A peer that has spoken for itself."""

    __slots__ = (
        "answered", "beat", "heard", "identifier", "inbound", "incarnation", "load", "median", "name", "number",
        "profile", "reach",
    )  # fmt: skip

    def __init__(self, name: NodeName, incarnation: int) -> None:
        self.name = name
        self.incarnation = incarnation
        self.identifier = 0
        self.number = 0
        """Of what it said last."""
        self.reach: Sequence[int] = ()
        """The identifiers of its neighbours."""
        self.load = self.median = 0
        """See `messages.Beat`."""
        self.heard = -1
        """The round in which it last said anything."""
        self.beat = -1
        """The round in which it last sent a heartbeat unasked."""
        self.inbound = False
        """Has it a link to this node?"""
        self.answered = False
        """Has it answered a heartbeat of this node?"""
        self.profile: bytes | None = None
        """What it last said it wants; None: it has not been heard to say so."""


class Alike(NamedTuple):
    """Which contacts want what this node wants, at least half as much as its neighbours do on average. Others want
    little of what passes them, and large trees would hang on those that happen to be close to rendezvous nodes."""

    likeness: Callable[[bytes], float]
    """Of a profile to this node's own."""
    of_neighbours: Callable[[], float]
    """The mean likeness of the neighbours' profiles."""

    def among(self, contacts: Sequence[Contact]) -> list[Contact]:
        """Those of the contacts that are."""
        least = _LIKE_ENOUGH * self.of_neighbours()
        return [each for each in contacts if each.profile is not None and self.likeness(each.profile) >= least]


class Contacts:
    """The contacts of one node, among them its `neighbours`, a collection that changes as others are selected.
    `inbound_max`: over how many inbound links it routes, besides that of the closest on each side of the ring.
    `alike`: it routes over inbound links of such contacts (None: of those that it has known for longest)."""

    def __init__(
        self,
        neighbours: Collection[NodeName],
        inbound_max: int,
        alike: Alike | None = None,
    ) -> None:
        self._neighbours = neighbours
        self._inbound_max = inbound_max
        self._alike = alike
        self._contacts: dict[NodeName, Contact] = {}
        self._ring: KnownRing | None = None
        """None: it may have changed since it was last asked for."""
        self._reach: Sequence[int] | None = None
        """None: as for the ring."""

    def __contains__(self, name: NodeName) -> bool:
        return name in self._contacts

    def __iter__(self) -> Iterator[NodeName]:
        return iter(self._contacts)

    @property
    def names(self) -> Collection[NodeName]:
        """Of all, those known for longest first."""
        return self._contacts.keys()

    def get(self, name: NodeName) -> Contact | None:
        """The contact of that name."""
        return self._contacts.get(name)

    def unheard_since(self, round: int) -> list[NodeName]:
        """Those that were last heard before that round."""
        return [name for name, contact in self._contacts.items() if contact.heard < round]

    # ------------------------------------------------------------------------------------ what is learned
    def is_overtaken(self, name: NodeName, said: Beat | BeatAnswer) -> bool:
        """Has what the contact said later come before?"""
        contact = self._contacts.get(name)
        return contact is not None and (said.incarnation, said.number) < (contact.incarnation, contact.number)

    def hear(self, name: NodeName, said: Beat | BeatAnswer, round: int) -> int | None:
        """The peer has said this in that round; the identifier that it had before, if that was another one."""
        contact = self._contacts.get(name)
        if contact is None:
            contact = self._contacts[name] = Contact(name, said.incarnation)
        contact.number = said.number
        contact.load, contact.median, contact.reach = said.load, said.median, said.reach
        former = contact.identifier if contact.heard >= 0 and contact.identifier != said.identifier else None
        if contact.identifier != said.identifier:
            contact.identifier = said.identifier
            self.forget_ring()
        contact.heard = round
        return former

    def answered(self, name: NodeName) -> bool:
        """The contact has answered a heartbeat; True if that was the first time."""
        contact = self._contacts[name]
        if contact.answered:
            return False
        contact.answered = True
        self.forget_ring()
        return True

    def beat_by(self, name: NodeName, round: int) -> None:
        """The contact has sent a heartbeat in that round: it has a link to this node."""
        self._contacts[name].beat = round
        self.links_here(name)

    def links_here(self, name: NodeName) -> None:
        """The contact has a link to this node."""
        contact = self._contacts[name]
        if not contact.inbound:
            contact.inbound = True
            self.forget_ring()

    def profiled(self, name: NodeName, profile: bytes) -> None:
        """The contact, if it is one, has said that this is its profile."""
        contact = self._contacts.get(name)
        if contact is not None and contact.profile != profile:
            contact.profile = profile
            self.likeness_changed()

    def likeness_changed(self) -> None:
        """A contact or this node wants something else than before."""
        if self._alike is not None:
            self.forget_ring()

    def unprofiled(self) -> list[NodeName]:
        """Whose profiles this node would have to know, so as to route over their links to it, and does not."""
        if self._alike is None or not self._inbound_max:
            return []
        return [name for name, each in self._contacts.items() if self._is_inbound(each) and each.profile is None]

    def drop(self, name: NodeName) -> Contact | None:
        """The contact is gone; None if it was none."""
        contact = self._contacts.pop(name, None)
        if contact is not None:
            self.forget_ring()
        return contact

    def forget_ring(self) -> None:
        """A contact, a neighbour or this node's own identifier has changed: make the ring anew when it is asked for."""
        self._ring = self._reach = None

    # --------------------------------------------------------------------------------------- what is known
    def ring(self, own: int) -> KnownRing:
        """The ring around the node with that identifier; the same object as long as nothing on it has changed."""
        if self._ring is None:
            self._ring = KnownRing(own, {each.identifier: each.name for each in self._usable(own)})
        return self._ring

    def ring_before(self, own: int, moved: Mapping[NodeName, int], besides: NodeName | None) -> KnownRing:
        """The same with these contacts where they were before they moved, and without that one."""
        there = (each for each in self._usable(own) if each.name != besides)
        return KnownRing(own, {moved.get(each.name, each.identifier): each.name for each in there})

    def reach(self) -> Sequence[int]:
        """The identifiers of the neighbours that have answered: what this node says in its heartbeats."""
        if self._reach is None:
            self._reach = [contact.identifier for contact in self._answering_neighbours()]
        return self._reach

    def predecessor(self, own: int) -> Contact | None:
        """The contact that comes before that identifier on the ring."""
        return min(self._usable(own), key=lambda each: clockwise(each.identifier, own), default=None)

    def successor(self, own: int) -> Contact | None:
        """The contact that comes after it."""
        return min(self._usable(own), key=lambda each: clockwise(own, each.identifier), default=None)

    @property
    def heaviest(self) -> Contact | None:
        """The contact that has said that its load is the greatest."""
        return max(self._contacts.values(), key=lambda each: each.load, default=None)

    def placed(self, peer: GossipPeer) -> GossipPeer:
        """The peer with the identifier that it has last given itself, if it is a contact."""
        contact = self._contacts.get(peer.name)
        if contact is None or contact.identifier == peer.identifier:
            return peer
        return peer._replace(identifier=contact.identifier)

    def _usable(self, own: int) -> list[Contact]:
        usable = self._answering_neighbours()
        inbound = [each for each in self._contacts.values() if self._is_inbound(each)]
        routed = (inbound if self._alike is None else self._alike.among(inbound))[: self._inbound_max]
        usable += routed
        # A neighbour on the ring may have been given up for one of hearsay that turns out to be gone from there. It
        # still sends heartbeats: so the ring has no hole until it is selected again.
        known = [*usable, *(each for each in inbound if each not in routed)]
        if len(known) > len(usable):
            ahead = [clockwise(own, each.identifier) for each in known]
            closest = {ahead.index(min(ahead)), ahead.index(max(ahead))}
            usable += [known[place] for place in closest if place >= len(usable)]
        return usable

    def _is_inbound(self, contact: Contact) -> bool:
        return contact.inbound and contact.name not in self._neighbours

    def _answering_neighbours(self) -> list[Contact]:
        found = [self._contacts[name] for name in self._neighbours if name in self._contacts]
        return [contact for contact in found if contact.answered]
