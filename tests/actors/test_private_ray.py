"""A Ray that murmur starts, of one raylet or two, seen by a process that was told nothing: it is refused."""

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from actors.ray_session import ray_session

pytest.importorskip("grpc", reason="the stranger calls Ray's services by name, for which it needs ray[default]")
STRANGER = Path(__file__).with_name("ray_stranger.py")
KINDS = {"gcs_server", "raylet", "agent", "worker", "metrics"}
LOOPBACK = ("127.0.0.1", "::1", "::ffff:127.0.0.1")
REFUSED = re.compile(
    r"UNAUTHENTICATED|UNIMPLEMENTED|UNAVAILABLE: .*HTTP/2|BadStatusLine|RemoteDisconnected|401: |AuthenticationError"
    r"|\w+: .*Failed to connect"
)
PUBLIC = re.compile(r"answered 200: (b'# HELP |b'success')")
"""Ray's own metrics, and that its raylet is well: all that it shows to anybody."""
WHAT_MATTERS = {
    *(("gcs_server", what) for what in ("read", "write", "list", "delete", "list nodes", "list actors")),
    *(("gcs_server", what) for what in ("register an actor", "kill an actor", "submit a job")),
    *(("worker", what) for what in ("look", "run a task", "kill", "exit")),
    *(("raylet", what) for what in ("look", "lease a worker", "shut down", "push an object", "pull an object")),
}


class Seen(NamedTuple):
    """A running Ray: the token that its processes have, its processes, and where they listen."""

    token: str
    processes: list[psutil.Process]
    ports: dict[int, tuple[str, str]]  # port: address, kind of process


@pytest.fixture(scope="module", params=[1, pytest.param(2, marks=pytest.mark.slow)], ids=["one raylet", "two raylets"])
def seen(request: pytest.FixtureRequest) -> Iterator[Seen]:
    with ray_session(actors=2, hosts=request.param) as session:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        for host in session.hosts:
            strategy = NodeAffinitySchedulingStrategy(node_id=host, soft=False)
            assert ray.get(ray.remote(num_cpus=0)(lambda: 1).options(scheduling_strategy=strategy).remote()) == 1
        deadline = time.monotonic() + 60
        seen = _look()
        while {kind for _, kind in seen.ports.values()} < KINDS and time.monotonic() < deadline:
            time.sleep(0.5)  # Ray's agents take their time on a busy machine
            seen = _look()
        yield seen


def _look() -> Seen:
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    ports = {
        connection.laddr.port: (connection.laddr.ip, _kind(process))
        for process in processes
        for connection in _connections(process)
        if connection.status == psutil.CONN_LISTEN
    }
    return Seen(os.environ["RAY_AUTH_TOKEN"], processes, ports)


def _connections(process: psutil.Process) -> list[Any]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return list(process.net_connections("tcp"))
    return []


def _kind(process: psutil.Process) -> str:
    name = process.name()
    if name in ("gcs_server", "raylet"):
        return str(name)
    if "Agent" in name:
        return "agent"
    return "worker" if name.startswith("ray::") or process.pid == os.getpid() else "metrics"


def _command_line(process: psutil.Process) -> list[str]:
    """The words that started a process. None are left of one that has ended since, as idle workers of Ray do."""
    with contextlib.suppress(psutil.NoSuchProcess):  # ZombieProcess is one
        return list(process.cmdline())
    return []


@pytest.mark.ray
def test_everything_listens_on_loopback_only(seen: Seen) -> None:
    assert {kind for _, kind in seen.ports.values()} == KINDS
    assert {address for address, _ in seen.ports.values()} <= set(LOOPBACK)


@pytest.mark.ray
def test_the_token_is_in_no_command_line(seen: Seen) -> None:
    commands = [command for process in seen.processes if (command := _command_line(process))]
    assert len(commands) >= 5, "Ray's store, raylet, agents and workers, and this process"
    assert not [command for command in commands if any(seen.token in word for word in command)]


@pytest.mark.ray
def test_its_actors_have_the_right_of_way_that_this_process_has(seen: Seen) -> None:
    workers = {}
    for process in seen.processes[1:]:
        with contextlib.suppress(psutil.NoSuchProcess):  # idle workers end
            if process.name().startswith("ray::"):
                workers[process.name()] = process.nice()
    assert workers
    assert set(workers.values()) == {psutil.Process().nice()}


@pytest.mark.ray
@pytest.mark.slow
def test_a_stranger_cannot_read_write_list_or_connect(seen: Seen, tmp_path: Path) -> None:
    (gcs,) = (port for port, (_, kind) in seen.ports.items() if kind == "gcs_server")
    done = subprocess.run(
        [sys.executable, STRANGER, str(gcs), *(f"{port}={kind}" for port, (_, kind) in seen.ports.items())],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    said: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    for each in said:
        print(f"{each['name']}, {each['what']}: {each['answer']}")
    assert done.returncode == 0, done.stderr
    assert not [each for each in said if not (REFUSED.match(each["answer"]) or PUBLIC.match(each["answer"]))]
    refused = {(each["name"], each["what"]) for each in said if each["answer"].startswith("UNAUTHENTICATED")}
    assert refused >= WHAT_MATTERS
    by_ray = {(each["name"], each["what"]): each["answer"] for each in said if each["name"] in ("ray", "store")}
    assert len(by_ray) == 5
    assert all(REFUSED.match(answer) for answer in by_ray.values())
    assert "InvalidAuthToken" in done.stderr, "that is why it could not connect"
    assert {each["name"] for each in said if PUBLIC.match(each["answer"])} <= {"metrics", "agent"}
