"""One node of the gossip overlay held in the hand: it is handed messages and timers, and what it sends is looked at."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from murmur_pubsub.machine import NodeContext, Received, Start, TimerFired
from murmur_pubsub.places import RingPlace
from routing.protocol import RoutingProtocol
from routing.smallworld.messages import Beat, BeatAnswer, GossipJoinRequest, GossipPeer
from routing.smallworld.ring import RING_SIZE
from routing.vinifera.router import VINIFERA, Vinifera
from tests.protocols.one_node import sent

CYCLE_US, TIMEOUT_US = 2_000_000, 500_000
ROUND, ASK_AGAIN, DEADLINE, RETRY, FLUSH = (
    TimerFired(("routing", name)) for name in ("round", "ask again", "deadline", "join", "flush")
)
TENTH = RING_SIZE // 10


def made(
    declared: RoutingProtocol[Any], chosen: Mapping[str, Any], bootstrap: tuple[str, ...] = (), incarnation: int = 0
) -> Vinifera:
    """A node of that protocol at the place 0 that has just started; without bootstrap peers it has founded the
    overlay."""
    place = RingPlace(
        0, base=4, digits=8, bootstrap=bootstrap, founds=not bootstrap, probe_us=CYCLE_US, probe_timeout_us=TIMEOUT_US
    )
    router = declared.make(NodeContext("n", 1, incarnation=incarnation, place=place), declared.parameters(**chosen))
    assert isinstance(router, Vinifera)
    router.handle(Start([]), 0)
    return router


def node(*bootstrap: str, incarnation: int = 0, **chosen: Any) -> Vinifera:
    """The same of Vinifera."""
    return made(VINIFERA, chosen, bootstrap, incarnation)


def fields(name: str, at: int, incarnation: int = 0) -> tuple[str, int, int, bytes, int, int]:
    """A peer as it is written in messages."""
    return name, incarnation, at, b"", 0, 0


def acquainted(chosen: Mapping[str, Any] = MappingProxyType({}), **peers: int) -> Vinifera:
    """A node that knows these peers at their places, all of which have answered."""
    router = node(**chosen)
    router.know([GossipPeer(name, 0, at, b"") for name, at in peers.items()])
    for name, at in peers.items():
        router.handle(Received(name, answer(at)), 1)
    return router


def beat(at: int, number: int = 1, load: int = 0, incarnation: int = 0) -> Beat:
    return Beat(at, incarnation, number, [], load, 0, 0, 0)


def answer(at: int, number: int = 1, load: int = 0) -> BeatAnswer:
    return BeatAnswer(at, 0, number, [], load, 0, 0, 0, True)


def requests(router: Vinifera, rounds: int) -> list[tuple[int, str]]:
    """In which rounds a node sends requests, and to whom, while all answer it."""
    found: list[tuple[int, str]] = []
    for number in range(1, rounds + 1):
        effects = router.handle(ROUND, number * CYCLE_US)
        found += [(number, to) for to, _ in sent(effects, GossipJoinRequest)]
        for to, _ in sent(effects, Beat):
            contact = router.overlay.contacts.get(to)
            assert contact is not None
            router.handle(Received(to, answer(contact.identifier, number + 1)), number * CYCLE_US + 1)
        router.handle(DEADLINE, number * CYCLE_US + 2)
    return found
