"""Overlays: which brokers there are and which are linked."""

import itertools
import random
import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from murmur_pubsub.errors import InputError
from murmur_pubsub.places import CellPlan, RingPlace
from murmur_pubsub.units import Microseconds

# A broker's name becomes the name of a node, an actor and a file; clients are c0, c1, … and the driver is `driver`.
_NAME = re.compile(r"(?!c\d+$|driver$)[A-Za-z0-9_][A-Za-z0-9_.-]{0,59}")


BROKERS_MAX = 1_000_000
LINKS_MAX = 10_000_000
"""Of generated overlays: each broker takes some kilobytes before anything has happened."""
_IDENTIFIER_BITS_MAX = 62
"""An identifier is counted in what Python counts places in, and drawn from as many."""


def is_broker_name(name: str) -> bool:
    """May a broker be called that?"""
    return _NAME.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class Overlay:
    """A connected graph of brokers; each edge is a link in both directions.

    `cells`: (name, members) of each cell of interchangeable brokers, `cell_edges` which cells are neighbours: a tree.
    Without any, each broker is a cell of its own, and the edges are the cells' if they form a tree. A structured
    overlay has no edges: its brokers find each other, and `structure` has for each what it must know for that.
    """

    brokers: tuple[str, ...]
    edges: tuple[tuple[str, str], ...]
    cells: tuple[tuple[str, tuple[str, ...]], ...] = ()
    cell_edges: tuple[tuple[str, str], ...] = ()
    structure: Mapping[str, RingPlace] | None = None

    @property
    def is_tree(self) -> bool:
        """No cycles?"""
        return len(self.edges) == len(self.brokers) - 1

    @property
    def neighbours(self) -> dict[str, list[str]]:
        """Each broker's neighbours, in the order of the edges."""
        found: dict[str, list[str]] = {broker: [] for broker in self.brokers}
        for first, second in self.edges:
            found[first].append(second)
            found[second].append(first)
        return found

    @property
    def leaves(self) -> tuple[str, ...]:
        """The brokers with one neighbour (the only broker, if there is one)."""
        if self.cells:
            inner = [cell for edge in self.cell_edges for cell in edge]
            return tuple(members[0] for cell, members in self.cells if len(members) == 1 and inner.count(cell) <= 1)
        return tuple(broker for broker, peers in self.neighbours.items() if len(peers) <= 1)

    @property
    def client_brokers(self) -> tuple[str, ...]:
        """The brokers that clients may attach to: those that stand alone in their cell."""
        if self.cells:
            return tuple(members[0] for _, members in self.cells if len(members) == 1)
        return self.brokers

    def cell_plan(self, roots: Sequence[str]) -> CellPlan:
        """The tree of cells for brokers that route by it; events enter at `roots`."""
        cells = self.cells or tuple((broker, (broker,)) for broker in self.brokers)
        return CellPlan(dict(cells), self.cell_edges if self.cells else self.edges, tuple(roots))


@dataclass(frozen=True, slots=True)
class Sized:
    """A chain, a star or a ring."""

    brokers: int = 16
    """How many brokers there are."""

    def __post_init__(self) -> None:
        _check_number(self.brokers)


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree in which no broker has more than `degree` links."""

    brokers: int = 16
    """How many brokers there are."""
    degree: int = 3
    """The most links that a broker has."""

    def __post_init__(self) -> None:
        _check_number(self.brokers)
        least = 2 if self.brokers > 2 else 1
        allowed = f"at least {least} for {self.brokers} brokers"
        _require(self.degree >= least, "overlay.degree", str(self.degree), allowed)


@dataclass(frozen=True, slots=True)
class Structured:
    """Brokers without links, which find each other by their identifiers."""

    brokers: int = 16
    """How many brokers there are."""
    base: int = 4
    """Of the digits of identifiers: a power of two."""
    digits: int = 8
    """Of an identifier."""
    leaf_set: int = 16
    """How many brokers Pastry keeps around one on the ring, half on each side."""
    identifiers: tuple[int, ...] = ()
    """One a broker, as numbers (none: drawn from the seed)."""
    bootstrap: str | None = None
    """The broker through which all others join (none: several for each, chosen by the seed)."""
    probe_us: Microseconds = 2_000_000
    """Time between rounds of probes (Pastry) or gossip (small world)."""
    probe_timeout_us: Microseconds = 500_000
    """A probed broker that has not answered for that long has failed."""

    def __post_init__(self) -> None:
        _check_number(self.brokers)
        power = self.base >= 2 and not self.base & (self.base - 1)
        _require(power, "overlay.base", str(self.base), "a power of two from 2 on: 2, 4, 8, 16, …")
        _require(self.digits >= 1, "overlay.digits", str(self.digits), "at least 1")
        bits = (self.base.bit_length() - 1) * self.digits
        allowed = f"at most {_IDENTIFIER_BITS_MAX} bits in all"
        _require(bits <= _IDENTIFIER_BITS_MAX, "overlay.digits", f"{self.digits} in base {self.base}", allowed)
        size = self.base**self.digits
        _require(self.brokers <= size, "overlay.brokers", str(self.brokers), f"at most {size}, the identifiers")
        for identifier in self.identifiers:
            allowed = f"0 to {size - 1}: {self.digits} digits in base {self.base}"
            _require(0 <= identifier < size, "overlay.identifiers", str(identifier), allowed)
        if self.identifiers:
            count = len(self.identifiers)
            _require(count == self.brokers, "overlay.identifiers", f"{count} of them", f"{self.brokers}, one a broker")
            twice = next((each for each in self.identifiers if self.identifiers.count(each) > 1), None)
            _require(twice is None, "overlay.identifiers", f"{twice} for two brokers", "a different one for each")
        names = [f"b{number}" for number in range(self.brokers)]
        known = self.bootstrap is None or self.bootstrap in names
        _require(known, "overlay.bootstrap", repr(self.bootstrap), f"a broker: b0 to b{self.brokers - 1}")


@dataclass(frozen=True, slots=True)
class FromFile:
    """An edge list: two broker names a line, `#` begins a comment."""

    path: str
    """The file."""


def chain(options: Sized, seed: int) -> Overlay:
    """b0 - b1 - b2 …"""
    return numbered(options.brokers, [(number - 1, number) for number in range(1, options.brokers)])


def star(options: Sized, seed: int) -> Overlay:
    """b0 in the middle."""
    return numbered(options.brokers, [(0, number) for number in range(1, options.brokers)])


def balanced(options: Tree, seed: int) -> Overlay:
    """A tree filled breadth first: the root has `degree` children, all others one less."""
    edges = []
    parent, free = 0, options.degree
    for number in range(1, options.brokers):
        while not free:
            parent += 1
            free = options.degree - 1
        edges.append((parent, number))
        free -= 1
    return numbered(options.brokers, edges)


def random_tree(options: Tree, seed: int) -> Overlay:
    """Each broker in turn joins one that still has room, drawn from the seed."""
    rng = random.Random(f"{seed}/overlay")
    room = {0: options.degree}
    edges = []
    for number in range(1, options.brokers):
        parent = rng.choice(list(room))
        edges.append((parent, number))
        room[parent] -= 1
        if not room[parent]:
            del room[parent]
        if options.degree > 1:
            room[number] = options.degree - 1
    return numbered(options.brokers, edges)


def from_file(options: FromFile, seed: int) -> Overlay:
    """The overlay of an edge list; raises `InputError` with the line of what is wrong."""
    path = Path(options.path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"overlay.path {path}", str(error), "a readable edge list") from None
    brokers: dict[str, None] = {}
    edges: dict[tuple[str, str], None] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        place = f"{path}, line {number}"
        _require(len(words) == 2, place, repr(line.strip()[:60]), "two broker names")
        first, second = words
        _require(first != second, place, f"a link from {first} to itself", "links between different brokers")
        for name in words:
            allowed = "names of letters, digits, '_', '.' and '-', other than driver, c0, c1, … (the clients)"
            _require(is_broker_name(name), place, f"the broker {name[:60]!r}", allowed)
        known = (first, second) in edges or (second, first) in edges
        _require(not known, place, f"the link {first} {second} once more", "each link once")
        brokers |= {first: None, second: None}
        edges[first, second] = None
    _require(bool(brokers), str(path), "no links", "at least one link")
    overlay = Overlay(tuple(brokers), tuple(edges))
    lost = _unreachable(overlay)
    _require(lost is None, str(path), f"no way from {overlay.brokers[0]} to {lost}", "a connected overlay")
    return overlay


def ring(config: Sized, seed: int) -> Overlay:
    """A circle: the smallest overlay with two ways from each broker to each other. At least three brokers."""
    _require(config.brokers >= 3, "overlay.brokers", str(config.brokers), "at least 3 for a ring")
    return numbered(config.brokers, [(number, (number + 1) % config.brokers) for number in range(config.brokers)])


@dataclass(frozen=True, slots=True)
class Cells:
    """A tree of cells of redundant brokers, as guaranteed delivery is run on."""

    cells: dict[str, list[str]]
    """The brokers of each cell."""
    links: list[tuple[str, str]]
    """Pairs of neighbouring cells. Each broker of one is linked with each of the other, and the brokers of a cell with
    one another."""
    without: list[tuple[str, str]] = field(default_factory=list)
    """Links between brokers that are left out all the same."""
    redundancy: dict[str, int] = field(default_factory=dict)
    """How many brokers a cell claims to have, and links to each neighbouring cell."""


def cells(options: Cells, seed: int) -> Overlay:
    """The overlay of a tree of cells; raises `InputError` for one that is no tree, or less redundant than it claims."""
    brokers = [broker for members in options.cells.values() for broker in members]
    for cell, members in options.cells.items():
        _require(bool(members), f"overlay.cells.{cell}", "no brokers", "at least one")
        for broker in members:
            allowed = "names of letters, digits, '_', '.' and '-', other than driver, c0, c1, …, each in one cell"
            well = is_broker_name(broker) and brokers.count(broker) == 1
            _require(well, f"overlay.cells.{cell}", repr(broker), allowed)
    for pair in options.links:
        for cell in pair:
            _require(cell in options.cells, "overlay.links", repr(cell), f"cells: {', '.join(options.cells)}")
    tree = Overlay(tuple(options.cells), tuple(options.links))
    _require(tree.is_tree, "overlay.links", f"{len(tree.edges)} links of {len(tree.brokers)} cells", "a tree of cells")
    lost = _unreachable(tree)
    _require(lost is None, "overlay.links", f"no way from {tree.brokers[0]} to {lost}", "a tree of cells")
    absent = {frozenset(pair) for pair in options.without}
    bundles = {
        (first, second): list(itertools.product(options.cells[first], options.cells[second]))
        for first, second in options.links
    }
    within = [pair for members in options.cells.values() for pair in itertools.combinations(members, 2)]
    every = {frozenset(pair) for pair in itertools.chain(within, *bundles.values())}
    for pair in options.without:
        _require(frozenset(pair) in every, "overlay.without", "-".join(pair), "a link that would be there")
    for cell, claimed in options.redundancy.items():
        place = f"overlay.redundancy.{cell}"
        _require(cell in options.cells, place, "no such cell", f"cells: {', '.join(options.cells)}")
        size = len(options.cells[cell])
        _require(size >= claimed, place, f"{size} brokers", f"at least the {claimed} that are claimed")
        for ends, bundle in bundles.items():
            links = sum(frozenset(pair) not in absent for pair in bundle)
            well = cell not in ends or links >= claimed
            _require(well, place, f"{links} links between {' and '.join(ends)}", f"the {claimed} that are claimed")
    edges = [pair for pair in itertools.chain(*bundles.values(), within) if frozenset(pair) not in absent]
    built = tuple((name, tuple(members)) for name, members in options.cells.items())
    overlay = Overlay(tuple(brokers), tuple(edges), built, tuple(options.links))
    lost = _unreachable(overlay)
    _require(lost is None, "overlay.without", f"no way from {brokers[0]} to {lost}", "a connected overlay")
    return overlay


def structured(options: Structured, seed: int) -> Overlay:
    """No edges; identifiers as given, or drawn from the seed."""
    drawn = random.Random(f"{seed}/identifiers").sample(range(options.base**options.digits), options.brokers)
    shared = {name: getattr(options, name) for name in ("base", "digits", "leaf_set", "probe_us", "probe_timeout_us")}
    names = tuple(f"b{number}" for number in range(options.brokers))
    identifiers = options.identifiers or tuple(drawn)
    bootstrap = () if options.bootstrap is None else (options.bootstrap,)
    places = {
        name: RingPlace(identifier, bootstrap=bootstrap, **shared)
        for name, identifier in zip(names, identifiers, strict=True)
    }
    return Overlay(names, (), structure=places)


def numbered(brokers: int, edges: Sequence[tuple[int, int]]) -> Overlay:
    """The overlay of brokers b0, b1, … with these links."""
    return Overlay(
        tuple(f"b{number}" for number in range(brokers)), tuple((f"b{first}", f"b{second}") for first, second in edges)
    )


def _unreachable(overlay: Overlay) -> str | None:
    neighbours = overlay.neighbours
    reached = {overlay.brokers[0]: None}
    waiting = deque(reached)
    while waiting:
        for peer in neighbours[waiting.popleft()]:
            if peer not in reached:
                reached[peer] = None
                waiting.append(peer)
    return next((broker for broker in overlay.brokers if broker not in reached), None)


def _check_number(brokers: int) -> None:
    allowed = f"at least 1, at most {BROKERS_MAX:,}: each takes some kilobytes before anything has happened"
    _require(1 <= brokers <= BROKERS_MAX, "overlay.brokers", str(brokers), allowed)


def _require(holds: bool, place: str, found: str, allowed: str) -> None:
    if not holds:
        raise InputError(place, found, allowed)
