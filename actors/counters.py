"""What a live node counts: the driver asks for it, to know whether anything still moves."""

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """Of one incarnation."""

    control_sent: int = 0
    control_received: int = 0
    sent: int = 0
    received: int = 0
    delivered: int = 0
    published: int = 0
    malformed: int = 0
    due: int = 0
    late: int = 0
    lag_us_max: int = 0
