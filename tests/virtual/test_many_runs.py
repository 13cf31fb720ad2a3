"""A process plays thousands of runs: suites, sweeps and hunts do."""

import gc
from typing import Any

from murmur_virtual.virtual_node import VirtualNode
from tests.schedules import play

SCENARIO: dict[str, Any] = {
    "name": "one-of-many",
    "runtime": "virtual",
    "seed": 1,
    "overlay": {"kind": "balanced", "brokers": 98, "degree": 3},
    "workload": {
        "kind": "zipf", "clients": 2, "publishers": 1, "publications": 2, "attributes": 1, "predicates": 1,
        "matching_rate": 0.5,
    },
    "links": {"delay": "2 ms"},
}  # fmt: skip


def test_runs_that_are_over_leave_no_more_nodes_than_are_collected_at_once() -> None:
    gc.collect()
    gc.disable()  # it looks too rarely to be of use here; this is what it would not find
    try:
        for _ in range(24):
            play(SCENARIO)
        left = sum(type(each) is VirtualNode for each in gc.get_objects())
    finally:
        gc.enable()
    assert left <= 1_100
