"""What every event had to reach and what it has reached: one definition for all papers.

The oracle knows from the filters, not from the brokers, which nodes want an event. Of each pair of an event and a node:

- missing: the node wants the event and has not got it;
- spurious: the node has got the event and does not want it;
- duplicate: each delivery of the event to the node after the first one.

Required are the deliveries that a paper's figures are about: those to nodes that want the event, with or without the
node that publishes it, whose own subscribers get it over no link.

Sets of nodes are ints, with a bit for the number of each node.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(slots=True)
class EventFate:
    """One event: when it was published, and what has become of it."""

    at_us: int
    wanted: int
    """The nodes that want it."""
    due: int
    """Those of them to which deliveries are required."""
    got: int = 0
    """The nodes that have got it."""
    duplicate: int = 0
    hops: int = 0
    """The sum over the required deliveries that were made."""
    delay_us: int = 0
    """The sum over the required deliveries that were made."""

    @property
    def required(self) -> int:
        """How many deliveries had to be made."""
        return self.due.bit_count()

    @property
    def made(self) -> int:
        """How many of them were."""
        return (self.due & self.got).bit_count()

    @property
    def missing(self) -> int:
        """How many nodes want it and have not got it."""
        return (self.wanted & ~self.got).bit_count()

    @property
    def spurious(self) -> int:
        """How many nodes have got it and do not want it."""
        return (self.got & ~self.wanted).bit_count()


@dataclass(slots=True)
class Tally:
    """Sums over events, of what `EventFate` says of each."""

    events: int = 0
    required: int = 0
    made: int = 0
    missing: int = 0
    duplicate: int = 0
    spurious: int = 0
    hops: int = 0
    delay_us: int = 0


class Oracle:
    """The fates of all events, by their number. `own_count`: is a delivery at the publishing node required?"""

    def __init__(self, own_count: bool) -> None:
        self.fates: dict[int, EventFate] = {}
        self._own_count = own_count

    def published(self, number: int, publisher: int, wanted: int, now_us: int) -> None:
        """A node has published the event, which these nodes want."""
        due = wanted if self._own_count else wanted & ~(1 << publisher)
        self.fates[number] = EventFate(now_us, wanted, due)

    def delivered(self, number: int, node: int, hops: int, now_us: int) -> None:
        """A node has given the event to its subscribers."""
        fate, bit = self.fates[number], 1 << node
        if fate.got & bit:
            fate.duplicate += 1
            return
        fate.got |= bit
        if fate.due & bit:
            fate.hops += hops
            fate.delay_us += now_us - fate.at_us

    def tally(self, fates: Iterable[EventFate] | None = None) -> Tally:
        """The sums over these events, or over all."""
        total = Tally()
        for fate in self.fates.values() if fates is None else fates:
            total.events += 1
            total.required += fate.required
            total.made += fate.made
            total.missing += fate.missing
            total.duplicate += fate.duplicate
            total.spurious += fate.spurious
            total.hops += fate.hops
            total.delay_us += fate.delay_us
        return total
