"""The filters of every broker's subscribers, each table with its version, and the branch that they lie behind."""

import itertools
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from murmur_pubsub.filter import Filter
from murmur_pubsub.machine import NodeName
from murmur_pubsub.matching import MatchingIndex
from murmur_pubsub.values import Value
from routing.cells.cell_tree import Cell, CellTree

TableVersion = tuple[int, int]
"""(incarnation of the broker, version of its table): later ones are greater."""
NO_TABLE: TableVersion = (-1, 0)
"""The version of none: before all others."""


@dataclass(slots=True)
class Table:
    """One broker's filters. `heard`, `forgotten`: see `routing.cells.messages.WholeTable`."""

    remembers: ClassVar = ("heard",)  # of each root one incarnation
    incarnation: int
    version: int = 0
    filters: dict[Filter, int] = field(default_factory=dict)
    heard: dict[NodeName, int] = field(default_factory=dict)
    forgotten: bool = False

    @property
    def at(self) -> TableVersion:
        """Which version it is."""
        return (self.incarnation, self.version)


_A_LIFE = 1 << 32
"""A broker that is forgotten gets an empty table whose version is the next multiple of this: later than any that it may
have made itself where nobody heard of it. When it returns it goes on from there."""


class FilterTables:
    """The tables known here, with one index that says which branches an event is wanted behind.

    `applied`: of members, which version is held of a broker's table (such a list is never changed).
    `given_up`: the branches behind which every broker that may have subscribers is forgotten.
    """

    def __init__(self, tree: CellTree) -> None:
        self.tables: dict[NodeName, Table] = {}
        self.applied: dict[NodeName, list[int]] = {}
        self.given_up: dict[Cell, None] = {}
        self._tree = tree
        self._index = MatchingIndex[Cell]()
        self._branches: dict[NodeName, Cell | None] = {}
        """By which branch each broker's filters are in the index."""
        self._keys = itertools.count()

    def at(self, broker: NodeName) -> TableVersion:
        """The version held of a broker's table (`NO_TABLE`: none)."""
        table = self.tables.get(broker)
        return NO_TABLE if table is None else table.at

    def first_lacking(self, versions: Mapping[NodeName, Sequence[int]]) -> NodeName | None:
        """A broker whose filters of its version, or of later ones, are not applied here though needed, if any."""
        # Without a step of Python for each: brokers may be many, and this is asked for each announcement.
        held = map(self.applied.get, versions, itertools.repeat(list(NO_TABLE)))
        lacking = itertools.compress(versions, map(operator.gt, versions.values(), held))  # type: ignore[arg-type]
        return next(itertools.filterfalse(self._tree.membership.has_departed, lacking), None)

    def replace(self, broker: NodeName, table: Table, filters: Iterable[Filter]) -> None:
        """Take a whole new table for the broker."""
        before = self.tables.get(broker)
        if before is not None:
            self._drop(broker, list(before.filters))
        self.tables[broker] = table
        self._branches[broker] = self._tree.branch_of.get(broker)
        self._put(broker, filters)
        self._note_applied(broker)
        if table.forgotten or (before is not None and before.forgotten):
            self._note_given_up()

    def grow(self) -> None:
        """Brokers have joined or departed: tables of those are in the index from now on, and of these are none."""
        for broker in [each for each in self.tables if self._tree.membership.has_departed(each)]:
            self._drop(broker, list(self.tables[broker].filters))
            del self.tables[broker], self._branches[broker]
        for broker, table in self.tables.items():
            branch = self._tree.branch_of.get(broker)
            if branch != self._branches[broker]:
                filters = list(table.filters)
                self._drop(broker, filters)
                self._branches[broker] = branch
                self._put(broker, filters)
        self.applied.clear()
        for broker in self.tables:
            self._note_applied(broker)
        self._note_given_up()

    def _note_applied(self, broker: NodeName) -> None:
        if broker in self._tree.cell_of:
            self.applied[broker] = list(self.tables[broker].at)

    def _note_given_up(self) -> None:
        self.given_up = {branch: None for branch in self._tree.branches if self._all_forgotten(branch)}

    def forget(self, broker: NodeName) -> Table:
        """The table of a broker that will not return."""
        incarnation, version = self.at(broker)
        table = Table(incarnation, (version // _A_LIFE + 1) * _A_LIFE, forgotten=True)
        self.replace(broker, table, ())
        return table

    def is_forgotten(self, broker: NodeName) -> bool:
        """Was the broker given up, and has not returned?"""
        return broker in self.tables and self.tables[broker].forgotten

    def why_needed(self, broker: NodeName) -> str:
        """Why a broker with subscribers of its own may not depart (empty: it has none)."""
        if broker not in self.tables:
            return f"nothing is known here yet of subscribers at {broker}"
        wants = bool(self.tables[broker].filters)
        return f"{broker} has subscribers: move its clients away, or have it forgotten if it is dead" if wants else ""

    def step(self, broker: NodeName, added: Sequence[Filter], removed: Sequence[Filter]) -> None:
        """Take the broker's table one version further."""
        self._drop(broker, removed)
        self._put(broker, added)
        self.skip_to(broker, self.tables[broker].version + 1)

    def skip_to(self, broker: NodeName, version: int) -> None:
        """The broker's table as it is held is of this version."""
        self.tables[broker].version = version
        self._note_applied(broker)

    def wanted_behind(self, attributes: Mapping[str, Value], except_for: Cell | None) -> Sequence[Cell]:
        """The branches with a filter that the event matches."""
        return self._index.destinations(attributes, except_for)

    def _all_forgotten(self, branch: Cell) -> bool:
        """Where several brokers make up a cell none has subscribers, and none has to acknowledge anything itself."""
        behind = self._tree.behind[branch]
        alone = [each for each in behind if self._tree.stands_alone(each)]
        return all(map(self.is_forgotten, alone or behind))

    def _put(self, broker: NodeName, filters: Iterable[Filter]) -> None:
        held = self.tables[broker].filters
        branch = self._branches[broker]
        for wanted in filters:
            held[wanted] = next(self._keys)
            if branch is not None:
                self._index.add(held[wanted], wanted, branch)

    def _drop(self, broker: NodeName, filters: Iterable[Filter]) -> None:
        held = self.tables[broker].filters
        for wanted in filters:
            key = held.pop(wanted)
            if self._branches[broker] is not None:
                self._index.remove(key)

    def check_invariants(self) -> None:
        behind = sum(len(table.filters) for broker, table in self.tables.items() if broker in self._tree.branch_of)
        assert len(self._index) == behind
        assert self._branches == {broker: self._tree.branch_of.get(broker) for broker in self.tables}
        held = {broker: table.at for broker, table in self.tables.items() if broker in self._tree.cell_of}
        assert {broker: tuple(at) for broker, at in self.applied.items()} == held
