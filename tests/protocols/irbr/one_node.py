"""One node of identifier range based routing held in the hand: it is handed messages, and what it sends is seen."""

from typing import Any

from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import NodeContext, Start
from murmur_pubsub.places import RingPlace
from routing.irbr.router import Irbr, IrbrParameters
from routing.pastry.identifiers import IdentifierRange
from routing.pastry.messages import PastryPeer
from tests.protocols.pastry.one_node import PROBE_US, identifier, peer

X, Y, NARROW = (parse_filter(text) for text in ("x > 1", "y > 1", "x > 5"))


def wide(text: str) -> IdentifierRange:
    """The range of identifiers that begin with these digits."""
    return IdentifierRange(identifier(text) if text else 0, len(text))


FAR, BESIDE, NEAR = peer("far", "2000"), peer("beside", "1000"), peer("near", "1112")
"""Those that stand for the ranges 2…, 10.. and 1112, as seen from 1111."""


def node(*known: PastryPeer, make: Any = Irbr) -> Any:
    place = RingPlace(identifier("1111"), digits=4, leaf_set=4, probe_us=PROBE_US)
    router = make(NodeContext("n", 1, place=place), IrbrParameters())
    router.handle(Start([]), 0)
    router.know(known)
    return router
