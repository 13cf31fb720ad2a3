"""What multipath forwarding costs a broker: rebuilds, path computation, and covering sets against fanout (Figure 12).

Times are wall-clock times of this process on one broker's own structures, taken out of a settled network.
"""

import functools
import gc
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from murmur_pubsub.event import Event
from murmur_pubsub.filter import Filter
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import NodeName
from murmur_pubsub.matching import MatchingIndex
from murmur_pubsub.values import Value
from murmuration.papers.lab.process_meter import ProcessMeter
from murmuration.papers.multipath.run import MultipathNetwork, MultipathSpec, make_dataset
from routing.multipath.overlay_maps import MasterOverlayMap, WorkingOverlayMap
from routing.multipath.router import MultipathRouter
from routing.multipath.strategies import compute_forwarding_s0, compute_forwarding_s1, compute_forwarding_s2
from routing.multipath.subscription_tables import MasterSubscriptionTable, WorkingSubscriptionTable
from routing.multipath.view import WorkingView
from workloads.overlay import Tree, balanced

_SAMPLE_BROKERS = 12
_SAMPLE_EVENTS = 20


@dataclass(frozen=True, slots=True)
class ForwardingCost:
    """One point. wom_us, wst_us: to make the working map and table anew. covering_wst_us: the table with covering
    sets. forward_us: strategy to the time of matching and path computation for one publication."""

    dataset: str
    subscriptions: int
    links: int
    wom_us: float
    wst_us: float
    covering_wst_us: float
    forward_us: dict[str, float]


@dataclass(frozen=True, slots=True)
class CoveringSize:
    """Mean over sampled brokers. set_size: subscriptions in covering sets. predicates: theirs, all of which a matcher
    without short cuts evaluates for a publication. evaluations: those looked at until one does not hold."""

    fanout: int
    set_size: float
    predicates: float
    evaluations: float
    soft_links: float
    wall_s: float


def measure_forwarding(point: tuple[str, int, int]) -> list[ForwardingCost]:
    """Costs of one broker for a dataset on so many brokers, with 3 up to so many links."""
    dataset_name, brokers, links_max = point
    overlay = balanced(Tree(brokers, 3), 1)
    dataset = make_dataset(dataset_name, overlay, 1)
    centre = overlay.brokers[1]
    everybody = MasterOverlayMap(centre, brokers, overlay.neighbours)
    mst = MasterSubscriptionTable()
    for origin in overlay.brokers:
        mst.note_origin(origin, (0, 0), everybody.path(origin)[:4])
    for origin, text in dataset.subscriptions:
        mst.add(origin, parse_filter(text))
    mom = MasterOverlayMap(centre, 4, overlay.neighbours)
    drawn = dataset.draw(300, 1)
    events = [Event(0, number, 0, dataset.contents[content][1]) for number, content in enumerate(drawn)]
    costs = []
    for count in sorted({3, 10, 20, links_max}):
        links = list(mom.brokers[:count])
        wom = WorkingOverlayMap(mom, links)
        wst = WorkingSubscriptionTable(mst, wom, mst.ppaths)
        forward = {}
        for name, compute in (
            ("S0", compute_forwarding_s0), ("S1", compute_forwarding_s1), ("S2", compute_forwarding_s2),
        ):  # fmt: skip
            real = WorkingView(WorkingOverlayMap(mom, overlay.neighbours[centre]), wst, ()) if name == "S0" else None
            if real is not None:
                real.wst = WorkingSubscriptionTable(mst, real.wom, mst.ppaths)
            view = real or WorkingView(wom, wst, ())
            forward[name] = _best_us(functools.partial(_forward_all, view, events, compute)) / len(events)
        costs.append(
            ForwardingCost(
                dataset_name, len(mst), len(wom.brokers),
                _best_us(functools.partial(WorkingOverlayMap, mom, links)),
                _best_us(functools.partial(WorkingSubscriptionTable, mst, wom, mst.ppaths)),
                _best_us(functools.partial(WorkingSubscriptionTable, mst, wom, mst.ppaths, True), 1),
                forward,
            )
        )  # fmt: skip
    return costs


def _forward_all(view: WorkingView, events: list[Event], compute: Callable[[WorkingOverlayMap, int], int]) -> None:
    for event in events:
        view.forward(event, None, compute)


def _best_us(action: Callable[[], object], rounds: int = 5) -> float:
    best = float("inf")
    for _ in range(rounds):
        began = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - began)
    return best * 1e6


def measure_covering(point: tuple[int, int]) -> CoveringSize:
    """Figure 12 at one fanout: DT-C on so many brokers, links learned from traffic, then the covering sets of a
    sample of brokers with links. All brokers hold the same subscriptions: what a publication matches is looked up in
    one index for all of them, or 500 of 10,000 filters would have to fit into this process."""
    brokers, fanout = point
    spent = ProcessMeter()
    gc.disable()  # millions of objects that all live to the end would be searched for cycles again and again
    spec = MultipathSpec("DT-C", brokers, "S2", fanout=fanout, payload_bytes=50, check=False, round_s=5)
    with tempfile.TemporaryDirectory() as folder:
        network = MultipathNetwork(spec, Path(folder))
        _share_matching(network)
        network.publish_steadily(360, 12, 1)
        links = [len(router.knowledge.links.soft) for router in network.routers.values()]
        inner = [name for name in network.overlay.brokers if len(network.overlay.neighbours[name]) > 1]
        sample = inner[:: max(1, len(inner) // _SAMPLE_BROKERS)]
        drawn = network.dataset.draw(_SAMPLE_EVENTS, 7)
        events = [network.dataset.contents[content][1] for content in drawn]
        found = [_covering_of(network.routers[name], events) for name in sample]
        network.close()
    return CoveringSize(
        fanout,
        sum(size for size, _, _ in found) / len(found),
        sum(predicates for _, predicates, _ in found) / len(found),
        sum(evaluations for _, _, evaluations in found) / len(found),
        sum(links) / len(links),
        spent.wall_s,
    )


def _share_matching(network: MultipathNetwork) -> None:
    index = MatchingIndex[None]()
    origins = [broker for broker, _ in network.dataset.subscriptions]
    for number, (_, text) in enumerate(network.dataset.subscriptions):
        index.add(number, parse_filter(text), None)
    known: dict[tuple[Value, ...], list[NodeName]] = {}

    def lookup(attributes: Mapping[str, Value]) -> Sequence[NodeName]:
        key = tuple(attributes.values())
        if key not in known:
            known[key] = list(dict.fromkeys(origins[number] for number in index.matching(attributes)))
        return known[key]

    for router in network.routers.values():
        router.knowledge.mst.share_lookup(lookup)


def _covering_of(router: MultipathRouter, events: Sequence[Mapping[str, Value]]) -> tuple[int, int, float]:
    knowledge = router.knowledge
    view = knowledge.view
    wom = WorkingOverlayMap(view.mom, [*knowledge.network.peers, *knowledge.links.soft])
    return covering_of(WorkingSubscriptionTable(knowledge.mst, wom, view.ppaths, covering=True), events)


def covering_of(table: WorkingSubscriptionTable, events: Sequence[Mapping[str, Value]]) -> tuple[int, int, float]:
    """Of a table with covering sets: subscriptions in them, their predicates, and predicates looked at for an event."""
    filters = [each for covering in table.covering_sets().values() for each in covering]
    evaluations = sum(_evaluations(each, event) for event in events for each in filters)
    return len(filters), sum(len(each.attributes) for each in filters), evaluations / len(events)


def _evaluations(wanted: Filter, event: Mapping[str, Value]) -> int:
    """Predicates looked at, one after the other, until one does not hold."""
    assert wanted.constraints is not None
    looked_at = 0
    for attribute, constraint in wanted.constraints.items():
        looked_at += 1
        if attribute not in event or not constraint.contains(event[attribute]):
            break
    return looked_at
