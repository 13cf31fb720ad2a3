"""Filter epochs: no event is filtered out by a table older than the one its publisher's broker knew.

Theory of operation. On redundant paths a filter can reach a root (the broker where events enter) by one way while
events flow down by another, past a broker that has not heard of it. So a root numbers the states of its knowledge.
When tables change it starts an epoch and announces with it the versions of all tables it holds; each event carries
the epoch it was sent in, and a broker filters an event only if its own tables are at least as new as that epoch's,
else it passes the event on to every branch. A subscriber's broker learns from the same announcement that its filters
are in effect at that root, and from when on.

A restarted root has lost its tables, and those that it is told again may be older than those it had announced. It
therefore sends unfiltered down a branch until every broker behind it has published a table that names the root's
present incarnation: such a table is no older than anything that was ever in effect. It goes on so until it has
announced those tables: before that, a broker on the way may take an older one for good enough.

Of brokers that have joined since only those count that are known to have, where filters are announced and where they
are applied; those that have departed want nothing.

One announcement is on its way at a time (the direct neighbours answer it), and none follows the last one, or the start
of the root, within `SPACING_US`; changes gather meanwhile. So a subscription alone is in effect soon, a thousand make
few epochs, and the run sees that they have not settled. A table that is newer in what its broker has heard of roots
alone makes none, but where this root's own incarnation is what was heard.

An announcement says what is new since the one before. A broker that has not got that one takes no notice: whoever sends
it what is new has a link to it that came up since, and sends everything when it hears over this link what is lacking.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from murmur_pubsub.machine import Effect, NodeName, Send
from routing.cells.messages import WHOLE, EpochHeard, InEffect
from routing.cells.tables import FilterTables

UNFILTERED = 1 << 62
"""The stamp of an event that no broker may filter out: later than every epoch."""
_INCARNATION_BITS = 32
SPACING_US = 50_000
"""Tables that change at a time come one by one, those of brokers farther away later. Each is told over all links."""


@dataclass(slots=True)
class Epoch:
    """The last epoch that is known of a root: see `InEffect`; `tables` are all of them."""

    number: int
    tables: dict[NodeName, Sequence[int]]
    marks: Sequence[int]


class FilterEpochs:
    """The epochs of all roots as this broker knows them, and its own if it is one."""

    def __init__(self, me: NodeName, incarnation: int, tables: FilterTables) -> None:
        self.own = incarnation << _INCARNATION_BITS
        self.known: dict[NodeName, Epoch] = {}
        self._me = me
        self._tables = tables
        self._complete: dict[NodeName, int] = {}
        self._waiting: dict[NodeName, dict[NodeName, None]] = {}
        """Of a broker whose table is too old here: the roots whose last epoch is not complete for that, if not only so.
        Each other root need not be looked at when that table changes."""
        self._awaited: dict[NodeName, None] = {}
        self._spacing = False
        """Has less than `SPACING_US` passed since the last announcement, or the start?"""
        self.is_due = False
        """Is there something that has to be announced?"""
        self._is_whole_due = True
        """Is all of it, since nothing was announced yet, or brokers have joined or departed?"""

    @property
    def is_announcing(self) -> bool:
        """Has some neighbour not heard yet of the last epoch here?"""
        return bool(self._awaited)

    @property
    def is_gathering(self) -> bool:
        """Does something that has to be announced wait for its time?"""
        return self.is_due and self._spacing

    @property
    def is_behind(self) -> bool:
        """Is there a root of whose last epoch some table has not come yet?"""
        return any(self._complete.get(root, -1) < known.number for root, known in self.known.items())

    def incarnation_of(self, root: NodeName) -> int:
        """The latest incarnation of the root that was heard of."""
        known = self.known.get(root)
        return 0 if known is None else known.number >> _INCARNATION_BITS

    def filterable(self, root: NodeName, stamp: int) -> bool:
        """May this broker filter an event of the root with that stamp?"""
        return self._complete.get(root, -1) >= stamp

    def table_changed(self, broker: NodeName, is_due: bool) -> None:
        """The broker's table is newer than before; does that have to be announced?"""
        self.is_due = self.is_due or is_due
        for root in self._waiting.pop(broker, ()):
            self._complete_if_known(root, self.known[root].tables)

    def members_changed(self) -> None:
        """Brokers have joined or departed, and their tables are applied from now on, or needed no more."""
        self.is_due = self._is_whole_due = True
        self._waiting.clear()
        for root, known in self.known.items():
            self._complete_if_known(root, known.tables)

    def announce(self, links: Iterable[NodeName], marks: list[int]) -> InEffect | None:
        """The announcement of a new epoch to send to all links, if one is due, none is on its way, and the last one is
        `SPACING_US` ago: the caller says when that time `has_passed`."""
        if not self.is_due or self._awaited or self._spacing:
            return None
        self._awaited, self._spacing = dict.fromkeys(links), True
        applied = self._tables.applied
        known = Epoch(WHOLE, {}, ()) if self._is_whole_due else self.known[self._me]
        self.is_due = self._is_whole_due = False
        self.own += 1
        newer = [broker for broker, at in applied.items() if known.tables.get(broker) != at]
        announced = InEffect(self._me, self.own, known.number, {broker: applied[broker] for broker in newer}, marks)
        self._take(announced)
        self._complete[self._me] = self.own
        return announced

    def whole(self, root: NodeName) -> InEffect:
        """The last epoch that is known of the root, for whom knows none."""
        known = self.known[root]
        return InEffect(root, known.number, WHOLE, dict(known.tables), list(known.marks))

    def begin(self) -> None:
        """The broker has just started: what the links that come up tell is announced together."""
        self._spacing = True

    def has_passed(self) -> None:
        """The time has passed that no announcement may follow the last one."""
        self._spacing = False

    def answered(self, peer: NodeName) -> None:
        """The neighbour has heard the announcement, or its link is gone."""
        self._awaited.pop(peer, None)

    def learn(self, source: NodeName, announced: InEffect, links: Iterable[NodeName]) -> tuple[bool, list[Effect]]:
        """Take another root's announcement: whether it is news, and the effects that answer it and pass it on."""
        effects: list[Effect] = []
        root = announced.root
        if source == root:
            effects.append(Send(source, EpochHeard(announced.epoch)))
        known = self.known.get(root)
        before = WHOLE if known is None else known.number
        if root == self._me or not announced.since <= before < announced.epoch:
            return False, effects
        was_complete = self._complete.get(root, WHOLE) == before
        self._take(announced)
        self._complete_if_known(root, announced.tables if was_complete else self.known[root].tables)
        return True, [*effects, *(Send(peer, announced) for peer in links if peer != source)]

    def _take(self, announced: InEffect) -> None:
        known = self.known.get(announced.root)
        if known is None or announced.since == WHOLE:
            self.known[announced.root] = Epoch(announced.epoch, dict(announced.tables), announced.marks)
        else:
            known.number, known.marks = announced.epoch, announced.marks
            known.tables.update(announced.tables)

    def _complete_if_known(self, root: NodeName, tables: Mapping[NodeName, Sequence[int]]) -> None:
        """The root's last epoch is complete here, if of these tables none is lacking."""
        number = self.known[root].number
        # What is complete stays so: versions held here only grow.
        if self._complete.get(root) == number:
            return
        lacking = self._tables.first_lacking(tables)
        if lacking is None:
            self._complete[root] = number
        else:
            self._waiting.setdefault(lacking, {})[root] = None

    def check_invariants(self) -> None:
        for root, known in self.known.items():
            assert self._complete.get(root, -1) <= known.number
            complete = self._complete.get(root) == known.number
            assert complete or any(root in roots for roots in self._waiting.values())
