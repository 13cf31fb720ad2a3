"""A partition of a structured overlay: no datagram passes between its sides. When it ends they become one again."""

import dataclasses
from pathlib import Path

import pytest

from murmur_virtual.run import play_virtual
from murmuration.deployment.build_deployment import build
from murmuration.runs.manifest import manifest_of
from murmuration.scenario.load import check_scenario
from spark_analysis.plain_judge import judge_journal


@pytest.mark.parametrize("lasting", ["300 ms", "3000 ms", "6500 ms"])
@pytest.mark.parametrize("routing", ["irbr", "scribe", "rpf", "vinifera", "ferry"])
def test_both_sides_of_a_partition_become_one_overlay_again(tmp_path: Path, routing: str, lasting: str) -> None:
    """What `recovery_limit` excuses ends fifteen rounds after the begin and after the end; events go on for longer."""
    data = {
        "name": "divided",
        "runtime": "virtual",
        "seed": 3,
        "overlay": {"kind": "structured", "brokers": 8, "probe": "200 ms", "probe_timeout": "100 ms", "leaf_set": 4},
        "workload": {
            "kind": "zipf", "clients": 8, "publications": 160, "rate_per_s": 10, "publishers": 2,
            "subscribers_per_actor": 2,
        },
        "broker": {"routing": routing, "reliability": "best_effort"},
        "failure_detection": {"heartbeat": "100 ms", "timeout": "300 ms", "reconnect": "20 ms"},
        "datagrams": {"delay": {"uniform": ["1 ms", "20 ms"]} if routing in ("irbr", "vinifera", "ferry") else "5 ms"},
        "recovery_limit": "3 s",
        "faults": [{"at": "1 s", "partition": [["b0", "b2", "b3", "b6"]], "for": lasting}],
    }  # fmt: skip
    loaded = check_scenario(data, "divided")
    built = build(loaded)
    play_virtual(built.deployment, tmp_path, lambda *_: None)
    manifest = dataclasses.replace(manifest_of(loaded, built), status="complete", writers={})
    judgement = judge_journal(manifest, tmp_path)
    assert judgement.numbers["verdict"] == "valid", judgement.numbers["reason"]
    (check,) = judgement.checks
    assert check.outcome == "took_effect", check.seen
    assert not check.seen.endswith(" 0 messages dropped at them"), check.seen
    assert judgement.excused, "it cost what was published for the other side"
