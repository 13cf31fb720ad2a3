"""A process that died is gone from that moment on, though its parent has not asked yet what became of it."""

import signal
import socket
import subprocess
from collections.abc import Iterator

import pytest

from actors.processes import ProcessGoneError, ProcessPlace, await_state, check_there, send_signal


@pytest.fixture
def dead() -> Iterator[ProcessPlace]:
    child = subprocess.Popen(["sleep", "60"])
    place = ProcessPlace(socket.gethostname(), "", child.pid)
    check_there(place)
    send_signal(place, signal.SIGKILL)
    await_state(place, "gone")
    yield place
    assert child.wait() == -signal.SIGKILL


def test_it_takes_no_signal(dead: ProcessPlace) -> None:
    for number in (signal.SIGCONT, signal.SIGSTOP, signal.SIGKILL):
        with pytest.raises(ProcessGoneError):
            send_signal(dead, number)
    with pytest.raises(ProcessGoneError):
        check_there(dead)


@pytest.mark.parametrize("wanted", ["running", "stopped"])
def test_nobody_waits_for_what_it_never_will_be(dead: ProcessPlace, wanted: str) -> None:
    with pytest.raises(ProcessGoneError):
        await_state(dead, wanted)  # type: ignore[arg-type]
