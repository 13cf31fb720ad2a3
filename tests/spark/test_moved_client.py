"""A client that goes to another broker counts for the one where it is, also in the tables of Spark."""

from pathlib import Path
from typing import Any

import pytest

from murmuration.bench import measure
from murmuration.zoo.play import play_in_zoo
from spark_analysis.key_figures import judge_and_measure
from spark_analysis.main import analyze
from spark_analysis.tables import AnalysisFolder
from tests.judge.test_moved_client import MOVED

pytestmark = pytest.mark.spark


def test_what_is_delivered_after_a_move_was_wanted_at_the_new_broker(spark: Any, tmp_path: Path) -> None:
    run = play_in_zoo(MOVED, tmp_path / "run")
    analyze(run)
    brokers = AnalysisFolder(run).read("brokers").set_index("name")
    assert dict(brokers["interested"]) == {"b0": 0, "b1": 195, "b2": 0, "b3": 5}
    assert dict(brokers["pure_forwarder"]) == {"b0": 0, "b1": 5, "b2": 5, "b3": 0}
    forwarding = AnalysisFolder(run).read("forwarding").iloc[0]
    assert forwarding["yield"] == pytest.approx(judge_and_measure(run)[1]["yield"])
    assert forwarding["traffic_overhead"] == pytest.approx(measure.judge_and_measure(run)[1]["overhead"])
