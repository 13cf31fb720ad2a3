"""The operating system's processes behind actors: signals, and whether they took effect.

A process is known by its number and the host it is on, as its actor told; a signal for one on another host is
sent by a Ray task there.
"""

import contextlib
import os
import signal
import socket
import time
from typing import Any, Literal, NamedTuple

import psutil

from murmur_pubsub.errors import RunError

ProcessState = Literal["running", "stopped", "gone"]
_POLL_S = 0.005


class ProcessGoneError(RunError):
    """A process is gone, and nobody here has ended it."""


class ProcessPlace(NamedTuple):
    """Where an actor's process is: the host's name, Ray's identifier of the host, the number of the process."""

    hostname: str
    host: str
    pid: int


def is_here(place: ProcessPlace) -> bool:
    """Is (or was) the process on this host?"""
    return place.hostname == socket.gethostname()


def own_place(host: str) -> ProcessPlace:
    """The place of the calling process."""
    return ProcessPlace(socket.gethostname(), host, os.getpid())


def send_signal(place: ProcessPlace, number: signal.Signals) -> None:
    """Send the signal; raises `ProcessGoneError` if the process is gone already, alone or with its host."""
    _there(place, _send, place.pid, int(number))


def check_there(place: ProcessPlace) -> None:
    """Raises `ProcessGoneError` if the process is gone."""
    _there(place, _check_there, place.pid)


def await_state(place: ProcessPlace, wanted: ProcessState, timeout_s: float = 10.0) -> None:
    """Return when the process is in that state; raises `RunError` if it is not within the time, or is gone
    (`ProcessGoneError`)."""
    try:
        found = _there(place, _await, place.pid, wanted, timeout_s)
    except ProcessGoneError:
        found = "gone"  # with its host
    if found == "gone" != wanted:
        raise _gone(place.pid)
    if found != wanted:
        raise RunError(f"process {place.pid} on {place.hostname} is {found} after {timeout_s:.0f} s, not {wanted}")


def state_of(pid: int) -> ProcessState:
    """What a process of this host is doing."""
    try:
        status = psutil.Process(pid).status()
    except psutil.NoSuchProcess:
        return "gone"
    if status in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
        return "gone"
    return "stopped" if status in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP) else "running"


def _send(pid: int, number: int) -> None:
    _check_there(pid)
    with contextlib.suppress(ProcessLookupError):  # it was gone just now; whoever awaits what the signal does sees it
        os.kill(pid, number)


def _check_there(pid: int) -> None:
    if state_of(pid) == "gone":  # a dead process takes signals until its parent has asked what became of it
        raise _gone(pid)


def _gone(pid: int) -> ProcessGoneError:
    return ProcessGoneError(f"process {pid} is gone already")


def _await(pid: int, wanted: ProcessState, timeout_s: float) -> ProcessState:
    deadline = time.monotonic() + timeout_s
    while (found := state_of(pid)) not in (wanted, "gone") and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    return found


def _there(place: ProcessPlace, function: Any, *arguments: Any) -> Any:
    if is_here(place):
        return function(*arguments)
    from ray.exceptions import RayError

    try:
        return done_on(place.host, function, *arguments)
    except RayError:
        if place.host in living_hosts():
            raise
        raise _gone(place.pid) from None


def done_on(host: str, function: Any, *arguments: Any) -> Any:
    """What the function returns on that host, of which this is Ray's identifier; raises `RayError`."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    strategy = NodeAffinitySchedulingStrategy(node_id=host, soft=False)
    return ray.get(ray.remote(num_cpus=0)(function).options(scheduling_strategy=strategy).remote(*arguments))


def has_died(cause: BaseException | None) -> bool:
    """Is it Ray's word that the process of an actor has died, and not of an error of ours as it was made?"""
    from ray.exceptions import ActorDiedError

    return isinstance(cause, ActorDiedError) and not cause.actor_init_failed


def await_answer(host: str) -> None:
    """Return when the host has answered, or Ray knows that it is gone."""
    from ray.exceptions import RayError

    with contextlib.suppress(RayError):
        done_on(host, _answer)


def _answer() -> None: ...


def living_hosts() -> dict[str, tuple[str, str]]:
    """Ray's identifiers of the hosts that live, with their names and addresses."""
    import ray

    return {node["NodeID"]: (node["NodeName"], node["NodeManagerAddress"]) for node in ray.nodes() if node["Alive"]}
