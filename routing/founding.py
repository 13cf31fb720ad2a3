"""Founding a structured overlay anew, when all of its nodes have failed and are back.

Theory of operation. A node that is back joins as a new one does, through its bootstrap peers in turn. Once a request
has been in vain, each further one goes to a peer that it remembers, too (`routing.remembered_peers`). If all nodes have
failed none of them can let it in: each says that it is `Outside` itself. A node may found the overlay anew once half
of its bootstrap peers have said so, or of those that it remembers: if the overlay is divided, these are of its side. A
silent peer may be part of an overlay that lives: silence alone founds nothing. But of two peers one may be dead for
good; and if it is not, the two overlays find each other, as parts of a divided one do.
The nodes that wait tell each other which of those that may found it has the first name. A node that has heard of no
name before its own by the time at which it has asked each of its peers some times founds the overlay, and the others
join it. A name of which nobody has heard for that long is forgotten: its node has failed again.

A node that starts for the first time passes names on, but founds nothing: the overlay's founder may only be late.
"""

from collections.abc import Sequence
from typing import NamedTuple

from murmur_pubsub.errors import WireError
from murmur_pubsub.machine import NodeName
from murmur_pubsub.message import message
from murmur_pubsub.places import RingPlace

_TURNS_A_PEER = 4
_PEERS_MAX = 5
"""A deployment gives a node no more bootstrap peers."""


@message(110, control=True)
class Outside(NamedTuple):
    """The sender is not part of the overlay either."""

    first: NodeName
    """Of those that may found it anew, the first by name; empty: none is known."""
    turns: int
    """Age of that, in requests that have been in vain since that node spoke."""


_NOBODY = Outside("", 0)


def founded_us(place: RingPlace) -> int:
    """How long it takes at most until an overlay of such nodes is founded anew, once all of them are back: a turn is a
    `probe_timeout_us`. The first by name waits for the name of a node that has failed again to be forgotten, and is
    patient once more from then on. The others ask each of their peers in turn, and some wait for these; whoever is let
    in gathers its tables for a turn."""
    patience = _TURNS_A_PEER * (_PEERS_MAX + 1)
    return (2 * patience + 2 * (_PEERS_MAX + 1)) * place.probe_timeout_us


class Founding:
    """What the node `name` knows of those that wait with it. `peers`: its bootstrap peers; `remembered`: others through
    which it joins, if these do not answer; `was_inside`: has it been part of the overlay before?"""

    def __init__(self, name: NodeName, peers: Sequence[NodeName], was_inside: bool) -> None:
        self._name = name
        self._peers = peers
        self._was_inside = was_inside
        self.remembered: Sequence[NodeName] = ()
        self._asked = 0
        """How often this node has asked to be let in."""
        self._patience = _TURNS_A_PEER * (len(peers) + 1)
        self._turns = 0
        """Requests without an answer of the overlay."""
        self._other = _NOBODY
        """The first name that it has heard."""
        self._waiting: dict[NodeName, int] = {}
        """The peers that wait, and in which turn each last said so."""

    def to_ask(self) -> list[NodeName]:
        """Whom to ask now: a bootstrap peer and, unless it is the first time, one that is remembered, all in turn."""
        asked = [self._peers[self._asked % len(self._peers)]]
        others = [name for name in self.remembered if name not in self._peers]
        if self._asked and others:
            asked.append(others[(self._asked - 1) % len(others)])
        self._asked += 1
        return asked

    def answered(self) -> None:
        """Somebody has let this node in: there is an overlay."""
        self._turns = 0
        self._waiting.clear()

    def turn(self) -> bool:
        """A request has had no answer; True if this node should found the overlay."""
        self._turns += 1
        if self._other.first:
            self._other = self._other._replace(turns=self._other.turns + 1)
            if self._other.turns > self._patience:
                self._other, self._turns = _NOBODY, 0
        return self._turns >= self._patience and self._first().first == self._name

    def asked_by(self, name: NodeName) -> Outside:
        """A node asks to be let in, so it waits too; what it should be told."""
        self._waits(name)
        return self._first()

    def heard(self, source: NodeName, said: Outside) -> Outside | None:
        """The source waits; what it should be told in turn, if that is news to it. Raises `WireError`."""
        if said.turns < 0:
            raise WireError(f"an age of {said.turns} turns")
        self._waits(source)
        mine = self._first()
        if said.first not in ("", self._name) and said.turns <= self._patience and _is_news(said, mine):
            self._other = said
            return None
        return mine if _is_news(mine, said) else None

    def _waits(self, name: NodeName) -> None:
        if name in self._peers or name in self.remembered:
            self._waiting[name] = self._turns

    def _first(self) -> Outside:
        """The first by name of those that may found the overlay, this node perhaps."""
        if self._may_found() and (not self._other.first or self._name < self._other.first):
            return Outside(self._name, 0)
        return self._other

    def _may_found(self) -> bool:
        lately = {name for name, turn in self._waiting.items() if turn >= self._turns - self._patience}
        groups = self._peers, self.remembered
        return self._was_inside and any(0 < len(group) <= 2 * len(lately.intersection(group)) for group in groups)


def _is_news(said: Outside, known: Outside) -> bool:
    """Is that an earlier name, or younger, than what is known?"""
    if not said.first or not known.first:
        return bool(said.first)
    return (said.first, said.turns) < (known.first, known.turns)
