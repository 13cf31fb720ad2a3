"""Sessions of nodes: when each is up.

A session is a half-open interval [up, down) of integer seconds; a node's sessions are in order and do not touch. A
trace sees nodes through a window: what reaches beyond it is cut, and statistics must know that (see `statistics`).
"""

import heapq
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from murmur_pubsub.errors import InputError

ChurnSession = tuple[int, int]
DAY_S = 86_400


@dataclass(frozen=True)
class Availability:
    """The sessions of every node within the window [begin_s, end_s); a node may have none there."""

    sessions: Mapping[str, Sequence[ChurnSession]]
    begin_s: int
    end_s: int
    description: Mapping[str, int | str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.end_s <= self.begin_s:
            raise InputError("churn window", f"from {self.begin_s} s to {self.end_s} s", "an end after its begin")

    def window(self, begin_s: int, end_s: int) -> "Availability":
        """What is seen of it through a smaller window."""
        begin_s, end_s = max(begin_s, self.begin_s), min(end_s, self.end_s)
        cut = {
            name: tuple(
                (max(up_s, begin_s), min(down_s, end_s)) for up_s, down_s in held if up_s < end_s and down_s > begin_s
            )
            for name, held in self.sessions.items()
        }
        return Availability(cut, begin_s, end_s, self.description)

    @property
    def seen(self) -> "Availability":
        """Without the nodes that are never up."""
        return self.only([name for name, held in self.sessions.items() if held])

    def only(self, names: Sequence[str]) -> "Availability":
        """The same for these nodes."""
        return Availability({name: self.sessions[name] for name in names}, self.begin_s, self.end_s, self.description)

    def changes(self) -> Iterator[tuple[int, str, bool]]:
        """(time_s, node, is up from then on), in order of time; the window's begin and end are no changes."""

        def of(name: str, held: Sequence[ChurnSession]) -> Iterator[tuple[int, bool, str]]:
            for up_s, down_s in held:
                if up_s > self.begin_s:
                    yield up_s, True, name
                if down_s < self.end_s:
                    yield down_s, False, name

        streams = [of(name, held) for name, held in self.sessions.items()]
        return ((time_s, name, is_up) for time_s, is_up, name in heapq.merge(*streams))

    def up_at(self, time_s: int) -> list[str]:
        """The nodes that are up then."""
        return [name for name, held in self.sessions.items() if any(up <= time_s < down for up, down in held)]

    def population(self, times_s: Sequence[int]) -> np.ndarray:
        """How many nodes are up at each of these times."""
        ups = np.sort([up_s for held in self.sessions.values() for up_s, _ in held])
        downs = np.sort([down_s for held in self.sessions.values() for _, down_s in held])
        return np.searchsorted(ups, times_s, "right") - np.searchsorted(downs, times_s, "right")


def select(trace: Availability, count: int, rule: str, seed: int) -> Availability:
    """`count` nodes of the trace. `rule`: "random"; "active", those with the most sessions; "present", those up for the
    longest. Raises `InputError` if there are fewer."""
    names = list(trace.sessions)
    if not 1 <= count <= len(names):
        raise InputError("churn nodes", str(count), f"1 to {len(names)}, the nodes of the trace")
    if rule == "random":
        chosen = random.Random(f"{seed}/churn/selection").sample(names, count)
    elif rule == "active":
        chosen = sorted(names, key=lambda name: (-len(trace.sessions[name]), name))[:count]
    elif rule == "present":
        up_s = {name: sum(down - up for up, down in held) for name, held in trace.sessions.items()}
        chosen = sorted(names, key=lambda name: (-up_s[name], name))[:count]
    else:
        raise InputError("churn select", repr(rule), "random, active or present")
    return trace.only(chosen)
