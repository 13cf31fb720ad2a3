"""A machine around another one: what it watches, records or changes on the way, it says in `handle`."""

from collections.abc import Sequence

from murmur_pubsub.machine import Effect, Input, Machine


class MachineAround(Machine):
    """Says of itself what the machine inside says of itself."""

    def __init__(self, inner: Machine) -> None:
        self.inner = inner
        self.message_types: Sequence[type] = inner.message_types
        self.orders = inner.orders

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        """What the machine inside does."""
        return self.inner.handle(input, now_us)

    @property
    def waiting(self) -> bool:
        """See `murmur_pubsub.machine.Machine`."""
        return self.inner.waiting

    @property
    def settling(self) -> bool:
        """See `murmur_pubsub.machine.Machine`."""
        return self.inner.settling

    @property
    def settled_until_us(self) -> int:
        """See `murmur_pubsub.machine.Machine`."""
        return self.inner.settled_until_us

    @property
    def hears_resets(self) -> bool:
        """See `murmur_pubsub.machine.Machine`."""
        return self.inner.hears_resets

    def check_invariants(self) -> None:
        """See `murmur_pubsub.machine.Machine`."""
        self.inner.check_invariants()
