"""Parameters of the protocols over the gossip overlay."""

from dataclasses import dataclass, fields

from murmur_pubsub.errors import InputError
from murmur_pubsub.machine import NodeContext, NodeName
from murmur_pubsub.places import RingPlace
from routing.protocol import OverlayTraits
from routing.smallworld.ring import RING_SIZE


@dataclass(frozen=True, slots=True)
class GossipOverlayParameters:
    """What a scenario may say of the overlay itself, under the name of a protocol over it."""

    degree: int = 10
    """The most neighbours that a node selects; two of them are ring links (paper: 10)."""
    small_world_links: int = 0
    """How many of the rest it seeks at distances after Kleinberg (paper: 0 after its first experiment)."""
    friend_links: int = 8
    """How many it seeks among nodes with similar subscriptions (paper: log2 N - 2)."""
    view: int = 20
    """Nodes known to peer sampling (Cyclon: 20)."""
    shuffled: int = 8
    """Nodes in one exchange of peer sampling (Cyclon: 8)."""
    inbound: bool = True
    """Route over links that others have to this node too."""
    resets: bool = True
    """Take a peer whose process has closed its connections for failed at once, besides heartbeats."""
    filters_max: int = 12
    """Where more filters of one attribute meet, a node asks for all events in their ranges (0: it never does). Found by
    looking: of 6, 12 and 24, it makes half of the work that none does, and 4 % more relays than 24."""

    def __post_init__(self) -> None:
        at_least = {"degree": 2, "small_world_links": 0, "friend_links": 0, "view": 1, "shuffled": 1, "filters_max": 0}
        for name, least in at_least.items():
            if getattr(self, name) < least:
                raise InputError(name, str(getattr(self, name)), f"at least {least}")
        links = self.small_world_links + self.friend_links
        if links > self.degree - 2:
            found = f"{self.small_world_links} small-world and {self.friend_links} friend links of degree {self.degree}"
            raise InputError("friend_links", found, f"at most {self.degree - 2} together: two links are the ring's")
        if self.shuffled > self.view:
            raise InputError("shuffled", str(self.shuffled), f"at most {self.view}, the view")


def fits_the_ring(parameters: GossipOverlayParameters, traits: OverlayTraits) -> None:
    """Raise `InputError` if brokers with different identifiers would have the same place on the ring."""
    if traits.identifiers > RING_SIZE:
        found = f"{traits.identifiers:,} identifiers"
        raise InputError("overlay.digits", found, f"as many digits as make at most {RING_SIZE:,}: places on the ring")


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallWorldParameters(GossipOverlayParameters):
    """What a node of the gossip overlay knows when it starts: the scenario's parameters, and its own place."""

    identifier: int
    """Its place on the ring, whose identifiers are finer than those of the structured overlay."""
    bootstrap: tuple[NodeName, ...]
    founds: bool
    """Both as for Pastry (`murmur_pubsub.places.RingPlace`)."""
    cycle_us: int
    """Time between rounds."""
    timeout_us: int
    """A neighbour that has not answered a heartbeat for that long has failed."""

    @classmethod
    def of(cls, context: NodeContext, chosen: GossipOverlayParameters) -> "SmallWorldParameters":
        """Those of the node in that context."""
        place = context.place
        assert isinstance(place, RingPlace)
        return cls(
            **{each.name: getattr(chosen, each.name) for each in fields(GossipOverlayParameters)},
            identifier=place.identifier * (RING_SIZE // place.base**place.digits),
            bootstrap=place.bootstrap,
            founds=place.founds,
            cycle_us=place.probe_us,
            timeout_us=place.probe_timeout_us,
        )
