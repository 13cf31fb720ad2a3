"""Meshed overlays of networkx: random regular graphs, small worlds and scale-free ones, drawn from the seed."""

import random
from collections.abc import Callable
from dataclasses import dataclass

import networkx as nx

from murmur_pubsub.errors import InputError
from workloads.overlay import BROKERS_MAX, LINKS_MAX, Overlay, numbered

_TRIES = 200


@dataclass(frozen=True, slots=True)
class RandomRegular:
    """A graph in which each broker has the same number of links, drawn from all of them."""

    brokers: int = 16
    """How many brokers there are."""
    degree: int = 3
    """How many links each has."""

    def __post_init__(self) -> None:
        _require_brokers(self.brokers, 3)
        well = 2 <= self.degree < self.brokers and not self.brokers * self.degree % 2
        allowed = f"2 to {self.brokers - 1}, and brokers times degree an even number"
        _require(well, "degree", self.degree, allowed)
        _require_links("degree", self.brokers * self.degree // 2)


@dataclass(frozen=True, slots=True)
class SmallWorld:
    """A circle of brokers with links to the nearest ones, some of which are exchanged for links across (Watts and
    Strogatz)."""

    brokers: int = 16
    """How many brokers there are."""
    degree: int = 4
    """How many of the nearest brokers each is linked with before the exchange."""
    rewired: float = 0.2
    """The probability that a link is exchanged."""

    def __post_init__(self) -> None:
        _require_brokers(self.brokers, 3)
        well = 2 <= self.degree < self.brokers and not self.degree % 2
        _require(well, "degree", self.degree, f"an even number from 2 to {self.brokers - 1}")
        _require_links("degree", self.brokers * self.degree // 2)
        _require(0 <= self.rewired <= 1, "rewired", self.rewired, "0 to 1")


@dataclass(frozen=True, slots=True)
class ScaleFree:
    """Each new broker is linked with some that are there, and sooner with those that have many links (Barabási and
    Albert)."""

    brokers: int = 16
    """How many brokers there are."""
    links: int = 2
    """How many links a new broker makes."""

    def __post_init__(self) -> None:
        _require_brokers(self.brokers, 2)
        _require(1 <= self.links < self.brokers, "links", self.links, f"1 to {self.brokers - 1}")
        _require_links("links", self.brokers * self.links)


def random_regular(options: RandomRegular, seed: int) -> Overlay:
    """Drawn until it is connected: one link too few on average needs less than two draws."""
    return _connected(
        options.brokers, seed, lambda rng: nx.random_regular_graph(options.degree, options.brokers, seed=rng)
    )


def small_world(options: SmallWorld, seed: int) -> Overlay:
    """Drawn until it is connected."""

    def draw(rng: random.Random) -> "nx.Graph[int]":
        graph: nx.Graph[int] = nx.watts_strogatz_graph(options.brokers, options.degree, options.rewired, seed=rng)
        return graph

    return _connected(options.brokers, seed, draw)


def scale_free(options: ScaleFree, seed: int) -> Overlay:
    """Connected as it grows."""
    return _connected(
        options.brokers, seed, lambda rng: nx.barabasi_albert_graph(options.brokers, options.links, seed=rng)
    )


def _connected(brokers: int, seed: int, draw: "Callable[[random.Random], nx.Graph[int]]") -> Overlay:
    """The first connected graph of the seed's; raises `InputError` if none comes."""
    rng = random.Random(f"{seed}/overlay")
    for _ in range(_TRIES):
        graph = draw(rng)
        if nx.is_connected(graph):
            return numbered(brokers, sorted((min(edge), max(edge)) for edge in graph.edges))
    raise InputError("overlay", f"no connected graph in {_TRIES} draws", "more links, or fewer brokers")


def _require_brokers(found: int, least: int) -> None:
    _require(least <= found <= BROKERS_MAX, "brokers", found, f"at least {least}, at most {BROKERS_MAX:,}")


def _require_links(key: str, links: int) -> None:
    _require(links <= LINKS_MAX, key, f"a value that makes {links:,} links", f"at most {LINKS_MAX:,} links in all")


def _require(holds: bool, key: str, found: object, allowed: str) -> None:
    if not holds:
        raise InputError(f"overlay.{key}", str(found), allowed)
