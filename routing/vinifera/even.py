"""Vinifera with an even load: links to friends at all distances, and several hashes (ours, not the paper's).

Theory of operation. What loads a node of Vinifera is the tree below it, whose nodes want what it does not. Two things
make such trees large. A node that happens to be close to a rendezvous node is on the ways of many, whatever it wants.
And where interests are skewed most events go to one end of the ring, so that the few nodes above that relay them all.

So, first, links lead to friends at small-world distances (`routing.smallworld.friends_at_distances`). A node routes
over the links that friends have to it, but not over others' (`routing.smallworld.contacts.Alike`). Friends are alike on
all attributes (`WholeInterests`). The ways of an event then go by nodes that want it, and are as short as the
baseline's.

Second, each attribute has `rotations` hashes, each turned against the one before it by an equal part of the ring. A
node installs what it wants under all of them. An event goes by one, which its number says. So a node stands above the
popular end for one event of `rotations` alone. Each event still has one tree for each attribute, and comes once. The
price is the state: so many times the entries. Several hashes of one key are an old means against nodes that fail (CAN
calls them realities). Here each event uses one of them, so that they divide the load.

A rotation has attributes of its own (`_rotated_key`), since a node matches an event against the other attributes alone:
by the same attribute an event of one rotation would be taken for one of another, whose value is elsewhere.
"""

from dataclasses import dataclass

from murmur_pubsub.errors import InputError
from murmur_pubsub.event import Event
from murmur_pubsub.intervals import Interval, union
from murmur_pubsub.machine import NodeContext
from routing.protocol import RoutingProtocol, RunsOn
from routing.smallworld.parameters import fits_the_ring
from routing.smallworld.recovery import gossip_recovers
from routing.smallworld.rendezvous import Target
from routing.smallworld.ring import RING_SIZE
from routing.smallworld.subscription_regions import SubscriptionRegions
from routing.vinifera.interests import WholeInterests
from routing.vinifera.parameters import ViniferaParameters
from routing.vinifera.router import Vinifera

_ROTATIONS_MAX = 64
_KEYS_APART = 0x9E3779B1
"""An odd number: the keys of an attribute's rotations differ from each other, and from other attributes' by chance."""


@dataclass(frozen=True)
class EvenParameters(ViniferaParameters):
    """One node's parameters. All links beside the ring's are to friends at small-world distances."""

    small_world_links: int = 8
    friend_links: int = 0
    beta: int = 5
    """As for Vinifera, whose default is four times that: with four hashes a place gets a quarter of the events."""
    rotations: int = 4
    """How many hashes each attribute has. Found by looking: with 1, 2 and 4 of them the largest load of 300 nodes was
    48, 26 and 14 % (one skewed attribute)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.rotations <= _ROTATIONS_MAX:
            raise InputError("rotations", str(self.rotations), f"1 to {_ROTATIONS_MAX}")


class EvenVinifera(Vinifera):
    """The router of one broker."""

    alike = True
    compares = WholeInterests

    def __init__(self, context: NodeContext, parameters: EvenParameters) -> None:
        self._rotations = parameters.rotations
        super().__init__(context, parameters)

    def regions_wanted(self) -> SubscriptionRegions:
        """See `Vinifera`."""
        return {
            (_rotated_key(attribute, turn), rest): _rotated_ranges(ranges, self._turned(turn))
            for (attribute, rest), ranges in super().regions_wanted().items()
            for turn in range(self._rotations)
        }

    def targets(self, event: Event) -> list[Target]:
        """See `RendezvousRouter`."""
        turn = event.sequence % self._rotations
        turned = self._turned(turn)
        return [
            (_rotated_key(attribute, turn), (value + turned) % RING_SIZE) for attribute, value in super().targets(event)
        ]

    def _turned(self, turn: int) -> int:
        return turn * RING_SIZE // self._rotations


def _rotated_key(attribute: int, turn: int) -> int:
    return (attribute + turn * _KEYS_APART) % RING_SIZE


def _rotated_ranges(ranges: list[Interval], turned: int) -> list[Interval]:
    """The ranges, turned so far up the ring; one that comes to its end goes on at its beginning."""
    found: list[Interval] = []
    for low, high in ranges:
        begin, end = low + turned, high + turned
        if begin >= RING_SIZE:
            found.append((begin - RING_SIZE, end - RING_SIZE))
        elif end >= RING_SIZE:
            found += [(begin, RING_SIZE - 1), (0, end - RING_SIZE)]
        else:
            found.append((begin, end))
    return union(found)


VINIFERA_EVEN = RoutingProtocol(
    name="vinifera_even",
    make=EvenVinifera,
    parameters=EvenParameters,
    runs_on=RunsOn.STRUCTURED,
    keeps_order=False,
    tried={
        "degree": (12,),
        "small_world_links": (3,),
        "view": (8,),
        "shuffled": (3,),
        "filters_max": (1,),
        "beta": (2,),
        "balance_rounds": (1,),
        "rotations": (1, 3),
    },
    tried_seldom={"attributes": ({"a0": {"min": 0, "max": 1}},)},
    recovers=gossip_recovers,
    check=fits_the_ring,
)
