"""Ray for one run: a private local Ray, or the cluster at an address."""

import atexit
import contextlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

from actors.joining import Host
from actors.private_ray import private_ray
from actors.reaper import processes_of
from murmur_pubsub.errors import InputError, RunError

_HEAD = ("gcs_server", "raylet")
_ROOT = Path(__file__).resolve().parents[1]
_OBJECT_STORE_BYTES = 80 * 1024 * 1024
_KILLED_S = 10.0
"""So long a process that was killed may take to be gone."""


def words_of(error: Exception) -> str:
    """How a task or actor failed, in one line."""
    cause = getattr(error, "cause", None) or error
    lines = str(cause).strip().splitlines()
    return f"{type(cause).__name__}: {lines[-1] if lines else 'no more is known'}"


class RaySession:
    """Ray while it runs. `hosts`: Ray's identifiers of the hosts, the driver's own first; `lose_host(number)`
    takes one away; `head` are the processes without which nothing works, as far as they were started here. `known_as`:
    names and addresses of hosts that are not the run's own, by which one that was away is known again."""

    def __init__(
        self,
        hosts: Sequence[str],
        head: Sequence[psutil.Process] = (),
        lose: Callable[[int], None] | None = None,
        known_as: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.hosts = list(hosts)
        self.known_as = list(known_as)
        self.lose_host = lose
        self._head = list(head)

    def check(self) -> None:
        """Raise `RunError` if Ray's head is gone: Ray itself would end this process a minute later, without a word."""
        for process in self._head:
            if not _lives(process):
                raise RunError(f"a process of Ray's head ({process.pid}) is gone")

    @property
    def memory_lost(self) -> bool:
        """Is the process gone that knows the whole cluster?"""
        return bool(self._head) and not _lives(self._head[0])


def _lives(process: psutil.Process) -> bool:
    return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)


@contextlib.contextmanager
def ray_session(
    actors: int, address: str | None = None, hosts: int = 1, joined: Sequence[Host] = ()
) -> Iterator[RaySession]:
    """Ray for this number of actors, for the length of the block; what was started here is stopped at its end.

    `address` None starts a Ray of this run's own, with a folder of its own, which no other program can use
    (`private_ray`); otherwise the cluster is joined, of whose hosts those `joined` are used (none: the one this process
    is on). `hosts` above one starts this number of raylets here, each of which stands for a host that can be lost.
    Raises `InputError` in a program that is in a Ray already, of which there is one in a process at a time.
    """
    import ray

    if ray.is_initialized():
        allowed = "none, for murmur begins or joins one itself (ray.shutdown() first, or a process of its own)"
        raise InputError("Ray", "one that this program is in already", allowed)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if address is None:
        with private_ray(), _own_ray(actors, hosts) as session:
            yield session
        return
    try:
        _begin_ray(address=address)
        identifiers = [each.identifier for each in joined] or [ray.get_runtime_context().get_node_id()]
        yield RaySession(identifiers, known_as=[(each.name, each.address) for each in joined])
    finally:
        ray.shutdown()


def _begin_ray(**options: Any) -> None:
    """Begin Ray in this process. Ray takes SIGTERM for itself, and ends the process at once: a handler that was there
    before gets it back. Raises `RunError` if it does not begin, as where the computer is too busy."""
    import ray

    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(logging_level=logging.ERROR, log_to_driver=False, **options)
    except ConnectionError:
        raise  # of a cluster; whoever joins one says what to do
    except Exception as error:
        raise RunError(f"Ray did not start: {words_of(error)}") from error
    finally:
        if callable(before) and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _own_ray(actors: int, hosts: int) -> Iterator[RaySession]:
    import ray

    cluster: Any = None
    session: RaySession | None = None
    # Unix socket paths are at most 107 bytes long, so the folder's name must be short.
    folder = tempfile.mkdtemp(prefix="murmur-", dir="/tmp")
    reaper = subprocess.Popen(
        [sys.executable, "-m", "actors.reaper", str(os.getpid()), folder],
        stdin=subprocess.PIPE, start_new_session=True, cwd=_ROOT,
    )  # fmt: skip
    # Actors are started in waves by us; without the first Ray warns, on stdout, of every wave. Without the second they
    # have niceness 15, and whatever else the computer does holds them up.
    config = {"worker_maximum_startup_concurrency": actors, "worker_niceness": 0}
    try:
        if hosts == 1:
            _begin_ray(
                address="local",
                num_cpus=os.cpu_count(),
                include_dashboard=False,
                object_store_memory=_OBJECT_STORE_BYTES,
                _temp_dir=folder,
                _system_config=config,
            )
            session = RaySession([ray.get_runtime_context().get_node_id()], _head_processes(folder))
        else:
            started = cluster = _start_raylets(hosts, folder, config)
            _begin_ray(address=cluster.address)
            raylets = [cluster.head_node, *sorted(cluster.worker_nodes, key=lambda raylet: str(raylet.node_id))]
            identifiers = [raylet.node_id for raylet in raylets]
            head = _head_processes(folder)[:1]
            session = RaySession(identifiers, head, lambda number: _lose(started, raylets[number]))
        yield session
    finally:
        lost = session is not None and session.memory_lost
        if lost:
            _give_up(folder)
        else:
            ray.shutdown()
            if cluster is not None:
                cluster.shutdown()
            if session is None:  # Ray knows nothing of processes whose start was broken off
                _kill_all(folder)
        assert reaper.stdin is not None
        if not lost:  # otherwise it looks for what is left
            reaper.stdin.write(b"done\n")
        reaper.stdin.close()
        reaper.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _head_processes(folder: str) -> list[psutil.Process]:
    """The processes of Ray that this one has started and cannot do without, the cluster's memory first."""
    own = processes_of(os.getpid(), folder)
    return [process for name in _HEAD for process in own if process.name().startswith(name)]


def _give_up(folder: str) -> None:
    """Without its head Ray cannot be shut down: its processes are killed, and its threads would crash the end of this
    one."""
    import ray

    _kill_all(folder)
    atexit.unregister(ray.shutdown)
    atexit.register(_leave)


def _kill_all(folder: str) -> None:
    """Kill this process's Ray in that folder, and see it gone."""
    processes = processes_of(os.getpid(), folder)
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, timeout=_KILLED_S)


def _leave() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


def _start_raylets(hosts: int, folder: str, config: dict[str, Any]) -> Any:
    from ray.cluster_utils import Cluster

    options = {"num_cpus": os.cpu_count(), "object_store_memory": _OBJECT_STORE_BYTES, "include_dashboard": False}
    with _address_file_in(folder):
        cluster = Cluster(
            initialize_head=True,
            head_node_args={**options, "temp_dir": folder, "_system_config": config},
            shutdown_at_exit=True,  # so that the kernel ends them with this process, however it ends
        )
    for _ in range(hosts - 1):
        cluster.add_node(num_cpus=os.cpu_count(), object_store_memory=_OBJECT_STORE_BYTES)
    cluster.wait_for_nodes()
    return cluster


@contextlib.contextmanager
def _address_file_in(folder: str) -> Iterator[None]:
    """Ray's test cluster writes its address where `ray.init()` of any other program looks for one, and fails if that
    folder does not exist yet: let it write into ours."""
    before = os.environ.get("RAY_TMPDIR")
    os.environ["RAY_TMPDIR"] = folder
    (Path(folder) / "ray").mkdir()
    try:
        yield
    finally:
        if before is None:
            del os.environ["RAY_TMPDIR"]
        else:
            os.environ["RAY_TMPDIR"] = before


def _lose(cluster: Any, raylet: Any) -> None:
    """Take the host away as a power cut would: its raylet and all its workers at once."""
    process = psutil.Process(raylet.all_processes["raylet"][0].process.pid)
    for each in [*process.children(recursive=True), process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            each.kill()
    cluster.remove_node(raylet, allow_graceful=False)
