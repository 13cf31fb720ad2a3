"""How subscriptions travel: over primary links, from their origin to every broker, with the ppath growing (section 4).

An origin numbers the changes of its table. A broker passes on what is news to it, keeps back a change that has
overtaken another, and sends whole tables to a neighbour that comes (back). So whatever way a statement takes, over two
links during a move or over a bridge while a broker is away, it is counted once.

Where no link of the runtime leads to a broker, nobody tells of what is lost on the way: a partition may be over before
a request to that broker goes unanswered. So it says which version of a table it has now, and while that is not the one
of which it was sent news, the whole table is told again, ever more slowly.

The way to an origin changes with Δ-moves only. A broker that a move has passed by, since it or a neighbour was away,
has a way that is no longer so. Therefore a table says which move was the last to change the way: a later one's holds.
But numbers are forgotten with those that die. So the map, which heals by itself, is asked before them: a way that is
none in it is given up for one that is, and a broker whose ways do not fit its map asks its neighbours.
"""

from collections.abc import Sequence

from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import Effect, NodeName, Send, SetTimer
from routing.multipath.knowledge import Knowledge
from routing.multipath.messages import Departed, OriginSubscriptions, Path, SubscriptionChanged, TableTaken

_RETELL_US = 100_000
"""Before a table is told again for the first time; twice as long before each next time, up to the time of `watch`."""


class SubscriptionSpread:
    """The part of the router that keeps the master subscription table."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge
        self._early: dict[NodeName, dict[tuple[int, int], tuple[NodeName, SubscriptionChanged]]] = {}
        self._gone: dict[NodeName, int] = {}
        self._untaken: dict[NodeName, dict[NodeName, tuple[int, int]]] = {}
        """By broker that no link leads to, and origin: the version that it was told and has not answered for."""
        self._retell_after_us = 0
        """How long the timer runs; 0: it does not."""
        self.strays = False
        """Has it taken a way, in place of another, that does not fit the map? Until `watch` looks."""

    def change_own(self, wanted: Filter, held: bool) -> list[Effect]:
        """A filter of this broker's own subscribers has come or gone."""
        knowledge = self._knowledge
        name = knowledge.name
        epoch, version = knowledge.mst.versions[name]
        knowledge.mst.versions[name] = (epoch, version + 1)
        self._change(name, wanted, held)
        return self._pass_on(SubscriptionChanged(name, epoch, version + 1, (), held, wanted), None)

    def tell_all(self, peer: NodeName, away: int, move: int = 0) -> list[Effect]:
        """All tables of this side for a broker `away` hops from here: a neighbour that has just come (back), or one
        that bridges another. `move`: that which has made it a neighbour, if others may not know of it."""
        mst, peers = self._knowledge.mst, self._knowledge.network.peers
        effects: list[Effect] = []
        for origin, filters in mst.by_origin().items():
            first = next(iter(mst.ppaths[origin]), None)
            if move and first is not None and first not in peers:
                continue  # the move itself has left the way behind, and the peer knows the one that there is now
            if peer != origin and not self._leads_over(peer, away, origin):
                ppath, moved = self._ppath_for(peer, away, origin), max(move, mst.moved.get(origin, 0))
                effects.append(Send(peer, OriginSubscriptions(origin, *mst.versions[origin], ppath, moved, filters)))
        return effects

    def note_new_place(self, broker: NodeName) -> None:
        """A broker that was known elsewhere has joined here: from now on its tables are told with a later number."""
        mst = self._knowledge.mst
        if broker in mst.ppaths:
            mst.ppaths[broker] = (broker,)
            mst.moved[broker] = mst.moved.get(broker, 0) + 1

    def on_table(self, source: NodeName, table: OriginSubscriptions) -> list[Effect]:
        """A whole table, which may be of an origin not heard of before."""
        return [*self._take_table(source, table), *self._answer(source, table)]

    def on_change(self, source: NodeName, change: SubscriptionChanged) -> list[Effect]:
        """One change."""
        return [*self._take_change(source, change), *self._answer(source, change)]

    def _answer(self, source: NodeName, told: OriginSubscriptions | SubscriptionChanged) -> list[Effect]:
        """What is known of the origin now, to a broker that no link leads to. Of an origin that is gone or this broker
        itself, and by one that is not heard, nothing more is wanted."""
        network, origin, version = self._knowledge.network, told.origin, (told.epoch, told.version)
        if source in network.up:
            return []
        if network.hears(source) and self._gone.get(origin, -1) < told.epoch and origin != self._knowledge.name:
            version = self._knowledge.mst.versions.get(origin, (told.epoch, 0))
        return [Send(source, TableTaken(origin, *version))]

    def on_taken(self, source: NodeName, taken: TableTaken) -> list[Effect]:
        """A broker that no link leads to has this version of the origin's table."""
        untaken = self._untaken.get(source, {})
        if (taken.epoch, taken.version) >= untaken.get(taken.origin, (0, 0)):
            untaken.pop(taken.origin, None)
            if not untaken:
                self._untaken.pop(source, None)
        return []

    @property
    def has_untaken(self) -> bool:
        """Is there a broker that has not said that it has what it was told?"""
        return bool(self._untaken)

    def retell_later(self) -> list[Effect]:
        """Start the timer, if there is something that may have to be told again and it does not run."""
        if not self._untaken or self._retell_after_us:
            return []
        self._retell_after_us = _RETELL_US
        return [SetTimer(("routing", "retell"), _RETELL_US)]

    def retell(self) -> list[Effect]:
        """Tell the tables again that were not taken, to those brokers for whom they still are."""
        knowledge = self._knowledge
        network, mst = knowledge.network, knowledge.mst
        relays = {peer: distance for peer, distance in network.relays() if peer not in network.up}
        by_origin = mst.by_origin()
        effects: list[Effect] = []
        for peer, origins in list(self._untaken.items()):
            for origin in list(origins):
                if peer not in relays or origin not in by_origin or self._leads_over(peer, relays[peer], origin):
                    del origins[origin]
                    continue
                ppath, moved = self._ppath_for(peer, relays[peer], origin), mst.moved.get(origin, 0)
                filters = by_origin[origin]
                effects.append(Send(peer, OriginSubscriptions(origin, *mst.versions[origin], ppath, moved, filters)))
            if not origins:
                del self._untaken[peer]
        self._retell_after_us = min(2 * self._retell_after_us, knowledge.parameters.watch_us) if self._untaken else 0
        if self._untaken:
            effects.append(SetTimer(("routing", "retell"), self._retell_after_us))
        return effects

    def _take_table(self, source: NodeName, table: OriginSubscriptions) -> list[Effect]:
        mst = self._knowledge.mst
        origin = table.origin
        version = (table.epoch, table.version)
        if self._gone.get(origin, -1) >= table.epoch or not self._knowledge.network.hears(source):
            return []
        if origin == self._knowledge.name:
            return []  # what is left of an earlier life of this broker
        if self._leads_back(origin, table.ppath):
            return []
        rerouted = origin in mst.ppaths and self._holds(table)
        if not self._knowledge.network.leads_on(source) or self._knowledge.name in table.ppath:
            rerouted = False  # the sender has not heard yet where this broker is
        is_news = mst.versions.get(origin, (-1, -1)) < version
        if rerouted:
            mst.moved[origin] = max(mst.moved.get(origin, 0), table.moved)
            mst.ppaths[origin] = tuple(table.ppath)
            self.strays |= not self._fits(origin, mst.ppaths[origin])
        if is_news:
            if origin not in mst.ppaths and table.moved:
                mst.moved[origin] = table.moved
            self._note(origin, version, tuple(table.ppath))
            mst.replace(origin, table.filters)
        if not is_news and not rerouted:
            return []
        self._knowledge.links_changed()  # covering sets, too, are made anew
        return self._pass_on(table._replace(moved=mst.moved.get(origin, 0)), source) + self._take_early(origin)

    @property
    def is_astray(self) -> bool:
        """Does what is known of the origins not fit the map? A way is none in it (any more), or a broker in it has not
        been heard of, or only in an earlier life. Then a table was lost, or came before the map did."""
        ppaths, mom = self._knowledge.mst.ppaths, self._knowledge.network.mom
        return any(not self._fits(*each) for each in ppaths.items()) or any(map(self._is_unheard_of, mom.brokers))

    def _fits(self, origin: NodeName, ppath: Path) -> bool:
        """Is that the way to the origin in the map, or to one as far off as the map reaches?"""
        mom = self._knowledge.network.mom
        anchor = ppath[-1] if ppath and origin not in mom else origin
        return anchor in mom and mom.path(anchor) == ppath

    def _is_unheard_of(self, broker: NodeName) -> bool:
        network, mst = self._knowledge.network, self._knowledge.mst
        life = network.statements[broker].epoch if broker in network.statements else 0
        if network.is_away(broker) or self._gone.get(broker, -1) >= life:
            return False
        return broker not in mst.ppaths or mst.versions[broker][0] < life

    def _holds(self, table: OriginSubscriptions) -> bool:
        """Is the way that the table brings to be taken? One that fits the map is, if the known one does not. Else that
        of the later move is, and of two of one move, that of the neighbour that the way leads over,
        or any, if it leads over no neighbour (any more)."""
        mst = self._knowledge.mst
        known, moved = mst.ppaths[table.origin], mst.moved.get(table.origin, 0)
        ppath = tuple(table.ppath)
        if self._fits(table.origin, ppath) and not self._fits(table.origin, known):
            return True
        if table.moved != moved:
            return table.moved > moved
        return ppath != known and (ppath[:1] == known[:1] or known[0] not in self._knowledge.network.peers)

    def _take_change(self, source: NodeName, change: SubscriptionChanged) -> list[Effect]:
        mst = self._knowledge.mst
        origin = change.origin
        version = (change.epoch, change.version)
        known = mst.versions.get(origin, (change.epoch, 0))
        if not self._knowledge.network.hears(source):
            return []
        if version <= known or self._gone.get(origin, -1) >= change.epoch or origin == self._knowledge.name:
            return []
        if self._leads_back(origin, change.ppath):
            return []
        if version != (known[0], known[1] + 1):
            self._early.setdefault(origin, {})[version] = (source, change)
            return []
        self._note(origin, version, tuple(change.ppath))
        self._change(origin, change.filter, change.held)
        return self._pass_on(change, source) + self._take_early(origin)

    def depart(self, broker: NodeName, epoch: int, source: NodeName | None) -> list[Effect]:
        """A broker has left for good: its subscriptions go."""
        if self._gone.get(broker, -1) >= epoch:
            return []
        self._gone[broker] = epoch
        self._early.pop(broker, None)
        if broker in self._knowledge.mst.ppaths:
            self._knowledge.mst.forget(broker)
            self._knowledge.links_changed()
        return [
            Send(peer, Departed(broker, epoch))
            for peer, _ in self._knowledge.network.relays()
            if peer not in (source, broker)
        ]

    def _note(self, origin: NodeName, version: tuple[int, int], ppath: Path) -> None:
        """The way to a known origin is that of the maps; a new one's is what the statement brought."""
        mst = self._knowledge.mst
        if origin not in mst.ppaths:
            self._knowledge.links_changed()
        mst.note_origin(origin, version, mst.ppaths.get(origin, ppath))

    def _leads_back(self, origin: NodeName, ppath: Sequence[NodeName]) -> bool:
        """Is the only way that is known one over this broker? It has forgotten the origin, and will hear of it from the
        other side. If it took this for the way, it would send in a circle."""
        return origin not in self._knowledge.mst.ppaths and self._knowledge.name in ppath

    def _change(self, origin: NodeName, wanted: Filter, held: bool) -> None:
        mst = self._knowledge.mst
        if held:
            mst.add(origin, wanted)
        else:
            mst.remove(origin, wanted)
        self._knowledge.view.changed(origin, wanted, held)

    def _take_early(self, origin: NodeName) -> list[Effect]:
        early = self._early.get(origin)
        if not early:
            return []
        epoch, version = self._knowledge.mst.versions[origin]
        for old in [each for each in early if each <= (epoch, version)]:
            del early[old]
        held_back = early.pop((epoch, version + 1), None)
        return [] if held_back is None else self._take_change(*held_back)

    def _pass_on(self, statement: OriginSubscriptions | SubscriptionChanged, source: NodeName | None) -> list[Effect]:
        origin = statement.origin
        knowledge = self._knowledge
        messages: dict[int, OriginSubscriptions | SubscriptionChanged] = {}
        effects: list[Effect] = []
        pending = knowledge.network.pending
        # A restarted mover's destination tells its tables when the move is made: then that neighbour is none any more.
        left = pending.neighbour if pending is not None and source == pending.destination else None
        for peer, distance in knowledge.network.relays():
            if peer in (source, origin, left) or self._leads_over(peer, distance, origin):
                continue
            if peer not in knowledge.network.up and peer not in knowledge.network.also:
                self._untaken.setdefault(peer, {})[origin] = (statement.epoch, statement.version)
            if peer in knowledge.network.also:
                # No neighbour any more: it hears the news, but not that its way has changed.
                news = statement._replace(ppath=self._ppath_for(peer, distance, origin))
                effects.append(Send(peer, news._replace(moved=0) if isinstance(news, OriginSubscriptions) else news))
            elif distance == 1:  # the same for all neighbours: one object is encoded once
                if distance not in messages:
                    messages[distance] = statement._replace(ppath=self._ppath_for(peer, distance, origin))
                effects.append(Send(peer, messages[distance]))
            else:
                effects.append(Send(peer, statement._replace(ppath=self._ppath_for(peer, distance, origin))))
        return effects

    def _leads_over(self, peer: NodeName, distance: int, origin: NodeName) -> bool:
        """Does the way to the origin lead over the peer, or begin in its direction? Then it is told from there, and of
        a way over itself it would see the last hops alone. Way and map may be of different times: a neighbour may be in
        the map at its former place, and the destination of a pending move tells its tables before it says that the move
        is made."""
        ppath = self._knowledge.mst.ppaths[origin]
        return peer in ppath or (distance > 1 and ppath[:1] == (self._knowledge.network.mom.first_hop(peer),))

    def _ppath_for(self, peer: NodeName, distance: int, origin: NodeName) -> Sequence[NodeName]:
        """The way to the origin from a peer: over this broker, and before it over those that are away."""
        knowledge = self._knowledge
        before = reversed(knowledge.network.mom.path(peer)[:-1]) if distance > 1 else ()
        return (*before, knowledge.name, *knowledge.mst.ppaths[origin])[: knowledge.parameters.delta]
