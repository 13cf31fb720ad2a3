"""A Spark cluster on this host, started from the pyspark package as a user would: a master and workers."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pyspark

from tests.ports import free_port

_SPARK = Path(pyspark.__file__).parent
_START_TIMEOUT_S = 120.0


class SparkCluster:
    """One master and workers of one core each; `url` is what `--master` takes."""

    def __init__(self, workers: int = 2, memory: str = "1g") -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="msp-", dir="/tmp"))
        self._port = free_port()
        self.url = f"spark://127.0.0.1:{self._port}"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        try:
            master = ["master.Master", "--host", "127.0.0.1", "--port", str(self._port), "--webui-port", "0"]
            self._start("master", master, "New state: ALIVE")
            for number in range(workers):
                options = ["--cores", "1", "--memory", memory, "--webui-port", "0", "--work-dir", str(self._folder)]
                worker = ["worker.Worker", "--host", "127.0.0.1", *options, self.url]
                self._start(f"worker{number}", worker, "registered with master")
        except BaseException:
            self.stop()
            raise

    def _start(self, name: str, arguments: list[str], ready: str) -> None:
        log = self._folder / name
        command = [str(_SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{arguments[0]}", *arguments[1:]]
        environment = {**os.environ, "SPARK_HOME": str(_SPARK), "PYSPARK_PYTHON": sys.executable}
        environment["SPARK_DAEMON_MEMORY"] = "256m"
        with log.open("w") as said:
            process = subprocess.Popen(command, env=environment, stdout=said, stderr=said)
        self.processes[name] = process
        deadline = time.monotonic() + _START_TIMEOUT_S
        while ready not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)

    def stop(self) -> None:
        """End workers and master, with what they started."""
        for process in reversed(self.processes.values()):
            children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
            process.terminate()
            process.wait(timeout=30)
            for child in children:
                if child.is_running():
                    child.kill()
