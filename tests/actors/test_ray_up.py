"""`ray up cluster-onprem.yaml` makes a cluster of three hosts, which are namespaces of this computer."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.namespace_hosts import what_is_missing

ROOT = Path(__file__).parents[2]


@pytest.mark.ray
@pytest.mark.slow
def test_a_cluster_comes_up_loses_a_host_during_a_run_that_is_valid_and_goes_down() -> None:
    if missing := what_is_missing():
        pytest.skip(missing)
    command = [sys.executable, "-m", "benchmarks.ray_up", "--plain"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    outcome = json.loads(done.stdout.splitlines()[-1])
    verdict = outcome["verdict"]
    assert verdict["verdict"] == "valid", done.stdout
    assert verdict["faults_took_effect"] == 1, "a host was lost"
    assert verdict["delivered"] == verdict["required"] > 0
    assert outcome["left"] == [], "nothing of Ray goes on after `ray down`"
