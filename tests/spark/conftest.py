"""One Spark session for all tests of this folder."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from spark_analysis.session import start_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A small local session; `analyze` finds it as the active one."""
    session = start_session("local[2]", "1g", small=True)
    yield session
    session.stop()
