"""Who is dead, as the steps of a plan go, and what was done by hand or happened by itself beside it."""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from murmur_pubsub.faults import DEATHS, RETURNS, FaultKind


class Step(Protocol):
    """What happens to nodes; `by_itself`: nobody had ordered it."""

    @property
    def kind(self) -> FaultKind: ...
    @property
    def nodes(self) -> tuple[str, ...]: ...
    @property
    def by_itself(self) -> bool: ...


_Step = TypeVar("_Step", bound=Step)


class Dead:
    """Who is dead, step by step. Of those on a host or in an actor some may have died before it: they may be started
    elsewhere while it is lost, and an actor comes back without them. But it comes back with those that had died by
    themselves, for the plan took them for alive when it ended the actor."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._with_actor: set[str] = set()
        self._by_themselves: set[str] = set()

    def hit_by(self, step: Step) -> frozenset[str]:
        """Note the next step; the nodes that it is about: that it kills, or starts, if it is of such a kind."""
        nodes = frozenset(step.nodes)
        if step.kind in DEATHS:
            if step.kind is not FaultKind.KILL:
                nodes -= self.names - self._by_themselves
            self.names |= nodes
            self._by_themselves -= nodes
            if step.kind is FaultKind.KILL_ACTOR:
                self._with_actor |= nodes
            elif step.by_itself:
                self._by_themselves |= nodes
        elif step.kind in RETURNS:
            if step.kind is FaultKind.RESTART_ACTOR:
                nodes &= self._with_actor
            elif step.kind is FaultKind.RETURN_HOST:
                nodes &= self.names
            self.names -= nodes
            self._with_actor -= nodes
            self._by_themselves -= nodes
        return nodes


def with_the_living(steps: Iterable[_Step]) -> Iterator[tuple[_Step, frozenset[str]]]:
    """Each step, with those of its nodes that were alive when it happened."""
    dead = Dead()
    for step in steps:
        alive = frozenset(step.nodes) - dead.names
        dead.hit_by(step)
        yield step, alive
