"""Identifier range based routing that enters a range at a member: a node of the range that wants the event itself.

This is murmur's own. IRBR's event enters a range at the node that stands for it in the sender's table, and that node
may only pass it on: with 24 interested nodes of 1,024 an event takes 63 messages. Here each entry of the filter table
also names a member, a node in the range whose own subscribers want exactly that filter, and the event goes to it
instead. The member passes the event on within the range as any node of it does, so ranges are still disjoint and each
hop is in a smaller one. When all members are known every message is a delivery, which is the least there can be.

Members are hints. A subscription names its node; a cancellation, a transfer and a summary name one for each filter that
they bring. Nothing depends on a hint being right: a member that wants the filter no more only passes the event on.

A member may be dead without a word, and what is sent to it would be lost. So this node enters a range at a member only
while that member answers its probes, and until it has answered the first one, and where no member is known, at the node
that stands for the range. A member that was not needed for some rounds is probed no more.
"""

from collections.abc import Iterable, Sequence, Set
from typing import Any

from murmur_pubsub.errors import WireError
from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.fingerprint import Fact, state_of
from murmur_pubsub.machine import Effect, NodeContext, NodeName
from routing.irbr.messages import (
    MEMBER_MESSAGES,
    MemberCancellation,
    MemberSubscription,
    MemberSummary,
    MemberTransfer,
    SummaryRequest,
)
from routing.irbr.router import Irbr, IrbrParameters
from routing.pastry.changes import Answered, PeerFailed, RoundEnded
from routing.pastry.identifiers import IdentifierRange
from routing.pastry.messages import PASTRY_MESSAGES, PastryPeer, PastryPeerFields
from routing.pastry.recovery import pastry_recovers
from routing.protocol import Offer, RoutingProtocol, RunsOn
from routing.router import Hop

_NOBODY = PastryPeer("", 0)
_IDLE_ROUNDS = 4
"""A member that was not needed for so many rounds is watched no longer."""


class IrbrMembers(Irbr):
    """See `Irbr`."""

    message_types: tuple[type, ...] = (*PASTRY_MESSAGES, *MEMBER_MESSAGES)

    def __init__(self, context: NodeContext, parameters: IrbrParameters) -> None:
        super().__init__(context, parameters)
        self._members: dict[tuple[IdentifierRange, Filter], PastryPeer] = {}
        """By entry of the filter table; those of entries that are gone are forgotten at the end of a round."""
        self._idle: dict[NodeName, int] = {}
        """Members that are probed, and for how many rounds each was not needed."""
        self._answering: dict[NodeName, None] = {}
        """Those of them that have answered."""
        self.receivers = {
            MemberSubscription: self._on_subscription,
            MemberCancellation: self._on_cancellation,
            MemberTransfer: self._on_transfer,
            SummaryRequest: self.receivers[SummaryRequest],
            MemberSummary: self._on_summary,
        }
        self.watchers[PeerFailed] = self._on_peer_failed

    def _into_wanting(self, event: Event, destination: IdentifierRange) -> list[Hop]:
        members: dict[IdentifierRange, PastryPeer | None] = {}
        for wide, wanted in self.table.matching_entries(event.attributes):
            if wide.length > destination.length and members.get(wide) is None:
                members[wide] = self._answering_member(wide, wanted)
        return [
            hop
            for wide, member in members.items()
            for hop in (self._enter(wide) if member is None else [Hop(member.name, wide)])
        ]

    def _answering_member(self, wide: IdentifierRange, wanted: Filter) -> PastryPeer | None:
        """The member of the entry, if it is known and answers."""
        member = self._members.get((wide, wanted))
        if member is None:
            return None
        if member.name not in self._idle:
            self.pastry.watch(member)
        self._idle[member.name] = 0
        return member if member.name in self._answering else None

    # ------------------------------------------------------------------------------------ who is a member
    def _learn(self, entries: Iterable[tuple[IdentifierRange, Filter]], members: Sequence[PastryPeerFields]) -> None:
        """Each entry has this member, so it was said."""
        for (wide, wanted), fields in zip(entries, members, strict=True):
            member = PastryPeer(*fields)
            if member.name and self._space.contains(wide, member.identifier):
                self._members[wide, wanted] = member

    def _known_members(self, entries: Iterable[tuple[IdentifierRange, Filter]]) -> list[PastryPeer]:
        """A member for each filter, in the range beside it; `_NOBODY` where none is known."""
        inside: dict[int, dict[Filter, PastryPeer]] = {}

        def member_of(wide: IdentifierRange, wanted: Filter) -> PastryPeer:
            if not self._space.contains(wide, self._own):
                return self._members.get((wide, wanted), _NOBODY)
            if wanted in self._local:
                return self.pastry.me
            if wide.length not in inside:
                inside[wide.length] = {
                    held: member for (part, held), member in self._members.items() if part.length > wide.length
                }
            return inside[wide.length].get(wanted, _NOBODY)

        return [member_of(*entry) for entry in entries]

    # --------------------------------------------------------------------------------------- the messages
    def _subscription(self, subscriber: IdentifierRange, wanted: Filter, cell: IdentifierRange) -> Any:
        plain = super()._subscription(subscriber, wanted, cell)
        return MemberSubscription(**plain._asdict(), member=self.pastry.me)

    def _on_subscription(self, source: NodeName, message: Any) -> list[Effect]:
        self._learn([(IdentifierRange(*message.subscriber), message.filter)], [message.member])
        return super()._on_subscription(source, message)

    def _cancellation(
        self, gone: IdentifierRange, filters: list[Filter], added: list[Filter], cell: IdentifierRange
    ) -> Any:
        plain = super()._cancellation(gone, filters, added, cell)
        return MemberCancellation(**plain._asdict(), members=self._known_members((gone, each) for each in added))

    def _on_cancellation(self, source: NodeName, message: Any) -> list[Effect]:
        gone = IdentifierRange(*message.subscriber)
        for wanted in message.cancelled:
            member = self._members.get((gone, wanted))
            if member is not None and member.identifier == message.origin:
                del self._members[gone, wanted]
        if len(message.members) != len(message.added):
            raise WireError(f"{len(message.members)} members of {len(message.added)} filters")
        self._learn([(gone, wanted) for wanted in message.added], message.members)
        return super()._on_cancellation(source, message)

    def _transfer(self, ranges: list[IdentifierRange], filters: list[Filter], cell: IdentifierRange) -> Any:
        return MemberTransfer(ranges, filters, cell, self._known_members(zip(ranges, filters, strict=True)))

    def _on_transfer(self, source: NodeName, message: Any) -> list[Effect]:
        if not len(message.ranges) == len(message.filters) == len(message.members):
            raise WireError(f"{len(message.filters)} filters of {len(message.ranges)} ranges")
        ranges = (IdentifierRange(*fields) for fields in message.ranges)
        self._learn(zip(ranges, message.filters, strict=True), message.members)
        return super()._on_transfer(source, message)

    def _summary_message(self, length: int) -> Any:
        filters = self._summary(length)
        own_range = self._space.range_of(self._own, min(max(length, 0), self._space.digits))  # a peer may ask anything
        return MemberSummary(length, filters, self._known_members((own_range, wanted) for wanted in filters))

    def _on_summary(self, source: NodeName, message: Any) -> list[Effect]:
        if len(message.members) != len(message.filters):
            raise WireError(f"{len(message.members)} members of {len(message.filters)} filters")
        cell = self._cell_of(source, message.length)
        if cell is not None:
            self._learn([(cell, wanted) for wanted in message.filters], message.members)
        return super()._on_summary(source, message)

    # ---------------------------------------------------------------------------------- do members answer?
    def _on_answered(self, change: Answered) -> list[Effect]:
        if change.peer.name in self._idle:
            self._answering[change.peer.name] = None
        return super()._on_answered(change)

    def _on_peer_failed(self, change: PeerFailed) -> list[Effect]:
        name = change.peer.name
        self._idle.pop(name, None)
        self._answering.pop(name, None)
        for entry in [entry for entry, member in self._members.items() if member.name == name]:
            del self._members[entry]
        return []

    def _on_round_ended(self, change: RoundEnded) -> list[Effect]:
        for entry in [entry for entry in self._members if not self.table.holds(*entry)]:
            del self._members[entry]
        for name, rounds in list(self._idle.items()):
            self._idle[name] = rounds + 1
            if rounds == _IDLE_ROUNDS:
                del self._idle[name]
                self._answering.pop(name, None)
                self.pastry.unwatch(name)
        return super()._on_round_ended(change)

    def fingerprint(self) -> Set[Fact]:
        """See `murmur_pubsub.machine.Machine`."""
        return {
            *super().fingerprint(),
            state_of("members", known=len(self._members), probed=len(self._idle), answering=len(self._answering)),
        }

    def check_invariants(self) -> None:
        """Raise AssertionError if the state contradicts itself."""
        super().check_invariants()
        assert self._answering.keys() <= self._idle.keys(), "a member answers that nobody asks"
        for (wide, _), member in self._members.items():
            assert self._space.contains(wide, member.identifier), "a member of another range"


IRBR_MEMBERS = RoutingProtocol(
    name="irbr_members",
    make=IrbrMembers,
    parameters=IrbrParameters,
    runs_on=RunsOn.STRUCTURED,
    offers=frozenset({Offer.GOSSIP}),
    keeps_order=False,
    recovers=pastry_recovers,
)
