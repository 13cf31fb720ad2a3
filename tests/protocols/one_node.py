"""What one node sends, held in the hand."""

from collections.abc import Sequence
from typing import Any

from murmur_pubsub.machine import Effect, Send


def sent(effects: Sequence[Effect], *kinds: type) -> list[tuple[str, Any]]:
    """The messages (of these classes), and to whom they go."""
    every = [(each.to, each.message) for each in effects if isinstance(each, Send)]
    return [(to, message) for to, message in every if not kinds or isinstance(message, kinds)]
