"""The judge as a job of a Spark cluster: what it finds is what it finds on one host."""

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
from murmuration.zoo.damages import flip_bit
from spark_analysis import judge as judging
from spark_analysis import main
from spark_analysis.journal_source import Journal, read_journal, read_journal_here
from spark_analysis.main import analyze, judge
from spark_analysis.rules import Rules
from tests.spark.standalone import SparkCluster

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkCluster]:
    made = SparkCluster()
    yield made
    made.stop()


def murmur(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "murmuration.commands.main", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=280)


@pytest.mark.spark
@pytest.mark.slow
def test_a_cluster_finds_what_was_planted_and_what_one_host_finds(
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
    assert there.pop("folder") == str(tmp_path / "run")
    run_itself = {name: there.pop(name) for name in ("name", "runtime", "seed", "judge")}
    assert (run_itself["runtime"], run_itself["judge"]) == ("virtual", "spark")
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


@pytest.mark.spark
def test_pairs_and_deliveries_are_shuffled_once(spark: SparkSession, tmp_path: Path) -> None:
    BigRun(tmp_path / "run").write(20_000)
    plan = _plan_of_pairs(read_journal(spark, str(tmp_path / "run" / "journal")))
    above, _, below = plan.partition("Exchange")
    assert "Window" in above
    assert "HashAggregate" in above, "pairs are judged and streams looked at where they have been brought"
    assert below.startswith(" hashpartitioning(source")
    assert "Union" in below
    assert "SortMergeJoin [filter_number" not in plan, "subscriptions go to where events are matched"
    assert "Filter (kind" not in plan, "the reader leaves the other rows out"
    assert "BatchScan" in plan
    assert "MapInArrow" in plan
    plan = _plan_of_pairs(read_journal_here(spark, str(tmp_path / "run" / "journal")))
    assert "BatchScan" not in plan, "a small journal is read without processes of Python"
    assert "MapInArrow" not in plan, "and matched without"


def _plan_of_pairs(journal: Journal) -> str:
    lives = judging.lives_of(journal.subscriptions, [(500, 200)])
    filters = judging.what_is_wanted(journal.subscriptions).filters
    judged = judging.judge_pairs(journal, lives, filters, Rules(), frozenset())
    return str(judged._jdf.queryExecution().executedPlan().toString())


@pytest.mark.spark
@pytest.mark.slow
def test_a_large_journal_is_judged_alike(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = BigRun(tmp_path / "run")
    run.write(20_000)
    as_small = analyze(tmp_path / "run")
    traffic = pd.read_csv(tmp_path / "run" / "analysis" / "traffic.csv")
    monkeypatch.setattr(main, "_ROWS_KEPT_BYTES_MAX", 0)
    monkeypatch.setattr(main, "SMALL_JOURNAL_BYTES", 0)
    assert analyze(tmp_path / "run") == as_small
    assert as_small["missing"] == run.planted["missing"] > 0
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "run" / "analysis" / "traffic.csv"), traffic)
    damaged = sorted((tmp_path / "run" / "journal").glob("c*.blob"))[0]
    flip_bit(damaged, 8_000)
    assert judge(tmp_path / "run")["reason"] == (
        f"the journal is damaged: {damaged.name} was changed after it was sealed"
    )
