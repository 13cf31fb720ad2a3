"""What the field `value` of a journal row stands for: of some kinds it is a number with a name."""

from collections.abc import Iterator

from murmur_pubsub.client import CLIENT_MESSAGES
from murmur_pubsub.faults import FaultKind
from murmur_pubsub.journal import DropReason, Phase, RowKind
from murmur_pubsub.run_manifest import RunManifest


def meanings_of(manifest: RunManifest) -> Iterator[tuple[int, int, str]]:
    """Kind of row, value, and the value's name: of messages, reasons for drops, phases and faults."""
    messages = {kind.KIND: kind.__name__ for kind in CLIENT_MESSAGES}  # type: ignore[attr-defined]
    messages |= manifest.message_kinds
    for value, name in messages.items():
        yield RowKind.SEND.value, value, name
        yield RowKind.RECEIVE.value, value, name
    for kind, named in ((RowKind.DROP, DropReason), (RowKind.PHASE, Phase), (RowKind.FAULT, FaultKind)):
        for member in named:
            yield kind.value, member.value, member.name
