"""What a session of Spark needs is looked at before; what a person can mend there is told, and no fault of ours is."""

from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from murmur_pubsub.errors import InputError
from murmur_pubsub.journal_store import FolderStore
from spark_analysis.session import check_executors
from spark_analysis.spark_disk import check_own_files


class ClusterHere:
    """One executor, whose tasks are carried out in this process."""

    def __init__(self, raised: Exception | None = None) -> None:
        self._raised = raised
        self.master = "spark://here:7077"
        status = SimpleNamespace(size=lambda: 2)
        self._jsc = SimpleNamespace(sc=lambda: SimpleNamespace(getExecutorMemoryStatus=lambda: status))
        self._found: list[Any] = []

    @property
    def session(self) -> SparkSession:
        return cast(SparkSession, SimpleNamespace(sparkContext=self))

    def parallelize(self, tasks: range, _: int) -> "ClusterHere":
        return self

    def mapPartitions(self, function: Callable[[Iterable[int]], Iterable[Any]]) -> "ClusterHere":
        self._found = list(function([]))
        return self

    def collect(self) -> list[Any]:
        if self._raised is not None:
            raise self._raised
        return self._found


def test_a_host_that_does_not_see_the_journal_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"host .*: found no journal at {tmp_path / 'journal'}"):
        check_executors(ClusterHere().session, str(tmp_path / "journal"), tmp_path)
    with pytest.raises(InputError, match=r"host .*: found InputError: other://journal"):
        check_executors(ClusterHere().session, "other://journal", tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", [Py4JError, PySparkException])
def test_a_cluster_that_runs_no_task_is_named(kind: type[Exception], tmp_path: Path) -> None:
    raised = kind("An error occurred\njava.io.IOException: Cannot run program python3\n at java.base")
    with pytest.raises(InputError, match=r"found a cluster that cannot run tasks \(java.io.IOException: Cannot run"):
        check_executors(ClusterHere(raised).session, str(tmp_path), tmp_path)


def test_a_fault_of_ours_is_none_of_the_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AttributeError, match="ours"):
        check_executors(ClusterHere(AttributeError("ours")).session, str(tmp_path), tmp_path)

    def broken(*_: object) -> dict[str, int]:
        raise TypeError("ours as well")

    monkeypatch.setattr(FolderStore, "sizes", broken)
    with pytest.raises(RuntimeError, match=r"(?s)Traceback.*TypeError: ours as well"):
        check_executors(ClusterHere().session, str(tmp_path), tmp_path)


def test_folders_where_spark_cannot_write_are_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    first, second = tmp_path / "file" / "first", tmp_path / "file"
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{first},{second}")
    told = rf"^SPARK_LOCAL_DIRS: found no folder .*\({first}: Not a directory; {second}: File exists\)"
    with pytest.raises(InputError, match=told):
        check_own_files()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{first},{tmp_path / 'new'}")
    check_own_files()
    assert not list((tmp_path / "new").iterdir())


def test_nor_does_spark_start_on_a_full_disk(full_device: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(full_device))
    with pytest.raises(InputError, match="No space left on device"):
        check_own_files()


@pytest.fixture
def full_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on whose disk nothing has room."""

    def full(dir: Path) -> Any:
        assert dir == tmp_path
        return Path("/dev/full").open("wb", buffering=0)

    monkeypatch.setattr("murmur_pubsub.whole_files.tempfile.TemporaryFile", full)
    return tmp_path
