"""The search tree of an overlay: which nodes are reached from one, and by which way, past what is broken.

Plain Python over small tables, for tests as well as for Spark.
"""

from collections.abc import Iterable, Mapping, Sequence

from spark_analysis.fault_windows import Window

Neighbours = Mapping[str, Sequence[str]]


def neighbours_of(links: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The nodes that each one has a link to, in the order of the links."""
    found: dict[str, list[str]] = {}
    for first, second in links:
        found.setdefault(first, []).append(second)
        found.setdefault(second, []).append(first)
    return found


def search_tree(root: str, neighbours: Neighbours, broken: Sequence[Window] = ()) -> dict[str, str | None]:
    """Each node that the root reaches, with the one before it on a shortest way (None: it is the root itself).

    No way leads over the nodes and links of the broken windows. The root is not asked whether it is one of them."""
    nodes = {name for window in broken for name in window.nodes}
    links = {link for window in broken for link in window.links}
    parents: dict[str, str | None] = {root: None}
    for name in (queue := [root]):
        for peer in neighbours.get(name, ()):
            if peer not in parents and peer not in nodes and frozenset((name, peer)) not in links:
                parents[peer] = name
                queue.append(peer)
    return parents


class Ways:
    """The ways that links make while none is broken. `homes`: client to broker."""

    def __init__(self, links: Iterable[tuple[str, str]], homes: Mapping[str, str]) -> None:
        self.neighbours = neighbours_of(links)
        self._homes = homes
        self._trees: dict[str, dict[str, str | None]] = {}

    def tree(self, root: str) -> dict[str, str | None]:
        """See `search_tree`."""
        if root not in self._trees:
            self._trees[root] = search_tree(root, self.neighbours)
        return self._trees[root]

    def between(self, first: str, last: str) -> list[str]:
        """The nodes that an event passes from the first to the last, both included; from a client to itself by its
        broker."""
        parents = self.tree(first)
        nodes = [last]
        while (parent := parents.get(nodes[-1])) is not None:
            nodes.append(parent)
        if first == last and first in self._homes:
            return [first, self._homes[first], last]
        return nodes[::-1]

    def count_parts(self) -> int:
        """How many parts the overlay has that no link joins."""
        seen: set[str] = set()
        parts = 0
        for name in self.neighbours:
            if name not in seen:
                parts += 1
                seen.update(self.tree(name))
        return parts


def lying_between(first: str, last: str, neighbours: Neighbours) -> set[str]:
    """The nodes that a way from the first to the last may lead over without coming by a node twice, both included.

    With one more link, between the two, these are the nodes of its biconnected component (Tarjan): the search begins
    by that link, and leaves out what leads back to no node before the one that it was reached from."""
    if first == last:
        return {first}
    order = {first: 0, last: 1}
    back = {last: 0}  # how far back in that order what was reached from the node leads
    between = [last]
    open_ones = [(last, iter(neighbours.get(last, ())))]
    while open_ones:
        name, peers = open_ones[-1]
        for peer in peers:
            if peer not in order:
                order[peer] = back[peer] = len(order)
                between.append(peer)
                open_ones.append((peer, iter(neighbours.get(peer, ()))))
                break
            back[name] = min(back[name], order[peer])
        else:
            open_ones.pop()
            if open_ones:
                above = open_ones[-1][0]
                back[above] = min(back[above], back[name])
                if back[name] >= order[above]:
                    del between[between.index(name) :]
    return {first, *between}
