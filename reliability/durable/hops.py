"""One hop of a message that goes from broker to broker: it is kept and repeated until the next broker has heard it.

Theory of operation. What belongs to catch-up streams crosses brokers that know nothing of it. If each link on the way
may lose it, and only its two ends asked again, a way of six links that lose three messages in ten would bring one in
nine. So each broker keeps what it has sent to a neighbour until that says it has come, and sends it again, each time
after twice as long. A message that came is not taken again. When the link goes, all that is forgotten: the ends of the
way ask anew. Messages come in bursts, so one word says of all that came within some milliseconds that they have.
"""

from murmur_pubsub.intervals import IntervalSet
from murmur_pubsub.machine import Effect, NodeName, Send
from reliability.durable.messages import BetweenDurables, HopHeard

FIRST_US = 50_000
"""After that long a message is sent again for the first time."""
SAY_AFTER_US = 5_000
"""After that long a neighbour is told what has come from it."""
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
        self._numbers: dict[NodeName, int] = {}
        self._kept: dict[NodeName, dict[int, _Kept]] = {}
        self._came: dict[NodeName, IntervalSet] = {}
        self._to_say: dict[NodeName, IntervalSet] = {}

    @property
    def any_kept(self) -> bool:
        """Is there a message that a neighbour has not said to have come?"""
        return any(self._kept.values())

    @property
    def any_to_say(self) -> bool:
        """Is there a neighbour to be told what has come?"""
        return bool(self._to_say)

    def send(self, peer: NodeName, message: BetweenDurables, now_us: int) -> Send:
        """Send it to the neighbour."""
        number = self._numbers[peer] = self._numbers.get(peer, 0) + 1
        numbered = message._replace(hop=number)
        kept = self._kept.setdefault(peer, {})
        if len(kept) < _KEPT_MOST:
            kept[number] = _Kept(numbered, now_us + FIRST_US)
        return Send(peer, numbered)

    def is_new(self, peer: NodeName, hop: int) -> bool:
        """One has come from the neighbour, which will be told so; is it new?"""
        came = self._came.setdefault(peer, IntervalSet())
        self._to_say.setdefault(peer, IntervalSet()).add(hop, hop)
        if hop in came:
            return False
        came.add(hop, hop)
        return True

    def say(self) -> list[Effect]:
        """Tell neighbours what has come from them."""
        to_say, self._to_say = self._to_say, {}
        return [Send(peer, HopHeard([each for span in came for each in span])) for peer, came in to_say.items()]

    def heard(self, peer: NodeName, message: HopHeard) -> None:
        """The neighbour has heard those."""
        kept = self._kept.get(peer)
        for first, last in zip(message.hops[::2], message.hops[1::2], strict=False):
            if not kept:
                return
            for number in range(max(first, next(iter(kept))), min(last, self._numbers[peer]) + 1):
                kept.pop(number, None)

    def link_down(self, peer: NodeName) -> None:
        """The link to the neighbour is gone, and with it what was on its way."""
        for held in (self._kept, self._came, self._to_say):
            held.pop(peer, None)

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
