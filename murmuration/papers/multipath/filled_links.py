"""Figure 12 with as many links as the fanout allows: covering sets of brokers whose links are chosen, not learned.

What a broker would send to each broker of its neighbourhood is counted over all contents of the dataset, going by the
tree; the gain is then the router's own (`SoftLinks.gain`). No network is started, so time plays no part.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.machine import NodeName
from murmuration.papers.lab.process_meter import ProcessMeter
from murmuration.papers.multipath.cost import CoveringSize, covering_of
from routing.multipath.load import Loads
from routing.multipath.overlay_maps import MasterOverlayMap, WorkingOverlayMap
from routing.multipath.parameters import MultipathParameters
from routing.multipath.soft_links import SoftLinks
from routing.multipath.subscription_tables import MasterSubscriptionTable, WorkingSubscriptionTable
from workloads.multipath_datasets import Dataset, covering_dataset
from workloads.overlay import Overlay, Tree, balanced

DELTA = 4
_SAMPLE_BROKERS = 12
_SAMPLE_EVENTS = 20


@dataclass(frozen=True, slots=True)
class FilledSpec:
    """So many brokers with so many links each, those of the highest gain. ranges: of the filters of a family of DT-C,
    beside the topic (`covering_dataset`)."""

    brokers: int
    fanout: int
    ranges: tuple[int, ...] = (2, 3, 4, 5)
    seed: int = 1


class Traffic:
    """What goes past each broker by the tree if each content is published once."""

    def __init__(self, overlay: Overlay, dataset: Dataset, table: MasterSubscriptionTable) -> None:
        self.sent: Counter[NodeName] = Counter()
        """Publications that the broker sends to its neighbours."""
        self.towards: Counter[tuple[NodeName, NodeName]] = Counter()
        """Publications that pass the first on their way to the second, which lies two to Δ hops on."""
        parents = {broker: _parents(overlay, broker) for broker in {source for source, _, _ in dataset.contents}}
        for source, attributes, _ in dataset.contents:
            reached = {source}
            wanted = table.matching_origins(attributes)
            for broker, bit in table.bits.items():
                if wanted & bit:
                    self._pass_on(parents[source], broker, reached)

    def _pass_on(self, parents: Mapping[NodeName, NodeName], broker: NodeName, reached: set[NodeName]) -> None:
        while broker not in reached:
            reached.add(broker)
            before = parents[broker]
            self.sent[before] += 1
            for _ in range(DELTA - 1):
                if before not in parents:
                    break
                before = parents[before]
                self.towards[before, broker] += 1
            broker = parents[broker]


def measure_filled(spec: FilledSpec) -> CoveringSize:
    """Means over some brokers that are not leaves."""
    spent = ProcessMeter()
    overlay = balanced(Tree(spec.brokers, 3), spec.seed)
    dataset = covering_dataset(overlay, spec.seed, ranges=spec.ranges)
    table = MasterSubscriptionTable()
    for origin in overlay.brokers:
        table.note_origin(origin, (0, 0), ())
    for origin, text in dataset.subscriptions:
        table.add(origin, parse_filter(text))
    traffic = Traffic(overlay, dataset, table)
    inner = [name for name in overlay.brokers if len(overlay.neighbours[name]) > 1]
    events = [dataset.contents[content][1] for content in dataset.draw(_SAMPLE_EVENTS, 7)]
    found, soft = [], 0
    for centre in inner[:: max(1, len(inner) // _SAMPLE_BROKERS)]:
        mom = MasterOverlayMap(centre, DELTA, overlay.neighbours)
        links = chosen_links(spec.fanout, mom, traffic)
        soft += len(links) - len(overlay.neighbours[centre])
        everybody = MasterOverlayMap(centre, spec.brokers, overlay.neighbours)
        ppaths = {origin: everybody.path(origin)[:DELTA] for origin in overlay.brokers}
        working = WorkingSubscriptionTable(table, WorkingOverlayMap(mom, links), ppaths, covering=True)
        found.append(covering_of(working, events))
    size, predicates, evaluations = (sum(each) / len(found) for each in zip(*found, strict=True))
    return CoveringSize(spec.fanout, size, predicates, evaluations, soft / len(found), spent.wall_s)


def chosen_links(fanout: int, mom: MasterOverlayMap, traffic: Traffic) -> Sequence[NodeName]:
    """The neighbours of the map's centre, and what else the fanout allows."""
    neighbours = mom.children(mom.centre)
    others = [broker for broker in mom.brokers if broker not in neighbours]
    gains = _gains(mom, others, traffic)
    others.sort(key=gains.__getitem__, reverse=True)
    return [*neighbours, *others[: max(0, fanout - len(neighbours))]]


def _gains(mom: MasterOverlayMap, brokers: Iterable[NodeName], traffic: Traffic) -> Mapping[NodeName, float]:
    links, loads = SoftLinks(MultipathParameters(delta=DELTA)), Loads()
    loads.rates = {broker: traffic.sent[broker] for broker in mom.brokers}
    return {broker: links.gain(broker, traffic.towards[mom.centre, broker], mom, loads) for broker in brokers}


def _parents(overlay: Overlay, root: NodeName) -> Mapping[NodeName, NodeName]:
    """Of each broker but the root, the neighbour that is one hop closer to it."""
    everybody = MasterOverlayMap(root, len(overlay.brokers), overlay.neighbours)
    return {broker: everybody.parent(broker) for broker in everybody.brokers}
