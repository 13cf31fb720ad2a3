"""What a broker knows of the primary network around it, and how that knowledge spreads (sections 3 and 6).

Every broker states its primary neighbours; a statement travels Δ hops over primary links, so that every broker in
the neighbourhood can draw the same map. The primary network is meant to be stable: a neighbour that cannot be reached
for a while stays in the map, and what should pass it is bridged to those behind it. Only a departure, a join or a move
changes the map. So a broker stores its own statement: restarted, it knows its edges again, also those to neighbours
that are away and those that a move has made, of which no link of the runtime tells.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgpack

from murmur_pubsub.errors import InputError
from murmur_pubsub.machine import Effect, NodeName, Persist, Send
from routing.multipath.messages import BrokerAway, LinkClaimed, Neighbours, Path, SoftLinkRequest, WordTaken
from routing.multipath.overlay_maps import MasterOverlayMap


class Statement(NamedTuple):
    """A broker's word on its primary neighbours; the greater (epoch, version) holds."""

    epoch: int
    version: int
    peers: Path

    @property
    def age(self) -> tuple[int, int]:
        """What two statements of one broker are compared by."""
        return (self.epoch, self.version)


class PendingMove(NamedTuple):
    """A move of this broker of which it does not know yet whether it is made: the destination knows."""

    move: int
    neighbour: NodeName
    destination: NodeName


class PrimaryNetwork:
    """The primary network as one broker knows it.

    `down`: primary neighbours that cannot be reached at the moment, each with the latest incarnation that was known of
    it when it was found so (-1: this broker was restarted, and does not know). `linked`: neighbours to which there is a
    link of the runtime, which tells of its end. `up`: all brokers to which such a link is up now. `left`: brokers to
    which there may be such a link that a move has left behind. `changed`: the last move that has made a broker a
    neighbour or one no longer (absent: none has). `also`: a former neighbour that is still told everything while a move
    is not over. `met`: the latest incarnation seen of each broker to which datagrams stand for such a link; it was told
    all. `told`: the incarnation of it that has told all. `silent`: brokers beyond a neighbour that is down which have
    left this one's requests unanswered. `stored`: the own statement that an earlier incarnation has left behind;
    `unseen`: its neighbours by link that have not been seen since. `pending`: see `PendingMove`. `unsaid`: what the
    brokers that this one's own move links anew have stated before; others hear that until the move is sure to be
    remembered.
    """

    def __init__(self, name: NodeName, delta: int, epoch: int) -> None:
        self.name = name
        self.delta = delta
        self.epoch = epoch
        self.peers: dict[NodeName, None] = {}
        self.down: dict[NodeName, int] = {}
        self.linked: dict[NodeName, None] = {}
        self.up: dict[NodeName, None] = {}
        self.left: dict[NodeName, None] = {}
        self.changed: dict[NodeName, int] = {}
        self.also: dict[NodeName, None] = {}
        self.met: dict[NodeName, int] = {}
        self.told: dict[NodeName, int] = {}
        self.silent: dict[NodeName, None] = {}
        self.unseen: dict[NodeName, None] = {}
        self.stored = Statement(-1, -1, ())
        self.statements: dict[NodeName, Statement] = {name: Statement(epoch, 0, ())}
        self.pending: PendingMove | None = None
        self.unsaid: dict[NodeName, Statement] = {}
        self.token = 0
        self._away: dict[NodeName, dict[NodeName, BrokerAway]] = {}
        self._untaken: dict[NodeName, dict[tuple[NodeName, NodeName], BrokerAway]] = {}
        """To a broker that no link leads to: the words, by broker and witness, that it has not answered."""
        self._said = 0
        self._heard_at: dict[NodeName, int] = {}
        self._mom: MasterOverlayMap | None = None

    @property
    def mom(self) -> MasterOverlayMap:
        """The master overlay map for what is known now."""
        if self._mom is None:
            self._mom = MasterOverlayMap(self.name, self.delta, self.adjacency())
        return self._mom

    def adjacency(self) -> dict[NodeName, Path]:
        """Every stated list of neighbours, of brokers beyond the map too."""
        return {broker: statement.peers for broker, statement in self.statements.items()}

    def set_peers(self, peers: Iterable[NodeName]) -> None:
        """These are the primary neighbours from now on; makes the broker's next statement."""
        before, self.peers = self.peers, dict.fromkeys(peers)
        for peer in [each for each in self.peers if each not in before]:
            self.linked.pop(peer, None)
            if peer in self.up:
                self.linked[peer] = None
        self.left = {peer: None for peer in self.left if peer not in self.peers}
        self.down = {peer: life for peer, life in self.down.items() if peer in self.peers}
        self.statements[self.name] = Statement(self.epoch, self.own.version + 1, tuple(self.peers))
        self._mom = None

    def taken_by_move(self, peer: NodeName) -> list[Effect]:
        """A move has made the broker a neighbour, and its phases bring what there is to tell. One that is said to be
        away is asked whether that is so: when it answers it is met as one that comes back."""
        if not self.is_away(peer):
            self.met[peer] = self.told[peer] = self.statements[peer].epoch
            return []
        self.down[peer] = self.last_life(peer)
        self.forget_meeting(peer)
        return [Send(peer, SoftLinkRequest(self.epoch))]

    def forget_meeting(self, peer: NodeName) -> None:
        """Whatever is seen of the broker next is news."""
        self.met.pop(peer, None)
        self.told.pop(peer, None)

    # ------------------------------------------------------------------------------------------ what is stored
    def record(self) -> Persist:
        """The own statement for the next incarnation, with `left`, `changed` and `linked`."""
        return self._record(self.own, list(self.left), self.changed)

    def record_made(self, mover: NodeName, move: int) -> Persist:
        """The same as if the move had made the mover a neighbour."""
        own = Statement(self.epoch, self.own.version + 1, (*self.peers, mover))
        return self._record(own, [each for each in self.left if each != mover], self.changed | {mover: move})

    def _record(self, own: Statement, left: list[NodeName], changed: dict[NodeName, int]) -> Persist:
        self.token += 1
        pending = [] if self.pending is None else list(self.pending)
        kept = [self.token, *own, left, changed, list(self.linked), pending]
        return Persist(self.token, msgpack.packb(kept))

    def restore(self, records: Sequence[bytes]) -> bool:
        """Take the neighbours of the earlier incarnation, all of them down until they are seen; False if there were
        none. Raises `InputError` for a record that is none."""
        if not records:
            return False
        try:
            self.token, epoch, version, peers, left, self.changed, linked, pending = msgpack.unpackb(records[-1])
            self.pending = PendingMove(*pending) if pending else None
        except (ValueError, TypeError, msgpack.UnpackException) as error:
            allowed = "what a multipath router has stored"
            raise InputError(f"log of {self.name}", f"a record that is none ({error!r:.60})", allowed) from error
        self.stored = Statement(epoch, version, tuple(peers))
        self.left = dict.fromkeys(left)
        self.down = dict.fromkeys(peers, -1)
        self.set_peers(peers)
        self.linked = {peer: None for peer in peers if peer in linked}
        self.unseen = dict(self.linked)
        return bool(peers)

    def correct_own(self, stated: Statement) -> bool:
        """Others have a word of this broker that is newer than what it knows of itself: a Δ-move has passed it by while
        it was away, or what it said last was not stored. Take the neighbours from there; those new to it are down until
        they are seen. False if the word is old."""
        earlier = stated.epoch < self.epoch
        known = self.stored if earlier else self.own
        if stated.age <= known.age or stated.epoch > self.epoch:
            return False
        joined = [peer for peer in self.peers if peer not in known.peers]
        peers = dict.fromkeys((*stated.peers, *joined))
        self.left |= {peer: None for peer in known.peers if peer not in peers}
        for peer in [each for each in peers if each not in self.peers]:
            self.down[peer] = self.last_life(peer)
            self.forget_meeting(peer)  # it may have been met as one that is no neighbour
        if earlier:
            self.stored = stated
        else:
            self.statements[self.name] = stated
        self.set_peers(peers)
        return True

    @property
    def unlinked(self) -> list[NodeName]:
        """The primary neighbours of whose end no link of the runtime tells: moves have made them."""
        return [peer for peer in self.peers if peer not in self.linked]

    @property
    def disowned_by(self) -> list[NodeName]:
        """The primary neighbours whose last word, as far as it is known, is that this broker is none of theirs."""
        return [peer for peer in self.peers if peer in self.statements and self.name not in self.statements[peer].peers]

    def outdate(self, broker: NodeName) -> None:
        """What others say of the link to the broker is older than what this broker says of it from now on."""
        self.changed[broker] = self.changed.get(broker, 0) + 1

    def claim(self, broker: NodeName) -> LinkClaimed:
        """What this broker knows of the link between the two."""
        return LinkClaimed(self.changed.get(broker, 0), broker in self.peers)

    # ------------------------------------------------------------------------------------------ statements
    @property
    def own(self) -> Statement:
        """This broker's own statement."""
        return self.statements[self.name]

    def learn(self, broker: NodeName, statement: Statement) -> bool:
        """Take a statement; False if it is no news. Only this broker speaks for itself."""
        known = self.statements.get(broker)
        if broker == self.name or (known is not None and statement.age <= known.age):
            return False
        self.statements[broker] = statement
        self._mom = None
        self._heard_at.pop(broker, None)
        return True

    def is_nearer(self, broker: NodeName, hops: int) -> bool:
        """Is the last statement of the broker heard over fewer hops than before? Then it goes farther from here."""
        if hops >= self._heard_at.get(broker, self.delta + 1):
            return False
        self._heard_at[broker] = hops
        return True

    def hears(self, source: NodeName) -> bool:
        """May the broker have something to tell? A link alone may be one that a move has left behind."""
        return self.leads_on(source) or source in self.also or (source in self.mom and source not in self.left)

    def leads_on(self, source: NodeName) -> bool:
        """Is the broker a neighbour, or in the place of one, so that what it tells of lies behind it? The destination
        of a pending move tells its tables only if the move is made."""
        if source in self.peers or (self.pending is not None and source == self.pending.destination):
            return True
        return source in self.mom and self.mom.first_hop(source) in self.down

    def relays(self) -> Iterator[tuple[NodeName, int]]:
        """To which brokers a message for the whole neighbourhood is passed, and how far away they are: the primary
        neighbours, and in the place of one that is down those behind it."""
        for peer in self.peers:
            if peer not in self.down:
                yield peer, 1
            else:
                yield from self.bridges(peer)
        for peer in self.also:
            yield peer, 1

    def bridges(self, away: NodeName) -> Iterator[tuple[NodeName, int]]:
        """The nearest brokers behind one that is away which are not away themselves, and their distances."""
        if away in self.mom:
            for child in self.mom.children(away):
                if self.is_away(child):
                    yield from self.bridges(child)
                else:
                    yield child, self.mom.distances[child]

    def is_away(self, broker: NodeName) -> bool:
        """Does it not answer, or does some neighbour of it say that it cannot reach it?"""
        if broker in self.down or broker in self.silent:
            return True
        words = self._away.get(broker)
        if not words:
            return False
        known = self.statements.get(broker)
        life = -1 if known is None else known.epoch  # of an earlier one nothing is true any more
        return any(word.away and word.life >= life for word in words.values())

    def last_life(self, broker: NodeName) -> int:
        """The latest incarnation of the broker that is known of, maybe from those who say it is away (-1: none)."""
        known = self.statements.get(broker)
        words = self._away.get(broker, {}).values()
        return max((word.life for word in words), default=-1) if known is None else known.epoch

    def life_at_end(self, peer: NodeName) -> int:
        """The incarnation of a neighbour that is away which has ended. Of the next one datagrams may have told."""
        known = self.down[peer]
        return self.last_life(peer) if known < 0 else known

    # ------------------------------------------------------------------------------------------ what is sent
    def said_by(self, broker: NodeName, hops: int) -> Neighbours:
        """The broker's last statement, for one that is so many hops away from it."""
        epoch, version, peers = self.unsaid.get(broker, self.statements[broker])
        return Neighbours(broker, epoch, version, hops, peers)

    def tell_own(self) -> list[Effect]:
        """The own statement to every broker in the neighbourhood."""
        return self.spread_statement(self.name, 0, None)

    def tell_own_to(self, brokers: Iterable[tuple[NodeName, int]]) -> list[Effect]:
        """The same to these brokers, which are so many hops away."""
        return [Send(broker, self.said_by(self.name, hops)) for broker, hops in brokers]

    def tell_all(self, peer: NodeName, away: int) -> list[Effect]:
        """Everything that a broker `away` hops from here should know of this side: a neighbour that has just come
        (back), or one that bridges another. Of a broker that was restarted its own last word, too; and what those
        between the two have said, who cannot say it again."""
        effects: list[Effect] = []
        between = self.mom.path(peer)[:-1] if away > 1 else ()
        for broker, distance in self.mom.distances.items():
            hops = away - distance if broker in between else away + distance
            told = hops <= self.delta if broker != peer else away == 1
            if told and broker in self.statements:
                effects.append(Send(peer, self.said_by(broker, hops)))
        return effects

    def spread_statement(self, broker: NodeName, hops: int, source: NodeName | None) -> list[Effect]:
        """Pass the statement of a broker `hops` away on, as far as it should go."""
        return [
            Send(peer, self.said_by(broker, hops + distance))
            for peer, distance in self.relays()
            if peer != source and hops + distance <= self.delta
        ]

    def witness(self, broker: NodeName, away: bool) -> list[Effect]:
        """Say that a primary neighbour cannot be reached from here, or can again."""
        self._said += 1
        life = self.statements[broker].epoch if broker in self.statements else 0
        return self.spread_away(BrokerAway(broker, self.name, self.epoch, self._said, 0, away, life), None)

    def heard_away(self, word: BrokerAway) -> bool:
        """Take a witness's word; False if it is no news."""
        heard = self._away.setdefault(word.broker, {})
        last = heard.get(word.witness)
        if last is not None and (word.epoch, word.version) <= (last.epoch, last.version):
            return False
        heard[word.witness] = word
        if word.away:
            self.forget_words_of(word.broker)
        return True

    def forget_words_of(self, away: NodeName) -> None:
        """A broker that is away cannot take back what it has said of others."""
        for others in self._away.values():
            others.pop(away, None)

    def spread_away(self, word: BrokerAway, source: NodeName | None) -> list[Effect]:
        """Pass a witness's word on. A broker that is no longer away passes on that it is back itself: to those on its
        other side there may be no other way any more."""
        passed_by = (source, word.broker) if word.away else (source,)
        effects: list[Effect] = []
        for peer, distance in self.relays():
            if peer not in passed_by and word.hops + distance <= self.delta:
                told = word._replace(hops=word.hops + distance)
                if peer not in self.linked:
                    self._untaken.setdefault(peer, {})[word.broker, word.witness] = told
                effects.append(Send(peer, told))
        return effects

    def word_taken(self, source: NodeName, taken: WordTaken) -> None:
        """The source has heard that word of a witness, or a later one."""
        words = self._untaken.get(source, {})
        word = words.get((taken.broker, taken.witness))
        if word is not None and (taken.epoch, taken.version) >= (word.epoch, word.version):
            del words[taken.broker, taken.witness]

    def untaken_words(self) -> list[Effect]:
        """What was told to brokers to which no link leads, and may have been lost: it goes to them again."""
        unlinked = {peer for peer, _ in self.relays() if peer not in self.linked}
        self._untaken = {peer: words for peer, words in self._untaken.items() if words and peer in unlinked}
        return [Send(peer, word) for peer, words in self._untaken.items() for word in words.values()]

    def check_invariants(self) -> None:
        assert self.down.keys() <= self.peers.keys()
        assert not self.left.keys() & self.peers.keys()
        assert self.own.peers == tuple(self.peers)
        assert self.mom.centre == self.name


def network_to_wire(statements: Mapping[NodeName, Statement], brokers: Iterable[NodeName]) -> list[Any]:
    """[broker, epoch, version, peers] of those that are known."""
    return [[broker, *statements[broker]] for broker in brokers if broker in statements]


def network_from_wire(network: Sequence[Any]) -> dict[NodeName, Statement]:
    """The inverse of `network_to_wire`."""
    return {broker: Statement(epoch, version, tuple(peers)) for broker, epoch, version, peers in network}
