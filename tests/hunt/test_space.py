"""What schedules are drawn from: parameters of protocols among it."""

import random
from collections import Counter
from typing import Any

import pytest

from murmuration.deployment.build_deployment import build
from murmuration.hunt.schedule import draw_parts
from murmuration.hunt.space import space_of
from murmuration.registry import RELIABILITIES, ROUTINGS, ReliabilityDeclaration, RoutingDeclaration
from murmuration.scenario.load import check_scenario
from murmuration.scenario.options import keys_of
from tests.judge.honest import STRUCTURED

PAIRS = [
    ("forwarding", "epidemic"), ("cells", "gryphon"), ("cells", "durable"), ("multipath", "best_effort"),
    ("irbr", "best_effort"), ("scribe", "best_effort"), ("rpf", "best_effort"), ("vinifera", "best_effort"),
    ("ferry", "best_effort"), ("multipath", "end_to_end"),
]  # fmt: skip
DATAGRAMS = {"datagrams": {"delay": "1 ms"}}
DECLARED: dict[str, RoutingDeclaration | ReliabilityDeclaration] = {**ROUTINGS, **RELIABILITIES}


def drawn(routing: str, reliability: str, count: int, **given: Any) -> list[dict[str, Any]]:
    """The parameters in the scenarios of so many draws."""
    space = space_of(routing, reliability, given or None)
    scenarios = [draw_parts(random.Random(seed), space).scenario for seed in range(count)]
    return [dict(scenario["broker"].get("parameters", {})) for scenario in scenarios]


@pytest.mark.parametrize(("routing", "reliability"), PAIRS)
def test_half_of_the_schedules_choose_parameters_of_their_protocols(routing: str, reliability: str) -> None:
    found = drawn(routing, reliability, 60)
    assert 12 <= sum(not each for each in found) <= 48
    keys = Counter((name, key) for each in found for name, chosen in each.items() for key in chosen)
    tried = space_of(routing, reliability).parameters
    assert keys.keys() == {(name, key) for name, values in tried.items() for key in values}


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_each_value_that_a_protocol_has_tried_is_one_that_it_takes(name: str) -> None:
    declared = DECLARED[name]
    keys = keys_of(declared.parameters)
    assert declared.tried.keys() <= keys.keys()
    routing, reliability = next((pair for pair in PAIRS if name in pair), (name, "best_effort"))
    for key, values in declared.tried.items():
        for value in values:
            overlay = {"kind": "structured" if routing in STRUCTURED else "chain", "brokers": 3}
            broker = {"routing": routing, "reliability": reliability, "parameters": {name: {key: value}}}
            scenario = {"overlay": overlay, "broker": broker, "workload": {"kind": "by_hand"}, **DATAGRAMS}
            build(check_scenario(scenario, f"{name} with {key} {value}"))


def test_a_parameter_that_is_given_is_not_drawn() -> None:
    found = drawn("multipath", "best_effort", 40, multipath={"strategy": "S1"})
    assert {each["multipath"]["strategy"] for each in found if "multipath" in each} == {"S1"}
    assert any(len(each["multipath"]) > 1 for each in found if "multipath" in each)
