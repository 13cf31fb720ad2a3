"""How brokers come to know that one has joined a cell, or departed for good.

Theory of operation. What changes is stored before it holds here, and holds before it is told to anybody: so a broker
that starts again knows at least what it had told. Then it goes to every neighbour, member or not, and to each new one;
who hears news does likewise. (Without newcomers only one of several brokers of a cell can have departed. To forget that
costs nothing but that it is waited for again, and nothing is stored.)

A link is used for anything else only while it is *open*: both its ends are members as known here, and if this broker
has joined, the other end has said that it knows so. Before that it would not take what it is sent.

A newcomer is ordered to join, and says so itself. That a broker departs is ordered from another of its cell, which
stays. A broker that has heard that it has departed says nothing but that any more, in no later life either.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgpack

from murmur_pubsub.errors import InputError
from murmur_pubsub.machine import Answer, Effect, NodeName, Persist, Send
from murmur_pubsub.membership import Membership
from routing.cells.messages import Members


class _News(NamedTuple):
    joined: Mapping[NodeName, str]
    departed: Sequence[NodeName]
    order: int | None
    """The number of the order that it answers."""


class Joining:
    """Of one broker. `peers`: the neighbours with a link, each with what it has said of who joined. `stores`: does it
    use the disk?"""

    def __init__(self, me: NodeName, membership: Membership) -> None:
        self.peers: dict[NodeName, Mapping[NodeName, str]] = {}
        self.stores = bool(membership.plan.newcomers)
        self._me = me
        self._membership = membership
        self._coming = Membership(membership.plan)
        """What will hold when all is stored."""
        self._token = 0
        self._storing: dict[int, _News] = {}

    @property
    def under_way(self) -> bool:
        """Is there news that does not hold yet?"""
        return bool(self._storing)

    @property
    def has_left(self) -> bool:
        """Has this broker departed?"""
        return self._membership.has_departed(self._me)

    def recover(self, records: Sequence[bytes]) -> None:
        """Take up what was stored last; raises `InputError` for a record that is none."""
        for record in records[-1:]:
            try:
                self._token, joined, departed = msgpack.unpackb(record)
                self._membership.take(joined, departed)
                self._coming.take(joined, departed)
            except (ValueError, TypeError, AttributeError) as error:
                place = f"the stable log of {self._me}: who has joined which cell"
                raise InputError(place, f"{record[:40]!r} ({error})", "what this broker has written") from None

    def is_open(self, peer: NodeName) -> bool:
        """May the link to the neighbour be used?"""
        known = self._membership
        told = self._me in self.peers[peer] or self._me not in known.joined
        return told and known.cell_of(self._me) is not None and known.cell_of(peer) is not None

    def link_up(self, peer: NodeName) -> list[Effect]:
        """A neighbour is there, and is told what there is to tell."""
        self.peers[peer] = {}
        return [Send(peer, self._told())] if self._membership else []

    def link_down(self, peer: NodeName) -> None:
        """It is gone."""
        self.peers.pop(peer, None)

    def heard(self, source: NodeName, message: Members) -> tuple[bool, list[Effect]]:
        """A neighbour says what it knows; is more known now, and what is to be done?"""
        if source in self.peers:
            self.peers[source] = message.joined
        known = self._membership
        joined = {
            each: cell
            for each, cell in message.joined.items()
            if each in known.plan.newcomers and cell in known.plan.cells
        }
        departed = [each for each in message.departed if each in known.brokers]
        news = _News(joined, departed, None)
        return self._take(news) if self._coming.is_news(joined, departed) else (False, [])

    def join(self, cell: str, order: int) -> tuple[bool, list[Effect]]:
        """An order: this broker is to join the cell."""
        why = self._membership.why_not_join(self._me, cell)
        if not why and self._me in self._coming.joined:
            why = f"{self._me} is joining {self._coming.joined[self._me]} already"
        return (False, [Answer(order, why)]) if why else self._take(_News({self._me: cell}, (), order))

    def depart(self, broker: NodeName, order: int) -> tuple[bool, list[Effect]]:
        """An order, which is not refused: that other broker departs."""
        return self._take(_News({}, (broker,), order))

    def stored(self, token: int) -> list[Effect]:
        """What was on its way to the disk is there, and holds."""
        return self._holds(self._storing.pop(token))

    def _take(self, news: _News) -> tuple[bool, list[Effect]]:
        self._coming.take(news.joined, news.departed)
        if not self.stores:
            return True, self._holds(news)
        self._token += 1
        self._storing[self._token] = news
        record = [self._token, self._coming.joined, list(self._coming.departed)]
        return False, [Persist(self._token, msgpack.packb(record))]

    def _holds(self, news: _News) -> list[Effect]:
        self._membership.take(news.joined, news.departed)
        told: list[Effect] = [Send(peer, self._told()) for peer in self.peers]
        return told if news.order is None else [Answer(news.order), *told]

    def _told(self) -> Members:
        return Members(dict(self._membership.joined), list(self._membership.departed))
