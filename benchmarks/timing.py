"""How benchmarks time what they call once."""

import time
from collections.abc import Callable


def seconds(action: Callable[[], object]) -> float:
    """What the call takes by the wall clock."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began
