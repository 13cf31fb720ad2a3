"""A node of the gossip overlay: rounds of peer sampling, exchange of routing tables, heartbeats, joining, failures.

Theory of operation (Vinifera IV-B1 and IV-C). In each round a node shuffles its view with the oldest peer of it,
exchanges its routing table with a neighbour drawn at random, both reselecting their neighbours from what they have, got
and sampled, and sends a heartbeat to its neighbours and to those at which it has installed subscriptions, but for those
that have sent it one since its last round: one, and the answer, tell both sides all. Who does not answer in time has
failed and is forgotten; who has not been heard for three rounds too.

A peer of which one has only heard says nothing about who is there: routing uses *contacts* alone, peers that have
spoken for themselves, and with `inbound` also over the links that others have to this node. A heartbeat tells its
receiver the sender's identifier and those of its neighbours.

A joining node sends a request to a bootstrap peer, which is routed to the rendezvous node of its identifier: its
successor, which answers with what it knows. The same request, for the identifier after its own, is how a node whose
successor has failed finds the next one. A ring link that fails is replaced at once, any other in the next round.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from murmur_pubsub.machine import Effect, NodeContext, NodeName, Send, SetTimer, TimerFired
from routing.smallworld.messages import (
    Beat,
    BeatAnswer,
    Exchange,
    GossipJoinRequest,
    GossipPeer,
    GossipWelcome,
    Shuffle,
)
from routing.smallworld.parameters import SmallWorldParameters
from routing.smallworld.peer_sampling import PeerSampling
from routing.smallworld.ring import RING_SIZE, KnownRing, clockwise
from routing.smallworld.selection import NeighbourSelection

_ROUND = ("routing", "round")
_DEADLINE = ("routing", "deadline")
_RETRY = ("routing", "join")
_SILENT_ROUNDS = 3
_QUARANTINE_ROUNDS = 12
"""So long what others still say of a failed peer is not believed."""
_SEEK_EVERY = 8
"""In rounds: how often a node looks for its successor though none has failed."""


class Contact:
    """A peer that has spoken for itself. `reach`: identifiers of its neighbours; `heard`: in which round; `beat`: in
    which round it last sent a heartbeat unasked; `links`: it has a link to this node; `answered`: it has answered a
    heartbeat."""

    __slots__ = (
        "answered", "beat", "heard", "identifier", "incarnation", "links", "load", "median", "name", "reach",
    )  # fmt: skip

    def __init__(self, name: NodeName, incarnation: int) -> None:
        self.name = name
        self.incarnation = incarnation
        self.heard = self.beat = -1
        self.identifier = self.load = self.median = 0
        self.reach: Sequence[int] = ()
        self.links = self.answered = False


class GossipOverlay:
    """`table`: the selected neighbours, each with the round in which it last spoke. `known`: the ring as this node
    knows it. The layer above reads and clears `changed` (who is next on the ring, or where: what else has changed can
    wait for the next round), `failed` (who was found to be gone) and `moved` (who has another identifier), and keeps in
    `uplinks` its versions of what it has installed, by peer."""

    def __init__(self, context: NodeContext, parameters: SmallWorldParameters, utility: Callable[[bytes], float]):
        self.parameters = parameters
        self.me = GossipPeer(context.name, context.incarnation, parameters.identifier, b"")
        self.table: dict[NodeName, tuple[GossipPeer, int]] = {}
        self.contacts: dict[NodeName, Contact] = {}
        self.uplinks: dict[NodeName, int] = {}
        self.load = self.median = 0
        self.round = 0
        self.joined = parameters.founds and not context.incarnation
        self.changed = True
        self.failed: list[NodeName] = []
        self.moved: list[NodeName] = []
        self.stable_rounds = 0
        self._random = context.random("overlay")
        self._sampling = PeerSampling(context.name, parameters.view, parameters.shuffled, self._random)
        self.selection = NeighbourSelection(
            parameters.small_world_links, parameters.friend_links, self._random, utility
        )
        self._awaited: dict[NodeName, None] = {}
        self._quarantine: dict[NodeName, tuple[int, int]] = {}
        self._held: list[GossipJoinRequest] = []
        self._attempts = 0
        self._seeking = 2
        self._reselect = True
        """Is what was chosen last no measure for others?"""
        self._declined: set[GossipPeer] = set()
        """Who has been found to be no better since then."""
        self._reach: Sequence[int] | None = None
        self._known: KnownRing | None = None
        self._receivers: dict[type, Callable[[NodeName, Any], list[Effect]]] = {
            Shuffle: self._on_shuffle,
            Exchange: self._on_exchange,
            Beat: self._on_beat,
            BeatAnswer: self._on_answer,
            GossipJoinRequest: self._on_join_request,
            GossipWelcome: self._on_welcome,
        }

    # ------------------------------------------------------------------------------------ what it is asked
    @property
    def known(self) -> KnownRing:
        """The ring of its contacts."""
        if self._known is None:
            self._known = KnownRing(self.me.identifier, {each.identifier: each.name for each in self._usable()})
        return self._known

    @property
    def candidates(self) -> Iterable[GossipPeer]:
        """Neighbours and the random peers of the view."""
        yield from (peer for peer, _ in self.table.values())
        yield from (peer for peer, _ in self._sampling.view.values() if peer.name not in self.table)

    @property
    def predecessor(self) -> Contact | None:
        """The contact that comes before this node on the ring."""
        own = self.me.identifier
        return min(self._usable(), key=lambda each: clockwise(each.identifier, own), default=None)

    @property
    def successor(self) -> Contact | None:
        """The contact that comes after it."""
        own = self.me.identifier
        return min(self._usable(), key=lambda each: clockwise(own, each.identifier), default=None)

    def reached_from(self, name: NodeName | None) -> Sequence[int]:
        """The identifiers of that contact's neighbours, as it last said."""
        contact = None if name is None else self.contacts.get(name)
        return () if contact is None else contact.reach

    def identifier_of(self, name: NodeName) -> int:
        """Of a neighbour."""
        return self.table[name][0].identifier

    def know(self, peers: Iterable[GossipPeer]) -> list[Effect]:
        """Be part of an overlay with these peers in it, as if told when joining."""
        return self._learn([(*peer, 0) for peer in peers])

    def speak_as(self, profile: bytes) -> None:
        """Subscribe to other ranges: it is gossiped from now on."""
        self.me = self.me._replace(profile=profile)
        self.prefer_others()

    def prefer_others(self) -> None:
        """The utility of friends has changed."""
        self._reselect = True

    def move(self, identifier: int) -> list[Effect]:
        """Take another identifier; neighbours stay and are told at once."""
        self.me = self.me._replace(identifier=identifier)
        self._reselect = True
        self._known = None
        return self._beats(self.contacts)

    # ----------------------------------------------------------------------------------------- the inputs
    def start(self) -> list[Effect]:
        """Begin with rounds, at a moment of this node's own, and join."""
        first_us = 1 + self._random.randrange(self.parameters.cycle_us)
        return [SetTimer(_ROUND, first_us), *([] if self.joined else self._ask_to_join())]

    def on_timer(self, fired: TimerFired) -> list[Effect] | None:
        """What a timer of the overlay brings about; None if it is not the overlay's."""
        if fired.key == _ROUND:
            return [SetTimer(_ROUND, self.parameters.cycle_us), *self._begin_round()]
        if fired.key == _DEADLINE:
            silent, self._awaited = self._awaited, {}
            return [effect for name in silent for effect in self.fail(name)]
        if fired.key == _RETRY:
            return [] if self.joined else self._ask_to_join()
        return None

    def receive(self, source: NodeName, message: Any) -> list[Effect]:
        """A message of the overlay has come."""
        return self._receivers[type(message)](source, message)

    def fail(self, name: NodeName) -> list[Effect]:
        """The peer is gone: forget it everywhere. A ring link is replaced at once."""
        self._sampling.forget(name)
        self._awaited.pop(name, None)
        contact = self.contacts.pop(name, None)
        entry = self.table.pop(name, None)
        if entry is not None:
            self._reselect = True
            self._reach = None
        if contact is None and entry is None and name not in self.uplinks:
            return []
        incarnation = contact.incarnation if contact else entry[0].incarnation if entry else 0
        self._quarantine[name] = incarnation, self.round + _QUARANTINE_ROUNDS
        self._known = None
        self.failed.append(name)
        if name not in self.selection.ring:
            return []
        successor = self.selection.ring[-1]
        effects = self._consider(())
        if name == successor:  # a new predecessor comes by itself: it has lost its successor
            self._seeking = 2
            effects += self._seek()
        return effects

    # --------------------------------------------------------------------------------------------- rounds
    def _begin_round(self) -> list[Effect]:
        self.round += 1
        self.stable_rounds += 1
        if not self.joined:
            return []
        effects: list[Effect] = []
        overdue = self.round - _SILENT_ROUNDS
        for name in [name for name, contact in self.contacts.items() if contact.heard < overdue]:
            if name in self.table:
                effects += self.fail(name)
            else:
                del self.contacts[name]
                self._known = None
        if self._quarantine:
            self._quarantine = {name: entry for name, entry in self._quarantine.items() if entry[1] > self.round}
        shuffle = self._sampling.begin(self.round, (*self.me, 0))
        if shuffle is not None:
            effects.append(Send(shuffle[0], Shuffle(shuffle[1], False)))
        if self.table:
            partner = self._random.choice(list(self.table))
            effects.append(Send(partner, Exchange((*self.me, 0), self._written_table(), False)))
        if self._seeking or self.round % _SEEK_EVERY == 0:
            self._seeking = max(0, self._seeking - 1)
            effects += self._seek()
        beaten = dict.fromkeys(name for name in (*self.table, *self.uplinks) if self._must_beat(name))
        self._awaited = beaten
        effects += self._beats(beaten)
        return [*effects, SetTimer(_DEADLINE, self.parameters.timeout_us)]

    def _must_beat(self, name: NodeName) -> bool:
        """Has the peer sent no heartbeat of its own since the last round, the answer to which said it all? Where failed
        processes are not heard of otherwise, both sides send them: who waits for the other's finds out later."""
        contact = self.contacts.get(name)
        return contact is None or not contact.answered or contact.beat != self.round - 1 or not self.parameters.resets

    def _beats(self, names: Iterable[NodeName]) -> list[Effect]:
        said, uplinks, held = self._said(), self.uplinks, self.installed_version
        return [Send(name, Beat(*said, uplinks.get(name, 0), held(name))) for name in names]

    def _said(self) -> tuple[int, int, Sequence[int], int, int]:
        return self.me.identifier, self.me.incarnation, self._own_reach(), self.load, self.median

    def _on_beat(self, source: NodeName, beat: Beat) -> list[Effect]:
        effects = self._hear(source, beat)
        contact = self.contacts[source]
        contact.beat = self.round
        self._has_link(contact)
        installed, held = self.uplinks.get(source, 0), self.installed_version(source)
        links = installed > 0 or source in self.table
        return [*effects, Send(source, BeatAnswer(*self._said(), installed, held, links))]

    def _has_link(self, contact: Contact) -> None:
        if not contact.links:
            contact.links = True
            self._known = None

    def installed_version(self, peer: NodeName) -> int:
        """Of what the peer has installed here: the layer above puts its own in place of this."""
        return 0

    def _on_answer(self, source: NodeName, answer: BeatAnswer) -> list[Effect]:
        self._awaited.pop(source, None)
        effects = self._hear(source, answer)
        contact = self.contacts[source]
        if answer.links:
            self._has_link(contact)
        if not contact.answered:
            contact.answered = True
            self._known = self._reach = None
            self.changed = self.changed or source in self.selection.ring
        return effects

    def _hear(self, source: NodeName, said: Beat | BeatAnswer) -> list[Effect]:
        """A contact has spoken for itself."""
        self._quarantine.pop(source, None)
        effects: list[Effect] = []
        contact = self.contacts.get(source)
        if contact is not None and contact.incarnation < said.incarnation:
            effects += self.fail(source)
            self._quarantine.pop(source, None)
            contact = None
        if contact is None:
            contact = self.contacts[source] = Contact(source, said.incarnation)
        contact.load, contact.median = said.load, said.median
        if contact.heard >= 0 and contact.identifier != said.identifier:
            self.moved.append(source)
            self.changed = True
        contact.reach = said.reach
        if contact.identifier != said.identifier:
            contact.identifier = said.identifier
            self._known = self._reach = None
        contact.heard = self.round
        entry = self.table.get(source)
        if entry is not None:
            peer = entry[0]
            if peer.identifier != said.identifier or peer.incarnation != said.incarnation:
                peer = peer._replace(identifier=said.identifier, incarnation=said.incarnation)
                self._reselect = True
            self.table[source] = peer, self.round
        return effects

    # -------------------------------------------------------------------------------- views and tables
    def _on_shuffle(self, source: NodeName, shuffle: Shuffle) -> list[Effect]:
        believed = self._believed(shuffle.peers)
        if shuffle.answer:
            self._sampling.end(believed, self.round)
            return []
        return [Send(source, Shuffle(self._sampling.answer(believed, self.round), True))]

    def _on_exchange(self, source: NodeName, exchange: Exchange) -> list[Effect]:
        effects: list[Effect] = []
        if not exchange.answer:
            effects.append(Send(source, Exchange((*self.me, 0), self._written_table(), True)))
        return effects + self._consider([exchange.me, *exchange.table])

    def _written_table(self) -> list[Sequence[Any]]:
        return [(*peer, self.round - spoke) for peer, spoke in self.table.values()]

    def _believed(self, peers: Iterable[Sequence[Any]]) -> list[Sequence[Any]]:
        quarantine = self._quarantine
        if not quarantine:
            return list(peers)
        return [each for each in peers if each[0] not in quarantine or each[1] > quarantine[each[0]][0]]

    def _consider(self, told: Iterable[Sequence[Any]]) -> list[Effect]:
        """Reselect the neighbours from the own ones, what was told and the view; most often none of those is better
        than who was chosen last, and only what is known of the neighbours becomes younger."""
        table, own, now = self.table, self.me, self.round
        select, prefers, declined = self._reselect, self.selection.prefers, self._declined
        heard: dict[NodeName, tuple[GossipPeer, int]] = {}
        for name, incarnation, identifier, profile, age in self._believed(told):
            known = table.get(name) or heard.get(name)
            if name == own.name or (known is not None and known[1] >= now - age):
                continue
            peer = self._placed(GossipPeer(name, incarnation, identifier, profile))
            if known is not None and peer != known[0] and name in table:
                select = True
            if not select and peer not in declined:
                select = prefers(own.identifier, peer)
                declined.add(peer)
            heard[name] = peer, now - age
        view = self._sampling.view
        if not select:
            for name, (peer, _) in view.items():
                if peer not in declined and name not in table and name not in heard:
                    select = prefers(own.identifier, self._placed(peer))
                    if select:
                        break
                    declined.add(peer)
        if select:
            declined.clear()
            candidates = {**table, **heard}
            for name, (peer, spoke) in view.items():
                if name not in candidates:
                    candidates[name] = self._placed(peer), spoke
            return self._select(candidates)
        table.update((name, entry) for name, entry in heard.items() if name in table)
        return []

    def _placed(self, peer: GossipPeer) -> GossipPeer:
        """The peer with the identifier that it has last given itself, if it has spoken to this node."""
        contact = self.contacts.get(peer.name)
        if contact is None or contact.identifier == peer.identifier:
            return peer
        return peer._replace(identifier=contact.identifier)

    def _select(self, heard: dict[NodeName, tuple[GossipPeer, int]]) -> list[Effect]:
        """Choose the neighbours among these, and greet the new ones."""
        self._reselect = False
        before, ring_before = self.table, self.selection.ring
        chosen = self.selection.select(self.me.identifier, {name: peer for name, (peer, _) in heard.items()}, before)
        self.table = {name: heard[name] for name in chosen}
        if self.table.keys() != before.keys():
            self._known = self._reach = None
        if set(self.selection.ring) != set(ring_before):
            self.stable_rounds = 0
            self.changed = True
        effects: list[Effect] = []
        for name in chosen:
            if name not in before:
                self._sampling.add(heard[name][0], heard[name][1])
                effects += self._beats([name])
                if name in self.selection.ring:
                    effects.append(Send(name, Exchange((*self.me, 0), self._written_table(), True)))
        return effects

    def _usable(self) -> list[Contact]:
        """The contacts over which it routes: its own links, and with `inbound` those that others have to it."""
        found = [self.contacts[name] for name in self.table if name in self.contacts]
        usable = [contact for contact in found if contact.answered]
        if self.parameters.inbound:
            others = [each for name, each in self.contacts.items() if each.links and name not in self.table]
            usable += others[: self.parameters.degree]
        return usable

    def _own_reach(self) -> Sequence[int]:
        if self._reach is None:
            found = [self.contacts[name] for name in self.table if name in self.contacts]
            self._reach = [contact.identifier for contact in found if contact.answered]
        return self._reach

    # -------------------------------------------------------------------------------------------- joining
    def _ask_to_join(self) -> list[Effect]:
        bootstrap = self.parameters.bootstrap
        if not bootstrap:
            self.joined = True
            return []
        peer = bootstrap[self._attempts % len(bootstrap)]
        self._attempts += 1
        return [Send(peer, GossipJoinRequest((*self.me, 0))), SetTimer(_RETRY, self.parameters.timeout_us)]

    def _seek(self) -> list[Effect]:
        """Look for the successor."""
        hop = self.known.next_hop((self.me.identifier + 1) % RING_SIZE)
        return [] if hop is None else [Send(hop, GossipJoinRequest((*self.me, 0)))]

    def _on_join_request(self, source: NodeName, request: GossipJoinRequest) -> list[Effect]:
        if not self.joined:
            self._held.append(request)
            return []
        joining = GossipPeer(*request.me[:4])
        if joining.name == self.me.name:
            return []
        hop = self.known.next_hop((joining.identifier + 1) % RING_SIZE)
        if hop is not None and hop not in (joining.name, source):
            return [Send(hop, request)]
        told = [(*self.me, 0), *self._written_table()]
        told += [(*peer, self.round - spoke) for peer, spoke in self._sampling.view.values()]
        return [*self._consider([request.me]), Send(joining.name, GossipWelcome(told))]

    def _on_welcome(self, source: NodeName, welcome: GossipWelcome) -> list[Effect]:
        effects = self._learn(welcome.peers)
        held, self._held = self._held, []
        return effects + [effect for request in held for effect in self._on_join_request(self.me.name, request)]

    def _learn(self, told: Sequence[Sequence[Any]]) -> list[Effect]:
        self.joined = True
        for name, incarnation, identifier, profile, age in self._believed(told):
            self._sampling.add(GossipPeer(name, incarnation, identifier, profile), self.round - age)
        return self._consider(told)

    def check_invariants(self) -> None:
        """Raise AssertionError if the state contradicts itself."""
        assert len(self.table) <= self.parameters.degree
        assert self.me.name not in self.table
        assert self.me.name not in self.contacts
        self._sampling.check_invariants()
