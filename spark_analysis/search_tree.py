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


def lying_between(first: str, last: str, neighbours: Neighbours) -> set[str]:
    """The nodes that a way from the first to the last may lead over, both included: all but those that only lead to
    dead ends, where a way would have to come back by the same link."""
    left = {name: set(peers) for name, peers in neighbours.items()}
    for name in (ends := [name for name, peers in left.items() if len(peers) <= 1]):
        if name not in (first, last):
            for peer in left.pop(name, ()):
                left[peer].discard(name)
                if len(left[peer]) <= 1:
                    ends.append(peer)
    return {first, last, *left}
