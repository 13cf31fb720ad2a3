"""Which filters reverse path forwarding sends to a neighbour, and which not since others cover them.

A *source* of filters is a neighbour that has sent some, or this node's own subscribers (None). Its filters go on to the
neighbours that share more digits than it does: the node's children in the source's trees.

`sender`, the default: what a neighbour has been sent already covers is not sent to it, whoever wanted that. When a
filter is sent, those that it covers are forgotten at both ends.

`receiver` is the text's (IRBR section 5.3): "a new subscription covered by a subscription of a neighbour node need not
be forwarded". That is read of the node to which a filter comes: it passes it on unless the same neighbour has sent one
that covers it. So does it with what its own subscribers want. Whether another source's filter went the same way before
it does not ask, so it needs more messages. A filter that is covered is kept, and withdrawn, by itself. Nothing is
missed: of each source those filters that no other of its own covers have all been sent to its children. A withdrawal
takes back what no source above the child wants any more; what it alone had covered of the same source's goes before it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import NodeName
from routing.filter_set import FilterSet
from routing.pastry.messages import PastryPeer
from routing.pastry.neighbour_filters import NeighbourFilters
from routing.pastry.reverse_paths import ReversePathParameters


@dataclass(frozen=True, slots=True)
class PathParameters(ReversePathParameters):
    """What a scenario may say of reverse path forwarding."""

    covering: Literal["sender", "receiver"] = "sender"
    """Who keeps a covered filter from going on: the node that would send it, by all that it has sent to that neighbour;
    or the node that gets it, by what the same neighbour has sent before."""


class Withdrawal(NamedTuple):
    """What a child is told when a source withdraws a filter."""

    child: PastryPeer
    instead: list[Filter]
    """What the filter had covered; told first."""
    gone: bool
    """Is the filter withdrawn there too?"""


@dataclass(eq=False)
class SenderCovering:
    """At one node, over what it holds: what is wanted here, what neighbours have sent, what they have been sent."""

    _local: FilterSet
    _received: NeighbourFilters
    _forwarded: Mapping[PastryPeer, FilterSet]
    _shared: Callable[[PastryPeer], int]

    def above(self, source: PastryPeer | None) -> int:
        """How many digits a source shares; the own subscribers are above all others."""
        return -1 if source is None else self._shared(source)

    def make_way(self, peer: PastryPeer, wanted: Filter) -> None:
        """The neighbour sends the filter: those that it covers are gone there."""
        for owner, covered in self._received.covered_by(wanted):
            if owner.name == peer.name and covered != wanted:
                self._received.remove(peer.name, covered)

    def goes_on(self, source: PastryPeer | None, wanted: Filter) -> bool:
        """Are the source's children to be told of a filter that is new of it?"""
        return True

    def is_new_to(self, child: PastryPeer, wanted: Filter) -> bool:
        """Is the child to be sent the filter? Then it counts as sent."""
        return self._forwarded[child].put(wanted)

    def wanted_through(self, child: PastryPeer) -> dict[Filter, None]:
        """All that is wanted here and beyond by sources whose child that is."""
        below = self._shared(child)
        wanted = dict.fromkeys(self._local)
        return wanted | {each: None for owner, each in self._received if self._shared(owner) < below}

    def told_to(self, child: PastryPeer) -> Iterable[Filter]:
        """What to tell a new child, as far as `is_new_to` says so."""
        return self.wanted_through(child)

    def withdrawn(self, source: PastryPeer | None, wanted: Filter) -> Iterator[Withdrawal]:
        """A source wants the filter no more."""
        above = self.above(source)
        covered: list[tuple[int, Filter]] | None = None
        for child, forwarded in self._forwarded.items():
            if self._shared(child) <= above or wanted not in forwarded:
                continue
            if covered is None:
                covered = self._covered_by(wanted)
            exposed = [each for shared, each in covered if shared < self._shared(child)]
            if wanted in exposed:
                continue  # another track from here still wants exactly this
            forwarded.remove(wanted)
            yield Withdrawal(child, [each for each in FilterSet.of(exposed) if self.is_new_to(child, each)], True)

    def forget(self, peer: PastryPeer) -> None:
        """The neighbour is gone as a source."""

    def _covered_by(self, wanted: Filter) -> list[tuple[int, Filter]]:
        """What is wanted of what the filter covers, and how many digits whoever wants it shares."""
        own = [(-1, each) for each in self._local.covered_by(wanted)]
        return own + [(self._shared(owner), each) for owner, each in self._received.covered_by(wanted)]

    def check_invariants(self) -> None:
        """Raise AssertionError if a child was sent too much or too little."""
        for child, forwarded in self._forwarded.items():
            wanted = self.wanted_through(child)
            for each in forwarded:
                assert each in wanted, f"{child.name} was sent a filter that is not needed through here"
            for each in wanted:
                assert forwarded.covers(each), f"{child.name} lacks a filter that is wanted through here"


@dataclass(eq=False)
class ReceiverCovering(SenderCovering):
    """The text's."""

    _widest: dict[NodeName | None, FilterSet] = field(default_factory=dict)
    """Of each source the filters that no other of its own covers."""

    def make_way(self, peer: PastryPeer, wanted: Filter) -> None:
        """A neighbour withdraws by itself what it has covered."""

    def goes_on(self, source: PastryPeer | None, wanted: Filter) -> bool:
        return self._widest.setdefault(_name(source), FilterSet()).put(wanted)

    def is_new_to(self, child: PastryPeer, wanted: Filter) -> bool:
        forwarded = self._forwarded[child]
        if wanted in forwarded:
            return False
        forwarded.add(wanted)
        return True

    def told_to(self, child: PastryPeer) -> Iterable[Filter]:
        below = self._shared(child)
        above = (owner.name for owner in self._received.peers.values() if self._shared(owner) < below)
        return dict.fromkeys(each for name in (None, *above) for each in self._widest.get(name, ()))

    def withdrawn(self, source: PastryPeer | None, wanted: Filter) -> Iterator[Withdrawal]:
        above, exposed = self.above(source), self._exposed(source, wanted)
        others = [shared for shared, each in self._covered_by(wanted) if each == wanted]
        for child, forwarded in self._forwarded.items():
            shared = self._shared(child)
            if shared <= above:
                continue
            instead = [each for each in exposed if self.is_new_to(child, each)]
            gone = wanted in forwarded and not any(other < shared for other in others)
            if gone:
                forwarded.remove(wanted)
            if instead or gone:
                yield Withdrawal(child, instead, gone)

    def _exposed(self, source: PastryPeer | None, wanted: Filter) -> list[Filter]:
        """What the source goes on wanting of what only this filter of its own had covered."""
        widest = self._widest.get(_name(source))
        if widest is None or wanted not in widest:
            return []
        widest.remove(wanted)
        covered = (
            self._local.covered_by(wanted)
            if source is None
            else [each for owner, each in self._received.covered_by(wanted) if owner.name == source.name]
        )
        return [each for each in FilterSet.of(covered) if widest.put(each)]

    def forget(self, peer: PastryPeer) -> None:
        self._widest.pop(peer.name, None)

    def check_invariants(self) -> None:
        super().check_invariants()
        for name in (None, *self._received.peers):
            wanted = self._local if name is None else self._received.of(name)
            assert set(self._widest.get(name, ())) == set(FilterSet.of(wanted)), "not the widest of a source's filters"
        assert self._widest.keys() <= {None, *self._received.peers}
        for child, forwarded in self._forwarded.items():
            assert all(each in forwarded for each in self.told_to(child)), (
                f"{child.name} was not sent a source's widest"
            )


def _name(source: PastryPeer | None) -> NodeName | None:
    return None if source is None else source.name
