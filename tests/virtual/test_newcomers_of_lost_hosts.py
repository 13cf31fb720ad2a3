"""A host is lost on which a broker is to be that has not come yet: it was not there to be lost, and the return of the
host does not start it."""

from typing import Any

import pytest

from murmur_pubsub.faults import FaultKind
from murmur_virtual.run import VirtualRun
from murmuration.hunt.trial import deployment_of, play
from murmuration.runs.manifest import fault_entry

CELLS = {"p": ["p0"], "m": ["m0", "m1"]}


def scenario(*faults: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": "newcomer", "runtime": "virtual", "seed": 2, "hosts": 2, "newcomers": ["n0"],
        "overlay": {"kind": "cells", "cells": CELLS, "links": [["p", "m"]]},
        "last_mile": "broker",
        "broker": {"routing": "cells", "reliability": "gryphon", "parameters": {"gryphon": {"pubends": {"p0": 1}}}},
        "workload": {
            "kind": "zipf", "clients": 3, "subscribers_per_actor": 2, "publishers": 1, "publications": 160,
            "rate_per_s": 40, "matching_rate": 0.5,
        },
        "failure_detection": {"heartbeat": "100 ms", "timeout": "300 ms", "reconnect": "20 ms"},
        "faults": list(faults),
    }  # fmt: skip


JOIN = {"join": "n0", "cell": "m"}


@pytest.mark.parametrize("joins", ["500 ms", "1200 ms", "2500 ms", "never"])
def test_it_joins_before_the_host_is_lost_or_while_it_is_or_later(joins: str) -> None:
    lost: dict[str, Any] = {"at": "1 s", "lose_host": 1, "for": "1 s"}
    faults = [lost] if joins == "never" else sorted([lost, {"at": joins, **JOIN}], key=when)
    deployment = deployment_of(scenario(*faults))
    assert deployment.hosts["n0"] == 1
    outcome = play(deployment, VirtualRun)
    assert all(check.outcome != "failed" for check in outcome.checks), outcome.checks
    assert outcome.judgement.numbers["verdict"] == "valid", outcome.judgement.numbers
    (loss,) = [each for each in deployment.faults if each.kind is FaultKind.LOSE_HOST]
    assert ("n0" in fault_entry(loss, deployment).nodes) == (joins == "500 ms")


def when(entry: dict[str, Any]) -> float:
    number, unit = str(entry["at"]).split()
    return float(number) * (1_000 if unit == "s" else 1)
