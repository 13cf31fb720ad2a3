"""The tree of cells: which brokers are interchangeable, and which cells are neighbours.

Brokers of equal role stand in one cell; the physical links between two neighbouring cells are a link bundle, and a
message may pass over any of them. The tree is laid down with the overlay and never changes. Clients attach only to
brokers that stand alone in their cell (their soft state belongs to no other broker).
"""

from collections import deque
from collections.abc import Sequence

from murmur_pubsub.machine import NodeName
from murmur_pubsub.places import CellPlan

Cell = str
"""A cell's name."""


class CellTree:
    """The tree as one of its brokers sees it. A branch is named by the neighbouring cell that it begins with."""

    def __init__(self, plan: CellPlan, me: NodeName) -> None:
        self.members: dict[Cell, tuple[NodeName, ...]] = dict(plan.cells)
        self.brokers: tuple[NodeName, ...] = tuple(each for members in self.members.values() for each in members)
        self.numbers = {broker: number for number, broker in enumerate(self.brokers)}
        self.cell_of = {broker: cell for cell, members in self.members.items() for broker in members}
        self.own = self.cell_of[me]
        self.siblings = tuple(broker for broker in self.members[self.own] if broker != me)
        self.branches: tuple[Cell, ...] = self._neighbours(plan.edges, self.own)
        self.branch_of: dict[NodeName, Cell] = {}
        self.behind: dict[Cell, tuple[NodeName, ...]] = {}
        self.depth: dict[Cell, int] = {self.own: 0}
        """How far from here a cell is."""
        for branch in self.branches:
            cells = self._beyond(plan.edges, branch)
            self.behind[branch] = tuple(broker for cell in cells for broker in self.members[cell])
            self.branch_of |= dict.fromkeys(self.behind[branch], branch)
        self.regions = self._regions(plan.edges)
        """The brokers of each region that this broker is in; see `routing.cells.link_states`."""

    def _neighbours(self, edges: Sequence[Sequence[Cell]], cell: Cell) -> tuple[Cell, ...]:
        return tuple(second if first == cell else first for first, second in edges if cell in (first, second))

    def _beyond(self, edges: Sequence[Sequence[Cell]], branch: Cell) -> list[Cell]:
        """The cells that are reached through a branch."""
        reached = {self.own: None, branch: None}
        waiting = deque([branch])
        self.depth[branch] = 1
        while waiting:
            here = waiting.popleft()
            for cell in self._neighbours(edges, here):
                if cell not in reached:
                    reached[cell] = None
                    self.depth[cell] = self.depth[here] + 1
                    waiting.append(cell)
        return [cell for cell in reached if cell != self.own]

    def _regions(self, edges: Sequence[Sequence[Cell]]) -> list[frozenset[NodeName]]:
        starts = self.branches if len(self.members[self.own]) == 1 else (self.own,)
        return [self._region(edges, cell) for cell in starts if len(self.members[cell]) > 1]

    def _region(self, edges: Sequence[Sequence[Cell]], cell: Cell) -> frozenset[NodeName]:
        """The region of a cell of several brokers: on to the first lone broker on each way."""
        reached = {cell: None}
        waiting = deque([cell])
        while waiting:
            here = waiting.popleft()
            if len(self.members[here]) > 1:
                further = [each for each in self._neighbours(edges, here) if each not in reached]
                reached |= dict.fromkeys(further)
                waiting.extend(further)
        return frozenset(broker for each in reached for broker in self.members[each])
