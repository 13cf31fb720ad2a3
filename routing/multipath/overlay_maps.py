"""Overlay maps: what a broker knows of the primary network, and the concise map it forwards by (section 3).

The master overlay map is the subgraph of the primary tree within Δ hops of the broker. The working overlay map is
derived from it for a set of direct links by edge contraction: walking from the farthest broker inwards, each broker
without a direct link becomes one with its neighbour that is closer. What is left is a tree of directly linked
brokers. They are numbered by their distance in it, and every set of them is an int with bit i for the i-th, so that
unions and intersections are single operations.
"""

from collections.abc import Iterable, Mapping, Sequence

from murmur_pubsub.machine import NodeName


class MasterOverlayMap:
    """The Δ-neighbourhood of `centre`. Immutable: a change of the primary network makes a new map.

    `brokers`: all in it but the centre, by distance, as they were found. An edge that only one end of two known ones
    names is one that has just come or gone; it is left out.
    """

    __slots__ = ("_parents", "adjacency", "brokers", "centre", "delta", "distances")

    def __init__(self, centre: NodeName, delta: int, adjacency: Mapping[NodeName, Sequence[NodeName]]) -> None:
        self.centre = centre
        self.delta = delta
        self.distances: dict[NodeName, int] = {centre: 0}
        self._parents: dict[NodeName, NodeName] = {}
        self.adjacency: dict[NodeName, tuple[NodeName, ...]] = {}
        ring = [centre]
        for distance in range(1, delta + 1):
            outer = []
            for broker in ring:
                for peer in adjacency.get(broker, ()):
                    if peer not in self.distances and broker in adjacency.get(peer, (broker,)):
                        self.distances[peer] = distance
                        self._parents[peer] = broker
                        outer.append(peer)
            ring = outer
            if not ring:
                break
        for broker in self.distances:
            self.adjacency[broker] = tuple(
                peer
                for peer in adjacency.get(broker, ())
                if self._parents.get(peer) == broker or self._parents.get(broker) == peer
            )
        self.brokers: tuple[NodeName, ...] = tuple(broker for broker in self.distances if broker != centre)

    def __contains__(self, broker: NodeName) -> bool:
        return broker in self.distances

    def parent(self, broker: NodeName) -> NodeName:
        """The neighbour of the broker that is one hop closer to the centre."""
        return self._parents[broker]

    def path(self, broker: NodeName) -> tuple[NodeName, ...]:
        """The brokers from the one next to the centre up to the given one (none for the centre itself)."""
        steps = []
        while broker != self.centre:
            steps.append(broker)
            broker = self._parents[broker]
        return tuple(reversed(steps))

    def first_hop(self, broker: NodeName) -> NodeName:
        """The primary neighbour in whose direction the broker lies."""
        while self._parents[broker] != self.centre:
            broker = self._parents[broker]
        return broker

    def children(self, broker: NodeName) -> list[NodeName]:
        """The broker's neighbours that are one hop farther from the centre."""
        return [peer for peer in self.adjacency[broker] if self._parents.get(peer) == broker]

    def edges(self) -> frozenset[frozenset[NodeName]]:
        """The primary links of the map."""
        return frozenset(frozenset((broker, parent)) for broker, parent in self._parents.items())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MasterOverlayMap):
            return NotImplemented
        return (self.centre, self.distances, self.edges()) == (other.centre, other.distances, other.edges())

    __hash__ = None  # type: ignore[assignment]  # compared in tests, never a key


class WorkingOverlayMap:
    """The map contracted to the brokers with a direct link. `mom`: the master map.

    `brokers`: BrokerArr, by distance in this map; the broker of index i has bit 1 << i in all sets.
    `between[i]`, `beyond[i]`, `behind[i]`: the auxiliary sets of broker i. `substitutes`: for every broker of the
    master map, the bit of the one it was substituted with (0: with the centre itself, nothing leads there).
    `towards`: for every broker of the master map, all of this map that lie in the direction of the same primary link.
    """

    __slots__ = ("_firsts", "_past", "behind", "between", "beyond", "brokers", "mom", "substitutes", "towards")

    def __init__(self, mom: MasterOverlayMap, links: Iterable[NodeName]) -> None:
        self.mom = mom
        self._past: dict[NodeName, int] = {}
        linked = {peer for peer in links if peer in mom}
        closer: dict[NodeName, NodeName] = {}
        depths = {mom.centre: 0}
        substitute = {mom.centre: mom.centre}
        # Inwards as in the paper or outwards, as here, every broker ends up with its nearest linked predecessor.
        for broker in mom.brokers:
            before = substitute[mom.parent(broker)]
            if broker in linked:
                substitute[broker] = broker
                closer[broker] = before
                depths[broker] = depths[before] + 1
            else:
                substitute[broker] = before
        self.brokers = tuple(sorted(closer, key=depths.__getitem__))
        bits = {broker: 1 << number for number, broker in enumerate(self.brokers)} | {mom.centre: 0}
        self.between: list[int] = []
        self.beyond = [0] * len(self.brokers)
        at = {broker: number for number, broker in enumerate(self.brokers)}
        for broker in self.brokers:
            before = closer[broker]
            path = bits[broker] | (self.between[at[before]] if before != mom.centre else 0)
            self.between.append(path)
        for number in reversed(range(len(self.brokers))):
            self.beyond[number] |= 1 << number
            before = closer[self.brokers[number]]
            if before != mom.centre:
                self.beyond[at[before]] |= self.beyond[number]
        everyone = (1 << len(self.brokers)) - 1
        # The first broker on the way is the lowest bit of the way: numbers grow with distance.
        branches = [self.beyond[(path & -path).bit_length() - 1] for path in self.between]
        self.behind = [everyone & ~branch for branch in branches]
        self.substitutes = {broker: bits[substitute[broker]] for broker in mom.brokers}
        directions = dict.fromkeys((mom.first_hop(broker) for broker in mom.brokers), 0)
        firsts = self._firsts = {broker: mom.first_hop(broker) for broker in mom.brokers}
        for broker in self.brokers:
            directions[firsts[broker]] |= bits[broker]
        self.towards = {broker: directions[firsts[broker]] for broker in mom.brokers}

    def direction(self, broker: NodeName | None) -> NodeName | None:
        """The primary neighbour in whose direction the broker lies (None: in none that is known)."""
        return None if broker is None else self._firsts.get(broker)

    def past(self, borders: Iterable[NodeName]) -> int:
        """All of this map to which the way leads over one of these brokers of the master map; themselves too."""
        past = 0
        for border in borders:
            if border not in self._past:
                self._past[border] = self.set_of(each for each in self.brokers if border in self.mom.path(each))
            past |= self._past[border]
        return past

    def set_of(self, brokers: Iterable[NodeName]) -> int:
        """The bit set of brokers in this map."""
        at = {broker: 1 << number for number, broker in enumerate(self.brokers)}
        members = 0
        for broker in brokers:
            members |= at[broker]
        return members

    def names(self, members: int) -> tuple[NodeName, ...]:
        """The brokers of a bit set, by distance."""
        return tuple(broker for number, broker in enumerate(self.brokers) if members >> number & 1)
