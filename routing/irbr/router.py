"""Identifier range based routing over Pastry (Wang, Jin, Wei and Li, section 5).

Theory of operation. A node divides all identifiers but its own into ranges, the cells of its Pastry table, and keeps
for each the filters wanted in it. An event goes to each range that wants it, through whatever peer stands for the range
now; that peer does the same with the parts of the range, so that no node is met twice and each hop is in a smaller
range. A range whose peer has failed is reached by way of its middle identifier, from the moment at which the connection
to the peer closes (section 5.5: a node that "may fail to send"), or else when it leaves a probe unanswered.

A subscription goes to the rows of the table from the longest prefix to the shortest. Once a row is done whose ranges
hold a covering filter, all nodes farther out see that range and this node as one range that already holds it: the walk
stops. A cancellation walks the same way and takes along the filters that the cancelled one had been covering.

Concurrent operations (the text leaves them to a report that is lost). The rules adopted here:

1. *A covered receiver sees to it.* A cancellation says what its sender knows of the receivers' range (`known`). A node
   with a filter of its own that the cancelled one covered, and that `known` does not cover, was subscribing while the
   canceller withdrew: the ranges farther out have not been told, so it goes on with its own walk there. It does not
   stop where a neighbour has that filter too, which may have stopped at the cancelled one as well. What was withdrawn
   lately in the receivers' range does not count as known: the sender may mean that, and not what was asked for since.
   Where the subscription overtakes the cancellation it is remembered, and is in force when the cancellation has come.
   So is what a cancellation adds: another node may be withdrawing what covers it here. A node numbers its operations,
   so that a cancellation does not undo what the same node has asked for since, and a subscription not what it has
   withdrawn since.
2. *An edge begins with what is known.* When a cell gets a peer, the peer gets the table's entries that hold for it too
   (`Transfer`), and passes on within its range what was new to it. So an operation that went through a table in which
   some node was missing yet reaches that node all the same, and joins may be concurrent with anything.
3. *A range's representative is right.* Answers to probes carry a digest of what the answering node knows to be wanted
   in its range. Where it differs from the entries here, its summary is taken: what is missing at once, what is too
   much once it has been here for longer than a change takes to go through all lengths of ranges. By induction from
   the longest ranges to the shortest all tables become right; what failures lost and what crossing cancellations left
   behind is mended so.

Too much in a table costs messages only, as long as no walk stops at it; too little costs events. So additions never
wait, removals may, and what may be too much is not relied on (`routing.irbr.filter_table`).
"""

import functools
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Any, ClassVar

from murmur_pubsub.errors import WireError
from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.fingerprint import Fact, state_of
from murmur_pubsub.machine import Effect, NodeContext, NodeName, Send
from routing.filter_digest import digest
from routing.filter_set import FilterSet
from routing.irbr.filter_table import FilterTable
from routing.irbr.messages import IRBR_MESSAGES, Cancellation, RangeSubscription, Summary, SummaryRequest, Transfer
from routing.pastry.changes import Answered, CellFilled, RoundEnded
from routing.pastry.identifiers import FULL_RANGE, IdentifierRange
from routing.pastry.layer import OverPastry
from routing.pastry.messages import PASTRY_MESSAGES, PastryPeer
from routing.pastry.recovery import pastry_recovers
from routing.pastry.sense import range_check
from routing.protocol import Offer, RoutingProtocol, RunsOn
from routing.router import GossipRouter, Hop

_OPERATIONS_BITS = 32
"""A node that is back after a failure goes on numbering above all that it did before."""


@dataclass(frozen=True, slots=True)
class IrbrParameters:
    """What a scenario may say of IRBR."""

    resets: bool = True
    """Take a peer whose process has closed its connections for failed at once (decision 0010), and not only when it
    leaves a probe unanswered."""


class Irbr(OverPastry, GossipRouter):
    """See `routing.router.Router`. An event's header is the range it is for; without one it is for all."""

    message_types: tuple[type, ...] = (*PASTRY_MESSAGES, *IRBR_MESSAGES)
    remembers: ClassVar = ("_summaries",)  # what is wanted now, once for each length

    def __init__(self, context: NodeContext, parameters: IrbrParameters) -> None:
        super().__init__(context, parameters.resets, self._note)
        self._space = self.pastry.space
        self._range_of = range_check(self._space)
        self._own = self.pastry.own
        self._itself = self._space.range_of(self._own, self._space.digits)
        self.table = FilterTable()
        self._local = FilterSet()
        self._local_since_us: dict[Filter, int] = {}
        self._number = context.incarnation << _OPERATIONS_BITS
        """Of the last operation told to others."""
        self._summaries: dict[int, tuple[list[Filter], int]] = {}
        self._found_empty: dict[IdentifierRange, None] = {}
        self.receivers = {
            RangeSubscription: self._on_subscription,
            Cancellation: self._on_cancellation,
            Transfer: self._on_transfer,
            SummaryRequest: lambda source, message: [Send(source, self._summary_message(message.length))],
            Summary: self._on_summary,
        }
        self.watchers = {
            CellFilled: self._on_cell_filled,
            Answered: self._on_answered,
            RoundEnded: self._on_round_ended,
        }

    # ------------------------------------------------------------------------------------- the operations
    def subscribe(self, wanted: Filter) -> Sequence[Effect]:
        """See `routing.router.Router` and IRBR 5.3. Before the node has joined, no node is told: `Transfer` will."""
        covered = self._local.covers(wanted)
        self._local.add(wanted)
        self._local_since_us[wanted] = self.now_us
        self._summaries.clear()
        return () if covered or not self.pastry.joined else self._spread(wanted, self._space.digits + 1)

    def unsubscribe(self, wanted: Filter) -> Sequence[Effect]:
        """See `routing.router.Router` and IRBR 5.3."""
        self._local.remove(wanted)
        del self._local_since_us[wanted]
        self.table.note_withdrawn(self._itself, wanted, self._own, self._number, self.now_us)
        self._summaries.clear()
        if self._local.covers(wanted) or not self.pastry.joined:
            return ()
        return self._withdraw(self._itself, [wanted], self._local.covered_by(wanted))

    def next_hops(self, event: Event, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        """See `routing.router.Router` and IRBR 5.4."""
        destination = self._range_of(header) if header else FULL_RANGE
        if not self._space.contains(destination, self._own):
            return self._outside(destination)
        return self._into_wanting(event, destination)

    def _into_wanting(self, event: Event, destination: IdentifierRange) -> list[Hop]:
        """To those parts of the destination, which this node is in, that want the event."""
        return self._into(self.table.destinations(event.attributes), destination)

    def patterns_of(self, event: Event) -> Sequence[Filter]:
        """See `routing.router.GossipRouter`."""
        return self.table.matching(event.attributes)

    def towards(self, pattern: Filter, came_from: NodeName | None, header: Sequence[int]) -> Sequence[Hop]:
        """See `routing.router.GossipRouter`: gossip goes as an event would that matches the pattern."""
        destination = self._range_of(header) if header else FULL_RANGE
        if not self._space.contains(destination, self._own):
            return self._outside(destination)
        return self._into(self.table.related(pattern), destination)

    def _into(self, ranges: Iterable[IdentifierRange], destination: IdentifierRange) -> list[Hop]:
        """To those of the ranges that are parts of the destination."""
        return [hop for wide in ranges if wide.length > destination.length for hop in self._enter(wide)]

    def _enter(self, wide: IdentifierRange) -> list[Hop]:
        """By the node that stands for the range, or towards its middle."""
        stands = self.pastry.table.get(wide) or self._redirected(wide)
        return [] if stands is None else [Hop(stands.name, wide)]

    def _outside(self, destination: IdentifierRange) -> list[Hop]:
        """Towards a range that this node is not in."""
        hop = self._redirected(destination)
        return [] if hop is None else [Hop(hop.name, destination)]

    def is_relay(self, event: Event, header: Sequence[int]) -> bool:
        """Is an event with this header only passing here, on its way to a range that this node is not in?"""
        return bool(header) and not self._space.contains(self._range_of(header), self._own)

    # ------------------------------------------------------------------------------------ subscriptions
    def _spread(self, wanted: Filter, shorter_than: int) -> list[Effect]:
        """Walk the rows from the longest prefix; only those below the length are told (the others know)."""
        self._number += 1
        covered_at = {wide.length for wide, _ in self.table.covering(wanted)}
        effects: list[Effect] = []
        for length in range(self._space.digits, 0, -1):
            if length < shorter_than:
                subscriber = self._space.range_of(self._own, length)
                effects += self._to_row(length, functools.partial(self._subscription, subscriber, wanted))
                if length in covered_at:
                    break
        return effects

    def _subscription(self, subscriber: IdentifierRange, wanted: Filter, cell: IdentifierRange) -> Any:
        return RangeSubscription(self._own, self._number, subscriber, wanted, cell)

    def _on_subscription(self, source: NodeName, message: Any) -> list[Effect]:
        destination = IdentifierRange(*message.destination)
        if not self._space.contains(destination, self._own):
            return self._redirect(destination, message)
        subscriber = IdentifierRange(*message.subscriber)
        if self.table.subscribed(subscriber, message.filter, message.origin, message.number, self.now_us):
            self._changed(subscriber)
        return self._within(destination, lambda cell: message._replace(destination=cell))

    # ------------------------------------------------------------------------------------ cancellations
    def _withdraw(self, gone: IdentifierRange, filters: list[Filter], within: Sequence[Filter]) -> list[Effect]:
        """Tell all other nodes that the range `gone` (this node itself, or an empty one next to it) wants these no
        more; `within`: what it goes on wanting of what they cover."""
        self._number += 1
        effects: list[Effect] = []
        for length in range(self._space.digits, gone.length - 1, -1):
            effects += self._cancel_row(length, gone, filters, FilterSet.of(within))
        left = [
            each
            for each in filters
            if not self._local.covers(each)
            and all(wide.length < gone.length or wide == gone for wide, _ in self.table.covering(each))
        ]
        for length in range(gone.length - 1, 0, -1):
            if not left:
                break
            uncovered = FilterSet()
            for each in left:
                for covered in self._local.covered_by(each):
                    uncovered.put(covered)
                for wide, covered in self.table.covered_by(each):
                    if wide.length > length and wide != gone:
                        uncovered.put(covered)
            effects += self._cancel_row(length, self._space.range_of(self._own, length), left, uncovered)
            left = [each for each in left if all(wide.length != length for wide, _ in self.table.covering(each))]
        return effects

    def _cancel_row(self, length: int, gone: IdentifierRange, filters: list[Filter], added: FilterSet) -> list[Effect]:
        return self._to_row(length, functools.partial(self._cancellation, gone, filters, list(added)), besides=gone)

    def _cancellation(
        self, gone: IdentifierRange, filters: list[Filter], added: list[Filter], cell: IdentifierRange
    ) -> Any:
        known = self.table.covered_in(cell, filters)
        return Cancellation(self._own, self._number, gone, filters, added, known, cell)

    def _on_cancellation(self, source: NodeName, message: Any) -> list[Effect]:
        destination, gone = IdentifierRange(*message.destination), IdentifierRange(*message.subscriber)
        if not self._space.contains(destination, self._own):
            return self._redirect(destination, message)
        for each in message.cancelled:
            self.table.cancelled(gone, each, message.origin, message.number, self.now_us)
        for each in message.added:
            self.table.subscribed(gone, each, message.origin, message.number, self.now_us)
        self._changed(gone)
        self.pastry.is_empty(gone)
        effects = self._within(destination, lambda cell: message._replace(destination=cell))
        known = [each for each in message.known if not self._may_be_past(each, gone.length)]
        for each in dict.fromkeys(held for gone_one in message.cancelled for held in self._local.covered_by(gone_one)):
            if not any(one.covers(each) for one in known):
                if not any(other != each and other.covers(each) for other in self._local):
                    effects += self._spread(each, gone.length)
        return effects

    def _may_be_past(self, known: Filter, length: int) -> bool:
        """Has this node, or another of its range of that length, withdrawn the filter lately? Then whoever knows of it
        may know of what was withdrawn, and not of what was asked for since."""
        withdrawn = self.table.withdrawn_lately(known)
        return any(wide.length > length or subscriber == self._own for wide, subscriber in withdrawn)

    # -------------------------------------------------------------- peers that come to stand for a range
    def _on_cell_filled(self, change: CellFilled) -> list[Effect]:
        cell, since_us = change.cell, change.failed_since_us
        # What the failed predecessor had got before it was last heard, it has passed on.
        from_us = -1 if since_us is None else since_us - self.pastry.place.probe_us
        ranges: list[IdentifierRange] = []
        filters: list[Filter] = []
        around = FilterSet()
        for wide, wanted, entry_since_us in self.table.entries():
            if entry_since_us < from_us or wide == cell:
                continue
            if wide.length > cell.length:
                around.put(wanted)
            else:
                ranges.append(wide)
                filters.append(wanted)
        for wanted, local_since_us in self._local_since_us.items():
            if local_since_us >= from_us:
                around.put(wanted)
        filters += around
        ranges += [self._space.range_of(self._own, cell.length)] * len(around)
        return [Send(change.peer.name, self._transfer(ranges, filters, cell))] if filters else []

    def _transfer(self, ranges: list[IdentifierRange], filters: list[Filter], cell: IdentifierRange) -> Any:
        return Transfer(ranges, filters, cell)

    def _on_transfer(self, source: NodeName, message: Any) -> list[Effect]:
        if len(message.ranges) != len(message.filters):
            raise WireError(f"{len(message.filters)} filters of {len(message.ranges)} ranges")
        destination = IdentifierRange(*message.destination)
        ranges: list[IdentifierRange] = []
        filters: list[Filter] = []
        last, wide, is_own = None, FULL_RANGE, True
        for pair, wanted in zip(message.ranges, message.filters, strict=True):
            if pair != last:  # most entries of a range come one after another
                last, wide = pair, IdentifierRange(*pair)
                is_own = self._space.contains(wide, self._own)
            if not is_own and self._put(wide, wanted):
                ranges.append(wide)
                filters.append(wanted)
        return self._within(destination, functools.partial(self._transfer, ranges, filters)) if filters else []

    # ------------------------------------------------------------------- what a representative knows
    def _note(self, asking: NodeName, length: int) -> int:
        if not (length and self.pastry.joined):
            return 0
        self._summary(length)
        return self._summaries[length][1]

    def _summary(self, length: int) -> list[Filter]:
        """What is wanted in this node's own range of that length."""
        if length not in self._summaries:
            together = FilterSet.of(self._local)
            for wide, wanted, _ in self.table.entries():
                if wide.length > length:
                    together.put(wanted)
            filters = list(together)
            self._summaries[length] = (filters, digest(filters))
        return self._summaries[length][0]

    def _summary_message(self, length: int) -> Any:
        return Summary(length, self._summary(length))

    def _on_answered(self, change: Answered) -> list[Effect]:
        cell = self.pastry.table.cell_of(change.peer.identifier)
        stands = self.pastry.table.get(cell)
        if stands is None or stands.name != change.peer.name or cell.length != change.length:
            return []
        if change.note == self.table.digest(cell):
            self.table.confirm(cell, self.now_us - self._patience_us)
            return []
        return [Send(change.peer.name, SummaryRequest(change.length))] if change.note else []

    def _on_summary(self, source: NodeName, message: Any) -> list[Effect]:
        cell = self._cell_of(source, message.length)
        if cell is None:
            return []
        said = FilterSet.of(message.filters)
        for held in self.table.of(cell):
            if held not in said and self.now_us - self.table.since_us(cell, held) > self._patience_us:
                self.table.remove(cell, held)
                self._changed(cell)
        for wanted in said:
            self._put(cell, wanted)
        return []

    @property
    def _patience_us(self) -> int:
        """For how long a change may be on its way through all lengths of ranges."""
        return (self._space.digits + 1) * self.pastry.place.probe_us

    def _cell_of(self, peer: NodeName, length: int) -> IdentifierRange | None:
        """The range of that length that the peer stands for."""
        cells = self.pastry.table.cells()
        return next((cell for cell, stands in cells if stands.name == peer and cell.length == length), None)

    # -------------------------------------------------------------------------------------- empty ranges
    def _redirected(self, wide: IdentifierRange) -> PastryPeer | None:
        hop = self.pastry.towards(wide)
        if hop is None:
            self._found_empty[wide] = None
        return hop

    def _redirect(self, destination: IdentifierRange, message: Any) -> list[Effect]:
        hop = self._redirected(destination)
        return [] if hop is None else [Send(hop.name, message)]

    def _on_round_ended(self, change: RoundEnded) -> list[Effect]:
        """Cancel what is wanted in ranges that were found empty and still are, with the leaf set as it is now."""
        found, self._found_empty = self._found_empty, {}
        effects: list[Effect] = []
        for wide in found:
            is_cell = wide.length and self._space.range_of(self._own, wide.length - 1) == self._space.range_of(
                self._space.first(wide), wide.length - 1
            )
            if is_cell and self.pastry.towards(wide) is None:
                filters = self.table.remove_range(wide)
                self._changed(wide)
                self.pastry.is_empty(wide)
                effects += self._withdraw(wide, filters, ())
        return effects

    # ------------------------------------------------------------------------------------------- sending
    def _to_row(
        self, length: int, make: Callable[[IdentifierRange], Any], besides: IdentifierRange | None = None
    ) -> list[Effect]:
        """The message that `make` gives for each range of the row, to the node that stands for it, or towards its
        middle if that node has failed."""
        effects: list[Effect] = [
            Send(peer.name, make(cell)) for cell, peer in self.pastry.table.row(length).items() if cell != besides
        ]
        for cell in self.pastry.vacant():
            if cell.length == length and cell != besides:
                effects += self._redirect(cell, make(cell))
        return effects

    def _within(self, destination: IdentifierRange, make: Callable[[IdentifierRange], Any]) -> list[Effect]:
        """The same for all parts of a range that this node is in."""
        effects: list[Effect] = [
            Send(peer.name, make(cell)) for cell, peer in self.pastry.table.cells(destination.length)
        ]
        for cell in self.pastry.vacant():
            if cell.length > destination.length:
                effects += self._redirect(cell, make(cell))
        return effects

    def _put(self, wide: IdentifierRange, wanted: Filter) -> bool:
        new = self.table.put(wide, wanted, self.now_us)
        if new:
            self._changed(wide)
        return new

    def _changed(self, wide: IdentifierRange) -> None:
        """An entry of that range came or went: it is in the summaries of those of this node's ranges that hold it."""
        for length in [length for length in self._summaries if length < wide.length]:
            del self._summaries[length]

    def fingerprint(self) -> Set[Fact]:
        """See `murmur_pubsub.machine.Machine`."""
        return {
            *super().fingerprint(),
            state_of("ranges", wants=len(self._local), told_of=len(self.table), found_empty=self._found_empty),
        }

    def check_invariants(self) -> None:
        """Raise AssertionError if the state contradicts itself."""
        self.pastry.check_invariants()
        self.table.check_invariants()
        assert list(self._local) == list(self._local_since_us)
        for wide in self.table.ranges():
            assert not self._space.contains(wide, self._own), "an entry for a range that this node is in"
            assert self._space.contains(self._space.range_of(self._space.first(wide), wide.length - 1), self._own)


IRBR = RoutingProtocol(
    name="irbr",
    make=Irbr,
    parameters=IrbrParameters,
    runs_on=RunsOn.STRUCTURED,
    offers=frozenset({Offer.GOSSIP}),
    keeps_order=False,
    recovers=pastry_recovers,
)
