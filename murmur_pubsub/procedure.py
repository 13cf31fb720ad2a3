"""A procedure with named states: the table of its steps, the state that it is in, and the steps that led there.

A protocol declares the table of a procedure: (state, step) to the next state. The picture in docs/protocols is made
from the table (tests/architecture/test_state_pictures.py). A step that the table does not have in a state means that
the protocol contradicts itself: it raises `IllegalStep`, which tells the story of the procedure.
"""

from collections import deque
from collections.abc import Mapping
from enum import Enum
from typing import Generic, TypeVar

from murmur_pubsub.machine import NodeName

_State = TypeVar("_State", bound=Enum)
_Step = TypeVar("_Step", bound=Enum)
_REMEMBERED = 20


class IllegalStep(Exception):
    """A procedure has taken a step that its table does not have."""


class Procedure(Generic[_State, _Step]):
    """One run through the table, at one node."""

    __slots__ = ("_name", "_node", "_story", "_table", "state")

    def __init__(self, name: str, node: NodeName, table: Mapping[tuple[_State, _Step], _State], start: _State) -> None:
        self.state = start
        """The state it is in; only `take` changes it."""
        self._name = name
        self._node = node
        self._table = table
        self._story: deque[str] = deque([start.name], maxlen=_REMEMBERED)
        """The last steps, each with its note and the state it led to."""

    def take(self, step: _Step, note: str = "") -> None:
        """Go on to the next state; `note` says in the story what brought the step about. Raises `IllegalStep`."""
        after = self._table.get((self.state, step))
        said = f"{step.name} ({note})" if note else step.name
        if after is None:
            story = " -> ".join(self._story)
            raise IllegalStep(f"{self._name} at {self._node}: no {said} in the state {self.state.name}, after {story}")
        self.state = after
        self._story.append(f"{said} -> {after.name}")
