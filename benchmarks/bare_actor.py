"""The Ray actor whose start-up a broker's is compared with. Its process imports this module, and nothing else of ours:
Ray finds a class by its module."""

import importlib
import time
from collections.abc import Sequence


class BareActor:
    """Tells what its process has cost."""

    async def cpu_s(self) -> float:
        """Seconds of CPU that it has used so far."""
        return time.process_time()

    async def import_modules(self, names: Sequence[str]) -> float:
        """Seconds of CPU that it takes to import them."""
        before = time.process_time()
        for name in names:
            importlib.import_module(name)
        return time.process_time() - before
