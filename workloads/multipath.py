"""The workload of the multipath paper: one of its datasets, published at a steady rate, one client a broker.

A broker's client stands for all its subscribers and publishers; with `last_mile: broker` it is the broker itself, as in
the paper. Subscriber numbers are unique for each subscription, publisher numbers are those of the brokers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from murmur_pubsub.errors import InputError
from murmur_pubsub.event import EVENT_BYTES_MAX
from workloads.limits import DRAWN_EVENTS_MAX, at_least_one, at_most, positive_rate
from workloads.multipath_datasets import PUBLISHED, Dataset, covering_dataset, social_dataset, zipf_dataset
from workloads.overlay import Overlay
from workloads.plan import ClientPlan, TimedPublication, Workload


@dataclass(frozen=True, slots=True)
class MultipathOptions:
    """The datasets of the multipath paper, one client a broker."""

    dataset: str = "DT1"
    """`DT1` to `DT5`, `DT-C` or `DT-FB`."""
    publications: int = 36_000
    """Events of all publishers together."""
    rate_per_s: float = 60.0
    """Publications a second, all publishers together."""
    payload_bytes: int = 1_000
    """Bytes that an event carries besides what filters look at."""
    path: str | None = None
    """For `DT-FB`: a recorded friendship graph (none: generated)."""
    wall: str | None = None
    """For `DT-FB`: recorded wall posts (none: generated)."""

    def __post_init__(self) -> None:
        if self.dataset not in PUBLISHED:
            raise InputError("workload.dataset", repr(self.dataset), ", ".join(PUBLISHED))
        at_least_one(self, "publications", "payload_bytes")
        at_most(DRAWN_EVENTS_MAX, "publications", publications=self.publications)
        at_most(EVENT_BYTES_MAX, "bytes", payload_bytes=self.payload_bytes)
        positive_rate(self.rate_per_s)


@dataclass(frozen=True, slots=True)
class DatasetPublications:
    """What is published at one broker: (number of the publication in the run, its content's number) each."""

    dataset: Dataset
    publisher: int
    numbered: tuple[tuple[int, int], ...]
    rate_per_s: float
    payload_bytes: int

    def __iter__(self) -> Iterator[TimedPublication]:
        payload = "p" * self.payload_bytes
        for number, content in self.numbered:
            attributes = {**self.dataset.contents[content][1], "payload": payload}
            yield int(number * 1e6 / self.rate_per_s), self.publisher, attributes


def build_multipath(overlay: Overlay, options: MultipathOptions, seed: int) -> Workload:
    """The workload over the overlay."""
    dataset = _dataset(overlay, options, seed)
    drawn = dataset.draw(options.publications, seed)
    numbers = {broker: number for number, broker in enumerate(overlay.brokers)}
    held: list[list[tuple[int, str]]] = [[] for _ in overlay.brokers]
    for subscriber, (broker, text) in enumerate(dataset.subscriptions):
        held[numbers[broker]].append((subscriber, text))
    published: list[list[tuple[int, int]]] = [[] for _ in overlay.brokers]
    for number, content in enumerate(drawn):
        published[numbers[dataset.contents[content][0]]].append((number, content))
    clients = tuple(
        ClientPlan(
            f"c{number}",
            broker,
            tuple(held[number]),
            (number,) if published[number] else (),
            DatasetPublications(dataset, number, tuple(published[number]), options.rate_per_s, options.payload_bytes),
        )
        for number, broker in enumerate(overlay.brokers)
    )
    description = {"kind": "multipath", **dataset.description, "publications": options.publications}
    return Workload(overlay, clients, description, options.publications)


def _dataset(overlay: Overlay, options: MultipathOptions, seed: int) -> Dataset:
    if options.dataset == "DT-C":
        return covering_dataset(overlay, seed)
    if options.dataset == "DT-FB":
        graph, wall = (None if each is None else Path(each) for each in (options.path, options.wall))
        return social_dataset(overlay, seed, graph, wall)
    return zipf_dataset(options.dataset, overlay, seed)
