"""A plugin of pytest that ends the tests at the first that uses far more CPU time than a quick test does.

A limit of wall time is no judge on a busy computer. What it raises inside a search of hypothesis is also taken for one
more outcome of the test, and is reported as a test that is not steady.
"""

import os
import signal
from collections.abc import Iterator

import pytest

SECONDS_MAX = 20
"""Of CPU time, for one test; a quick test takes at most three."""
_OUT = os.dup(1)
"""What a test writes is kept back; this is not."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """The whole of a test, its fixtures included."""

    def stop(*_: object) -> None:
        os.write(_OUT, f"\nFAILED {item.nodeid} - more than {SECONDS_MAX} s of CPU time\n".encode())
        os._exit(1)  # nothing that the test runs can take this for an outcome of its own

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS_MAX)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
