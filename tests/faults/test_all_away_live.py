"""Live, all brokers are away at once, and no clients beside them: nobody is there who could be asked."""

from pathlib import Path

import pytest

from actors.ray_session import RaySession
from actors.run import LiveRun
from murmuration.deployment.build_deployment import build
from murmuration.hunt.trial import judge_faults
from murmuration.scenario.load import check_scenario

pytestmark = [pytest.mark.ray]


def test_a_run_goes_on_while_every_node_is_away(tmp_path: Path, live_ray: RaySession) -> None:
    scenario = {
        "overlay": {"kind": "chain", "brokers": 2}, "last_mile": "broker",
        "workload": {
            "kind": "zipf", "clients": 2, "publishers": 2, "publications": 60, "rate_per_s": 20, "matching_rate": 0.9,
        },
        "faults": [{"at": "500 ms", "kill": name, "for": "1500 ms"} for name in ("b0", "b1")],
    }  # fmt: skip
    deployment = build(check_scenario(scenario, "all away")).deployment
    (tmp_path / "journal").mkdir()
    LiveRun(deployment, tmp_path, lambda *_: None, "127.0.0.1", live_ray).play()
    judgement = judge_faults(deployment, tmp_path / "journal").judgement
    assert judgement.numbers["verdict"] == "valid", judgement.numbers["reason"]
    assert judgement.numbers["faults_took_effect"] == 2
