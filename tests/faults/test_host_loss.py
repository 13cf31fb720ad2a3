"""One of three hosts is lost with a third of the brokers, and they come back on another one; one is lost to which a
broker was to come that has not."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actors.ray_session import ray_session
from actors.run import LiveRun
from murmur_pubsub.journal import RowKind
from murmur_pubsub.journal_format import FileState
from murmur_pubsub.journal_rows import read_segment
from murmuration.deployment.build_deployment import build
from murmuration.hunt.trial import judge_faults
from murmuration.scenario.load import check_scenario

SCENARIO: dict[str, Any] = {
    "name": "host-loss",
    "seed": 3,
    "hosts": 3,
    "overlay": {"kind": "star", "brokers": 6},
    "workload": {
        "kind": "zipf", "clients": 6, "subscribers_per_actor": 3, "publishers": 3, "publications": 2000,
        "rate_per_s": 150, "attributes": 2, "predicates": 1, "matching_rate": 0.4,
    },
    "failure_detection": {"heartbeat": "200 ms", "timeout": "1 s", "reconnect": "50 ms"},
    "faults": [{"at": "3 s", "lose_host": 1, "for": "3 s"}],
}  # fmt: skip


@pytest.mark.ray
@pytest.mark.slow
def test_a_lost_host_is_noticed_and_its_brokers_start_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    loaded = check_scenario(SCENARIO, "test")
    deployment = build(loaded).deployment
    lost = [name for name, host in deployment.hosts.items() if host == 1]
    assert lost == ["b1", "b4"]
    with ray_session(actors=12, hosts=3) as session:
        run = LiveRun(deployment, tmp_path, lambda *_: None, "127.0.0.1", session)
        hosts = list(session.hosts)
        run.play()
        places = {name: run.group.places[name].host for name in lost}
    assert len(set(hosts)) == 3
    assert set(places.values()) <= {hosts[0], hosts[2]}, "they are on a host that was left"
    outcome = judge_faults(deployment, tmp_path / "journal")
    assert [check.outcome for check in outcome.checks] == ["took_effect"], outcome.checks
    assert outcome.verdict.missing, "a third of the brokers was gone for three seconds"
    assert outcome.unexplained == []
    assert outcome.verdict.counts[1:] == (0, 0, 0)
    for name in lost:
        (*_, first) = sorted((tmp_path / "journal").glob(f"{name}-0-*.seg"))
        assert read_segment(first)[0].state is FileState.LAST_OF_DEAD, "the driver has sealed what was lost"
        second = np.concatenate(
            [read_segment(path)[1] for path in sorted((tmp_path / "journal").glob(f"{name}-1-*.seg"))]
        )
        assert second[0]["kind"] == RowKind.START
        assert (second["kind"] == RowKind.RECEIVE).any(), f"{name} is of use again"
    centre = np.concatenate([read_segment(path)[1] for path in sorted((tmp_path / "journal").glob("b0-0-*.seg"))])
    down = centre[(centre["kind"] == RowKind.LINK_DOWN)]["peer"].tolist()
    assert {deployment.numbers[name] for name in lost} <= set(down), "their neighbour noticed"


@pytest.mark.ray
@pytest.mark.slow
def test_a_lost_host_does_not_bring_a_broker_that_has_not_come(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    cells = {"kind": "cells", "cells": {"p": ["p0"], "m": ["m0", "m1"]}, "links": [["p", "m"]]}
    changes = {"hosts": 2, "overlay": cells, "newcomers": ["n0"], "broker": {"routing": "cells"}}
    workload = {**SCENARIO["workload"], "clients": 3, "publications": 600}
    scenario = {**SCENARIO, **changes, "workload": workload, "faults": [{"at": "1 s", "lose_host": 1, "for": "1 s"}]}
    deployment = build(check_scenario(scenario, "test")).deployment
    assert [name for name, host in deployment.hosts.items() if host == 1] == ["m0", "n0"]
    with ray_session(actors=7, hosts=2) as session:
        run = LiveRun(deployment, tmp_path, lambda *_: None, "127.0.0.1", session)
        run.play()
        assert run.group.incarnations["m0"] == 1
        assert "n0" not in run.group.incarnations
    outcome = judge_faults(deployment, tmp_path / "journal")
    assert [check.outcome for check in outcome.checks] == ["took_effect"], outcome.checks
    assert outcome.unexplained == []
    assert outcome.verdict.counts[1:] == (0, 0, 0)
