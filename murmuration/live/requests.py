"""What a page may ask of the hands on a run, as JSON: an order, another pace, or the end of it."""

import asyncio
from typing import Any

from murmur_pubsub.errors import InputError
from murmuration.runs.hands import Hands

_ALLOWED = "one of order, speed, paused and finish"


async def carry_out(hands: Hands, asked: Any) -> str:
    """Have it done, and say what came of it; raises `InputError` for what cannot be done."""
    if not isinstance(asked, dict) or len(asked) != 1:
        raise InputError("request", f"{asked!r:.60}", _ALLOWED)
    ((what, value),) = asked.items()
    match what:
        case "order" if isinstance(value, dict):
            return await asyncio.wrap_future(hands.order(value))
        case "speed" if type(value) in (int, float):
            hands.set_pace(speed=float(value))
        case "paused" if type(value) is bool:
            hands.set_pace(paused=value)
        case "finish" if value is True:
            hands.finish()
        case _:
            raise InputError("request", f"{asked!r:.60}", _ALLOWED)
    return ""
