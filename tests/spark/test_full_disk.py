"""A disk that a job of Spark finds full is told in one line."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from murmur_pubsub.errors import DiskError
from spark_analysis.session import spark_session

pytestmark = pytest.mark.spark


def _write(numbers: Iterable[int]) -> Iterable[int]:
    with Path("/dev/full").open("w") as full:
        full.writelines(map(str, numbers))
    yield 0


def test_a_task_that_finds_the_disk_full_is_told_with_its_place(spark: SparkSession) -> None:
    with (
        pytest.raises(DiskError, match=r"^Spark's own files in /.*: No space left on device$"),
        spark_session() as session,
    ):
        session.sparkContext.parallelize([1], 1).mapPartitions(_write).collect()
