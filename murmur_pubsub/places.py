"""Where a broker is in an overlay that is more than its links: on a ring of identifiers, or in a tree of cells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from murmur_pubsub.errors import InputError
from murmur_pubsub.units import Microseconds


@dataclass(frozen=True, slots=True)
class RingPlace:
    """A node's place in a structured overlay. The papers name no value of any of these."""

    identifier: int
    """Its own, of `digits` digits in `base`."""
    base: int = 4
    """A power of two."""
    digits: int = 8
    leaf_set: int = 16
    """How many nodes Pastry keeps around it on the ring, half on each side (Pastry: 16 or 32)."""
    bootstrap: tuple[str, ...] = ()
    """The peers through which it joins, tried in turn; none: it is the only node until others join."""
    founds: bool = False
    """It does not join when it is started for the first time, for it is the first node."""
    probe_us: Microseconds = 2_000_000
    """Time between rounds of probes (Pastry) or gossip (small world)."""
    probe_timeout_us: Microseconds = 500_000
    """A probed peer that has not answered for that long has failed."""

    def __post_init__(self) -> None:
        if self.leaf_set < 4 or self.leaf_set % 2:  # with one on each side neighbours that join at once may miss
            raise InputError("overlay.leaf_set", str(self.leaf_set), "an even number from 4 on")
        if not 0 < self.probe_timeout_us < self.probe_us:
            found = f"a timeout of {self.probe_timeout_us:,} us, probes every {self.probe_us:,} us"
            raise InputError("overlay.probe_timeout", found, "a timeout above zero and below the time between probes")


@dataclass(frozen=True, slots=True)
class CellPlan:
    """A tree of cells of interchangeable brokers, as every broker of it knows it."""

    cells: Mapping[str, tuple[str, ...]]
    """The members of each cell."""
    edges: tuple[tuple[str, str], ...]
    """Which cells are neighbours: a tree."""
    roots: tuple[str, ...]
    """The brokers at which events may enter."""
    newcomers: tuple[str, ...] = ()
    """Brokers that are in no cell at first, and may join one while the run goes on."""


def neighbours(edges: Sequence[Sequence[str]], cell: str) -> tuple[str, ...]:
    """The cells that an edge joins with that one."""
    return tuple(second if first == cell else first for first, second in edges if cell in (first, second))


def spreads(plan: CellPlan, cell: str) -> bool:
    """Is it a cell of one broker that takes clients, at the edge of the tree? Then brokers with clients of their own
    may be added beside that one. Of two such cells that are neighbours only the later one is."""
    near = neighbours(plan.edges, cell)
    if len(plan.cells[cell]) > 1 or len(near) != 1:
        return False
    (beside,) = near
    others = len(neighbours(plan.edges, beside))
    names = list(plan.cells)
    return len(plan.cells[beside]) > 1 or others > 1 or names.index(cell) > names.index(beside)
