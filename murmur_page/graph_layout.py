"""Where to draw the nodes of a graph: a tree fans out from its middle, a chain is a bow, others settle by springs."""

import math

import networkx as nx

Position = tuple[float, float]
_SPRINGS_MAX = 400
"""Graphs with more nodes than that are drawn by a tree that spans them: springs take their square in time."""


def positions(graph: "nx.Graph[str]") -> dict[str, Position]:
    """A place for every node; the same graph gives the same drawing. Nodes without edges are put around the others."""
    alone = [name for name in graph if not graph.degree[name]]
    if not alone or len(alone) == len(graph):
        return _connected(graph) if len(alone) < 2 else _around(alone, 1.0)
    rest = graph.subgraph([name for name in graph if graph.degree[name]])
    placed = _connected(rest)
    reach = max(math.hypot(x / 1.7, y) for x, y in placed.values())
    return placed | _around(alone, reach + 1.0 if nx.is_tree(rest) else reach * 1.3)


def _connected(graph: "nx.Graph[str]") -> dict[str, Position]:
    if nx.is_tree(graph):
        chain = len(graph) > 2 and max(degree for _, degree in graph.degree) <= 2
        return _bow(graph) if chain else _radial(graph)
    if len(graph) > _SPRINGS_MAX and nx.is_connected(graph):
        return _radial(nx.bfs_tree(graph, max(graph, key=graph.degree.__getitem__)).to_undirected())
    start = _around(list(graph), 1.0)
    settled = nx.spring_layout(graph, pos=start, seed=1, iterations=200, k=1.6 / math.sqrt(len(graph)))
    return {name: (float(x), float(y)) for name, (x, y) in settled.items()}


def _around(names: list[str], radius: float) -> dict[str, Position]:
    return {name: on_circle(radius, number / len(names)) for number, name in enumerate(names)}


def _bow(chain: "nx.Graph[str]") -> dict[str, Position]:
    """A half of an ellipse, so that what goes past nodes of the chain is seen apart from it."""
    first = next(name for name in chain if chain.degree[name] == 1)
    in_order = list(nx.dfs_preorder_nodes(chain, first))
    return {name: on_circle(1.0, 0.5 + number / (len(in_order) - 1) / 2) for number, name in enumerate(in_order)}


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
        placed[name] = on_circle(level, (begin + end) / 2)
        width = (end - begin) / leaves[name]
        for child in children.get(name, ()):
            sectors.append((child, level + 1, begin, begin + width * leaves[child]))
            begin += width * leaves[child]
    return placed


def on_circle(radius: float, turn: float) -> Position:
    """The place on an ellipse that is 1.7 times as wide as high; turns from the right, clockwise on a screen."""
    angle = 2 * math.pi * turn
    return 1.7 * radius * math.cos(angle), radius * math.sin(angle)
