"""What holds of a run at its end, asked by `benchmarks.broken_promises` in a process of its own."""

from murmuration.hunt.memory import kept_by
from murmuration.hunt.properties import Property, Sight

_LONG_US = 200_000_000
"""A schedule has published for less than 5 s then; its run ends after 300 s whatever it waits for."""


def _waits(sight: Sight) -> str | None:
    waiting = [name for name, machine in sight.machines.items() if machine.waiting]
    return f"{', '.join(waiting)} still wait" if waiting and sight.now_us > _LONG_US else None


RESTS_IN_THE_END = Property("comes to rest whatever stays broken", "always", _waits)
"""It does not hold of all right code: what is cut off for good, and is given up by nobody, is waited for."""

_MESSAGES = (("KnowledgeStream", "messages"), ("_Kept", "matched"))
"""Where brokers keep messages that somebody may still ask for."""


def _keeps(sight: Sight) -> str | None:
    for name, machine in sight.machines.items():
        kept = kept_by(machine)
        for place in _MESSAGES:
            if kept[place]:
                return f"{name} keeps {kept[place]} entries in {'.'.join(place)} long after the last fault"
    return None


KEEPS_NOTHING = Property("keeps no message that all have", "eventually", _keeps, over_faults=True)
