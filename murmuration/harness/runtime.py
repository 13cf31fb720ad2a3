"""What a cluster needs of a runtime, virtual or live; `murmuration.harness.runtimes` has both."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from murmur_pubsub.faults import Fault
from murmur_pubsub.journal import Phase
from murmur_pubsub.script import ScriptedCommand


class ClusterRuntime(Protocol):
    """A deployment that is under way in one of the runtimes."""

    @property
    def now_us(self) -> int:
        """Emulated time."""

    @property
    def writers(self) -> Mapping[str, int]:
        """How many incarnations each writer of the journal had."""

    @property
    def observed(self) -> Mapping[int, Fault]:
        """The faults that nobody ordered, by their steps."""

    def start(self) -> None:
        """Start all nodes."""

    def enter(self, phase: Phase) -> None:
        """Journal that the phase begins."""

    def issue(self, name: str, commands: Sequence[ScriptedCommand]) -> None:
        """Have the node carry out the commands now, in order; raises `RunError` if it is not running."""

    def undisturbed(self) -> AbstractContextManager[object]:
        """Until the block ends no fault takes effect, and none that nobody ordered is seen, but by this thread."""

    def carry_out(self, step: int, fault: Fault) -> Sequence[str]:
        """Let the fault take effect, as that step of the plan; the nodes that it started again."""

    def advance(self, stretch_us: int) -> None:
        """Let that much emulated time pass."""

    def settle(self) -> None:
        """Wait until all links are up and every command issued so far has settled."""

    def drain(self) -> None:
        """Wait until nothing moves."""

    def finish(self) -> None:
        """Stop all nodes, so that the journal is complete."""

    def close(self) -> None:
        """Free what the runtime holds; also in the middle of a run."""
