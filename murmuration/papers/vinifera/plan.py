"""Which runs the Vinifera paper's figures are made of."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

from murmuration.papers.lab.real_data import Trace, find_real
from murmuration.papers.vinifera.live import ViniferaLiveSpec
from murmuration.papers.vinifera.run import ChurnRun, ChurnSpec, Routing, StaticRun, StaticSpec
from murmuration.papers.vinifera.workload import Model, friend_links
from routing.vinifera.parameters import Spread

ViniferaSpec = StaticSpec | ChurnSpec
ViniferaRun = StaticRun | ChurnRun
MODELS: tuple[Model, ...] = ("random", "skewed")
SYSTEMS: tuple[Routing, ...] = ("vinifera", "ferry")
MEANS = (False, True)
"""Do nodes hear of closed connections, besides heartbeats (`ChurnSpec.resets`)?"""
_SEEDS = 3


@dataclass(frozen=True, slots=True)
class ViniferaPlan:
    """`base`: what is varied; `friends`, `sizes`, `attributes`, `rates`: the values along the axes of the figures;
    `attribute_nodes`: the network's size where attributes are varied; `load_events`: measured where load is (of 60
    events the largest load of 1,000 nodes is mostly chance); `balancing`: cycles until moves have come to rest;
    `capacity`: messages a node takes in a cycle, for the rates; `churn`: the runs of Figure 5, both systems by each of
    `MEANS`; `resets`: the same with a shorter cycle, and generated churn; `live`: runs on actors; `social`: users of
    the friendship graph (0: it is not there)."""

    base: StaticSpec
    friends: Sequence[int]
    sizes: Sequence[int]
    attributes: Sequence[int]
    attribute_nodes: int
    load_events: int
    balancing: int
    rates: tuple[int, ...]
    capacity: int
    churn: Sequence[ChurnSpec]
    resets: Sequence[ChurnSpec]
    live: Sequence[ViniferaLiveSpec]
    social: int
    seeds: int

    @classmethod
    def full(cls, seeds: int) -> "ViniferaPlan":
        """The paper's sizes, where that is affordable: see docs/protocols/vinifera.md for how long it takes."""
        traces: tuple[Trace, ...] = ("generated",) if find_real("skype.avt") is None else ("generated", "skype")
        churn = [
            ChurnSpec(each, traces[-1], "skewed", 0, 25.0, 2_700, resets, events=4, outages=True)
            for resets in MEANS
            for each in SYSTEMS
        ]
        live = [ViniferaLiveSpec(routing, trace) for trace in traces for routing in SYSTEMS]
        return cls(
            base=StaticSpec("vinifera", 1_000, "random", cycles=16, events=60),
            friends=(0, 2, 4, 6, 8),
            sizes=(256, 512, 1_000, 2_048, 4_096, 8_192),
            attributes=(1, 2, 3, 5),
            attribute_nodes=400,
            load_events=600,
            balancing=56,
            rates=(1, 2, 3, 5),
            capacity=20,
            churn=churn,
            resets=_resets_of(600, 2.0),
            live=live,
            social=1_000 if find_real("facebook_combined.txt") else 0,
            seeds=max(seeds, _SEEDS),
        )

    @classmethod
    def quick(cls, seeds: int) -> "ViniferaPlan":
        """Under 50 s: networks of 40 nodes."""
        small = StaticSpec("vinifera", 40, "random", friends=3, cycles=8, events=60)
        churn = [
            ChurnSpec(each, "generated", "skewed", 50, 0.5, 900, resets, events=4, friends=3)
            for resets in MEANS
            for each in SYSTEMS
        ]
        social = 40 if find_real("facebook_combined.txt") else 0
        resets = _resets_of(40, 0.25)
        return cls(small, (0, 8), (20, 40), (1, 3), 40, 60, 4, (5,), 10, churn, resets, (), social, seeds)

    def static(self, routing: Routing, model: Model, seed: int = 1, **changes: Any) -> StaticSpec:
        """A run on a network of the paper's size, or as changed."""
        spec = dataclasses.replace(self.base, routing=routing, model=model, seed=seed, **changes)
        if routing == "ferry":  # it has no friends, and a run that differs in them alone is done once
            return dataclasses.replace(spec, friends=0, small_world=8, beta=0, spread="tree")
        return spec

    def by_friends(self, model: Model, friends: int, seed: int) -> StaticSpec:
        """Figure 3: the links that are no friends' are small-world links."""
        return self.static("vinifera", model, seed, friends=friends, small_world=8 - friends)

    def by_size(self, routing: Routing, model: Model, nodes: int) -> StaticSpec:
        """Figures 4(a) and (b); the largest ones with fewer events and cycles."""
        if nodes == self.base.nodes:
            return self.static(routing, model)
        events = min(self.base.events, max(30, 200_000 // nodes))
        return self.static(routing, model, nodes=nodes, friends=friend_links(nodes), events=events)

    def by_attributes(self, routing: Routing, model: Model, count: int) -> StaticSpec:
        """Figures 4(c) to (e), on a smaller network: what is installed no longer aggregates much, and a node near the
        rendezvous nodes holds what most of the network wants."""
        nodes = self.attribute_nodes
        changes: dict[str, Any] = {
            "attributes": count,
            "nodes": nodes,
            "friends": friend_links(nodes),
            "events": self.load_events,
        }
        return self.static(routing, model, **changes)

    def loaded(self) -> list[StaticSpec]:
        """Three attributes on a network of the paper's size, as other runs are."""
        return [self.static("vinifera", model, attributes=3, events=self.load_events) for model in MODELS]

    def balanced(self) -> list[StaticSpec]:
        """The criterion on load: three attributes, where identifiers have followed the events. And one attribute."""
        chosen: dict[str, Any] = {"events": self.load_events, "balancing": self.balancing}
        three = [self.static("vinifera", model, attributes=3, **chosen) for model in MODELS]
        return [*three, *(self.static("vinifera", model, **chosen) for model in MODELS)]

    def by_rate(self) -> list[StaticSpec]:
        """Figure 4(f): Vinifera as it is, waiting for rendezvous nodes, and with friends told; the baseline."""
        chosen: dict[str, Any] = {"rates": self.rates, "capacity": self.capacity}
        return [
            each
            for model in MODELS
            for each in (
                *(self.static("vinifera", model, spread=spread, **chosen) for spread in get_args(Spread)),
                *(self.static("ferry", model, prune=prune, **chosen) for prune in (False, True)),
            )
        ]

    def sizes_of(self, routing: Routing) -> Sequence[int]:
        """The largest network is Vinifera's alone."""
        return self.sizes if routing == "vinifera" else self.sizes[:-1]

    def variants(self, model: Model, seed: int) -> dict[str, StaticSpec]:
        """What is measured beside the two systems, by what it is called."""
        return {
            "Vinifera, waits for rendezvous nodes": self.static("vinifera", model, seed, spread="none"),
            "Vinifera, friends told (ours)": self.static("vinifera", model, seed, spread="friends"),
            "Vinifera, own links alone": self.static("vinifera", model, seed, inbound=False),
            "baseline, pruned (ours)": self.static("ferry", model, seed, prune=True),
            "baseline, own links alone": self.static("ferry", model, seed, inbound=False),
        }

    def specs(self) -> list[ViniferaSpec]:
        """All runs, each once, those of the criteria first."""
        found: list[ViniferaSpec] = []
        for seed in range(1, self.seeds + 1):
            found += [self.static(routing, model, seed) for model in MODELS for routing in SYSTEMS]
        for seed in range(1, self.seeds + 1):
            found += [each for model in MODELS for each in self.variants(model, seed).values()]
        if self.social:
            found += [self.static(routing, "social", nodes=self.social) for routing in SYSTEMS]
        found += [self.by_attributes(each, model, count) for count in self.attributes for model in MODELS
                  for each in SYSTEMS]  # fmt: skip
        for seed in range(1, self.seeds + 1):
            found += [self.by_friends(model, friends, seed) for friends in self.friends for model in MODELS]
        found += self.by_rate()
        found += [
            self.by_size(each, model, nodes) for each in SYSTEMS for nodes in self.sizes_of(each) for model in MODELS
        ]
        found += [*self.loaded(), *self.balanced(), *self.resets, *self.churn]
        return list(dict.fromkeys(found))


def _resets_of(nodes: int, days: float) -> list[ChurnSpec]:
    """Both systems under the same churn, each hearing of closed connections and by heartbeats alone."""
    return [ChurnSpec(each, "generated", "skewed", nodes, days, 900, resets) for each in SYSTEMS for resets in MEANS]
