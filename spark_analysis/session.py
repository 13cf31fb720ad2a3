"""A Spark session for the analysis of one host's runs: local, quiet, started only where Java allows it.

Spark 4 needs Java 17 or later. A missing or older one shows in Spark as a long traceback, so it is looked for
first. Python workers of Spark import this package by name: its folder is put on their path, whatever the
working directory is and however the program was started (`python -m`, `spark-submit`, an installed command).
"""

import gc
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from murmur_pubsub.errors import InputError
from spark_analysis.journal_source import SMALL_JOURNAL_BYTES
from spark_analysis.spark_disk import SAID_BY_SPARK, check_own_files, own_files, spark_disk

JAVA_VERSION_MIN = 17
_MEND_JAVA = (
    f"Java {JAVA_VERSION_MIN} or later (on Debian and Ubuntu: sudo apt-get install openjdk-17-jre-headless; "
    "elsewhere set JAVA_HOME to one); or --plain, which judges small runs without Java"
)
_JAVA = "-XX:+UseParallelGC"
_JAVA_SMALL = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_PARTITIONS_MIN = 32
_BYTES_A_PARTITION = 48 << 20
_CONNECT_TIMEOUT_S = 5.0
_EXECUTORS_TIMEOUT_S = 60.0
_OURS = ""
"""In the place of a host: what was raised there is a fault of this program."""
_PACKAGE_ROOT = Path(__file__).resolve().parents[1]


def check_java() -> str:
    """Version and place of the Java that Spark would start; raises `InputError` for none or one too old."""
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home, "bin", "java")) if home else shutil.which("java")
    place = f"Java ({'JAVA_HOME' if home else 'PATH'})"
    if command is None or not Path(command).is_file():
        raise InputError(place, f"no {command}" if home else "no java command", _MEND_JAVA)
    try:
        said = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(place, f"{command}, which does not run ({error})", _MEND_JAVA) from error
    version = re.search(r'version "((?:1\.)?(\d+)[^"]*)"', said)
    if version is None:
        raise InputError(place, f"{command}, which says {said[:80]!r}", _MEND_JAVA)
    if int(version.group(2)) < JAVA_VERSION_MIN:
        raise InputError(place, f"Java {version.group(1)} ({command})", _MEND_JAVA)
    return f"{version.group(1)} ({command})"


@contextmanager
def spark_session(
    master: str | None = None, journal_bytes: int = 0, executor_memory: str | None = None
) -> Iterator[SparkSession]:
    """The active session if there is one (left running), else a new one that ends with the block.

    `master`: a Spark master; None means all local cores, or what spark-submit was told. `journal_bytes` is the
    size of what will be read: for a small journal the session is tuned to start fast. A disk that Spark finds full in
    the block is a `DiskError`.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        try:
            with spark_disk(own_files(active)):
                yield active
        finally:
            # Python's end of a Java object is a cycle, and Java keeps the object, with tables and plans behind it, as
            # long as that is there. It is too small for Python to look for it before Java's memory is full.
            gc.collect()
        return
    small = journal_bytes <= SMALL_JOURNAL_BYTES
    partitions = max(_PARTITIONS_MIN, journal_bytes // _BYTES_A_PARTITION)
    session = start_session(master, small=small, executor_memory=executor_memory, partitions=partitions)
    try:
        with spark_disk(own_files(session)):
            yield session
    finally:
        session.stop()


def start_session(
    master: str | None = None,
    driver_memory: str | None = None,
    small: bool = False,
    executor_memory: str | None = None,
    partitions: int = 32,
) -> SparkSession:
    """A new session; see `spark_session`. Raises `InputError` when Java is missing or too old, or no master is at a
    cluster's master.

    `driver_memory`: such as "4g"; None means a quarter of the host's memory, from 1 to 8 GB. `small`: Java compiles
    each method once, quickly, and no query is planned anew while it runs. That halves the processor time of a job of
    seconds, and doubles that of a job of minutes. `executor_memory` is of each executor of a cluster (Spark's own
    default: 1 GB), `partitions` those of a shuffle.
    """
    if master is not None and is_cluster(master):
        _check_master(master)
    else:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not submitted:
        check_java()
        check_own_files()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = (
        SparkSession.builder.appName("murmur analysis")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.shuffle.partitions", "2" if small else str(partitions))
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "50000")
        .config("spark.sql.execution.arrow.localRelationThreshold", "0")
        .config("spark.sql.adaptive.enabled", str(not small).lower())
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.executorEnv.PYTHONPATH", _python_path())
        .config("spark.python.unix.domain.socket.enabled", "true")  # by TCP each task waits 35 ms for its process
    )
    if not submitted:
        builder = builder.config("spark.driver.memory", driver_memory or _default_driver_memory())
        builder = builder.config("spark.driver.extraJavaOptions", _JAVA_SMALL if small else _JAVA)
        builder = builder.master(master or "local[*]")
    elif master is not None:
        builder = builder.master(master)
    if executor_memory is not None:
        builder = builder.config("spark.executor.memory", executor_memory)
    with _quiet_start():
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def is_cluster(master: str) -> bool:
    """Is it the master of a standalone cluster?"""
    return master.startswith("spark://")


def _check_master(master: str) -> None:
    """Spark itself would try for a minute, and then fail with a long traceback."""
    place = f"--master {master}"
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=_CONNECT_TIMEOUT_S).close()
            return
        except (OSError, ValueError) as error:
            trouble = str(error)
    raise InputError(place, f"no master ({trouble})", "spark://HOST:PORT of a master that runs")


def check_executors(spark: SparkSession, place: str, folder: Path) -> None:
    """Raise `InputError` if the cluster's executors do not come, cannot import this package, or do not see the journal
    at that place and the folder for results, which must exist."""
    master = f"--master {spark.sparkContext.master}"
    java = spark.sparkContext._jsc.sc()
    deadline = time.monotonic() + _EXECUTORS_TIMEOUT_S
    while (executors := java.getExecutorMemoryStatus().size() - 1) < 1:
        if time.monotonic() > deadline:
            found = f"no executor in {_EXECUTORS_TIMEOUT_S:.0f} s"
            raise InputError(master, found, "workers with a free core and memory for an executor (--executor-memory)")
        time.sleep(0.1)
    mark = folder / ".murmur"
    mark.touch()

    def look(_: Iterable[int]) -> Iterator[tuple[str, str]]:  # travels as it stands: needs nothing of ours over there
        host = socket.gethostname()
        try:
            from murmur_pubsub.errors import InputError
            from murmur_pubsub.journal_store import store_at
        except Exception as error:  # whatever it is, murmur is not there as it is here
            yield host, f"{type(error).__name__}: {error}"
            return
        try:
            if not Path(mark).exists():
                yield host, f"no {mark.parent} that it and this host both see"
            elif not store_at(place).sizes("seg"):
                yield host, f"no journal at {place}"
        except (InputError, OSError) as error:
            yield host, f"{type(error).__name__}: {error}"
        except Exception:  # which nobody but us can mend: as an error of Spark's it would pass for one of the cluster
            yield _OURS, traceback.format_exc()

    try:
        tasks = 4 * executors
        troubles = spark.sparkContext.parallelize(range(tasks), tasks).mapPartitions(look).collect()
    except SAID_BY_SPARK as error:
        words = [line for line in str(error).splitlines() if "Error" in line or "Exception" in line]
        found = f"a cluster that cannot run tasks ({words[-1].strip() if words else error})"
        raise InputError(master, found, "Python and Spark as here, on every host") from None
    finally:
        mark.unlink()
    if troubles:
        host, trouble = min(troubles)
        if host == _OURS:
            raise RuntimeError(trouble)
        allowed = "murmur at the same path, and run folders on storage that all hosts share"
        raise InputError(f"{master}, host {host}", trouble, allowed)


def _python_path() -> str:
    before = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join([str(_PACKAGE_ROOT), *([before] if before else [])])


@contextmanager
def _quiet_start() -> Iterator[None]:
    """Give a Java machine started in the block a file as standard error; show the file if that fails.

    Before it can be told how much to log, it prints half a dozen lines that mean nothing to a reader. What
    goes wrong later reaches Python as an exception.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 2)
        try:
            yield
        except BaseException:
            said.seek(0)
            os.write(kept, said.read())
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def _default_driver_memory() -> str:
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{max(1, min(8, memory_bytes // 4 // 2**30))}g"
