"""Parameters of a node of the gossip overlay, from its place in a structured overlay and the protocol's own."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from murmur_pubsub.errors import InputError
from murmur_pubsub.machine import NodeName
from routing.smallworld.ring import RING_SIZE

_OF_PLACE = ("identifier", "bootstrap", "founds", "cycle_us", "timeout_us")


@dataclass(frozen=True, slots=True)
class SmallWorldParameters:
    """What a node of the gossip overlay knows when it starts.

    degree: most neighbours that it selects; two of them are ring links (paper: 10). small_world_links, friend_links:
    how many of the rest it seeks of each kind (paper: 0 and log2 N - 2 after its first experiment). view, shuffled: of
    peer sampling (Cyclon: 20 and 8). inbound: route over links that others have to this node too. resets: take a peer
    whose process has closed its connections for failed at once, besides heartbeats. cycle_us: time between rounds.
    timeout_us: a neighbour that has not answered a heartbeat for so long has failed. bootstrap, founds: as for Pastry.
    """

    identifier: int
    degree: int = 10
    small_world_links: int = 0
    friend_links: int = 8
    view: int = 20
    shuffled: int = 8
    inbound: bool = True
    resets: bool = True
    cycle_us: int = 2_000_000
    timeout_us: int = 500_000
    bootstrap: tuple[NodeName, ...] = ()
    founds: bool = False

    def __post_init__(self) -> None:
        for name, least in (("degree", 2), ("small_world_links", 0), ("friend_links", 0), ("view", 1), ("shuffled", 1)):
            if getattr(self, name) < least:
                raise InputError(name, str(getattr(self, name)), f"at least {least}")
        links = self.small_world_links + self.friend_links
        if links > self.degree - 2:
            found = f"{self.small_world_links} small-world and {self.friend_links} friend links of degree {self.degree}"
            raise InputError("friend_links", found, f"at most {self.degree - 2} together: two links are the ring's")
        if self.shuffled > self.view:
            raise InputError("shuffled", str(self.shuffled), f"at most {self.view}, the view")
        if not 0 < self.timeout_us < self.cycle_us:
            found = f"timeout {self.timeout_us} us, a round every {self.cycle_us} us"
            raise InputError(
                "overlay.probe_timeout_us", found, "a timeout above zero and below the time between rounds"
            )

    @classmethod
    def of(
        cls, place: Mapping[str, Any], protocol: str, given: Mapping[str, Any], defaults: Mapping[str, Any]
    ) -> "SmallWorldParameters":
        """`place`: the broker's in a structured overlay; `given`: what the scenario says under `parameters.protocol`;
        `defaults`: the protocol's. Raises `InputError`."""
        known = [field.name for field in fields(cls) if field.name not in _OF_PLACE]
        at = f"broker.parameters.{protocol}"
        for name, value in given.items():
            if name not in known:
                raise InputError(f"{at}.{name}", "an unknown key", ", ".join(known))
            wanted = bool if name in ("inbound", "resets") else int
            if type(value) is not wanted:
                raise InputError(f"{at}.{name}", repr(value), "true or false" if wanted is bool else "a whole number")
        if "identifier" not in place:
            raise InputError("broker.routing", "a node without an identifier", "an overlay of the kind 'structured'")
        identifier = place["identifier"] * (RING_SIZE // place.get("base", 4) ** place.get("digits", 8))
        try:
            return cls(
                identifier=identifier,
                bootstrap=tuple(place.get("bootstrap", ())),
                founds=place.get("founds", False),
                cycle_us=place.get("probe_us", 2_000_000),
                timeout_us=place.get("probe_timeout_us", 500_000),
                **{**defaults, **given},
            )
        except InputError as error:
            where = error.place if "." in error.place else f"{at}.{error.place}"
            raise InputError(where, error.found, error.allowed) from None
