"""The watch over a thread's inputs, where it is cancelled early or twice."""

import signal

import pytest

from murmur_virtual.input_watch import InputWatch


class Runtime:
    """What a watch interrupts."""

    overdue: str | None = None


@pytest.mark.parametrize("started", [False, True])
def test_a_watch_is_cancelled_though_an_interrupt_came_before_it_was_started(started: bool) -> None:
    before = signal.getsignal(signal.SIGVTALRM)
    watch = InputWatch(Runtime(), frozenset())
    if started:
        watch.start()
    watch.cancel()
    watch.cancel()
    assert not watch.is_alive()
    assert signal.getsignal(signal.SIGVTALRM) == before
