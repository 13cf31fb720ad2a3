"""Who is a member of which cell: what the overlay began with, and what has changed since.

Theory of operation. The tree of cells never changes, its members may: a broker joins a cell once, and departs once, for
good. So what two brokers know of that is put together without a version: whoever has departed has departed, whatever
else is said of it. Only the broker itself says that it joins, and only one that stays says that another departs.

Two kinds of cells take brokers. In one that began with several, any is as good as another, so one more is. In one that
began with one broker at the edge of the tree, clients are, and each broker has its own. So those of such a cell are
not interchangeable: each is a branch by itself. Such a cell in the middle takes nobody, nor does one that would then be
a neighbour of others twice. If orders contradict each other, and all of a cell are told to depart, the first stays.
"""

from collections.abc import Iterable, Mapping, Sequence

from murmur_pubsub.machine import NodeName
from murmur_pubsub.places import CellPlan, neighbours, spreads


class Membership:
    """As one broker knows it. `joined`: newcomer to the cell that it has joined, also if it has departed since."""

    def __init__(self, plan: CellPlan) -> None:
        self.plan = plan
        self.brokers: tuple[NodeName, ...] = (
            *(each for members in plan.cells.values() for each in members),
            *plan.newcomers,
        )
        self.joined: dict[NodeName, str] = {}
        self.departed: dict[NodeName, None] = {}
        self._began_in = {broker: cell for cell, members in plan.cells.items() for broker in members}

    def __bool__(self) -> bool:
        return bool(self.joined or self.departed)

    def cell_of(self, broker: NodeName) -> str | None:
        """The cell of a member; None for any other broker."""
        cell = self._began_in.get(broker, self.joined.get(broker))
        return cell if cell is not None and broker in self.members_of(cell) else None

    def members_of(self, cell: str) -> tuple[NodeName, ...]:
        """Those that a cell has at present."""
        all_ever = (*self.plan.cells[cell], *(each for each in self.plan.newcomers if self.joined.get(each) == cell))
        return tuple(each for each in all_ever if each not in self.departed) or all_ever[:1]

    def has_departed(self, broker: NodeName) -> bool:
        """Was it a member, and is one no more?"""
        return broker in self.departed and self.cell_of(broker) is None

    def stands_alone(self, cell: str) -> bool:
        """Do no others stand in for a broker of that cell?"""
        return len(self.plan.cells[cell]) == 1

    def is_news(self, joined: Mapping[NodeName, str], departed: Iterable[NodeName]) -> bool:
        """Is something of that not known here?"""
        return any(each not in self.departed for each in departed) or any(
            self.joined.get(broker) != self._settled(broker, cell) for broker, cell in joined.items()
        )

    def take(self, joined: Mapping[NodeName, str], departed: Iterable[NodeName]) -> None:
        """Put that to what is known."""
        self.joined |= {broker: self._settled(broker, cell) for broker, cell in joined.items()}
        self.departed |= dict.fromkeys(departed)

    def _settled(self, broker: NodeName, cell: str) -> str:
        """One that has lost its disk may have joined twice; then all take the same of the two for true."""
        return min(cell, self.joined.get(broker, cell))

    # ------------------------------------------------------------------------------------------ what is refused
    def why_not_join(self, broker: NodeName, cell: str) -> str:
        """Why the broker cannot join the cell (empty: it can)."""
        if broker in self.departed:
            return f"{broker} has departed for good"
        if self.cell_of(broker) is not None:
            return f"{broker} is a member of {self.cell_of(broker)} already"
        if cell not in self.plan.cells:
            return f"there is no cell {cell!r:.40}"
        if self.stands_alone(cell) and not spreads(self.plan, cell):
            return f"{cell} has one broker, with its clients, between others: it takes no other one"
        return ""

    def why_not_depart(self, broker: NodeName, told: NodeName) -> str:
        """Why the broker cannot depart, by an order to that other one (empty: it can)."""
        cell = self.cell_of(broker)
        if cell is None:
            return f"{broker!r:.40} is no member of a cell"
        if broker in self.plan.roots:
            return f"{broker} hosts pubends: events enter there"
        others = [each for each in self.members_of(cell) if each != broker]
        if not others:
            return f"{broker} is the last member of {cell}"
        if told not in others:
            return f"{told} is no other member of {cell}: tell one that stays, such as {others[0]}"
        return ""

    def around(self, cell: str) -> list[NodeName]:
        """The brokers that a new member of the cell is to be linked with: those of the neighbouring cells, and of its
        own unless each stands alone there. None for a cell that there is not."""
        near = neighbours(self.plan.edges, cell)
        cells = near if cell not in self.plan.cells or self.stands_alone(cell) else [*near, cell]
        return [each for beside in cells for each in self.members_of(beside)]

    def obey(self, verb: str, told: NodeName, names: Sequence[NodeName]) -> None:
        """Take it that an order to that broker, if it is one about members, is carried out unless it is refused."""
        if verb == "join" and not self.why_not_join(told, names[0]):
            self.take({told: names[0]}, ())
        elif verb == "depart" and not self.why_not_depart(names[0], told):
            self.take({}, names)

    def missed_by(self, joined: Sequence[NodeName]) -> list[NodeName]:
        """Of the members that have joined, those not named."""
        return [each for each in self.joined if each not in joined and each not in self.departed]
