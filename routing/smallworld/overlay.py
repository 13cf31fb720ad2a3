"""A node of the gossip overlay: rounds of peer sampling, exchange of routing tables, heartbeats, joining, failures.

Theory of operation (Vinifera IV-B1 and IV-C). In each round a node shuffles its view with the oldest peer of it. It
exchanges its routing table with a neighbour drawn at random, and both select their neighbours anew from the peers that
they have, got and sampled. It sends a heartbeat to its neighbours and to the peers at which it has installed
subscriptions, but not to those that have sent it one since its last round: one heartbeat and its answer tell both sides
all. A peer that has not answered is asked twice more before the deadline, since a datagram may be lost. It is removed
when it misses the deadline, or has been silent for three rounds.

Hearsay does not prove that a peer is alive: routing uses *contacts* alone, peers that have spoken for themselves
(`routing.smallworld.contacts`). A heartbeat tells its receiver the sender's identifier and those of its neighbours.

A joining node sends a request to a bootstrap peer, which is routed to the rendezvous node of its identifier: its
successor, which answers with what it knows. A node whose successor has failed finds the next one by the same request,
sent for the identifier after its own. Now and then a node sends it by way of a bootstrap peer, and of one that it knew
before, so that the parts of an overlay that came apart find each other. A ring link that fails is replaced at once, any
other in the next round. A node that hears from another with its own identifier draws a new one, if its name is the
later of the two.

A node may move to another part of the ring. The two between which it was hear of each other from it. It looks for its
new successor, which tells it of its predecessor. Whoever has lost its successor so looks for the next one.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from murmur_pubsub.fingerprint import Fact, state_of
from murmur_pubsub.machine import Effect, NodeContext, NodeName, Send, SetTimer, TimerFired
from routing.founding import Founding, Outside
from routing.remembered_peers import RememberedPeers
from routing.smallworld.changes import (
    GossipChange,
    GossipPeerFailed,
    GossipPeerMoved,
    IdentifierGivenUp,
    RangeTaken,
    RingChanged,
    RingPeerAnswered,
)
from routing.smallworld.contacts import Alike, Contact, Contacts
from routing.smallworld.friends_at_distances import FriendsAtDistances
from routing.smallworld.messages import (
    Beat,
    BeatAnswer,
    Exchange,
    GossipJoinRequest,
    GossipPeer,
    GossipWelcome,
    Shuffle,
)
from routing.smallworld.neighbours import SelectedNeighbours
from routing.smallworld.parameters import SmallWorldParameters
from routing.smallworld.peer_sampling import PeerSampling
from routing.smallworld.quarantine import Quarantine
from routing.smallworld.ring import RING_SIZE, KnownRing
from routing.smallworld.selection import NeighbourSelection
from routing.smallworld.uplinks import Uplinks

_ROUND = ("routing", "round")
_ASK_AGAIN = ("routing", "ask again")
_DEADLINE = ("routing", "deadline")
_RETRY = ("routing", "join")
SILENT_ROUNDS = 3
_BEATS = 3
"""How often a peer is asked until the deadline. Where links lose 5 % of all messages, one heartbeat in ten is not
answered: asked once, nodes went on taking each other for failed, and the ring never settled."""
_SEEK_EVERY = 8
"""In rounds: how often a node looks for its successor though none has failed."""
_SEEK_TIMES = 2
"""In how many rounds it looks for a new one: the first request may meet a node that does not know of the failure."""


class GossipOverlay:
    """One node, for the layer above, which takes its changes (`take_changes`) after each input. `uplinks`: what that
    layer has installed at peers; `held_version`: the version of what a peer has installed here. Heartbeats carry
    both versions. `alike`: small-world links are chosen by utility too, and inbound ones are used of those alike."""

    def __init__(
        self,
        context: NodeContext,
        parameters: SmallWorldParameters,
        utility: Callable[[bytes], float],
        uplinks: Uplinks,
        held_version: Callable[[NodeName], int],
        alike: bool,
    ) -> None:
        self.parameters = parameters
        self.me = GossipPeer(context.name, context.incarnation, parameters.identifier, b"")
        self._place = parameters.identifier
        """By which it routes: its identifier, but for the first moments after a move."""
        self.joined = parameters.founds and not context.incarnation
        self.round = 0
        self._uplinks = uplinks
        self._held_version = held_version
        self._random = context.random("overlay")
        self._sampling = PeerSampling(context.name, parameters.view, parameters.shuffled, self._random)
        selection = FriendsAtDistances if alike else NeighbourSelection
        self.neighbours = SelectedNeighbours(
            selection(parameters.small_world_links, parameters.friend_links, self._random, utility)
        )
        inbound_max = (sys.maxsize if alike else parameters.degree) if parameters.inbound else 0
        preferred = Alike(utility, self.neighbours.mean_utility) if alike else None
        self.contacts = Contacts(self.neighbours, inbound_max, preferred)
        self._quarantine = Quarantine()
        self._load = self._median = 0
        """See `messages.Beat`."""
        self._awaited: dict[NodeName, None] = {}
        """The peers whose answer to this round's heartbeat has not come yet."""
        self._beats_left = 0
        """How many more heartbeats those get in this round."""
        self._founding = Founding(context.name, parameters.bootstrap, context.incarnation > 0)
        self._remembered = RememberedPeers(context.name)
        self._requests: dict[NodeName, GossipJoinRequest] = {}
        """Of other nodes, until this one has joined."""
        self._number = 0
        """Of what was last said in heartbeats and answers."""
        self._seeking = _SEEK_TIMES
        """In how many rounds it still looks for its successor."""
        self._changes: list[GossipChange] = []
        self._receivers: dict[type, Callable[[NodeName, Any], list[Effect]]] = {
            Shuffle: self._on_shuffle,
            Exchange: self._on_exchange,
            Beat: self._on_beat,
            BeatAnswer: self._on_answer,
            GossipJoinRequest: self._on_join_request,
            GossipWelcome: self._on_welcome,
            Outside: self._on_outside,
        }

    # ------------------------------------------------------------------------------- for the layer above
    def take_changes(self) -> list[GossipChange]:
        """What has changed since they were last taken, in order."""
        changes, self._changes = self._changes, []
        return changes

    @property
    def ring(self) -> KnownRing:
        """The ring of this node's contacts; the same object until it changes."""
        return self.contacts.ring(self._place)

    def ring_before(self, moved: Mapping[NodeName, int], besides: NodeName | None = None) -> KnownRing:
        """The ring with these contacts where they were before they moved, and without that one."""
        return self.contacts.ring_before(self._place, moved, besides)

    @property
    def moves(self) -> bool:
        """Has this node another identifier, and routes by its former place still?"""
        return self.me.identifier != self._place

    @property
    def candidates(self) -> Iterator[GossipPeer]:
        """Neighbours and the random peers of the view."""
        yield from self.neighbours.peers()
        yield from (peer for peer, _ in self._sampling.view.values() if peer.name not in self.neighbours)

    @property
    def predecessor(self) -> Contact | None:
        """The contact that comes before this node on the ring."""
        return self.contacts.predecessor(self.me.identifier)

    @property
    def successor(self) -> Contact | None:
        """The contact that comes after it."""
        return self.contacts.successor(self.me.identifier)

    def reached_from(self, name: NodeName | None) -> Sequence[int]:
        """The identifiers of that contact's neighbours, as it last said."""
        contact = None if name is None else self.contacts.get(name)
        return () if contact is None else contact.reach

    def know(self, peers: Iterable[GossipPeer]) -> list[Effect]:
        """Be part of an overlay with these peers in it, as if told when joining."""
        return self._learn([(*peer, 0) for peer in peers])

    def set_profile(self, profile: bytes) -> None:
        """Gossip this profile from now on: the node's subscriptions have changed."""
        self.me = self.me._replace(profile=profile, revision=self.me.revision + 1)
        self.neighbours.reselect()
        self.contacts.likeness_changed()

    def set_load(self, load: int, median: int) -> None:
        """Say this in heartbeats from now on (`messages.Beat`)."""
        self._load, self._median = load, median

    def move(self, identifier: int, load: int) -> list[Effect]:
        """Take another identifier, and with it this load. Neighbours stay and are told at once. The node routes by its
        old place until they must have answered: by then those that want something of its new range have said so."""
        self.me = self.me._replace(identifier=identifier)
        self._load = load
        self.neighbours.reselect()
        return self._beats(self.contacts)

    def jump(self, identifier: int, load: int) -> list[Effect]:
        """Take an identifier in another part of the ring, as `move` does in this one."""
        around = self.neighbours.ring
        moved = self.move(identifier, load)
        # Those around it are told that first: as long as it seems to be there, it hides them from each other.
        introduced = [self._send_table(name, True) for name in around]
        return [*moved, *introduced, *self._look_for_successor()]

    def _look_for_successor(self) -> list[Effect]:
        self._seeking = _SEEK_TIMES
        return self._seek()

    def _settle(self) -> None:
        """Route by the identifier that this node has taken."""
        if self._place != self.me.identifier:
            self._place = self.me.identifier
            self.contacts.forget_ring()
            self._changes.append(RangeTaken())

    # ----------------------------------------------------------------------------------------- the inputs
    def start(self, records: Sequence[bytes]) -> list[Effect]:
        """Begin with rounds, at a moment of this node's own, and join; `records`: what earlier incarnations stored."""
        self._founding.remembered = self._remembered.restore(records)
        first_us = 1 + self._random.randrange(self.parameters.cycle_us)
        return [SetTimer(_ROUND, first_us), *([] if self.joined else self._ask_to_join())]

    def on_timer(self, fired: TimerFired) -> list[Effect]:
        """A timer of the overlay has fired."""
        if fired.key == _ROUND:
            return [SetTimer(_ROUND, self.parameters.cycle_us), *self._begin_round()]
        if fired.key == _ASK_AGAIN:
            return self._ask_the_silent()
        if fired.key == _DEADLINE:
            silent, self._awaited = self._awaited, {}
            self._settle()
            effects = [effect for name in silent for effect in self.fail(name)]
            return effects + self._remembered.keep(self.contacts.names)
        assert fired.key == _RETRY, fired
        if self.joined:
            return []
        self.joined = self._founding.turn()
        return self._let_in() if self.joined else self._ask_to_join()

    def stored(self, token: int) -> list[Effect]:
        """What the overlay has stored is safe."""
        return self._remembered.stored(token)

    def receive(self, source: NodeName, message: Any) -> list[Effect]:
        """A message of the overlay has come."""
        return self._receivers[type(message)](source, message)

    def fail(self, name: NodeName) -> list[Effect]:
        """The peer is gone: forget it everywhere. A ring link is replaced at once."""
        self._sampling.forget(name)
        self._awaited.pop(name, None)
        contact, neighbour = self.contacts.drop(name), self.neighbours.drop(name)
        known = contact or neighbour
        if known is None and name not in self._uplinks:
            return []
        self.contacts.forget_ring()
        self._quarantine.begin(name, 0 if known is None else known.incarnation, self.round)
        self._changes.append(GossipPeerFailed(name))
        if name not in self.neighbours.ring:
            return []
        successor = self.neighbours.ring[-1]
        effects = self._consider(())
        if name == successor:  # a new predecessor comes by itself: it has lost its successor
            effects += self._look_for_successor()
        return effects

    # --------------------------------------------------------------------------------------------- rounds
    def _begin_round(self) -> list[Effect]:
        self.round += 1
        if not self.joined:
            return []
        effects: list[Effect] = []
        for name in self.contacts.unheard_since(self.round - SILENT_ROUNDS):
            if name in self.neighbours:
                effects += self.fail(name)
            else:
                self.contacts.drop(name)
        self._quarantine.begin_round(self.round)
        shuffle = self._sampling.begin(self.round, (*self.me, 0))
        if shuffle is not None:
            effects.append(Send(shuffle[0], Shuffle(shuffle[1], False)))
        if self.neighbours:
            partner = self._random.choice(list(self.neighbours))
            effects.append(self._send_table(partner, False))
        effects += [self._send_table(name, False) for name in self.contacts.unprofiled()]
        if self._seeking or self.round % _SEEK_EVERY == 0:
            effects += self._seek() if self._seeking else self._look_beyond()
            self._seeking = max(0, self._seeking - 1)
        beaten = dict.fromkeys(name for name in (*self.neighbours, *self._uplinks) if self._must_beat(name))
        self._awaited, self._beats_left = beaten, _BEATS
        return [*effects, *self._ask_the_silent(), SetTimer(_DEADLINE, self.parameters.timeout_us)]

    # ----------------------------------------------------------------------------------------- heartbeats
    def _ask_the_silent(self) -> list[Effect]:
        """Send a heartbeat to those that owe an answer, and set the time for the next one."""
        self._beats_left -= 1
        if not self._awaited:
            return []
        again = [SetTimer(_ASK_AGAIN, self.parameters.timeout_us // _BEATS)] if self._beats_left else []
        return [*self._beats(self._awaited), *again]

    def _must_beat(self, name: NodeName) -> bool:
        """Has the peer sent no heartbeat of its own since the last round, the answer to which said it all? Where closed
        connections are not heard of, both sides send them: a node that waits for the other's finds out later."""
        contact = self.contacts.get(name)
        return contact is None or not contact.answered or contact.beat != self.round - 1 or not self.parameters.resets

    def _beats(self, names: Iterable[NodeName]) -> list[Effect]:
        said, installed, held = self._said(), self._uplinks.version, self._held_version
        return [Send(name, Beat(*said, installed(name), held(name))) for name in names]

    def _said(self) -> tuple[int, int, int, Sequence[int], int, int]:
        self._number += 1
        me = self.me
        return me.identifier, me.incarnation, self._number, self.contacts.reach(), self._load, self._median

    def _on_beat(self, source: NodeName, beat: Beat) -> list[Effect]:
        effects = self._hear(source, beat)
        self.contacts.beat_by(source, self.round)
        installed, held = self._uplinks.version(source), self._held_version(source)
        links = installed > 0 or source in self.neighbours
        return [*effects, Send(source, BeatAnswer(*self._said(), installed, held, links))]

    def _on_answer(self, source: NodeName, answer: BeatAnswer) -> list[Effect]:
        self._awaited.pop(source, None)
        effects = self._hear(source, answer)
        if answer.links:
            self.contacts.links_here(source)
        if self.contacts.answered(source) and source in self.neighbours.ring:
            self._changes.append(RingPeerAnswered())
        return effects

    def _hear(self, source: NodeName, said: Beat | BeatAnswer) -> list[Effect]:
        """A contact has spoken for itself."""
        if self.contacts.is_overtaken(source, said):
            return []
        effects: list[Effect] = []
        contact = self.contacts.get(source)
        if contact is not None and contact.incarnation < said.incarnation:
            effects = self.fail(source)
        self._quarantine.end(source)
        moves = contact is not None and contact.identifier != said.identifier
        successor = self.successor if moves else None
        former = self.contacts.hear(source, said, self.round)
        if former is not None:
            self._changes.append(GossipPeerMoved(source, former))
            if contact is successor is not self.successor:
                effects += self._look_for_successor()
        own, neighbours = self.me.identifier, self.neighbours
        # Who is closest on the ring is not what both believe: one of the two has moved, or a third has come between
        # them. What said so, be it its own request, was judged by its former place, or lost.
        if neighbours.lacks(own, source, said.identifier) or neighbours.is_beyond_another(own, source, said):
            effects.append(self._send_table(source, False))
        self.neighbours.hear(source, said, self.round)
        if said.identifier == self.me.identifier and self.me.name > source:
            effects += self._give_way()
        return effects

    def _give_way(self) -> list[Effect]:
        """Two nodes have moved to one identifier, neither of which knew of the other yet: this one draws another."""
        self._changes.append(IdentifierGivenUp())
        effects = self.jump(self._random.randrange(RING_SIZE), 0)
        self._settle()
        return effects

    # -------------------------------------------------------------------------------- views and tables
    def _on_shuffle(self, source: NodeName, shuffle: Shuffle) -> list[Effect]:
        believed = self._quarantine.believed(shuffle.peers)
        self.neighbours.refresh(believed)
        if shuffle.answer:
            self._sampling.end(believed, self.round)
            return []
        return [Send(source, Shuffle(self._sampling.answer(believed, self.round), True))]

    def _on_exchange(self, source: NodeName, exchange: Exchange) -> list[Effect]:
        self.contacts.profiled(source, exchange.me[3])
        effects: list[Effect] = [] if exchange.answer else [self._send_table(source, True)]
        return effects + self._consider([exchange.me, *exchange.table])

    def _send_table(self, to: NodeName, answer: bool, besides: Iterable[tuple[GossipPeer, int]] = ()) -> Send:
        return Send(to, Exchange((*self.me, 0), self.neighbours.written(self.round, besides), answer))

    def _consider(self, told: Sequence[Sequence[Any]]) -> list[Effect]:
        """Select the neighbours anew, if any of the peers is better than one of them, and greet the new ones."""
        for name, *_ in told:
            self._remembered.heard_of(name)
        believed = self._quarantine.believed(told)
        selected = self.neighbours.consider(self.me, believed, self._sampling.view, self.contacts, self.round)
        if selected is None:
            return []
        if selected.changed:
            self.contacts.forget_ring()
        if selected.ring_changed:
            self._changes.append(RingChanged())
        effects: list[Effect] = []
        for peer, spoke in selected.newcomers:
            self._sampling.add(peer, spoke)
            effects += self._beats([peer.name])
        # Who has come between this node and another on the ring hears of the other, which it may not know yet.
        return [*effects, *(self._send_table(name, True, selected.displaced) for name in selected.entered)]

    # -------------------------------------------------------------------------------------------- joining
    def _ask_to_join(self) -> list[Effect]:
        if not self.parameters.bootstrap:
            self.joined = True
            return []
        asked = [Send(peer, GossipJoinRequest((*self.me, 0))) for peer in self._founding.to_ask()]
        return [*asked, SetTimer(_RETRY, self.parameters.timeout_us)]

    def _seek(self) -> list[Effect]:
        """Look for the successor."""
        hop = self.ring.next_hop((self.me.identifier + 1) % RING_SIZE)
        return [] if hop is None else [Send(hop, GossipJoinRequest((*self.me, 0)))]

    def _look_beyond(self) -> list[Effect]:
        """Look for it by way of others, which may be in another part, if the overlay has come apart."""
        through = self._remembered.to_look_through(self.parameters.bootstrap, self.contacts.names)
        looked: list[Effect] = [Send(peer, GossipJoinRequest((*self.me, 0))) for peer in through]
        return looked if self.parameters.bootstrap else looked + self._seek()

    def _on_join_request(self, source: NodeName, request: GossipJoinRequest) -> list[Effect]:
        joining = GossipPeer(*request.me[:-1])
        if not self.joined:
            self._requests[joining.name] = request
            waits = self._founding.asked_by(joining.name)
            return [Send(joining.name, waits)] if joining.incarnation or self.me.incarnation else []
        if joining.name == self.me.name:
            return []
        hop = self.ring.next_hop((joining.identifier + 1) % RING_SIZE)
        if hop is not None and hop not in (joining.name, source):
            return [Send(hop, request)]
        told = [(*self.me, 0), *self.neighbours.written(self.round), *self._sampling.written(self.round)]
        return [*self._consider([request.me]), Send(joining.name, GossipWelcome(told))]

    def _on_welcome(self, source: NodeName, welcome: GossipWelcome) -> list[Effect]:
        return self._learn(welcome.peers) + self._let_in()

    def _on_outside(self, source: NodeName, said: Outside) -> list[Effect]:
        told = self._founding.heard(source, said)
        return [] if self.joined or told is None else [Send(source, told)]

    def _let_in(self) -> list[Effect]:
        """Answer the requests that have waited for this node."""
        requests, self._requests = self._requests, {}
        return [each for request in requests.values() for each in self._on_join_request(self.me.name, request)]

    def _learn(self, told: Sequence[Sequence[Any]]) -> list[Effect]:
        self.joined = True
        for *fields, age in self._quarantine.believed(told):
            self._sampling.add(GossipPeer(*fields), self.round - age)
        return self._consider(told)

    def state(self) -> Fact:
        """For a fingerprint."""
        return state_of(
            "ring",
            outside=not self.joined,
            alone=not self.neighbours,
            no_successor=self.successor is None,
            seeking=self._seeking,
            answers_missing=self._awaited,
            moving=self._place != self.me.identifier,
            others_wait=self._requests,
        )

    def check_invariants(self) -> None:
        """Raise AssertionError if the state contradicts itself."""
        assert len(self.neighbours) <= self.parameters.degree
        assert self.me.name not in self.neighbours
        assert self.me.name not in self.contacts
        self._sampling.check_invariants()
