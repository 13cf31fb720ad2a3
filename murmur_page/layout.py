"""Where brokers are drawn: worked out once and kept in the run folder, so that the picture is the same tomorrow.

Brokers of a structured overlay are on a ring by their identifiers, those of cells in boxes that form a tree from the
entrance down, all others as their links have it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import networkx as nx

from murmur_page.graph_layout import Position, on_circle, positions
from murmur_pubsub.deployment import Deployment
from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import some_names
from murmur_pubsub.json_file import read_json
from murmur_pubsub.places import CellPlan, RingPlace
from murmur_pubsub.plain_data import from_plain, to_plain
from murmur_pubsub.run_manifest import RunManifest
from murmur_pubsub.whole_files import write_text

_FILE = "layout.json"
_MEMBER_APART, _CELL_APART, _LEVEL_APART = 0.62, 0.55, 1.0


@dataclass(frozen=True, slots=True)
class Box:
    """A cell: its corner, its size, and how many brokers it has."""

    name: str
    x: float
    y: float
    width: float
    height: float
    members: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of all brokers, on a plane without units."""

    kind: Literal["tree", "mesh", "ring", "cells"]
    positions: Mapping[str, tuple[float, float]]
    boxes: tuple[Box, ...] = ()


def layout_of(deployment: Deployment) -> Layout:
    """The layout of a run that is about to begin."""
    brokers = {spec.name: spec.place for spec in deployment.nodes if spec.role == "broker"}
    on_ring = {name: place for name, place in brokers.items() if isinstance(place, RingPlace)}
    if on_ring:
        turns = {name: place.identifier / place.base**place.digits for name, place in on_ring.items()}
        return Layout("ring", _ring(turns))
    plan = next((place for place in brokers.values() if isinstance(place, CellPlan)), None)
    if plan is not None and any(len(members) > 1 for members in plan.cells.values()):
        return _cells(plan)
    links = [(plan.first, plan.second) for plan in deployment.links]
    return _by_links(list(brokers), [ends for ends in links if ends[0] in brokers and ends[1] in brokers])


def layout_of_run(run: Path, manifest: RunManifest) -> Layout:
    """The layout that the run folder keeps, or one from its manifest; raises `InputError` for one that is damaged, or
    that of another run."""
    path, brokers = run / _FILE, manifest.brokers
    try:
        layout = from_plain(Layout, read_json(path, "the layout of a run, or no such file"), str(path))
    except FileNotFoundError:
        return _by_links(brokers, [edge for edge in manifest.overlay.edges if set(edge) <= set(brokers)])
    for name in layout.positions:
        if name not in brokers:
            allowed = f"the run's brokers ({some_names(brokers)}), or no such file"
            raise InputError(f"{path}, key positions", f"{name!r}", allowed)
    without = [name for name in brokers if name not in layout.positions]  # as older runs have some
    below = max((y for _, y in layout.positions.values()), default=0.0) + _LEVEL_APART
    row = {name: (at * _MEMBER_APART, below) for at, name in enumerate(without)}
    return replace(layout, positions={**layout.positions, **row}) if row else layout


def write_layout(run: Path, layout: Layout) -> None:
    """Keep the layout in the run folder."""
    write_text(run / _FILE, json.dumps(to_plain(layout)) + "\n")


def _by_links(brokers: Sequence[str], links: Sequence[tuple[str, str]]) -> Layout:
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(brokers)
    graph.add_edges_from(links)
    linked = graph.subgraph([name for name in graph if graph.degree[name]])
    kind: Literal["tree", "mesh"] = "tree" if len(graph) < 2 or (linked and nx.is_tree(linked)) else "mesh"
    return Layout(kind, positions(graph))


def _ring(turns: Mapping[str, float]) -> dict[str, Position]:
    """Places by identifier, halfway to being evenly spread, so that brokers with near identifiers can be told apart."""
    in_order = sorted(turns, key=lambda name: turns[name])
    even = {name: number / len(in_order) for number, name in enumerate(in_order)}
    return {name: on_circle(1.0, (turns[name] + even[name]) / 2 - 0.25) for name in turns}


def _cells(plan: CellPlan) -> Layout:
    """The cells as a tree from the first entrance down, each cell a box with its members side by side. Brokers that are
    in none yet are below them all."""
    home = {member: name for name, members in plan.cells.items() for member in members}
    top = home[plan.roots[0]] if plan.roots else next(iter(plan.cells))
    tree: nx.Graph[str] = nx.Graph()
    tree.add_nodes_from(plan.cells)
    tree.add_edges_from(plan.edges)
    children = {name: list(found) for name, found in nx.bfs_successors(tree, top)}
    level = nx.single_source_shortest_path_length(tree, top)
    own = {name: len(members) * _MEMBER_APART + _CELL_APART for name, members in plan.cells.items()}
    width: dict[str, float] = {}
    for name in nx.dfs_postorder_nodes(tree, top):
        width[name] = max(own[name], sum(width[child] for child in children.get(name, ())))
    placed: dict[str, Position] = {}
    boxes = []
    corners = [(top, 0.0)]
    while corners:
        name, left = corners.pop()
        middle, members = left + width[name] / 2, plan.cells[name]
        first = middle - (len(members) - 1) / 2 * _MEMBER_APART
        y = level[name] * _LEVEL_APART
        placed |= {member: (first + at * _MEMBER_APART, y) for at, member in enumerate(members)}
        boxes.append(Box(name, first - 0.3, y - 0.28, (len(members) - 1) * _MEMBER_APART + 0.6, 0.56, len(members)))
        under = children.get(name, [])
        begin = middle - sum(width[child] for child in under) / 2
        for child in under:
            corners.append((child, begin))
            begin += width[child]
    below = (max(level.values()) + 1) * _LEVEL_APART
    first = width[top] / 2 - (len(plan.newcomers) - 1) / 2 * _MEMBER_APART
    placed |= {name: (first + at * _MEMBER_APART, below) for at, name in enumerate(plan.newcomers)}
    return Layout("cells", placed, tuple(boxes))
