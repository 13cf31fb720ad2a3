"""The judge on Spark against the plain one, on many random histories in one run.

Histories share the run but neither subscribers, publishers nor time: history k has the subscribers and
publishers 2k and 2k+1, the attribute h = k in events and filters, and its times begin at 1000 k. So one
analysis judges them all.
"""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from pyspark.sql import SparkSession

from murmur_pubsub.promise import Limits, Promise
from spark_analysis.given_up import REFUSED_AND_DELIVERED
from spark_analysis.main import analyze
from spark_analysis.plain_judge import judge_run
from spark_analysis.tables import AnalysisFolder
from spark_analysis.verdict import COUNTS
from tests.spark.histories import History, attributes_of, histories
from tests.spark.run_folder import RunFolder

pytestmark = pytest.mark.spark
GRACE_US = 2
CLIENTS = 4
DURABLE = Promise("exactly_once", durable=True, limits=Limits(refuses_above=1))


def _gather() -> list[History]:
    gathered: list[History] = []

    @settings(max_examples=400, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(histories())
    def take(history: History) -> None:
        gathered.append(history)

    take()
    return gathered


def _build(folder: Path, gathered: list[History], promise: Promise) -> Path:
    run = RunFolder(folder, brokers=1, clients=CLIENTS, grace_us=GRACE_US, rows_per_segment=2, promise=promise)
    for number, history in enumerate(gathered):
        base_us, base = 1_000 * number, 2 * number
        client = f"c{number % CLIENTS}"
        for time_us, subscriber, text, withdrawn in history.changes:
            run.subscribe(client, base_us + time_us, base + subscriber, f"h = {number} AND {text}", withdrawn)
        for time_us, publisher, sequence, value in history.events:
            attributes = attributes_of(value) | {"h": number}
            run.publish(client, base_us + time_us, base + publisher, sequence, attributes)
        for time_us, publisher, sequence, subscriber, harm in history.deliveries:
            by = f"c{(number + 1) % CLIENTS}" if harm == "misplaced" else client
            run.deliver(by, base_us + time_us, base + publisher, sequence, base + subscriber, altered=harm == "altered")
        for time_us, publisher, sequence in history.refused:
            run.refused(client, base_us + time_us, base + publisher, sequence)
        for time_us, covers_us in history.settled:
            run.settled(base_us + time_us, base_us + covers_us)
    return run.finish()


@pytest.mark.parametrize("promise", [Promise(), DURABLE], ids=["best effort", "durable"])
def test_spark_and_plain_judge_agree_on_random_histories(spark: SparkSession, tmp_path: Path, promise: Promise) -> None:
    """Where subscriptions are durable, what was refused may not be delivered; elsewhere nobody knows of refusals."""
    run = _build(tmp_path / "run", _gather(), promise)
    verdict = analyze(run)
    plain = judge_run(run)
    table = AnalysisFolder(run).read("findings")
    for finding in COUNTS:
        rows = table[table["finding"] == finding]
        found = {((row.source, row.sequence), row.subscriber) for row in rows.itertuples()}
        expected = getattr(plain.pairs, finding)
        assert found == set(expected), finding
        assert found, f"no history has a finding {finding}"
        assert verdict[finding] == plain.numbers[finding]
    assert verdict["required"] == plain.numbers["required"] > 100
    assert {key: verdict[key] for key in plain.numbers} == dict(plain.numbers)
    rows = table[table["detail"].str.startswith("published before the subscription")]
    assert {((row.source, row.sequence), row.subscriber) for row in rows.itertuples()} == plain.pairs.early
    rows = table[table["detail"] == REFUSED_AND_DELIVERED]
    assert {((row.source, row.sequence), row.subscriber) for row in rows.itertuples()} == plain.pairs.refused
    assert bool(plain.pairs.refused) == promise.durable
    assert (REFUSED_AND_DELIVERED in verdict["reason"]) == promise.durable
