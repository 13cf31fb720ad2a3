"""Filter epochs: no event is filtered out by a table older than the one its publisher's broker knew.

Theory of operation. On redundant paths a filter can reach a root (the broker where events enter) by one way while
events flow down by another, past a broker that has not heard of it. So a root numbers the states of its knowledge.
When tables change it starts an epoch and announces with it the versions of all tables it holds; each event carries
the epoch it was sent in, and a broker filters an event only if its own tables are at least as new as that epoch's,
else it passes the event on to every branch. A subscriber's broker learns from the same announcement that its filters
are in effect at that root, and from when on.

A restarted root has lost its tables, and those that it is told again may be older than those it had announced. It
therefore sends unfiltered down a branch until every broker behind it has published a table that names the root's
present incarnation: such a table is no older than anything that was ever in effect.

Of brokers that have joined since only those count that are known to have, where filters are announced and where they
are applied; those that have departed want nothing.

One announcement is on its way at a time (the direct neighbours answer it); changes gather meanwhile. So a thousand
subscriptions make few epochs, and the run sees that they have not settled.
"""

from collections.abc import Iterable

from murmur_pubsub.machine import Effect, NodeName, Send
from routing.cells.messages import EpochHeard, InEffect
from routing.cells.tables import FilterTables

UNFILTERED = 1 << 62
"""The stamp of an event that no broker may filter out: later than every epoch."""
_INCARNATION_BITS = 32


class FilterEpochs:
    """The epochs of all roots as this broker knows them, and its own if it is one."""

    def __init__(self, me: NodeName, incarnation: int, tables: FilterTables) -> None:
        self.own = incarnation << _INCARNATION_BITS
        self.known: dict[NodeName, InEffect] = {}
        self._me = me
        self._tables = tables
        self._complete: dict[NodeName, int] = {}
        self._waiting: dict[NodeName, dict[NodeName, None]] = {}
        """Of a broker whose table is too old here: the roots whose last epoch is not complete for that, if not only so.
        Each other root need not be looked at when that table changes."""
        self._awaited: dict[NodeName, None] = {}
        self._changed = False

    @property
    def is_announcing(self) -> bool:
        """Has some neighbour not heard yet of the last epoch here?"""
        return bool(self._awaited)

    @property
    def is_behind(self) -> bool:
        """Is there a root of whose last epoch some table has not come yet?"""
        return any(self._complete.get(root, -1) < announced.epoch for root, announced in self.known.items())

    def incarnation_of(self, root: NodeName) -> int:
        """The latest incarnation of the root that was heard of."""
        known = self.known.get(root)
        return 0 if known is None else known.epoch >> _INCARNATION_BITS

    def filterable(self, root: NodeName, stamp: int) -> bool:
        """May this broker filter an event of the root with that stamp?"""
        return self._complete.get(root, -1) >= stamp

    def table_changed(self, broker: NodeName) -> None:
        """The broker's table is newer than before."""
        self._changed = True
        for root in self._waiting.pop(broker, ()):
            self._complete_if_known(root)

    def members_changed(self) -> None:
        """Brokers have joined or departed, and their tables are applied from now on, or needed no more."""
        self._changed = True
        self._waiting.clear()
        for root in self.known:
            self._complete_if_known(root)

    def announce(self, links: Iterable[NodeName], marks: list[int]) -> InEffect | None:
        """The announcement of a new epoch to send to all links, if one is due and none is on its way."""
        if not self._changed or self._awaited:
            return None
        self._changed = False
        self._awaited = dict.fromkeys(links)
        self.own += 1
        self.known[self._me] = InEffect(self._me, self.own, {**self._tables.applied}, marks)
        self._complete[self._me] = self.own
        return self.known[self._me]

    def answered(self, peer: NodeName) -> None:
        """The neighbour has heard the announcement, or its link is gone."""
        self._awaited.pop(peer, None)

    def learn(self, source: NodeName, announced: InEffect, links: Iterable[NodeName]) -> tuple[bool, list[Effect]]:
        """Take another root's announcement: whether it is news, and the effects that answer it and pass it on."""
        effects: list[Effect] = []
        if source == announced.root:
            effects.append(Send(source, EpochHeard(announced.epoch)))
        known = self.known.get(announced.root)
        if announced.root == self._me or (known is not None and known.epoch >= announced.epoch):
            return False, effects
        self.known[announced.root] = announced
        self._complete_if_known(announced.root)
        return True, [*effects, *(Send(peer, announced) for peer in links if peer != source)]

    def _complete_if_known(self, root: NodeName) -> None:
        announced = self.known[root]
        # What is complete stays so: versions held here only grow.
        if self._complete.get(root) == announced.epoch:
            return
        lacking = self._tables.first_lacking(announced.tables)
        if lacking is None:
            self._complete[root] = announced.epoch
        else:
            self._waiting.setdefault(lacking, {})[root] = None

    def check_invariants(self) -> None:
        for root, announced in self.known.items():
            assert self._complete.get(root, -1) <= announced.epoch
            is_waiting = any(root in roots for roots in self._waiting.values())
            assert is_waiting or self._complete.get(root) == announced.epoch
