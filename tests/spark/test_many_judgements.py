"""One Spark judges thousands of runs: zoos, sweeps and suites do."""

import gc
from pathlib import Path

import pytest
from py4j.java_gateway import JavaObject

from murmuration.runs.driver import execute
from murmuration.scenario.load import check_scenario
from spark_analysis.main import judge
from tests.spark.test_running_judge import SCENARIO


@pytest.mark.spark
def test_judgements_that_are_over_leave_no_more_of_javas_objects_than_one_makes(tmp_path: Path) -> None:
    """Java keeps what Python holds of it, and its memory is full long before Python would look for cycles."""
    run = execute(check_scenario(SCENARIO, "test"), tmp_path / "run", lambda *_: None).folder
    left = []
    gc.collect()
    gc.disable()  # it looks too rarely to be of use here
    try:
        for _ in range(2):
            judge(run)
            left.append(sum(type(each) is JavaObject for each in gc.get_objects()))
    finally:
        gc.enable()
    assert left[1] < 1.2 * left[0], left
