"""The primary neighbours of one broker as they join, go, come back and leave, and as Δ-moves change them (section 6).

A neighbour that is away stays in the tree and is bridged by soft links to those behind it. They may be away, too,
though nobody who is there can tell: so they are asked (`routing.multipath.watch`), and the bridge is moved on. It is
looked at again whenever anything is heard of who is there.

Two brokers may come to disagree whether they are neighbours: one was away, or was restarted before its last word was
stored, while a move passed. Then they compare their words, as `Membership.on_neighbours` says.
"""

from collections.abc import Sequence

from murmur_pubsub.errors import WireError
from murmur_pubsub.machine import Answer, Effect, NodeName, Order, Record, Send, SetTimer
from routing.multipath.desk import CoordinatorDesk
from routing.multipath.joining import Joining
from routing.multipath.knowledge import Knowledge
from routing.multipath.messages import (
    BrokerAway,
    Departed,
    JoinRefused,
    LinkClaimed,
    MoveDoubted,
    MoveSettled,
    Neighbours,
    SoftLinkRequest,
    TablesTold,
    TablesWanted,
    WordTaken,
)
from routing.multipath.mover import Mover
from routing.multipath.primary_network import Statement
from routing.multipath.subscription_spread import SubscriptionSpread
from routing.multipath.watch import PATIENCE, Watch

JOIN_REFUSED = 5
"""Topic of a journal row: a broker (the peer) was refused, there being so many neighbours already."""


class Membership:
    """`departed`: this broker has left the overlay. `unsure`: brokers that only datagrams lead to, and that
    have still to tell all they know. `watching`: the timer of `watch` runs. `alone`: for so many turns of `watch` this
    broker, restarted, still waits for one that knows it: who is behind a neighbour that is away it has forgotten."""

    def __init__(self, knowledge: Knowledge, spread: SubscriptionSpread, mover: Mover, desk: CoordinatorDesk) -> None:
        self._knowledge = knowledge
        self._spread = spread
        self._mover = mover
        self._moves = mover.moves
        self._desk = desk
        self._watched = Watch()
        self.joining = Joining(knowledge, spread)
        self.departed = self.watching = False
        self._leaving: tuple[int, NodeName] | None = None
        self._looked_at = knowledge.network.mom
        self.unsure: dict[NodeName, None] = {}
        self.alone = self._astray = 0

    @property
    def is_astray(self) -> bool:
        """Does it wait for tables that fit its map? Of brokers that stay away nobody may know any."""
        return self.watching and self._astray <= PATIENCE and self._spread.is_astray

    @property
    def is_unknown(self) -> bool:
        """Restarted, does it wait for one that knows it, behind a neighbour that is away, or anywhere?"""
        network = self._knowledge.network
        return self.alone > 0 and bool(network.down or not network.peers)

    @property
    def leaving(self) -> bool:
        """Has this broker said farewell, and its neighbour has not answered yet?"""
        return self._leaving is not None

    @property
    def must_watch(self) -> bool:
        """Is there anybody to ask, and the timer does not run?"""
        network = self._knowledge.network
        if self.watching:
            return False
        some = network.down or network.unlinked or network.pending or self.unsure or network.disowned_by
        return bool(some) or self.leaving or self._looked_at is not network.mom or self._spread.strays

    def come_back(self) -> list[Effect]:
        """After a restart: the neighbours that no link leads to have to be found, and to tell what they know."""
        network = self._knowledge.network
        found = [*network.unlinked, *([network.pending.destination] if network.pending else ())]
        self.unsure = dict.fromkeys(found)
        self.alone = 0 if self._knowledge.parameters.strategy == "S0" else PATIENCE + 1
        return self.watch()

    def on_link_up(self, peer: NodeName) -> Sequence[Effect]:
        network = self._knowledge.network
        if self.departed:
            return (Send(peer, Departed(self._knowledge.name, network.epoch)),)
        network.up[peer] = None
        if peer in network.left:
            return [Send(peer, network.claim(peer))]  # a move has left the link behind: both are in the tree already
        if peer not in network.peers and len(network.peers) >= self._knowledge.parameters.fanout:
            degree = len(network.peers)
            return (Record(JOIN_REFUSED, degree, peer), Send(peer, JoinRefused(degree)))
        network.linked[peer] = None
        self.unsure.pop(peer, None)
        return self._on_reachable(peer)

    def _on_reachable(self, peer: NodeName) -> list[Effect]:
        """A neighbour joins, or comes back."""
        knowledge = self._knowledge
        network = knowledge.network
        effects: list[Effect] = []
        if peer not in network.peers:
            effects += self.joining.join(peer)
        elif peer in network.down:
            del network.down[peer]
            network.unseen.pop(peer, None)
            if not network.down:
                network.silent = {}  # asked no more: they bridge nothing
                self.unsure = {each: None for each in self.unsure if each in network.peers}
            knowledge.links_changed()
            effects += network.witness(peer, away=False)
        if not network.down:
            self.alone = 0
        return effects + self._tell_all(peer) + self._desk.tell(peer) + self._moves.on_back(peer)

    def _tell_all(self, peer: NodeName, away: int = 1, move: int = 0) -> list[Effect]:
        """All that this broker knows, to one that is so far away; without a link, the same is expected from there."""
        network = self._knowledge.network
        effects = network.tell_all(peer, away) + self._spread.tell_all(peer, away, move)
        if peer in network.linked:
            return effects
        if peer not in network.told or network.told[peer] != network.met.get(peer):
            self.unsure[peer] = None
        return [*effects, Send(peer, TablesTold(network.epoch))]

    def on_stranger(self, source: NodeName) -> list[Effect]:
        """A broker takes this one to be near, which has never heard of it: it may think otherwise. Or this one has been
        restarted, and a neighbour that they have in common is away: then it can tell who else is behind that one."""
        network = self._knowledge.network
        asked = [Send(source, TablesWanted())] if network.down else []
        return [Send(source, network.claim(source)), *asked]

    def on_tables_wanted(self, source: NodeName, wanted: TablesWanted) -> Sequence[Effect]:
        network = self._knowledge.network
        told = [Send(source, TablesTold(network.epoch))]
        # What a neighbour said last may be from before it was one, and then it is not in the map yet.
        away = 1 if source in network.peers else network.mom.distances.get(source)
        if away is None:
            return [Send(source, network.claim(source)), *told]
        return [*network.tell_all(source, away), *self._spread.tell_all(source, away), *told]

    def on_tables_told(self, source: NodeName, told: TablesTold) -> Sequence[Effect]:
        network = self._knowledge.network
        if told.epoch < network.met.get(source, told.epoch):
            return ()
        network.told[source] = told.epoch
        effects = self.meet(source, told.epoch)
        self.unsure.pop(source, None)
        return effects

    def on_link_down(self, peer: NodeName) -> list[Effect]:
        self._knowledge.network.up.pop(peer, None)
        return self._left(peer) + self.on_unreachable(peer)

    def on_unreachable(self, peer: NodeName) -> list[Effect]:
        """A neighbour is away: it stays in the map, and is bridged by soft links to those behind it."""
        network = self._knowledge.network
        if peer not in network.peers or peer in network.down:
            return []
        network.down[peer] = network.last_life(peer)
        network.forget_meeting(peer)
        network.forget_words_of(peer)
        return network.witness(peer, away=True) + self._gone(peer)

    def _gone(self, broker: NodeName) -> list[Effect]:
        """The broker, here or farther off, cannot be reached."""
        self.unsure.pop(broker, None)
        self._knowledge.links.drop(broker)
        self._knowledge.links_changed()
        return self.bridge() + self._mover.on_away(broker)

    def bridge(self) -> list[Effect]:
        """Open the soft links that bridge the neighbours that are away, as far as they are missing. Over a bridge the
        two brokers tell each other all that they know, as two neighbours do."""
        knowledge = self._knowledge
        network = knowledge.network
        if not network.down or self._knowledge.parameters.strategy == "S0":
            return []
        effects: list[Effect] = []
        for away in network.down:
            for behind, distance in network.bridges(away):
                if knowledge.links.bridge(behind):
                    network.forget_meeting(behind)
                    effects.append(Send(behind, SoftLinkRequest(network.epoch)))
                    effects += self._tell_all(behind, distance)
        if effects:
            self.alone = 0
            knowledge.links.trim(len(network.peers), knowledge.protected())
            knowledge.links_changed()
        return effects

    def watch(self) -> list[Effect]:
        """Ask those again of whose end nobody tells."""
        network = self._knowledge.network
        protected = self._knowledge.protected()
        doubted = () if network.pending is None else (network.pending.destination,)
        left = () if self._leaving is None else (self._leaving[1],)
        watched = dict.fromkeys((*network.unlinked, *protected, *doubted, *left, *network.silent))
        effects = self._mover.resolve()
        self.alone = max(0, self.alone - 1)
        self.unsure = {peer: None for peer in self.unsure if peer in watched}
        for peer in self._watched.ask(watched):
            effects += self._on_silent(peer, peer in protected) + self._left(peer)
        asked = [peer for peer in self.unsure if peer in network.met]
        disowned = network.disowned_by
        self._looked_at, self._spread.strays = network.mom, False
        astray = self._spread.is_astray
        self._astray = self._astray + 1 if astray else 0
        self.watching = bool(watched or disowned or astray or network.down or network.pending)
        if self.watching:
            effects.append(SetTimer(("routing", "watch"), self._knowledge.parameters.watch_us))
        effects += [Send(peer, SoftLinkRequest(network.epoch)) for peer in watched]
        effects += network.untaken_words()
        effects += self.joining.ask_again()
        effects += [Send(peer, network.claim(peer)) for peer in disowned]
        effects += [Send(peer, Departed(self._knowledge.name, network.epoch)) for peer in left if self.leaving]
        if astray and self._moves.zone is None:
            asked = [peer for peer, _ in network.relays()]
        return effects + [Send(peer, TablesWanted()) for peer in asked]

    def _on_silent(self, peer: NodeName, bridges: bool) -> list[Effect]:
        """The broker has left requests unanswered."""
        network = self._knowledge.network
        self.unsure.pop(peer, None)
        if peer in network.peers:
            return self.on_unreachable(peer)
        if not bridges:
            return []
        network.silent[peer] = None
        network.forget_words_of(peer)
        return self._gone(peer)

    def meet(self, peer: NodeName, epoch: int) -> list[Effect]:
        """A sign of life: if no link tells of the broker's end and beginning, tables are exchanged with each
        incarnation."""
        network = self._knowledge.network
        self._watched.answered(peer)
        if peer in network.silent:
            del network.silent[peer]
            return self.bridge()  # it is there again, nearer than those that have stood in for it
        known = network.met.get(peer, -1)
        if epoch <= known:
            return []
        if peer in network.unlinked:
            effects = [] if known < 0 else self.on_unreachable(peer)  # it was, unnoticed
            network.met[peer] = epoch
            return effects + self._on_reachable(peer)
        if peer not in self._knowledge.protected():
            return []
        network.met[peer] = epoch
        return [] if known < 0 else self._tell_all(peer, network.mom.distances[peer])

    def on_neighbours(self, source: NodeName, stated: Neighbours) -> Sequence[Effect]:
        statement = Statement(stated.epoch, stated.version, tuple(stated.peers))
        if stated.hops == 0:
            self._desk.learn(stated.broker, statement)
            return ()
        knowledge = self._knowledge
        network = knowledge.network
        if stated.broker == self._knowledge.name:
            return self._on_own_word(source, statement)
        closes = self._closes_cycle(source, stated)
        is_news = network.learn(stated.broker, statement)
        if network.statements[stated.broker].age != statement.age:
            return ()
        if not is_news and not closes:
            nearer = network.is_nearer(stated.broker, stated.hops)
            effects = network.spread_statement(stated.broker, stated.hops, source) if nearer else []
            return effects + (self._compare(source, stated.broker, statement) if source == stated.broker else [])
        knowledge.map_changed()
        told: list[Effect] = []
        if closes:
            network.outdate(stated.broker)
            network.left[stated.broker] = None  # should the link come up after all, that is no join
            told += knowledge.new_peers([each for each in network.peers if each != stated.broker])
        network.is_nearer(stated.broker, stated.hops)
        told += network.spread_statement(stated.broker, stated.hops, source) + self.bridge()
        return told + self._compare(source, stated.broker, statement)

    def _closes_cycle(self, source: NodeName, stated: Neighbours) -> bool:
        """Is a neighbour by link that was away back, and only the source hears it, which is a neighbour of both? That
        would be a cycle: the link between the two of them holds, and the one to this broker was taken away."""
        network = self._knowledge.network
        # A move may have made it a neighbour, and then it may be its link to the source that went.
        by_link = stated.broker in network.down and stated.broker in network.linked
        is_back = by_link and stated.epoch > network.life_at_end(stated.broker)
        if not is_back or source not in network.peers or source not in network.statements:
            return False
        both = {stated.broker, self._knowledge.name}  # a move may have led the source away from this one
        return source in stated.peers and both.issubset(network.statements[source].peers)

    def _on_own_word(self, source: NodeName, statement: Statement) -> Sequence[Effect]:
        """Others tell this broker what it has said, or should have: it may have forgotten, or been passed by."""
        network = self._knowledge.network
        # In the middle of a move others may know first what a phase is about to bring.
        if self.departed or self._moves.zone is not None:
            return ()
        if network.correct_own(statement):
            effects = [network.record(), *self._knowledge.peers_changed(), *network.tell_own()]
            for peer in [each for each in network.down if each in network.up]:
                effects += self._on_reachable(peer)
            return effects
        if (source in statement.peers) is not (source in network.peers):
            return [Send(source, network.claim(source))]
        return ()

    def _compare(self, source: NodeName, broker: NodeName, statement: Statement) -> list[Effect]:
        """Two brokers may not agree whether they are neighbours: a move has passed by while one of them was away, or
        one has lost its log. Each says what it knows. (In the middle of a move the phases tell.)"""
        network = self._knowledge.network
        taken, named = broker in network.peers, self._knowledge.name in statement.peers
        if taken == named or self._moves.zone is not None or (taken and source != broker):
            return []
        return [Send(broker, network.claim(broker))]

    def on_link_claimed(self, source: NodeName, claimed: LinkClaimed) -> Sequence[Effect]:
        """The later move's word holds; of one move, that of the broker that knows of the link. If this is lost, `watch`
        says it again."""
        network = self._knowledge.network
        own = network.claim(source)
        if self.departed:
            farewell = Send(source, Departed(self._knowledge.name, network.epoch))
            return [farewell] if claimed.held else self._left(source)
        in_doubt = network.pending is not None and source in network.pending[1:]
        if claimed.held == own.held or self._moves.zone is not None or in_doubt:
            return ()
        if claimed < own:
            return (Send(source, own),)
        network.changed[source] = claimed.move
        if not claimed.held:
            network.left[source] = None
            return self._knowledge.new_peers([each for each in network.peers if each != source])
        return self._knowledge.new_peers([*network.peers, source]) + self._meet_after(source, claimed.move)

    def on_move_doubted(self, source: NodeName, doubted: MoveDoubted) -> Sequence[Effect]:
        made = self._moves.is_made(doubted.move, source)
        if made is None:
            return ()  # it asks again
        told = self._meet_after(source, doubted.move) if made else []
        return [Send(source, MoveSettled(doubted.move, made)), *told]

    def on_move_settled(self, source: NodeName, settled: MoveSettled) -> Sequence[Effect]:
        found = self._mover.on_settled(settled)
        network = self._knowledge.network
        if found is None:
            return [network.record()]
        made = [network.record(), *self._knowledge.peers_changed(), *network.tell_own()]
        return made + self._meet_after(*found)

    def _meet_after(self, peer: NodeName, move: int) -> list[Effect]:
        """A move that few may know of has made the peer a neighbour: each tells all of its side, as after the move."""
        return self._on_reachable(peer) + self._spread.tell_all(peer, 1, move)

    def on_broker_away(self, source: NodeName, word: BrokerAway) -> Sequence[Effect]:
        network = self._knowledge.network
        onward: list[Effect] = []
        if source not in network.linked:
            onward.append(Send(source, WordTaken(word.broker, word.witness, word.epoch, word.version)))
        if not network.heard_away(word):
            return onward
        onward += network.spread_away(word, source)
        # Whether that is so of a neighbour of this broker it says itself, at once: until then nothing is sent to it.
        asked = [Send(word.broker, SoftLinkRequest(network.epoch))] if word.broker in network.unlinked else []
        if not word.away:
            network.silent.pop(word.broker, None)
            return onward + self.bridge() + (asked if word.broker in network.down else [])
        if asked:
            return onward + self.on_unreachable(word.broker) + asked
        return onward + self._gone(word.broker)

    def on_word_taken(self, source: NodeName, taken: WordTaken) -> Sequence[Effect]:
        self._knowledge.network.word_taken(source, taken)
        return ()

    def on_join_refused(self, source: NodeName, refused: JoinRefused) -> Sequence[Effect]:
        network = self._knowledge.network
        if source not in network.peers:
            return ()
        network.linked.pop(source, None)
        joined = self._knowledge.new_peers([peer for peer in network.peers if peer != source])
        return [Record(JOIN_REFUSED, refused.degree, source), *joined]

    def on_departed(self, source: NodeName, departed: Departed) -> Sequence[Effect]:
        """A broker has left for good."""
        knowledge = self._knowledge
        network = knowledge.network
        if departed.broker == knowledge.name:
            raise WireError(f"{source} says that this broker has left")
        effects = self._spread.depart(departed.broker, departed.epoch, source)
        network.left.pop(departed.broker, None)
        network.changed.pop(departed.broker, None)
        if departed.broker in network.peers and source == departed.broker:
            network.linked.pop(source, None)
            effects += knowledge.new_peers([peer for peer in network.peers if peer != source])
            effects += self._mover.on_away(source)
        self._desk.forget(departed.broker)
        if source == departed.broker:
            effects.append(Send(source, network.claim(source)))
        return effects

    def _left(self, peer: NodeName) -> list[Effect]:
        """The neighbour knows that this broker has left, or is away: the order is carried out."""
        if self._leaving is None or self._leaving[1] != peer:
            return []
        number, self._leaving = self._leaving[0], None
        return [Answer(number)]

    def depart(self, order: Order) -> Sequence[Effect]:
        network = self._knowledge.network
        refusal = ""
        if len(network.peers) > 1:
            refusal = (
                f"{self._knowledge.name} has {len(network.peers)} primary neighbours; Δ-moves make it an edge broker"
            )
        elif network.down:
            refusal = f"{', '.join(network.down)}, its only neighbour, is away"
        elif self._moves.zone is not None or self._mover.waiting:
            refusal = "a move is under way around it"
        elif self._desk.coordinator is not None:
            refusal = f"{self._knowledge.name} hosts the coordinator; order another broker to do that"
        if refusal:
            return (Answer(order.number, refusal),)
        self.departed = True
        farewell = [Send(peer, Departed(self._knowledge.name, network.epoch)) for peer in network.peers]
        network.left, network.linked = {}, {}
        # What the neighbour thinks, if it does not hear of this, is older.
        network.changed = {peer: network.changed.get(peer, 0) + 1 for peer in network.peers}
        answer = [] if network.peers else [Answer(order.number)]
        for peer in network.peers:  # there is only one
            self._leaving = (order.number, peer)
        network.set_peers(())
        self._knowledge.map_changed()
        return [*farewell, network.record(), *answer]
