"""One run of the Vinifera paper's experiments on the virtual runtime: a network that has settled, and churn."""

import functools
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from murmuration.deployment.churn import read_availability
from murmuration.papers.lab.process_meter import ProcessMeter
from murmuration.papers.lab.real_data import Trace, real_file
from murmuration.papers.vinifera.network import GossipNetwork, Totals
from murmuration.papers.vinifera.workload import IntervalWorkload, Model, SocialWorkload
from routing.vinifera.parameters import Spread
from workloads.churn.generator import GeneratedChurn, generate
from workloads.churn.sessions import Availability

Routing = Literal["vinifera", "vinifera_even", "ferry"]
SHARES = tuple(at / 20 for at in range(21))
"""Points of the load's distribution, as shares of all events."""
_EVENTS_A_CYCLE = 50
_BALANCING_A_CYCLE = 75
_HOUR_US = 3_600_000_000
_JOINING_US = 60_000_000
"""So long after it has started a node counts among those that must get events."""


@dataclass(frozen=True, slots=True)
class StaticSpec:
    """A run without failures. inbound: of both systems; spread: Vinifera's; prune: the baseline's. events: measured
    after `cycles`; before, as many are published for load to be balanced. balancing: so many cycles more, each with
    `_BALANCING_A_CYCLE` events, until identifiers have followed the events. Then, for each of `rates`, events for two
    cycles, that many times `capacity` in each, when a node takes no more than `capacity` messages with events in a
    cycle."""

    routing: Routing
    nodes: int
    model: Model
    attributes: int = 1
    friends: int = 8
    small_world: int = 0
    inbound: bool = True
    beta: int = 20
    cycles: int = 25
    events: int = 200
    spread: Spread = "tree"
    prune: bool = False
    capacity: int = 0
    rates: tuple[int, ...] = ()
    balancing: int = 0
    seed: int = 1


@dataclass(slots=True)
class StaticRun:
    """What came out. messages: of all kinds a node and cycle at the end, before events are measured. load: share of
    nodes that relayed, without interest, at most each of `SHARES` of the events; `most`: the most that a node did.
    moved: nodes that have taken another identifier, to balance load.
    copies, relays: messages with an event to interested and to other nodes, for each delivery. hit_ratios: at each of
    the rates."""

    spec: StaticSpec
    overhead: float = 0.0
    path: float = 0.0
    hit_ratio: float = 0.0
    duplicate: int = 0
    interested: float = 0.0
    messages: float = 0.0
    degree: int = 0
    copies: float = 0.0
    relays: float = 0.0
    most: float = 0.0
    moved: int = 0
    load: list[float] = field(default_factory=list)
    hit_ratios: list[float] = field(default_factory=list)
    cpu_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ChurnSpec:
    """A run under churn. trace: "skype" or "generated"; `nodes` of it take part (0: all), for `days`. A cycle takes
    `cycle_s`; `resets`: nodes hear that a failed one's connections have closed; `events` are published in each hour, a
    second apart from its middle on. outages: those of the trace's prober are left in, when many nodes seem to go and
    come at one instant."""

    routing: Routing
    trace: Trace
    model: Model
    nodes: int
    days: float
    cycle_s: int
    resets: bool
    events: int = 10
    friends: int = 8
    outages: bool = False
    seed: int = 1


@dataclass(slots=True)
class ChurnRun:
    """What came out, hour by hour."""

    spec: ChurnSpec
    population: list[int] = field(default_factory=list)
    joined: list[int] = field(default_factory=list)
    interested: list[int] = field(default_factory=list)
    delivered: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)
    uninterested: list[int] = field(default_factory=list)
    hops: list[int] = field(default_factory=list)
    duplicate: int = 0
    cpu_s: float = 0.0

    def flash_crowd(self) -> set[int]:
        """The hours in which, or in the hour before which, so many joined as a fifth of those that were there."""
        crowded = {
            hour
            for hour in range(1, len(self.population))
            if self.joined[hour] > 0.2 * max(1, self.population[hour - 1])
        }
        return crowded | {hour + 1 for hour in crowded if hour + 1 < len(self.population)}

    def hit_ratio(self, hours: set[int]) -> float | None:
        """Over those hours; None: nothing was to be delivered."""
        interested = sum(self.interested[hour] for hour in hours)
        return sum(self.delivered[hour] for hour in hours) / interested if interested else None


def measure_overlay(spec: StaticSpec | ChurnSpec) -> StaticRun | ChurnRun:
    """One run, in a process of its own, and how long it took."""
    spent = ProcessMeter()
    result = measure_static(spec) if isinstance(spec, StaticSpec) else measure_churn(spec)
    result.cpu_s = round(spent.cpu_s, 1)
    return result


def _workload(model: Model, attributes: int, nodes: int, seed: int) -> IntervalWorkload | SocialWorkload:
    if model == "social":
        return SocialWorkload(real_file("facebook_combined.txt"), nodes, seed)
    return IntervalWorkload(model, attributes, seed)


def _parameters(spec: StaticSpec | ChurnSpec, workload: IntervalWorkload | SocialWorkload) -> dict[str, object]:
    if spec.routing == "ferry":
        own: dict[str, object] = {"attributes": workload.names}
        if isinstance(spec, StaticSpec):
            own["prune"] = spec.prune
    else:
        own = {"attributes": workload.domains, "friend_links": spec.friends}
        if isinstance(spec, StaticSpec):
            own |= {"small_world_links": spec.small_world, "beta": spec.beta, "spread": spec.spread}
    return own | ({"resets": spec.resets} if isinstance(spec, ChurnSpec) else {"inbound": spec.inbound})


def measure_static(spec: StaticSpec) -> StaticRun:
    """Let the overlay settle, publish, and count."""
    workload = _workload(spec.model, spec.attributes, spec.nodes, spec.seed)
    names = [f"b{number}" for number in range(spec.nodes)]
    with tempfile.TemporaryDirectory() as folder:
        network = GossipNetwork(spec.routing, names, spec.seed, Path(folder), _parameters(spec, workload))
        for number, name in enumerate(names):
            network.subscribe(name, workload.filter(number))
        network.start_together(names)
        network.cycles(spec.cycles / 2)
        _publish(network, workload, spec.events, spec.events // max(1, spec.cycles // 2) + 1)
        network.cycles(max(1.0, spec.cycles - network.runtime.now_us / network.cycle_us))
        _publish(network, workload, spec.balancing * _BALANCING_A_CYCLE, _BALANCING_A_CYCLE)
        before = network.runtime.processed
        network.cycles(1)
        result = StaticRun(spec, messages=(network.runtime.processed - before) / spec.nodes - 2)  # without two timers
        network.totals()
        _publish(network, workload, spec.events, _EVENTS_A_CYCLE)
        network.cycles(0.5)
        result.degree = max(len(network.router(name).overlay.neighbours) for name in names)
        result.moved = network.moved()
        _fill(result, network.totals())
        network.capacity = spec.capacity
        for rate in spec.rates:
            _publish(network, workload, 2 * rate * spec.capacity, rate * spec.capacity)
            network.cycles(1)
            result.hit_ratios.append(network.totals().hit_ratio)
        network.close()
    return result


def _publish(network: GossipNetwork, workload: IntervalWorkload | SocialWorkload, events: int, a_cycle: int) -> None:
    for _ in range(events):
        network.publish(network.rng.choice(network.names), workload.event())
        network.cycles(1 / a_cycle)


def _fill(result: StaticRun, totals: Totals) -> None:
    nodes = result.spec.nodes
    result.overhead, result.path = totals.overhead, totals.path
    result.copies, result.relays = totals.copies, totals.relays
    result.hit_ratio, result.duplicate = totals.hit_ratio, totals.duplicate
    result.interested = totals.interested / totals.events / nodes
    shares = [totals.relayed[node] / totals.events for node in range(nodes)]
    result.most = max(shares)
    result.load = [sum(share <= at for share in shares) / nodes for at in SHARES]


def measure_churn(spec: ChurnSpec) -> ChurnRun:
    """Play an availability trace; nodes that start subscribe anew."""
    trace = _trace(spec)
    names = list(trace.sessions)
    workload = _workload(spec.model, 1, len(names), spec.seed)
    result = ChurnRun(spec)
    with tempfile.TemporaryDirectory() as folder:
        network = GossipNetwork(
            spec.routing, names, spec.seed, Path(folder), _parameters(spec, workload), spec.cycle_s * 1_000_000
        )
        for number, name in enumerate(names):
            network.subscribe(name, workload.filter(number))
        network.start_together(trace.up_at(trace.begin_s))
        network.cycles(10)
        begin_us = network.runtime.now_us
        joined = [0]

        def come(name: str, now_us: int) -> None:
            joined[0] += 1
            up = list(network.up)
            network.join(name, network.rng.sample(up, min(4, len(up))))

        def go(name: str, now_us: int) -> None:
            if len(network.up) > 2:
                network.crash(name)

        def publish(now_us: int) -> None:
            network.publish(network.rng.choice(list(network.up)), workload.event())

        for time_s, name, is_up in trace.changes():
            at_us = begin_us + (time_s - trace.begin_s) * 1_000_000
            network.runtime.call_at(at_us, functools.partial(come if is_up else go, name))
        hours = int((trace.end_s - trace.begin_s) // 3_600)
        network.joining_us = _JOINING_US
        for hour in range(hours):
            for number in range(spec.events):
                at_us = begin_us + hour * _HOUR_US + _HOUR_US // 2 + number * 1_000_000
                network.runtime.call_at(at_us, publish)
            network.runtime.run(until_us=begin_us + (hour + 1) * _HOUR_US)
            totals = network.totals()
            result.population.append(len(network.up))
            result.joined.append(joined[0])
            joined[0] = 0
            for kept in ("interested", "delivered", "received", "uninterested", "hops"):
                getattr(result, kept).append(getattr(totals, kept))
            result.duplicate += totals.duplicate
        network.close()
    return result


def _trace(spec: ChurnSpec) -> Availability:
    if spec.trace == "skype":
        whole = read_availability(real_file("skype.avt"), spec.outages).seen
    else:
        whole = generate(GeneratedChurn(spec.nodes or 4_000, spec.days, 1.0), spec.seed)
    part = whole.window(whole.begin_s, whole.begin_s + int(86_400 * spec.days))
    names = list(part.sessions)
    return part.only(names[: spec.nodes]) if spec.nodes else part
