"""The fingerprints of protocols that say themselves which of their states matter: faults bring about what they name."""

import random
from collections.abc import Mapping
from typing import Any

import pytest

from murmuration.hunt.chunk import Quarry
from murmuration.hunt.schedule import draw_parts
from murmuration.hunt.symptoms import tried

_WORKLOAD = {"kind": "zipf", "clients": 4, "publications": 60, "rate_per_s": 40}
_DETECTION = {"heartbeat": "100 ms", "timeout": "300 ms", "reconnect": "20 ms"}
_KILL = {"at": "200 ms", "kill": "b1", "for": "2 s"}
_KILLED_BESIDE = {"at": "300 ms", "kill": "b2", "for": "2 s"}
_RING = {"kind": "structured", "brokers": 4, "probe": "200 ms", "probe_timeout": "100 ms"}
_DATAGRAMS = {"datagrams": {"delay": "1 ms"}}
_CHAIN = {"kind": "chain", "brokers": 5}
_CELLS = {"kind": "cells", "cells": {"p": ["p0"], "m": ["b1", "b2"], "s": ["s0"]}, "links": [["p", "m"], ["m", "s"]]}


def _states(routing: str, reliability: str, overlay: Mapping[str, Any], *faults: Any, **more: Any) -> set[str]:
    """The states that are seen while the faults are in force, without the faults."""
    keys = {
        "name": "states", "runtime": "virtual", "seed": 1, "overlay": overlay, "workload": _WORKLOAD,
        "broker": {"routing": routing, "reliability": reliability}, "failure_detection": _DETECTION,
        "drain": {"limit": "5 s"}, "faults": [*faults], **more,
    }  # fmt: skip
    return {place.partition(" | ")[0] for place in tried(keys).reached.places() if " | " in place}


def _holds(states: set[str], part: str, *conditions: str) -> bool:
    """Is there a state of the part in which all of these hold?"""
    found = (state.partition(".state ") for state in states)
    return any(name == part and set(conditions) <= set(held.split(" + ")) for name, _, held in found)


def test_a_stream_of_gryphon_has_gaps_and_is_cut_off_while_links_are_down() -> None:
    cuts = [{"at": "200 ms", "cut": ["b1", "s0"], "for": "1 s"}, {"at": "300 ms", "cut": ["b2", "s0"], "for": "500 ms"}]
    calm, cut = (_states("cells", "gryphon", _CELLS, *faults) for faults in ([], cuts))
    assert _holds(cut, "stream at a subend", "cut off")
    assert _holds(cut, "stream at its pubend", "owed")
    assert _holds(cut, "ways", "by others")
    assert _holds(cut, "ways", "none")
    assert not any("cut off" in state or "by others" in state for state in calm)


def test_a_broker_of_multipath_bridges_a_neighbour_looks_behind_it_for_another_and_moves() -> None:
    parameters = {"multipath": {"watch": "100 ms", "coordinator": "b0"}}
    broker = {"routing": "multipath", "reliability": "best_effort", "parameters": parameters}

    def states(*faults: Any) -> set[str]:
        return _states("multipath", "best_effort", _CHAIN, *faults, **_DATAGRAMS, broker=broker)

    assert _holds(states(_KILL), "membership, move outside", "one away", "bridging")
    assert not any("one away + beyond away" in state for state in states(_KILL))
    assert _holds(states(_KILL, _KILLED_BESIDE), "membership, move outside", "one away", "beyond away")
    order = {"at": "200 ms", "move": "b4", "from": "b3", "to": "b2"}
    assert any(state.startswith("membership, move end") for state in states(order))


@pytest.mark.parametrize("routing", ["irbr", "irbr_members", "scribe", "rpf"])
def test_a_pastry_node_has_silent_peers_and_vacant_cells_and_joins_again(routing: str) -> None:
    states = _states(routing, "best_effort", _RING, _KILL, **_DATAGRAMS)
    assert _holds(states, "Pastry joined", "vacant cells")
    assert any(state.startswith("Pastry asking") for state in states)
    calm = _states(routing, "best_effort", _RING, **_DATAGRAMS)
    assert not any("vacant cells" in state or "asking" in state for state in calm)


@pytest.mark.parametrize("routing", ["vinifera", "ferry"])
def test_a_node_of_the_gossip_overlay_seeks_its_successor(routing: str) -> None:
    states = _states(routing, "best_effort", _RING, _KILL, **_DATAGRAMS)
    assert _holds(states, "ring", "seeking")
    assert _holds(states, "installations", "wants")


@pytest.mark.parametrize("pair", ["cells/gryphon", "multipath/best_effort", "forwarding/epidemic"])
def test_a_schedule_reaches_few_states_of_each_protocol(pair: str) -> None:
    space = Quarry.named(pair).space()
    keys = draw_parts(random.Random(5), space).keys(space)
    states = {place.partition(" | ")[0] for place in tried(keys).reached.places() if ".state " in place}
    assert 1 < len(states) < 60
