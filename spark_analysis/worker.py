"""What is special about a process of Python that Spark starts to run our code.

Spark has such a process search all its objects for cycles after every task, also those of numpy, pandas and pyarrow,
which stay for ever: 27 ms a task. What is there at the first task is set aside from that, which leaves 1 ms.
"""

import gc
from functools import cache

from pyspark import TaskContext


def settle() -> None:
    """Call this at the beginning of what runs in Spark's processes; in the driver it does nothing."""
    if TaskContext.get() is not None:
        _set_aside()


@cache
def _set_aside() -> None:
    gc.collect()
    gc.freeze()
