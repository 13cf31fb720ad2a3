"""How subscriptions travel: over primary links, from their origin to every broker, with the ppath growing (section 4).

An origin numbers the changes of its table. A broker passes on what is news to it, keeps back a change that has
overtaken another, and sends whole tables to a neighbour that comes (back). So whatever way a statement takes, over two
links during a move or over a bridge while a broker is away, it is counted once.

The way to an origin changes with Δ-moves only. A broker that a move has passed by, since it or a neighbour was away,
has a way that is no longer so. Therefore a table says which move was the last to change the way: a later one's holds.
"""

from collections.abc import Sequence

from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import Effect, NodeName, Send
from routing.multipath.knowledge import Knowledge
from routing.multipath.messages import Departed, OriginSubscriptions, Path, SubscriptionChanged


class SubscriptionSpread:
    """The part of the router that keeps the master subscription table."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge
        self._early: dict[NodeName, dict[tuple[int, int], tuple[NodeName, SubscriptionChanged]]] = {}
        self._gone: dict[NodeName, int] = {}

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
        mst, mom = self._knowledge.mst, self._knowledge.network.mom
        towards = mom.first_hop(peer) if away > 1 else peer  # a neighbour may be in the map at its former place
        peers = self._knowledge.network.peers
        effects: list[Effect] = []
        for origin, filters in mst.by_origin().items():
            first = next(iter(mst.ppaths[origin]), None)
            if move and first is not None and first not in peers:
                continue  # the move itself has left the way behind, and the peer knows the one that there is now
            if peer != origin and first != towards:
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
        mst = self._knowledge.mst
        origin = table.origin
        version = (table.epoch, table.version)
        if self._gone.get(origin, -1) >= table.epoch or not self._knowledge.network.hears(source):
            return []
        if origin == self._knowledge.name:
            return []  # what is left of an earlier life of this broker
        rerouted = origin in mst.ppaths and self._holds(table)
        if not self._knowledge.network.leads_on(source) or self._knowledge.name in table.ppath:
            rerouted = False  # the sender has not heard yet where this broker is
        is_news = mst.versions.get(origin, (-1, -1)) < version
        if rerouted:
            mst.moved[origin] = table.moved
            mst.ppaths[origin] = tuple(table.ppath)
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
        """Does a way begin with a broker that is no neighbour (any more)?"""
        peers = self._knowledge.network.peers
        return any(ppath and ppath[0] not in peers for ppath in self._knowledge.mst.ppaths.values())

    def _holds(self, table: OriginSubscriptions) -> bool:
        """Is the way that the table brings to be taken? That of the later move is, and of two of one move, that of the
        neighbour that the way leads over, or any, if it leads over no neighbour (any more)."""
        mst = self._knowledge.mst
        known, moved = mst.ppaths[table.origin], mst.moved.get(table.origin, 0)
        if table.moved != moved or not known:
            return table.moved > moved
        ppath = tuple(table.ppath)
        return ppath != known and (ppath[:1] == known[:1] or known[0] not in self._knowledge.network.peers)

    def on_change(self, source: NodeName, change: SubscriptionChanged) -> list[Effect]:
        """One change."""
        mst = self._knowledge.mst
        origin = change.origin
        version = (change.epoch, change.version)
        known = mst.versions.get(origin, (change.epoch, 0))
        if not self._knowledge.network.hears(source):
            return []
        if version <= known or self._gone.get(origin, -1) >= change.epoch or origin == self._knowledge.name:
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
        return [] if held_back is None else self.on_change(*held_back)

    def _pass_on(self, statement: OriginSubscriptions | SubscriptionChanged, source: NodeName | None) -> list[Effect]:
        origin = statement.origin
        knowledge = self._knowledge
        messages: dict[int, OriginSubscriptions | SubscriptionChanged] = {}
        effects: list[Effect] = []
        for peer, distance in knowledge.network.relays():
            direction = peer if distance == 1 else knowledge.network.mom.first_hop(peer)
            if peer in (source, origin) or knowledge.mst.ppaths[origin][:1] == (direction,):
                continue  # in the origin's own direction all are told from there
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

    def _ppath_for(self, peer: NodeName, distance: int, origin: NodeName) -> Sequence[NodeName]:
        """The way to the origin from a peer: over this broker, and before it over those that are away."""
        knowledge = self._knowledge
        before = reversed(knowledge.network.mom.path(peer)[:-1]) if distance > 1 else ()
        return (*before, knowledge.name, *knowledge.mst.ppaths[origin])[: knowledge.parameters.delta]
