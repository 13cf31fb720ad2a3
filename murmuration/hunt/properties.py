"""What has to hold of a run beside its verdict: always, sometimes, or in the end.

A property is asked when the run is looked at (`murmuration.hunt.coverage`). One that has to hold `always` is wrong if
it does not at any look. One that holds `sometimes` is a place: a hunt says whether it was ever reached. One that holds
`eventually` has to hold `within_us` after the last step of the fault plan, or at the end of a run that ends before;
where a fault is never undone it is not asked, unless it has to hold over faults that stay.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from murmur_pubsub.deployment import object_at
from murmur_pubsub.errors import InputError
from murmur_pubsub.machine import Machine, NodeName
from murmuration.hunt.memory import Place, kept_by

DEFAULT_WITHIN_US = 400_000_000
"""Later than a schedule's run ends, by its limit of draining."""
_RECORDS_MAX = 1_000
"""A log may be cut seldom: guaranteed delivery does so after 200 messages."""
_GROWN_MAX = 40
"""Entries beyond twice those of the beginning: a broker may take the place of another, and learn its filters."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What a property sees: the machines that run, how many records each node has in stable storage, the time, and what
    the faults do that are in force. Of each place how much any machine kept there when publishing began, and how much
    soon after: when the first event was delivered, or just before the first fault. Where nodes come for the first time
    later, that is asked again when what they want has settled."""

    machines: Mapping[NodeName, Machine]
    records: Mapping[NodeName, int]
    now_us: int
    faults: Sequence[str]
    kept_at_first: Mapping[Place, int]
    kept_soon: Mapping[Place, int]


class Asked(Protocol):
    """A question about a run; what it answers with is a sentence about what is wrong, or None."""

    def __call__(self, sight: Sight) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Property:
    """`wrong`: what contradicts the property, in words; None: it holds. Raises `InputError` for a mode that is none."""

    name: str
    mode: Literal["always", "sometimes", "eventually"]
    wrong: Asked
    within_us: int = DEFAULT_WITHIN_US
    over_faults: bool = False
    """Has it to hold in the end whatever stays broken, but for a node or a link that protocols wait for?"""

    def __post_init__(self) -> None:
        if self.mode not in ("always", "sometimes", "eventually"):
            raise InputError(f"property {self.name}", f"mode {self.mode!r}", "always, sometimes or eventually")


def property_at(path: str) -> Property:
    """The property at the dotted path; raises `InputError`."""
    found = object_at(path, "--property")
    if not isinstance(found, Property):
        raise InputError("--property", f"{path}, a {type(found).__name__}", "a murmuration.hunt.properties.Property")
    return found


def _waits(sight: Sight) -> str | None:
    for name, machine in sight.machines.items():
        if machine.waiting or machine.settling:
            what = "waits for something" if machine.waiting else "has subscriptions that have not settled"
            return f"{name} {what} long after the last fault"
    return None


def _keeps(sight: Sight) -> str | None:
    for name, count in sight.records.items():
        if count > _RECORDS_MAX:
            return f"{name} keeps {count:,} records in its stable storage long after the last fault"
    return None


def _grows(sight: Sight) -> str | None:
    for name, machine in sight.machines.items():
        for place, count in kept_by(machine).items():
            first, soon = sight.kept_at_first.get(place, 0), sight.kept_soon.get(place, 0)
            if count > max(2 * first + _GROWN_MAX, 2 * soon):  # some tables are made to pass the first event on
                words = f"{name} keeps {count:,} entries in {'.'.join(place)}"
                return f"{words} long after the last fault, and no node kept more than {first:,} at first"
    return None


RESTS = Property("comes to rest", "eventually", _waits, over_faults=True)
CUTS = Property("cuts its log", "eventually", _keeps, over_faults=True)
SHRINKS = Property("forgets what is over", "eventually", _grows, over_faults=True)
ALWAYS_ASKED = (RESTS, CUTS, SHRINKS)
"""Of every protocol. Invariants of machines are asked at every look as well (`Machine.check_invariants`), and what a
machine sends to nodes that cannot be ends the run at once (`murmur_pubsub.contract`)."""
