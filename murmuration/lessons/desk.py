"""What the page's worker asks of Python: the name of a call and what is given, as JSON, and so the answer."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from murmuration.lessons.witnesses import witness


def _witness(routing: str, reliability: str) -> dict[str, Any]:
    return witness(routing, reliability)._asdict()


_CALLS: Mapping[str, Callable[..., Any]] = {"witness": _witness}


def answer(call: str, given: str) -> str:
    """Carry out a call."""
    return json.dumps(_CALLS[call](**json.loads(given)))
