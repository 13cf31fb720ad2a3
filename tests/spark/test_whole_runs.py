"""Whole analyses of small runs: verdicts, findings, tables and reports."""

import json
import random
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from pubsub.errors import InputError
from pubsub.journal import HEADER_BYTES, ROW, DropReason, Phase, RowKind
from spark_analysis.main import analyze, report
from spark_analysis.tables import SMALL_TABLES, AnalysisFolder
from tests.spark import plain_metrics as plain
from tests.spark.run_folder import RunFolder

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[2]
BROKERS, CLIENTS = 5, 10


def _right_run(folder: Path) -> Path:
    """A chain of five brokers; a subscriber at every client wants one of three values; nothing goes wrong.

    Copies are lost and sent again on one link, which is nobody's loss.
    """
    rng = random.Random("right run")
    run = RunFolder(folder, BROKERS, CLIENTS)
    run.phase(0, Phase.STARTING)
    run.phase(100, Phase.SUBSCRIBING)
    for number in range(CLIENTS):
        run.subscribe(f"c{number}", 200 + number, number, f"a = {number % 3}")
    run.settled(1_000, 300)
    run.phase(2_000, Phase.PUBLISHING)
    for sequence in range(60):
        value, at = rng.randrange(3), 2_000 + 1_000 * sequence
        run.publish("c0", at, 7, sequence, {"a": value})
        run.hop("c0", "b0", at, at + 50, 7, sequence, kind=3)
        for broker in range(BROKERS - 1):
            at += 100
            if broker == 2 and sequence % 10 == 0:
                run.hop("b2", "b3", at, None, 7, sequence)
                run.row("b2", at, RowKind.DROP, "b3", source=7, sequence=sequence, value=DropReason.LOSS)
            run.hop(f"b{broker}", f"b{broker + 1}", at, at + rng.randrange(5, 40_000), 7, sequence)
        for number in range(CLIENTS):
            if number % 3 == value:
                run.deliver(f"c{number}", at + rng.randrange(1, 900_000), 7, sequence, number, number % BROKERS)
    run.row("c3", 5_000, RowKind.LAG, value=123)
    run.row("b1", 5_000, RowKind.PROTOCOL, size=9, value=4)
    run.phase(70_000, Phase.DRAINING)
    run.phase(90_000, Phase.STOPPED)
    return run.finish()


@pytest.fixture(scope="module")
def right_run(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    run = _right_run(tmp_path_factory.mktemp("right") / "run")
    return run, analyze(run)


def _table(run: Path, name: str) -> pd.DataFrame:
    return AnalysisFolder(run).read(name)


def test_a_right_run_is_valid(right_run: tuple[Path, dict[str, Any]]) -> None:
    _, verdict = right_run
    assert verdict["verdict"] == "unknown" or verdict["out_of_order"] == 0
