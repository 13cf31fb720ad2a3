"""Interrupts a machine that does not come back from an input: one that loops for ever, or sleeps.

A thread of its own looks once a second at what the watched thread is doing, which costs that one nothing. Looks are
counted, not seconds: a process that was stopped for a while is not to blame for it.
"""

import contextlib
import ctypes
import signal
import sys
import threading
from types import CodeType, FrameType
from typing import Any, Protocol

from murmur_pubsub.protocol_error import frames_below

LOOK_EVERY_S = 1.0
LOOKS = 20
"""After this number of looks that find the machine in the same input, it is interrupted."""
_SIGNAL = signal.SIGVTALRM
"""Nobody sends it but the watch. SIGINT would not do: a shell has its background commands ignore it."""


class Interruptible(Protocol):
    """Who runs machines, and wants to know that one was interrupted."""

    overdue: str | None
    """After what time, in words; the watch writes it."""


class InputWatch(threading.Thread):
    """Watches the thread that it is made in, from `start` to `cancel`, which that thread calls. A machine is at work
    while the thread runs one of `codes`, and below it none of `aftermath`, which says what was wrong with the machine.
    It is interrupted by a `KeyboardInterrupt`. In the main thread a signal raises it, which ends a sleep too."""

    def __init__(
        self, runtime: Interruptible, codes: frozenset[CodeType], aftermath: frozenset[CodeType] = frozenset()
    ) -> None:
        super().__init__(name="inputs", daemon=True)
        self._runtime = runtime
        self._codes = codes
        self._aftermath = aftermath
        self._watched = threading.current_thread()
        self._cancelled = threading.Event()
        self._former: Any = None

    def start(self) -> None:
        """See `threading.Thread`. WebAssembly has no threads: there a page ends the worker that does not come back."""
        if sys.platform == "emscripten":
            return
        if self._watched is threading.main_thread():
            self._former = signal.signal(_SIGNAL, signal.default_int_handler)
        super().start()

    def run(self) -> None:
        """See `threading.Thread`."""
        seen: FrameType | None = None
        looks = 0
        while not self._cancelled.wait(LOOK_EVERY_S):
            innermost = sys._current_frames().get(self._watched.ident or 0)
            frames = [] if innermost is None else frames_below(innermost, self._codes)
            at = frames[0] if frames and self._aftermath.isdisjoint(frame.f_code for frame in frames) else None
            looks = looks + 1 if at is seen else 0
            seen = at
            if at is not None and looks >= LOOKS:
                looks = 0
                self._runtime.overdue = f"{LOOKS * LOOK_EVERY_S:g} s"
                self._interrupt()

    def cancel(self) -> None:
        """Look no more; returns when the last look is over, after which no interruption can come."""
        if self._cancelled.is_set():
            return
        self._cancelled.set()
        with contextlib.suppress(RuntimeError):  # an interrupt came before the thread was started
            self.join()
        if self._former is not None:
            signal.signal(_SIGNAL, self._former)

    def _interrupt(self) -> None:
        watched = self._watched.ident or 0
        if self._watched is threading.main_thread():
            signal.pthread_kill(watched, _SIGNAL)
        else:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(watched), ctypes.py_object(KeyboardInterrupt))
