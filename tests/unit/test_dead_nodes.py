"""Who is back with an actor that a plan had killed: whom it took, and who had died before though no step said so."""

from typing import NamedTuple

import pytest

from murmur_pubsub.dead_nodes import Dead
from murmur_pubsub.faults import FaultKind


class Happened(NamedTuple):
    kind: FaultKind
    nodes: tuple[str, ...]
    by_itself: bool = False


@pytest.mark.parametrize("kind", [FaultKind.KILL, FaultKind.LOSE_HOST])
@pytest.mark.parametrize("by_itself", [True, False])
def test_an_actor_comes_back_with_those_that_had_died_by_themselves_or_with_their_host(
    kind: FaultKind, by_itself: bool
) -> None:
    dead = Dead()
    dead.hit_by(Happened(kind, ("b1",), by_itself))
    dead.hit_by(Happened(FaultKind.KILL_ACTOR, ("b1", "b2")))
    assert dead.names == {"b1", "b2"}
    back = dead.hit_by(Happened(FaultKind.RESTART_ACTOR, ("b1", "b2")))
    assert back == ({"b1", "b2"} if by_itself else {"b2"})
