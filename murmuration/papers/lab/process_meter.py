"""What a run takes of the process that it has to itself."""

import resource
import time


class ProcessMeter:
    """Time since it was made, and the most memory that this process has held."""

    def __init__(self) -> None:
        self._wall_s, self._cpu_s = time.perf_counter(), time.process_time()

    @property
    def wall_s(self) -> float:
        """Wall-clock seconds."""
        return time.perf_counter() - self._wall_s

    @property
    def cpu_s(self) -> float:
        """CPU seconds of this process."""
        return time.process_time() - self._cpu_s

    @property
    def memory_mb(self) -> float:
        """The most memory that the process has held, in MB."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
