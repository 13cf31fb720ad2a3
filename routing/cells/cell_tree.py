"""The tree of cells: which brokers are interchangeable, and which cells are neighbours.

Brokers of equal role stand in one cell; the physical links between two neighbouring cells are a link bundle, and a
message may pass over any of them. The tree is laid down with the overlay. Its members may change
(`murmur_pubsub.membership`). Clients attach only to brokers that stand alone in their cell (their soft state belongs to
no other broker). Where more such brokers join a cell at the edge, each is a cell of its own to the others.
"""

import itertools
from collections import deque
from collections.abc import Iterable, Sequence

from murmur_pubsub.machine import NodeName
from murmur_pubsub.membership import Membership
from murmur_pubsub.places import CellPlan, neighbours

Cell = str
"""A cell's name."""


class CellTree:
    """The tree as one of its brokers sees it. A branch is named by the neighbouring cell that it begins with. To a
    broker that is no member of a cell there are no branches."""

    members: dict[Cell, tuple[NodeName, ...]]
    cell_of: dict[NodeName, Cell]
    alone: bool
    """Do no others stand in for this broker, a member? Asked with each message, so it is not worked out then."""
    siblings: tuple[NodeName, ...]
    branches: tuple[Cell, ...]
    branch_of: dict[NodeName, Cell]
    behind: dict[Cell, tuple[NodeName, ...]]
    depth: dict[Cell, int]
    """How far from here a cell is."""
    regions: list[frozenset[NodeName]]
    """The brokers of each region that this broker is in; see `routing.cells.link_states`."""

    def __init__(self, plan: CellPlan, me: NodeName, membership: Membership | None = None) -> None:
        self.membership = Membership(plan) if membership is None else membership
        self.brokers = self.membership.brokers
        self.numbers = {broker: number for number, broker in enumerate(self.brokers)}
        self._plan = plan
        self._me = me
        self.grow()

    def grow(self) -> None:
        """Brokers have joined or departed."""
        parts = {cell: self._parts(cell) for cell in self._plan.cells}
        self.members = {name: members for part in parts.values() for name, members in part.items()}
        self.cell_of = {broker: cell for cell, members in self.members.items() for broker in members}
        edges = [pair for first, second in self._plan.edges for pair in itertools.product(parts[first], parts[second])]
        self.own = self.cell_of.get(self._me)
        self.alone = self.stands_alone(self._me)
        self.siblings, self.branches = (), ()
        self.branch_of, self.behind, self.depth, self.regions = {}, {}, {}, []
        if self.own is None:
            return
        self.siblings = tuple(broker for broker in self.members[self.own] if broker != self._me)
        self.branches = neighbours(edges, self.own)
        self.depth[self.own] = 0
        for branch in self.branches:
            cells = self._beyond(edges, self.own, branch)
            self.behind[branch] = tuple(broker for cell in cells for broker in self.members[cell])
            self.branch_of |= dict.fromkeys(self.behind[branch], branch)
        self.regions = self._regions(edges, self.own)

    def stands_alone(self, broker: NodeName) -> bool:
        """Do no others stand in for the broker, a member?"""
        cell = self.membership.cell_of(broker)
        return cell is not None and self.membership.stands_alone(cell)

    def _parts(self, cell: Cell) -> dict[Cell, tuple[NodeName, ...]]:
        """The cell; or one of its own for each of its members, if they stand alone."""
        members = self.membership.members_of(cell)
        if not self.membership.stands_alone(cell):
            return {cell: members}
        return {cell if each in self._plan.cells[cell] else each: (each,) for each in members}

    def _beyond(self, edges: Sequence[Sequence[Cell]], own: Cell, branch: Cell) -> list[Cell]:
        """The cells that are reached through a branch."""
        reached = {own: None, branch: None}
        waiting = deque([branch])
        self.depth[branch] = 1
        while waiting:
            here = waiting.popleft()
            for cell in neighbours(edges, here):
                if cell not in reached:
                    reached[cell] = None
                    self.depth[cell] = self.depth[here] + 1
                    waiting.append(cell)
        return [cell for cell in reached if cell != own]

    def _regions(self, edges: Sequence[Sequence[Cell]], own: Cell) -> list[frozenset[NodeName]]:
        starts: Iterable[Cell] = self.branches if self._is_lone(own) else (own,)
        return [self._region(edges, cell) for cell in starts if not self._is_lone(cell)]

    def _region(self, edges: Sequence[Sequence[Cell]], cell: Cell) -> frozenset[NodeName]:
        """The region of a cell of several brokers: on to the first lone broker on each way."""
        reached = {cell: None}
        waiting = deque([cell])
        while waiting:
            here = waiting.popleft()
            if not self._is_lone(here):
                further = [each for each in neighbours(edges, here) if each not in reached]
                reached |= dict.fromkeys(further)
                waiting.extend(further)
        return frozenset(broker for each in reached for broker in self.members[each])

    def _is_lone(self, cell: Cell) -> bool:
        return self.stands_alone(self.members[cell][0])
