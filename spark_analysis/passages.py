"""What the journal shows of one event's way: which node had it when, and which messages with it did not arrive.

All of it is written by the runtimes, none of it by a protocol: a SEND row without its RECEIVE row is a message that was
lost on the way, and a DROP row says why.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from murmur_pubsub.journal import NONE, DropReason, RowKind
from spark_analysis.search_tree import search_tree

PASSAGE_KINDS = (RowKind.PUBLISH, RowKind.SEND, RowKind.RECEIVE, RowKind.DROP, RowKind.DUPLICATE)
ON_THE_WAY_US = 1_000_000
"""How long an event is taken to be on its way where the journal does not show it."""
HopRow = tuple[int, int, int, int, int]
"""(time_us, kind, node, peer, value) of a row about the event."""


class Loss(NamedTuple):
    """A message with the event did not arrive. `sent_us`: when it left its sender, or was to leave. `reason`: of its
    DROP row, and `time_us` the row's time; None: it was sent and never received."""

    sent_us: int
    time_us: int
    sender: str
    receiver: str
    reason: DropReason | None


class Crossing(NamedTuple):
    """A message with the event left `sender` for `receiver`."""

    time_us: int
    sender: str
    receiver: str


@dataclass(slots=True)
class Passage:
    """`had`: node to when it first had the event; `received`: the nodes to which it came over the network, and when.
    `copied`: messages of which the link model made a second copy. `hops`: is anything journaled of messages that
    arrive?"""

    had: dict[str, int] = field(default_factory=dict)
    received: dict[str, list[int]] = field(default_factory=dict)
    lost: list[Loss] = field(default_factory=list)
    sent: list[Crossing] = field(default_factory=list)
    copied: list[Crossing] = field(default_factory=list)
    hops: bool = True

    def way_taken(self, publisher: str, client: str) -> list[str]:
        """The nodes by which the event came to its subscriber first, as far back as the journal shows."""
        senders: dict[str, str] = {}
        for crossing in sorted(self.sent):
            senders.setdefault(crossing.receiver, crossing.sender)
        nodes = [client]
        while nodes[-1] != publisher and nodes[-1] in senders and senders[nodes[-1]] not in nodes:
            nodes.append(senders[nodes[-1]])
        return nodes[::-1]

    def went_otherwise(self, later: "Passage | None", publisher: str, client: str) -> bool:
        """Did another event come to the subscriber by other nodes? If nothing is known of that, it is not known."""
        return later is not None and self.way_taken(publisher, client) != later.way_taken(publisher, client)

    def beyond(self, broker: str, clients: Container[str]) -> Sequence[str]:
        """The broker, and those to which the event may have come by it; none if it had the event from clients alone."""
        if all(each.sender in clients for each in self.sent if each.receiver == broker):
            return ()
        onward: dict[str, list[str]] = {}
        for each in self.sent:
            if each.receiver in self.received:
                onward.setdefault(each.sender, []).append(each.receiver)
        return list(search_tree(broker, onward))

    def led(self, later: "Passage", sender: str, receiver: str) -> bool:
        """Does the journal show that another event crossed that link, too, and did not overtake this one there?"""
        if all((each.sender, each.receiver) != (sender, receiver) for each in later.sent):
            return False
        came_us, later_came_us = self.received.get(receiver), later.received.get(receiver)
        if not came_us or not later_came_us:
            return False
        was_behind = sender in self.had and sender in later.had and later.had[sender] < self.had[sender]
        return was_behind or min(came_us) < min(later_came_us)


def held_until(stretches: Iterable[tuple[int, int]], published_us: int, limit_us: int) -> int:
    """Until when what was published then may have been on its way, held up in these stretches, one after the other.
    `limit_us`: what waited in one may take so long after it."""
    until_us = published_us + ON_THE_WAY_US
    for from_us, ended_us in sorted(stretches):
        if from_us <= until_us and published_us <= ended_us + limit_us:
            until_us = max(until_us, max(published_us, ended_us) + limit_us + ON_THE_WAY_US)
    return until_us


def passage_of(rows: Iterable[HopRow], names: Sequence[str], hops: bool) -> Passage:
    """The passage that these rows of one event show, in any order; `names` are those of the nodes by number."""
    passage = Passage(hops=hops)
    on_the_way: dict[tuple[str, str], list[int]] = defaultdict(list)
    arrived: dict[tuple[str, str], int] = defaultdict(int)
    for time_us, kind, node, peer, value in sorted(rows):
        name, other = names[node], names[peer] if peer != NONE else ""
        if kind == RowKind.PUBLISH:
            passage.had.setdefault(name, time_us)
        elif kind == RowKind.RECEIVE:
            passage.had.setdefault(name, time_us)
            passage.received.setdefault(name, []).append(time_us)
            arrived[other, name] += 1
        elif kind == RowKind.DROP:
            sent_us = on_the_way[name, other][-1] if on_the_way[name, other] else time_us
            passage.lost.append(Loss(sent_us, time_us, name, other, DropReason(value)))
            arrived[name, other] += 1
        else:
            on_the_way[name, other].append(time_us)
            (passage.copied if kind == RowKind.DUPLICATE else passage.sent).append(Crossing(time_us, name, other))
    for (sender, receiver), times in on_the_way.items():
        if len(times) > arrived[sender, receiver]:  # which of them was lost cannot be told
            passage.lost += [Loss(time_us, time_us, sender, receiver, None) for time_us in times]
    return passage
