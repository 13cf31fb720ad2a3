"""One hop of a message that goes from broker to broker: it is kept and repeated until the next broker has heard it.

Theory of operation. What belongs to catch-up streams crosses brokers that know nothing of it. If each link on the way
may lose it, and only its two ends asked again, a way of six links that lose three messages in ten would bring one in
nine. So each broker keeps what it has sent to a neighbour until that says it has come, and sends it again, each time
after twice as long. A message that came is not taken again. When the link goes, all that is forgotten: the ends of the
way ask anew.
"""

from typing import Any

from murmur_pubsub.intervals import IntervalSet
from murmur_pubsub.machine import Effect, NodeName, Send
from reliability.durable.messages import BetweenDurables, HopHeard

FIRST_US = 50_000
"""After that long a message is sent again for the first time."""
_MOST_US = 3_200_000
_KEPT_MOST = 2_000
"""Messages kept for one neighbour. What is more is sent and not kept."""


class _Kept:
    """A message on its hop, when it is due again, and after how long then."""

    __slots__ = ("due_us", "message", "wait_us")

    def __init__(self, message: BetweenDurables, due_us: int) -> None:
        self.message = message
        self.due_us = due_us
        self.wait_us = FIRST_US


class Hops:
    """Those of one broker to its neighbours, and of these to it."""

    def __init__(self) -> None:
        self._number = 0
        self._kept: dict[NodeName, dict[int, _Kept]] = {}
        self._came: dict[NodeName, IntervalSet] = {}

    def __bool__(self) -> bool:
        return any(self._kept.values())

    def send(self, peer: NodeName, message: BetweenDurables, now_us: int) -> Send:
        """Send it to the neighbour."""
        self._number += 1
        numbered = message._replace(hop=self._number)
        kept = self._kept.setdefault(peer, {})
        if len(kept) < _KEPT_MOST:
            kept[self._number] = _Kept(numbered, now_us + FIRST_US)
        return Send(peer, numbered)

    def take(self, peer: NodeName, message: Any) -> tuple[bool, list[Effect]]:
        """One has come from the neighbour: is it new, and what tells the neighbour that it has come."""
        came = self._came.setdefault(peer, IntervalSet())
        is_new = message.hop not in came
        came.add(message.hop, message.hop)
        return is_new, [Send(peer, HopHeard(message.hop))]

    def heard(self, peer: NodeName, number: int) -> None:
        """The neighbour has heard that one."""
        self._kept.get(peer, {}).pop(number, None)

    def link_down(self, peer: NodeName) -> None:
        """The link to the neighbour is gone, and with it what was on its way."""
        self._kept.pop(peer, None)
        self._came.pop(peer, None)

    def repeat(self, now_us: int) -> list[Effect]:
        """Send again what is due."""
        effects: list[Effect] = []
        for peer, kept in self._kept.items():
            for each in kept.values():
                if each.due_us <= now_us:
                    each.wait_us = min(2 * each.wait_us, _MOST_US)
                    each.due_us = now_us + each.wait_us
                    effects.append(Send(peer, each.message))
        return effects
