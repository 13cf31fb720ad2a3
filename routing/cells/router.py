"""Subscription forwarding over a tree of cells of redundant brokers.

Theory of operation (the overlay of the guaranteed-delivery paper, its sections 2 and 4.2). Brokers of equal role
stand in a cell, cells form a tree, and between two neighbouring cells there is a bundle of links, of which a message
may take any. An event goes from its publisher's broker (its root) down each branch behind which a filter wants it: to
the member of the next cell whose turn it is for that root, or to another while that one cannot be reached or leads to
less. A broker without a link to the next cell sends the event by others: sideways by a sibling that has one, or by
whichever brokers a path of links is left. Such a message carries its path, so that those on it only pass it on.

Every broker keeps the filters of every other broker's subscribers, table by table, each with a version. Changes
flood over all links; on a new link both ends compare versions and send what the other lacks. Nothing is withdrawn
when a link breaks: a broker that is away keeps its table until its next incarnation says otherwise, or until an
operator orders it forgotten. That is a table too, empty, and spreads as one; a broker that hears that it was forgotten
tells its filters anew. Which version an event is filtered by is the matter of `routing.cells.epochs`.

Brokers may join cells and depart from them (`routing.cells.joining`). A newcomer is nobody to the others until then,
and has no branches. One that has departed takes no part any more, and only passes on what still reaches it.
"""

from collections.abc import Mapping, Sequence, Set

from murmur_pubsub.errors import WireError
from murmur_pubsub.event import Event
from murmur_pubsub.faults import NewLinks
from murmur_pubsub.filter import Filter
from murmur_pubsub.fingerprint import Fact, state_of
from murmur_pubsub.machine import (
    Answer,
    Effect,
    Input,
    LinkDown,
    LinkUp,
    NodeContext,
    NodeName,
    Order,
    Received,
    Send,
    SetTimer,
    Start,
    Stored,
    TimerFired,
    Truncate,
)
from murmur_pubsub.membership import Membership
from murmur_pubsub.places import CellPlan
from routing.cells.cell_tree import Cell, CellTree
from routing.cells.epochs import SPACING_US, UNFILTERED, FilterEpochs
from routing.cells.joining import Joining
from routing.cells.link_states import LinkStates, Path
from routing.cells.messages import WHOLE, EpochHeard, InEffect, LinksUp, Members, TableChanged, TablesHeld, WholeTable
from routing.cells.tables import NO_TABLE, FilterTables, Table
from routing.protocol import NoParameters, Offer, RoutingProtocol, RunsOn
from routing.router import Hop, StreamObserver, StreamRouter

_SPACING = ("routing", "spacing")


class CellRouting(StreamRouter):
    """The router of one broker of a cell."""

    message_types: tuple[type, ...] = (TablesHeld, WholeTable, TableChanged, InEffect, EpochHeard, LinksUp, Members)
    orders = {"forget": ("broker",), "join": ("cell",), "depart": ("broker",)}

    def __init__(self, context: NodeContext, parameters: NoParameters) -> None:
        assert isinstance(context.place, CellPlan)
        self.me = context.name
        self.incarnation = context.incarnation
        self._membership = Membership(context.place)
        self._joining = Joining(self.me, self._membership)
        self.persists = self._joining.stores
        self.tree = CellTree(context.place, self.me, self._membership)
        self.brokers = self.tree.brokers
        self.roots = context.place.roots
        self.is_root = self.me in self.roots
        self._observer: StreamObserver | None = None
        self._link_states = LinkStates(self.tree, self.me, self.incarnation)
        self._links = self._link_states.links
        self._tables = FilterTables(self.tree)
        self._own = Table(self.incarnation)
        self._wanted_since = 0
        """The version of the own table since which its filters are what they are."""
        self._tables.replace(self.me, self._own, ())
        self._epochs = FilterEpochs(self.me, self.incarnation, self._tables)
        self._unsure: dict[Cell, None] = dict.fromkeys(self.tree.branches)  # for ever, unless this is a root

    # ------------------------------------------------------------------------------------------- inputs
    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if type(input) is Received:
            message = input.message
            if type(message) is Members:
                return self._changed_members(*self._joining.heard(input.source, message))
            if input.source not in self._links or self._joining.has_left:
                return ()  # sent before its link broke here; both ends compare what they have when it is back
            if type(message) is InEffect:
                return self._on_in_effect(input.source, message)
            if type(message) is TableChanged:
                return self._on_changed(input.source, message)
            if type(message) is WholeTable:
                return self._on_whole(input.source, message)
            if type(message) is TablesHeld:
                return self._on_held(input.source, message)
            if type(message) is EpochHeard:
                if message.epoch == self._epochs.own:
                    self._epochs.answered(input.source)
                return self._announce()
            if type(message) is LinksUp:
                return self._ways_changed(self._link_states.learn(input.source, message))
        elif type(input) is LinkUp:
            told = self._joining.link_up(input.peer)
            return [*told, *self._open_links()]
        elif type(input) is LinkDown:
            self._joining.link_down(input.peer)
            return self._close(input.peer) if input.peer in self._links else ()
        elif type(input) is TimerFired:
            self._epochs.has_passed()
            return self._announce()
        elif type(input) is Order:
            return self._on_order(input)
        elif type(input) is Stored:
            return [Truncate(input.token), *self._changed_members(True, self._joining.stored(input.token))]
        elif type(input) is Start:
            if self.persists and input.records:
                self._joining.recover(input.records)
                return [*self._begin(), *self._changed_members(True, [])]
            return self._begin()
        raise TypeError(f"cell routing takes no {input!r}")

    @property
    def settling(self) -> bool:
        """What is heard of members has no effect before it is stored, nor have filters before they are announced."""
        return self._joining.under_way or (self.is_root and self._epochs.is_gathering)

    def subscribe(self, wanted: Filter) -> Sequence[Effect]:
        return self._change([wanted], [])

    def unsubscribe(self, wanted: Filter) -> Sequence[Effect]:
        return self._change([], [wanted])

    # ------------------------------------------------------------------------------------------ links and members
    def _open_links(self) -> list[Effect]:
        """Begin to use the links that may be used now."""
        effects: list[Effect] = []
        for peer in self._joining.peers:
            if peer not in self._links and self._joining.is_open(peer):
                told = self._ways_changed(self._link_states.link_up(peer))
                held = {broker: list(table.at) for broker, table in self._tables.tables.items()}
                epochs = {root: known.number for root, known in self._epochs.known.items()}
                effects += [Send(peer, TablesHeld(held, epochs)), *told]
        return [] if self._joining.has_left else effects

    def _close(self, peer: NodeName) -> Sequence[Effect]:
        """Use the link to the neighbour no more."""
        told = self._ways_changed(self._link_states.link_down(peer))
        self._epochs.answered(peer)
        return () if self._joining.has_left else [*told, *self._announce()]

    def _changed_members(self, changed: bool, effects: Sequence[Effect]) -> Sequence[Effect]:
        """By these effects others are told who has joined or departed, if there is anything new; what follows from it.
        A broker that has departed itself keeps its tree and its links, to pass on what is on its way."""
        if self._joining.has_left:
            return self._tree_changed(list(effects)) if changed else effects
        if not changed:
            return [*effects, *self._open_links()]
        self.tree.grow()
        self._tables.grow()
        effects = [*effects, *self._link_states.grow()]
        for peer in [each for each in self._links if each not in self.tree.cell_of]:
            effects += self._close(peer)
        self._epochs.members_changed()
        self._note_unsure()
        effects += [*self._open_links(), *self._announce()]
        return self._ways_changed(self._tree_changed(effects))

    def _tree_changed(self, effects: list[Effect]) -> list[Effect]:
        return effects if self._observer is None else [*effects, *self._observer.on_tree_changed()]

    def _on_order(self, order: Order) -> Sequence[Effect]:
        (name,) = order.arguments
        if order.verb == "join":
            return self._changed_members(*self._joining.join(name, order.number))
        if order.verb == "forget":
            return self._forget(order)
        why = self._membership.why_not_depart(name, self.me)
        if not why and self.tree.stands_alone(name):
            why = self._tables.why_needed(name)
        if why:
            return [Answer(order.number, why)]
        return self._changed_members(*self._joining.depart(name, order.number))

    # ----------------------------------------------------------------------------- for a stream's reliability
    def connect(self, observer: StreamObserver) -> None:
        """See `routing.router.StreamRouter`."""
        self._observer = observer

    def incarnation_of(self, root: NodeName) -> int:
        """See `routing.router.StreamRouter`."""
        return self._epochs.incarnation_of(root)

    @property
    def takes_part(self) -> bool:
        """See `routing.router.StreamRouter`."""
        return self.tree.own is not None and not self._joining.has_left

    @property
    def has_left(self) -> bool:
        """See `routing.router.StreamRouter`."""
        return self._joining.has_left

    @property
    def joined(self) -> Sequence[NodeName]:
        """See `routing.router.StreamRouter`."""
        return list(self._membership.joined)

    def knows_enough(self, joined: Sequence[NodeName]) -> bool:
        """See `routing.router.StreamRouter`."""
        return not self._membership.missed_by(joined)

    @property
    def branches(self) -> Sequence[Cell]:  # type: ignore[override]
        """See `routing.router.StreamRouter`."""
        return self.tree.branches if self.takes_part else ()

    @property
    def stands_alone(self) -> bool:  # type: ignore[override]
        """See `routing.router.StreamRouter`."""
        return self.tree.own is None or (self.tree.alone and not self._joining.has_left)

    def branch_of(self, broker: NodeName) -> Cell | None:
        """See `routing.router.StreamRouter`; the siblings of this broker are behind no branch."""
        return self.tree.branch_of.get(broker) if self.takes_part else None

    @property
    def version(self) -> int:
        """See `routing.router.StreamRouter`: what this broker has heard of roots since then is no matter of filters."""
        return self._wanted_since

    @property
    def given_up(self) -> Mapping[Cell, None]:
        """See `routing.router.StreamRouter`."""
        return self._tables.given_up

    def is_forgotten(self, broker: NodeName) -> bool:
        """See `routing.router.StreamRouter`."""
        return self._tables.is_forgotten(broker)

    def stamp(self, branch: Cell) -> int:
        """What an event published here carries down the branch."""
        return UNFILTERED if branch in self._unsure else self._epochs.own

    def wanted(self, event: Event, root: NodeName, stamp: int, came_by: Cell | None) -> Sequence[Cell]:
        """The branches that the event must go down; `stamp` is what it came with (here: `stamp` of no branch)."""
        if root == self.me:
            found = self._tables.wanted_behind(event.attributes, None)
            return found if not self._unsure else [*found, *(each for each in self._unsure if each not in found)]
        if self._epochs.filterable(root, stamp):
            return self._tables.wanted_behind(event.attributes, came_by)
        return [branch for branch in self.tree.branches if branch != came_by]

    def way(self, branch: Cell, turn: int) -> Path:
        """See `routing.router.StreamRouter`."""
        return self._link_states.way(branch, turn)

    def ways(self, branch: Cell) -> list[Path]:
        """See `routing.router.StreamRouter`."""
        return [path for member in self.tree.members[branch] if (path := self.path(member))]

    def path(self, broker: NodeName) -> Path:
        """See `routing.router.StreamRouter`."""
        return self._link_states.path(broker)

    # -------------------------------------------------------------------------------------- for best effort
    def next_hops(self, event: Event, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        """The header is the numbers [root, stamp, and of each broker that it has still to pass by a detour]."""
        brokers, numbers = self.tree.brokers, self.tree.numbers
        if came_from is not None and not (len(header) > 1 and _all_below(len(brokers), header[0], *header[2:])):
            raise WireError(f"a header of root, stamp and brokers was expected, not {header!r:.60}")
        if len(header) > 2:
            return [Hop(brokers[header[2]], (*header[:2], *header[3:]))]
        root = self.me if came_from is None else brokers[header[0]]
        number = numbers[root]
        came_by = None if came_from is None else self.tree.branch_of.get(root)
        hops = []
        for branch in self.wanted(event, root, 0 if came_from is None else header[1], came_by):
            stamp = self.stamp(branch) if came_from is None else header[1]
            way = self.way(branch, number)
            if way:
                hops.append(Hop(way[0], (number, stamp, *(numbers[broker] for broker in way[1:]))))
        return hops

    def is_relay(self, event: Event, header: Sequence[int]) -> bool:
        """See `routing.router.Router`: a broker on a detour only passes the event on."""
        return len(header) > 2

    # ------------------------------------------------------------------------------------------- tables
    def _change(self, added: list[Filter], removed: list[Filter]) -> Sequence[Effect]:
        self._tables.step(self.me, added, removed)
        if added or removed:
            self._wanted_since = self._own.version
        heard = dict(self._own.heard)
        return self._spread(TableChanged(self.me, *self._own.at, added, removed, heard), None)

    def _on_changed(self, source: NodeName, message: TableChanged) -> Sequence[Effect]:
        broker, incarnation, version, added, removed, heard = message
        if broker not in self._tables.tables:
            return ()  # nothing is known that could be changed
        if self._tables.at(broker) != (incarnation, version - 1) or broker == self.me:
            return ()  # known already by another way, or the whole table is still to come
        self._tables.step(broker, added, removed)
        self._tables.tables[broker].heard = dict(heard)
        return self._spread(message, source)

    def _on_whole(self, source: NodeName, message: WholeTable) -> Sequence[Effect]:
        broker, incarnation, version, filters, heard, forgotten = message
        if self._tables.at(broker) >= (incarnation, version) or self._membership.has_departed(broker):
            return ()
        if broker == self.me:  # it was forgotten, and is there
            self._tables.skip_to(self.me, version + 1)
            self._wanted_since = self._own.version  # roots have dropped its filters
            effects = self._spread(self._whole(self.me), None)
            return effects if self._observer is None else [*effects, *self._observer.on_forgotten()]
        ways_before = self._tables.given_up
        self._tables.replace(broker, Table(incarnation, version, {}, dict(heard), forgotten), filters)
        effects = self._spread(message, source)
        return effects if self._tables.given_up == ways_before else self._ways_changed(effects)

    def _forget(self, order: Order) -> Sequence[Effect]:
        (broker,) = order.arguments
        if broker not in self.tree.cell_of or broker == self.me:
            return [Answer(order.number, f"{broker!r} is not another broker of the overlay")]
        self._tables.forget(broker)
        effects = self._spread(self._whole(broker), None)
        return [Answer(order.number), *self._ways_changed(effects)]

    def _whole(self, broker: NodeName) -> WholeTable:
        table = self._tables.tables[broker]
        return WholeTable(broker, *table.at, list(table.filters), dict(table.heard), table.forgotten)

    def _ways_changed(self, effects: Sequence[Effect]) -> Sequence[Effect]:
        return effects if self._observer is None else [*effects, *self._observer.on_ways_changed()]

    def _on_held(self, source: NodeName, message: TablesHeld) -> Sequence[Effect]:
        effects: list[Effect] = []
        for broker, table in self._tables.tables.items():
            if table.at > tuple(message.tables.get(broker, NO_TABLE)):
                effects.append(Send(source, self._whole(broker)))
        for root, known in self._epochs.known.items():
            if known.number > message.epochs.get(root, WHOLE) and root != source:
                effects.append(Send(source, self._epochs.whole(root)))
        return effects

    def _spread(self, message: TableChanged | WholeTable, source: NodeName | None) -> Sequence[Effect]:
        """Tell all others that a table is newer, and what follows from it here."""
        branch = self.tree.branch_of.get(message.broker)
        if branch is not None and branch not in self._unsure and self._may_lack_filters(message.broker):
            self._note_unsure()
        same_filters = type(message) is TableChanged and not message.added and not message.removed
        is_due = not same_filters or (branch in self._unsure and self.is_root and not self._is_unsure(branch))
        self._epochs.table_changed(message.broker, is_due)
        effects: list[Effect] = [Send(peer, message) for peer in self._links if peer != source]
        return [*effects, *self._announce()]

    def _note_unsure(self) -> None:
        """A branch that is unsure is so until an epoch is announced by which it is sure."""
        if self.is_root:
            unsure = self._unsure
            self._unsure = {each: None for each in self.tree.branches if each in unsure or self._is_unsure(each)}

    def _is_unsure(self, branch: Cell) -> bool:
        return any(map(self._may_lack_filters, self.tree.behind[branch]))

    def _may_lack_filters(self, broker: NodeName) -> bool:
        """Might a filter of the broker have been in effect here, in an earlier life, that is not known here now?"""
        table = self._tables.tables.get(broker)
        return table is None or (table.heard.get(self.me, 0) != self.incarnation and not table.forgotten)

    # ------------------------------------------------------------------------------------------- epochs
    def _begin(self) -> Sequence[Effect]:
        if not self.is_root:
            return ()
        self._epochs.begin()
        return [SetTimer(_SPACING, SPACING_US)]

    def _announce(self) -> Sequence[Effect]:
        if not self.is_root:
            return ()
        announced = self._epochs.announce(self._links, [] if self._observer is None else self._observer.marks())
        if announced is None:
            return ()
        self._unsure = {branch: None for branch in self._unsure if self._is_unsure(branch)}
        effects: list[Effect] = [SetTimer(_SPACING, SPACING_US), *(Send(peer, announced) for peer in self._links)]
        return [*self._observed(self.me), *effects]

    def _on_in_effect(self, source: NodeName, message: InEffect) -> Sequence[Effect]:
        if message.root not in self.tree.numbers:
            raise WireError(f"an epoch of {message.root!r:.40}, which is no broker")
        news, effects = self._epochs.learn(source, message, self._links)
        if not news:
            return effects
        incarnation = self._epochs.incarnation_of(message.root)
        if self._own.heard.get(message.root, 0) != incarnation:
            self._own.heard[message.root] = incarnation
            effects += self._change([], [])
        return [*effects, *self._observed(message.root)]

    def _observed(self, root: NodeName) -> Sequence[Effect]:
        known = self._epochs.known[root]
        incarnation, version = known.tables.get(self.me, NO_TABLE)
        if self._observer is None or incarnation != self.incarnation:
            return ()
        return self._observer.on_in_effect(root, version, known.marks)

    def fingerprint(self) -> Set[Fact]:
        ways = [len(self.way(branch, 0)) for branch in self.branches]
        return {
            state_of("ways", direct=1 in ways, by_others=any(length > 1 for length in ways), none=0 in ways),
            state_of(
                "cell tables",
                some_missing=len(self._tables.tables) < len(self.brokers),
                unsure=self.is_root and self._unsure,
                epoch_on_its_way=self._epochs.is_announcing,
                behind=self._epochs.is_behind,
                forgotten=self._tables.given_up,
            ),
        }

    def check_invariants(self) -> None:
        self._link_states.check_invariants()
        self._tables.check_invariants()
        self._epochs.check_invariants()
        if self.is_root:
            unsure = [branch for branch in self.tree.branches if self._is_unsure(branch)]
            kept = [branch for branch in self.tree.branches if branch in self._unsure]
            assert list(self._unsure) == kept
            assert kept == unsure or (self._epochs.is_due and {*kept} > {*unsure})


def _all_below(count: int, *numbers: int) -> bool:
    return all(0 <= each < count for each in numbers)


CELLS = RoutingProtocol(
    name="cells",
    make=CellRouting,
    parameters=NoParameters,
    runs_on=RunsOn.CELLS,
    offers=frozenset({Offer.STREAMS}),
    new_links=NewLinks.CELLS,
    orders=CellRouting.orders,
    gives_up={"forget": "broker", "depart": "broker"},
    for_good=frozenset({"depart"}),
)
