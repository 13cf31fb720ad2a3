"""A disk that Spark finds full is told in one line, by the files that found no room."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from murmur_pubsub.errors import DiskError
from spark_analysis.session import spark_session
from spark_analysis.table_columns import TABLES
from spark_analysis.tables import AnalysisFolder

_CAUSE = "Job aborted due to stage failure: Task 0\n\tat java.base/x\nCaused by: java.io.IOException: {}\n\tat java"
_ENDS = [
    (Py4JError(_CAUSE.format("No space left on device")), "No space left on device"),
    (PySparkException(_CAUSE.format("Disk quota exceeded")), "Disk quota exceeded"),
    (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "No space left on device"),
]


class _Session:
    """Stands for a session of Spark, and for what writes its findings: both end with an error."""

    def __init__(self, end: Exception) -> None:
        self.end = end
        self.conf = {"spark.local.dir": "/scratch"}
        self.columns = list(TABLES["findings"].columns)
        self.write = self.sparkSession = self

    def parquet(self, path: str) -> None:
        raise self.end


def _fail(end: Exception) -> None:
    with spark_session():
        raise end


@pytest.fixture(autouse=True)
def _no_local_dirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)


@pytest.mark.parametrize(("end", "why"), _ENDS)
def test_a_job_that_finds_the_disk_full_names_the_files_of_spark(
    end: Exception, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: _Session(end))
    with pytest.raises(DiskError, match=f"^Spark's own files in /scratch: {why}$"):
        _fail(end)


@pytest.mark.parametrize(("end", "why"), _ENDS[:2])
def test_so_are_findings_with_their_own_file(end: Exception, why: str, tmp_path: Path) -> None:
    folder, table = AnalysisFolder(tmp_path), _Session(end)
    findings: Any = table
    place = f"^{tmp_path}/analysis/findings.parquet, or Spark's own files in /scratch: {why}$"
    with pytest.raises(DiskError, match=place), folder.anew():
        folder.write_findings(findings)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("end", [PySparkException("a column that is not there"), OSError(errno.EPIPE, "Broken pipe")])
def test_what_else_goes_wrong_in_spark_is_told_as_it_is(end: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: _Session(end))
    with pytest.raises(type(end)) as raised:
        _fail(end)
    assert raised.value is end
