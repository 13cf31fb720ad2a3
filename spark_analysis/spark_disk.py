"""A disk that Spark finds full: its own files, whose names it does not tell, or those that it was asked to write.
Where it could write none of its own it is not started.

Spark tells it somewhere in a long traceback of Java's, and what runs in Python as an error without a file's name.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from murmur_pubsub.errors import DiskError, InputError
from murmur_pubsub.whole_files import try_folder

SAID_BY_SPARK = (Py4JError, PySparkException)
"""What it raises in this process."""
_PLACES = "SPARK_LOCAL_DIRS"
"""The variable with the folders of Spark's own files."""
_PLACE = "/tmp"
"""Where they are unless Spark is told otherwise."""
_BYTES_MIN = 1 << 16
_FULL = ("No space left on device", "Disk quota exceeded", "File too large")


def own_files(session: SparkSession) -> str:
    """Where the session keeps what it has no memory for, in words."""
    place = os.environ.get(_PLACES) or session.conf.get("spark.local.dir", _PLACE)
    return f"Spark's own files in {place}"


def check_own_files() -> None:
    """Raise `InputError` if Spark could write its own files in none of their folders: it would print hundreds of lines,
    and then be gone."""
    named = os.environ.get(_PLACES)
    troubles = []
    for place in (named or _PLACE).split(","):
        try:
            try_folder(Path(place), _BYTES_MIN)
            return
        except OSError as error:
            troubles.append(f"{place}: {error.strerror}")
    found = f"no folder that can be written ({'; '.join(troubles)})"
    raise InputError(_PLACES if named else "Spark's own files", found, f"one with room ({_PLACES})")


@contextmanager
def spark_disk(place: str) -> Iterator[None]:
    """What Spark says of a full disk in the block is a `DiskError` of that place."""
    try:
        yield
    except (OSError, *SAID_BY_SPARK) as error:
        said = str(error)
        full = next((words for words in _FULL if words in said), None)
        if full is None:
            raise
        raise DiskError(place, full) from error
