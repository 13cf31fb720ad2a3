"""A Spark session for the analysis of one machine's runs: local, quiet, started only where Java allows it.

Spark 4 needs Java 17 or later. A missing or older one shows in Spark as a long traceback, so it is looked for
first. Python workers of Spark import this package by name: its folder is put on their path, whatever the
working directory is and however the program was started (`python -m`, `spark-submit`, an installed command).
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from pubsub.errors import InputError

JAVA_VERSION_MIN = 17
_MEND_JAVA = (
    f"Java {JAVA_VERSION_MIN} or later (on Debian and Ubuntu: sudo apt-get install openjdk-17-jre-headless; "
    "elsewhere set JAVA_HOME to one)"
)
_JAVA = "-XX:+UseParallelGC"
_JAVA_SMALL = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
SMALL_JOURNAL_BYTES = 32 << 20
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
def spark_session(master: str | None = None, journal_bytes: int = 0) -> Iterator[SparkSession]:
    """The active session if there is one (left running), else a new one that ends with the block.

    `master`: a Spark master; None means all local cores, or what spark-submit was told. `journal_bytes` is the
    size of what will be read: for a small journal the session is tuned to start fast.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    session = start_session(master, small=journal_bytes < SMALL_JOURNAL_BYTES)
    try:
        yield session
    finally:
        session.stop()


def start_session(master: str | None = None, driver_memory: str | None = None, small: bool = False) -> SparkSession:
    """A new session; see `spark_session`. Raises `InputError` when Java is missing or too old.

    `driver_memory`: such as "4g"; None means a quarter of the machine's memory, from 1 to 8 GB. `small`: Java
    compiles each method once, quickly. That halves the processor time of a job of seconds, and doubles that of
    a job of minutes.
    """
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not submitted:
        check_java()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = (
        SparkSession.builder.appName("murmur analysis")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.shuffle.partitions", "2" if small else "32")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "50000")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.executorEnv.PYTHONPATH", _python_path())
    )
    if not submitted:
        builder = builder.config("spark.driver.memory", driver_memory or _default_driver_memory())
        builder = builder.config("spark.driver.extraJavaOptions", _JAVA_SMALL if small else _JAVA)
        builder = builder.master(master or "local[*]")
    elif master is not None:
        builder = builder.master(master)
    with _quiet_start():
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


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
