"""Total order: both judges compare what any two subscribers got, and find the same."""

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from murmur_pubsub.promise import Promise
from spark_analysis.main import analyze
from spark_analysis.plain_judge import judge_run
from spark_analysis.tables import AnalysisFolder
from tests.spark.run_folder import RunFolder

pytestmark = pytest.mark.spark
SUBSCRIBERS = 4
EVENTS = [(publisher, sequence) for sequence in range(8) for publisher in range(3)]


def _build(folder: Path, swaps: int, order: str) -> Path:
    """Each subscriber gets most of the events, in one order but for some neighbours that are swapped."""
    run = RunFolder(folder, brokers=1, clients=SUBSCRIBERS, promise=Promise(order=order))
    rng = random.Random(f"{swaps}/{order}")
    for subscriber in range(SUBSCRIBERS):
        run.subscribe(f"c{subscriber}", 1, subscriber, "x >= 0", False)
    run.settled(2, 2)
    for at, (publisher, sequence) in enumerate(EVENTS):
        run.publish("c0", 10 + at, publisher, sequence, {"x": at})
    for subscriber in range(SUBSCRIBERS):
        got = [event for event in EVENTS if rng.random() < 0.9]
        for _ in range(swaps):
            at = rng.randrange(len(got) - 1)
            if got[at][0] != got[at + 1][0]:  # the publisher's order is kept
                got[at], got[at + 1] = got[at + 1], got[at]
        for at, (publisher, sequence) in enumerate(got):
            run.deliver(f"c{subscriber}", 100 + at, publisher, sequence, subscriber)
    return run.finish()


@pytest.mark.parametrize(("swaps", "order"), [(0, "total"), (3, "total"), (3, "publisher")])
def test_spark_and_plain_judge_agree_on_the_order(spark: SparkSession, tmp_path: Path, swaps: int, order: str) -> None:
    run = _build(tmp_path / "run", swaps, order)
    verdict, plain = analyze(run), judge_run(run)
    table = AnalysisFolder(run).read("findings")
    rows = table[table["finding"] == "out_of_order"]
    found = {((row.source, row.sequence), row.subscriber) for row in rows.itertuples()}
    assert found == set(plain.pairs.out_of_order)
    assert bool(found) == (swaps > 0 and order == "total")
    assert verdict["out_of_order"] == plain.numbers["out_of_order"] == len(found)
    assert all("got later than this one" in each for each in rows["detail"])
