"""A disk that Spark finds full: its own files, whose names it does not tell, or those that it was asked to write.

Spark tells it somewhere in a long traceback of Java's, and what runs in Python as an error without a file's name.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from murmur_pubsub.errors import DiskError

_FULL = ("No space left on device", "Disk quota exceeded", "File too large")


def own_files(session: SparkSession) -> str:
    """Where the session keeps what it has no memory for, in words."""
    place = os.environ.get("SPARK_LOCAL_DIRS") or session.conf.get("spark.local.dir", "/tmp")
    return f"Spark's own files in {place}"


@contextmanager
def spark_disk(place: str) -> Iterator[None]:
    """What Spark says of a full disk in the block is a `DiskError` of that place."""
    try:
        yield
    except (OSError, Py4JError, PySparkException) as error:
        said = str(error)
        full = next((words for words in _FULL if words in said), None)
        if full is None:
            raise
        raise DiskError(place, full) from error
