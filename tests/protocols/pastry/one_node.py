"""One Pastry node held in the hand: it is handed messages and timers, and what it sends is looked at."""

from collections.abc import Sequence
from typing import Any

from murmur_pubsub.machine import Effect, NodeContext, Received, Start, TimerFired
from murmur_pubsub.places import RingPlace
from routing.pastry.messages import Hello, JoinReply, PastryPeer, Seek, Welcome
from routing.pastry.node import Pastry
from tests.protocols.one_node import sent

PROBE_US, TIMEOUT_US = 2_000_000, 500_000
ROUND, DEADLINE, SETTLE, JOIN = (
    TimerFired(("routing", "pastry", name)) for name in ("round", "deadline", "settle", "join")
)


def identifier(text: str) -> int:
    """Of digits in base 4."""
    return int(text, 4)


def peer(name: str, text: str, incarnation: int = 0) -> PastryPeer:
    return PastryPeer(name, identifier(text), incarnation)


def node_at(text: str, *bootstrap: str, incarnation: int = 0, founds: bool = False) -> Pastry:
    """A node that has just started."""
    place = RingPlace(
        identifier(text), digits=4, leaf_set=4, bootstrap=bootstrap, founds=founds,
        probe_us=PROBE_US, probe_timeout_us=TIMEOUT_US,
    )  # fmt: skip
    node = Pastry(NodeContext("n", 1, incarnation=incarnation, place=place))
    node.handle(Start([]), 0)
    return node


def inside(text: str, *known: PastryPeer, bootstrap: Sequence[str] = ()) -> Pastry:
    """A node that is part of the overlay and knows these."""
    node = node_at(text, *bootstrap, founds=True)
    node.know(known)
    node.take_changes()
    return node


def gathering() -> Pastry:
    """A node that has been told of one peer, which has answered, and now seeks another one in its range."""
    node = node_at("1111", "a", "b")
    effects = node.handle(Received("a", JoinReply([peer("p", "2000")])), 1)
    assert [to for to, _ in sent(effects, Hello)] == ["p"]
    effects = node.handle(Received("p", Welcome(peer("p", "2000"), True, False, [])), 2)
    assert [to for to, _ in sent(effects, Seek)] == ["p"]
    assert not node.joined
    return node


def end_round(router: Any, began_us: int, *answering: PastryPeer) -> list[Effect]:
    """A round of probes at a node of a routing over Pastry, in which these are there."""
    router.handle(ROUND, began_us)
    for each in answering:
        router.pastry.heard(each.name, began_us)
    return [effect for at in (1, 2, 3) for effect in router.handle(DEADLINE, began_us + at)]
