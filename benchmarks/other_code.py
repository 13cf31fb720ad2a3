"""This tree's benchmarks over the code of another checkout of murmur, so that both are measured alike."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]


@contextmanager
def environment_of(checkout: Path) -> Iterator[dict[str, str]]:
    """The environment for a process that begins with `python -P -m benchmarks.NAME`."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "benchmarks").symlink_to(HERE / "benchmarks")
        yield with_path(Path(folder), checkout.resolve())


def with_path(*folders: Path) -> dict[str, str]:
    """The environment, with these before what is in `PYTHONPATH`."""
    path = [*map(str, folders), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
