"""What a workload makes: which client attaches where, subscribes to what, and publishes what and when."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from murmur_pubsub.script import Change
from murmur_pubsub.values import Value
from workloads.overlay import Overlay

EventAttributes = dict[str, Value]

TimedPublication = tuple[int, int, Mapping[str, Value]]
"""(time_us from the start of publishing, publisher number, attributes)."""


@dataclass(frozen=True, slots=True)
class ClientPlan:
    """The part of one client node; a `murmur_pubsub.script.Script`.

    subscriptions: (subscriber number, filter text), issued before publishing starts. publishers: the numbers of those
    that publish from here. publications: in order of time; can be walked again and pickled. changes: in order of time.
    """

    name: str
    broker: str
    subscriptions: tuple[tuple[int, str], ...]
    publishers: tuple[int, ...]
    publications: Iterable[TimedPublication]
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Workload:
    """All clients. `description` says what was really generated, reached rates among it."""

    overlay: Overlay
    clients: tuple[ClientPlan, ...]
    description: Mapping[str, float | int | str]
    expected_publications: int
