"""The benchmark of what the checks of machines cost takes them out, and puts them back."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.checks import without_checks
from murmur_pubsub.deployment import NodeSpec
from murmur_pubsub.journal import JournalWriter
from murmur_pubsub.machine import Effect, Input, Machine, SetTimer
from murmur_pubsub.protocol_error import ProtocolError
from murmur_virtual.virtual_runtime import VirtualRuntime


class Loose(Machine):
    """Hands back what looks like effects."""

    def __init__(self, effects: object) -> None:
        self.effects = effects

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        return self.effects  # type: ignore[return-value]


@pytest.mark.parametrize("effects", [{}, [SetTimer(("a",), True)]], ids=["no list", "no delay"])
def test_what_a_check_refuses_is_taken_without_it_and_refused_again_after_that(effects: object, tmp_path: Path) -> None:
    runtime = VirtualRuntime(1, JournalWriter(tmp_path, "run", 1), {"b0": 0})
    with without_checks():
        runtime.add_node(NodeSpec("b0", "broker", ""), Loose(effects))
    with pytest.raises(ProtocolError, match="handed back"):
        runtime.nodes["b0"].start(0)
