"""The judge as a job of a Spark cluster: what it finds is what it finds on one machine."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from benchmarks.big_run import BigRun
from spark_analysis.main import judge
from tests.spark.standalone import SparkCluster

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkCluster]:
    made = SparkCluster()
    yield made
    made.stop()


def murmur(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "experiments.command_line", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=280)


@pytest.mark.spark
def test_a_cluster_finds_what_was_planted_and_what_one_machine_finds(
    cluster: SparkCluster, spark: SparkSession, tmp_path: Path
) -> None:
    run = BigRun(tmp_path / "run")
    run.write(200_000)
    done = murmur("analyze", str(tmp_path / "run"), "--json", "--master", cluster.url, "--executor-memory", "512m")
    assert done.returncode == 1, done.stderr
    there = json.loads(done.stdout)
    assert {name: there[name] for name in run.planted} == dict(run.planted)
    assert (there["required"], there["published"]) == (run.required, run.events)
    findings = [pd.read_csv(tmp_path / "run" / "analysis" / "findings.csv")]
    assert judge(tmp_path / "run") == there
    findings.append(pd.read_csv(tmp_path / "run" / "analysis" / "findings.csv"))
    order = ["finding", "source", "sequence", "subscriber"]
    one, other = (each.sort_values(order, ignore_index=True) for each in findings)
    pd.testing.assert_frame_equal(one, other)


@pytest.mark.spark
def test_no_master_at_the_address_is_named_at_once(tmp_path: Path) -> None:
    BigRun(tmp_path / "run").write(20_000)
    done = murmur("analyze", str(tmp_path / "run"), "--master", "spark://127.0.0.1:9")
    assert done.returncode == 2, done.stderr
    assert "no master" in done.stderr
    assert "Traceback" not in done.stderr
