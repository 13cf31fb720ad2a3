"""What a number in a dataclass of options counts.

Inside the product a time is an integer of one unit, which its field's annotation names. Files say "30 ms": what reads
them converts the text by the annotation, and the key of such a field is its name without the unit (`interval_us` is
written `interval`).
"""

from enum import Enum
from typing import Annotated, TypeAlias


class Unit(Enum):
    """Units of time; the value is how many microseconds one is."""

    MICROSECONDS = 1
    MILLISECONDS = 1_000


Microseconds: TypeAlias = Annotated[int, Unit.MICROSECONDS]
Milliseconds: TypeAlias = Annotated[int, Unit.MILLISECONDS]
