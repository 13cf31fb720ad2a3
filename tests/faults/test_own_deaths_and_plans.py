"""Nodes that die by themselves while a plan goes on: what the plan has for them then, and what the judge says of it."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from actors.live_fault_injector import LiveFaultInjector
from murmur_pubsub.faults import Fault
from murmur_pubsub.machine import NodeName
from murmur_pubsub.run_manifest import read_manifest
from spark_analysis.plain_judge import Judgement, judge_run
from tests.faults.test_shared_actors import WORKLOAD, played

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("live_ray")]


def with_a_death(monkeypatch: pytest.MonkeyPatch, before: int, *names: NodeName) -> None:
    """The process of these nodes dies by itself, and is seen to be gone, just before that step of the plan."""
    carry_out = LiveFaultInjector.carry_out

    def carry_out_late(self: LiveFaultInjector, step: int, fault: Fault) -> list[NodeName]:
        if step == before:
            os.kill(self._group.places[names[0]].pid, signal.SIGKILL)
            self.died({name: self._group.places[name] for name in names})
        return carry_out(self, step, fault)

    monkeypatch.setattr(LiveFaultInjector, "carry_out", carry_out_late)


def judged(folder: Path, *faults: dict[str, Any]) -> Judgement:
    workload = {**WORKLOAD, "publications": 900, "clients": 3}
    played(folder, overlay={"kind": "chain", "brokers": 4}, density=2, workload=workload, faults=list(faults))
    return judge_run(folder)


def test_an_actor_that_had_died_comes_back_as_the_plan_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """b3 was to be killed alone, and b2 with their actor: so they come back one after the other."""
    with_a_death(monkeypatch, 0, "b2", "b3")
    judgement = judged(
        tmp_path / "run",
        {"at": "800 ms", "kill": "b3"},
        {"at": "900 ms", "kill_actor": "b2"},
        {"at": "1200 ms", "restart_actor": "b2"},
        {"at": "1600 ms", "restart": "b3"},
    )
    assert read_manifest(tmp_path / "run").by_themselves == ["death of b2, b3"]
    assert judgement.numbers["verdict"] == "valid", (judgement.numbers["reason"], judgement.checks)
    assert judgement.numbers["missing"] == judgement.numbers["explained"] > 0
    assert {check.outcome for check in judgement.checks} == {"took_effect"}
    ended = {(check.fault.split(" (")[0], check.until_us is None) for check in judgement.checks}
    assert ended == {(text, False) for text in ("kill b3 in its process", "kill actor of b2, b3", "death of b2, b3")}
    starts = {name: len(list((tmp_path / "run" / "journal").glob(f"{name}-*-00000.seg"))) for name in ("b2", "b3")}
    assert starts == {"b2": 2, "b3": 2}
