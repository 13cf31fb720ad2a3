"""Live nodes, one of them killed and started again, run again in this process from the inputs they kept."""

from pathlib import Path

import pytest

from murmuration.commands.replay import replay_node
from murmuration.runs.driver import execute
from murmuration.scenario.load import check_scenario


@pytest.mark.ray
@pytest.mark.usefixtures("live_ray")
def test_live_nodes_do_again_what_they_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = {
        "name": "kept", "seed": 2, "runtime": "ray", "keep_inputs": True, "overlay": {"kind": "chain", "brokers": 3},
        "workload": {
            "kind": "zipf", "clients": 3, "subscribers_per_actor": 2, "publishers": 3, "publications": 300,
            "rate_per_s": 100, "matching_rate": 0.3,
        },
        "datagrams": {"delay": "1 ms"}, "links": {"loss": 0.1},
        "broker": {"reliability": "epidemic", "parameters": {"epidemic": {"algorithm": "push", "interval": "50 ms"}}},
        "faults": [{"at": "1 s", "kill": "b2", "for": "500 ms"}],
    }  # fmt: skip
    run = tmp_path / "run"
    execute(check_scenario(scenario, "test"), run, lambda *_: None)
    kept = {path.stem for path in (run / "journal").glob("*.inputs")}
    assert kept == {"b0-0", "b1-0", "b2-0", "b2-1", "c0-0", "c1-0", "c2-0"}
    for name in sorted(kept):
        node, _, incarnation = name.partition("-")
        replay_node(run, node, int(incarnation), show=False)
        assert ", as in the run" in capsys.readouterr().out
