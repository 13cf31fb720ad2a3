"""One node of identifier range based routing held in the hand: it is handed messages, and what it sends is seen."""

from collections.abc import Sequence
from typing import Any

from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import Effect, NodeContext, Send, Start, TimerFired
from murmur_pubsub.places import RingPlace
from routing.irbr.router import Irbr, IrbrParameters
from routing.pastry.identifiers import IdentifierRange
from routing.pastry.messages import PastryPeer

PROBE_US = 2_000_000
ROUND, DEADLINE = (TimerFired(("routing", "pastry", name)) for name in ("round", "deadline"))
X, Y, NARROW = (parse_filter(text) for text in ("x > 1", "y > 1", "x > 5"))


def peer(name: str, text: str) -> PastryPeer:
    return PastryPeer(name, int(text, 4))


def wide(text: str) -> IdentifierRange:
    """The range of identifiers that begin with these digits."""
    return IdentifierRange(int(text, 4) if text else 0, len(text))


FAR, BESIDE, NEAR = peer("far", "2000"), peer("beside", "1000"), peer("near", "1112")
"""Those that stand for the ranges 2…, 10.. and 1112, as seen from 1111."""


def node(*known: PastryPeer, make: Any = Irbr) -> Any:
    place = RingPlace(int("1111", 4), digits=4, leaf_set=4, probe_us=PROBE_US)
    router = make(NodeContext("n", 1, place=place), IrbrParameters())
    router.handle(Start([]), 0)
    router.know(known)
    return router


def said(effects: Sequence[Effect], *kinds: type) -> list[tuple[str, Any]]:
    """The messages (of those classes), and to whom they go."""
    sent = [(each.to, each.message) for each in effects if isinstance(each, Send)]
    return [(to, message) for to, message in sent if not kinds or isinstance(message, kinds)]


def end_round(router: Any, began_us: int, *answering: PastryPeer) -> list[Effect]:
    """A round of probes in which these are there."""
    router.handle(ROUND, began_us)
    for each in answering:
        router.pastry.heard(each.name, began_us)
    return [effect for at in (1, 2, 3) for effect in router.handle(DEADLINE, began_us + at)]
