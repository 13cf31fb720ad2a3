"""Where to draw the brokers of an overlay: trees fan out from their middle, others settle by springs."""

import math

import networkx as nx

Position = tuple[float, float]


def positions(graph: "nx.Graph[str]") -> dict[str, Position]:
    """A place for every node; the same graph gives the same drawing."""
    if nx.is_tree(graph):
        return _radial(graph)
    start = {name: _on_circle(1.0, number / len(graph)) for number, name in enumerate(graph)}
    settled = nx.spring_layout(graph, pos=start, seed=1, iterations=200, k=1.6 / math.sqrt(len(graph)))
    return {name: (float(x), float(y)) for name, (x, y) in settled.items()}


def _radial(tree: "nx.Graph[str]") -> dict[str, Position]:
    """The centre of the tree in the middle, each level on a ring, each subtree in a sector by its leaves."""
    root = min(nx.center(tree), key=list(tree).index)
    children = {name: list(found) for name, found in nx.bfs_successors(tree, root)}
    leaves: dict[str, int] = {}
    for name in nx.dfs_postorder_nodes(tree, root):
        leaves[name] = sum(leaves[child] for child in children.get(name, ())) or 1
    placed: dict[str, Position] = {}
    sectors = [(root, 0, 0.25, 1.25)]
    while sectors:
        name, level, begin, end = sectors.pop()
        placed[name] = _on_circle(level, (begin + end) / 2)
        width = (end - begin) / leaves[name]
        for child in children.get(name, ()):
            sectors.append((child, level + 1, begin, begin + width * leaves[child]))
            begin += width * leaves[child]
    return placed


def _on_circle(radius: float, turn: float) -> Position:
    angle = 2 * math.pi * turn
    return 1.7 * radius * math.cos(angle), radius * math.sin(angle)
