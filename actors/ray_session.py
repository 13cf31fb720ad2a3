"""Ray for one run: a private local Ray, or the cluster at an address; enough memory for the actors or a clear no."""

import contextlib
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator

import psutil

from pubsub.errors import InputError

ACTOR_BYTES = 75 * 1024 * 1024
"""Memory an idle actor holds of its own (measured: benchmarks/actors.py), with a little to work in."""
RAY_BYTES = 900 * 1024 * 1024
"""What Ray itself holds besides actors."""
_OBJECT_STORE_BYTES = 80 * 1024 * 1024


def check_memory(actors: int, available_bytes: int | None = None) -> None:
    """Raise `InputError` if so many actors do not fit into this machine's free memory."""
    available_bytes = psutil.virtual_memory().available if available_bytes is None else available_bytes
    fitting = max(0, (available_bytes - RAY_BYTES) // ACTOR_BYTES)
    if actors > fitting:
        raise InputError(
            "memory",
            f"{actors} actors, which need {(RAY_BYTES + actors * ACTOR_BYTES) / 1e9:.1f} GB,"
            f" and {available_bytes / 1e9:.1f} GB free",
            f"at most {fitting} actors here; or `--runtime virtual`, which needs none",
        )


@contextlib.contextmanager
def ray_session(actors: int, address: str | None = None) -> Iterator[None]:
    """Ray for so many actors and the length of the block; what was started here is stopped at its end.

    `address` None starts a Ray of this run's own, with a folder of its own; otherwise the cluster is joined.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray

    folder = None
    try:
        if address is None:
            # Unix socket paths are at most 107 bytes long, so the folder's name must be short.
            folder = tempfile.mkdtemp(prefix="murmur-", dir="/tmp")
            ray.init(
                num_cpus=os.cpu_count(),
                include_dashboard=False,
                object_store_memory=_OBJECT_STORE_BYTES,
                logging_level=logging.ERROR,
                log_to_driver=False,
                _temp_dir=folder,
                # Actors are started in waves by us; without this Ray warns, on stdout, of every wave.
                _system_config={"worker_maximum_startup_concurrency": actors},
            )
        else:
            ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
        yield
    finally:
        ray.shutdown()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
