"""What the rows of a protocol's own measure of a broker, declared so that pictures show it and tables name it."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Measure:
    """A topic of `murmur_pubsub.machine.Record` rows."""

    topic: int
    words: str
    """What is measured, such as "soft links"."""
    counted: Literal["level", "sum", "rows"]
    """A level holds until the broker's next row of the topic; values of a sum add up; or the rows count, one each."""
