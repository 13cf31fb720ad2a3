"""Notices when a host of a cluster that is not the run's own goes away, and when it comes back.

The loss was not ordered, so its time is not known: between the last answer of all its nodes and Ray's word that the
host is dead. Both times are journaled, as with a fault of the plan. A host is the same one when name and address
are; Ray's identifier is new each time.
"""

import threading

from actors.live_fault_injector import LiveFaultInjector
from actors.processes import living_hosts
from actors.ray_session import RaySession
from murmur_pubsub.errors import RunError

_LOOK_EVERY_S = 0.5


class HostWatch(threading.Thread):
    """Looks at the cluster again and again, beside the driver's own work. `failure`: what ended the watch early."""

    def __init__(self, session: RaySession, fault_injector: LiveFaultInjector) -> None:
        super().__init__(name="hosts", daemon=True)
        self.failure: RunError | None = None
        self._known_as = session.known_as
        self._there: list[str | None] = list(session.hosts)
        self._fault_injector = fault_injector
        self._cancelled = threading.Event()

    def run(self) -> None:
        """See `threading.Thread`."""
        while not self._cancelled.wait(_LOOK_EVERY_S):
            try:
                self._look()
            except RunError as error:
                self.failure = error
                return
            except Exception as error:
                self.failure = RunError(f"the watch over the hosts: {error!r}")
                return

    def _look(self) -> None:
        living = living_hosts()
        for number, identifier in enumerate(self._there):
            if identifier is not None and identifier not in living:
                self._there[number] = None
                self._fault_injector.host_vanished(number)
            elif identifier is None:
                back = next((each for each, known_as in living.items() if known_as == self._known_as[number]), None)
                if back is not None:
                    self._there[number] = back
                    self._fault_injector.host_returned(number, back)

    def cancel(self) -> None:
        """Look no more; returns when what is in hand is over."""
        self._cancelled.set()
        if self.is_alive():
            self.join(timeout=30.0)
