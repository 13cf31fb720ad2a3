"""Parameters of protocols as a scenario would write them, for tests that make brokers without one."""

from collections.abc import Mapping
from typing import Any

from murmuration.registry import reliability_named, routing_named
from murmuration.scenario.options import read_options


def parameters_of(protocol: Any, given: Mapping[str, Any]) -> Any:
    """The protocol's parameters, read from these; raises `InputError`."""
    return read_options(protocol.parameters, given, ("broker", "parameters", protocol.name))


def parts(routing: str, reliability: str, matching: str = "bitset", **parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What `murmuration.registry.make_broker` takes; `parameters` by the protocols' names."""
    return {
        "matching": matching,
        "routing": routing,
        "routing_parameters": parameters_of(routing_named(routing), parameters.get(routing, {})),
        "reliability": reliability,
        "reliability_parameters": parameters_of(reliability_named(reliability), parameters.get(reliability, {})),
    }
