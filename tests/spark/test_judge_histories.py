"""The judge on Spark against the plain one, on many random histories in one run.

Histories share the run but neither subscribers, publishers nor time: history k has the subscribers and
publishers 2k and 2k+1, the attribute h = k in events and filters, and its times begin at 1000 k. So one
analysis judges them all.
"""

from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from pyspark.sql import SparkSession

from spark_analysis.main import analyze
from spark_analysis.tables import AnalysisFolder
from tests.spark.histories import Finding, History, attributes_of, histories, plain_judge
from tests.spark.run_folder import RunFolder

pytestmark = pytest.mark.spark
GRACE_US = 2
CLIENTS = 4


def _gather() -> list[History]:
    gathered: list[History] = []

    @settings(max_examples=400, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(histories())
    def take(history: History) -> None:
        gathered.append(history)

    take()
    return gathered


def _build(folder: Path, gathered: list[History]) -> Path:
    run = RunFolder(folder, brokers=1, clients=CLIENTS, grace_us=GRACE_US, rows_per_segment=2)
    for number, history in enumerate(gathered):
        base_us, base = 1_000 * number, 2 * number
        client = f"c{number % CLIENTS}"
        for time_us, subscriber, text, withdrawn in history.changes:
            run.subscribe(client, base_us + time_us, base + subscriber, f"h = {number} AND {text}", withdrawn)
        for time_us, publisher, sequence, value in history.events:
            attributes = attributes_of(value) | {"h": number}
            run.publish(client, base_us + time_us, base + publisher, sequence, attributes)
        for time_us, publisher, sequence, subscriber in history.deliveries:
            run.deliver(client, base_us + time_us, base + publisher, sequence, base + subscriber)
        for time_us, covers_us in history.settled:
            run.settled(base_us + time_us, base_us + covers_us)
    return run.finish()


def test_spark_and_plain_judge_agree_on_random_histories(spark: SparkSession, tmp_path: Path) -> None:
    gathered = _gather()
    run = _build(tmp_path / "run", gathered)
    verdict = analyze(run)
    found: dict[int, list[Finding]] = defaultdict(list)
    table = AnalysisFolder(run).read("findings")
    for row in table.itertuples():
        number = row.subscriber // 2
        finding = (row.finding, row.source - 2 * number, row.sequence, row.subscriber - 2 * number)
        found[number] += [finding] * row.count
    required = 0
    kinds = set()
    for number, history in enumerate(gathered):
        expected, must = plain_judge(history, GRACE_US)
        assert sorted(found[number]) == expected, history
        required += must
        kinds |= {finding[0] for finding in expected}
    assert kinds == {"missing", "duplicate", "spurious", "out_of_order"}
    assert required > 100
    assert verdict["required"] == required
    for kind in kinds:
        assert verdict[kind] == sum(each[0] == kind for listed in found.values() for each in listed)
