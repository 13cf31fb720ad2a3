"""From a scenario to what a runtime is given: nodes, links and scripts."""

import dataclasses
import hashlib
import heapq
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from murmur_pubsub.deployment import Deployment, LinkPlan, NodeSpec, RunSettings, specs_of, targets_of
from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import NewLinks, PlanRules
from murmur_pubsub.script import Change, Script
from murmur_pubsub.values import Value
from murmuration.deployment.actor_placement import share_actors
from murmuration.deployment.bootstrap import join_plan
from murmuration.deployment.build import build_faults, build_overlay, build_workload
from murmuration.deployment.host_placement import HostRoom, local_hosts, place_brokers
from murmuration.deployment.protocols import ChosenProtocols, choose_protocols, entrances
from murmuration.registry import BROKER_FACTORY, CLIENT_FACTORY
from murmuration.scenario.load import LoadedScenario
from routing.protocol import RunsOn
from workloads.overlay import Overlay, is_broker_name
from workloads.plan import ClientPlan, Workload


@dataclass(frozen=True, slots=True)
class BrokerScript:
    """The plans of all clients of a broker as one script, for brokers that deliver themselves."""

    plans: tuple[ClientPlan, ...]

    @property
    def subscriptions(self) -> list[tuple[int, str]]:
        return [each for plan in self.plans for each in plan.subscriptions]

    @property
    def publications(self) -> Iterator[tuple[int, int, Mapping[str, Value]]]:
        return heapq.merge(*(plan.publications for plan in self.plans), key=lambda publication: publication[0])

    @property
    def changes(self) -> list[Change]:
        return sorted(each for plan in self.plans for each in plan.changes)


@dataclass(frozen=True, slots=True)
class BuiltScenario:
    """A scenario as it can be played."""

    overlay: Overlay
    workload: Workload
    protocols: ChosenProtocols
    deployment: Deployment


def build(loaded: LoadedScenario, joined: Sequence[HostRoom] | None = None) -> BuiltScenario:
    """All that a scenario stands for, over these hosts or those that the run starts itself; raises `InputError`."""
    overlay = build_overlay(loaded)
    protocols = choose_protocols(loaded, overlay)
    workload = build_workload(loaded, overlay)
    return BuiltScenario(overlay, workload, protocols, deploy(loaded, overlay, protocols, workload, joined))


def deploy(
    loaded: LoadedScenario,
    overlay: Overlay,
    protocols: ChosenProtocols,
    workload: Workload,
    joined: Sequence[HostRoom] | None = None,
) -> Deployment:
    """The deployment of the parts of a scenario; raises `InputError`."""
    scenario = loaded.scenario
    roots = entrances(loaded, protocols, overlay)
    _check_entrances(loaded, roots, workload)
    cells = overlay.cell_plan(roots) if protocols.routing.runs_on is RunsOn.CELLS else None
    brokers = (*overlay.brokers, *_newcomers(loaded, overlay, protocols))
    if cells is not None:
        cells = dataclasses.replace(cells, newcomers=brokers[len(overlay.brokers) :])
    ends = {"entrances": roots, "brokers": brokers} if protocols.reliability.end_to_end else {}
    of_broker = {**protocols.of_broker, **ends}
    nodes = [NodeSpec(name, "broker", BROKER_FACTORY, of_broker, place=cells) for name in brokers]
    between_brokers, to_clients = scenario.links.spec(), scenario.client_links.spec()
    links = [LinkPlan(first, second, between_brokers) for first, second in overlay.edges]
    scripts: dict[str, Script] = {}
    if scenario.last_mile == "clients":
        for plan in workload.clients:
            of_client = {"broker": plan.broker, **protocols.of_client}
            nodes.append(NodeSpec(plan.name, "client", CLIENT_FACTORY, of_client, plan.broker))
            links.append(LinkPlan(plan.name, plan.broker, to_clients))
            scripts[plan.name] = plan
    else:
        for broker in brokers:
            plans = tuple(plan for plan in workload.clients if plan.broker == broker)
            if plans:
                scripts[broker] = BrokerScript(plans)
    try:
        rooms, clients = joined or local_hosts(scenario.hosts), len(nodes) - len(brokers)
        hosts = place_brokers(brokers, scenario.placement, rooms, clients, scenario.density)
    except InputError as error:
        raise loaded.error_at(tuple(error.place.split(".")), error.found, error.allowed) from None
    newcomers, has_datagrams = frozenset(scenario.newcomers), scenario.datagrams is not None
    roam = scenario.last_mile == "clients" and protocols.reliability.clients_roam
    rules = dataclasses.replace(protocols.rules, cells=cells)
    rules = _with_clients(rules, workload, scenario.last_mile == "clients", roots, roam)
    redundant = protocols.reliability.redundant(protocols.reliability_parameters)
    if redundant and scenario.last_mile != "clients":
        found = f"{scenario.last_mile}, with a backup of {redundant[0].host}"
        raise loaded.error_at(("last_mile",), found, "clients: they can go to the backup")
    publishing_at = {
        plan.name: frozenset((end.host, end.backup))
        for end in redundant
        for plan in workload.clients
        if plan.broker == end.host
    }
    rules = dataclasses.replace(rules, publishing_at=publishing_at)
    actors = share_actors(nodes, scenario.density, hosts)
    targets = targets_of(nodes, links, hosts, newcomers, rules, has_datagrams, scripts, actors)
    linked = {end for plan in links for end in (plan.first, plan.second)}
    awaited = frozenset(brokers if protocols.reliability.end_to_end else linked.intersection(brokers))
    detection, faults, start_down = build_faults(loaded, targets, specs_of(links), awaited)
    if overlay.structure is not None:
        places = join_plan(overlay, faults, start_down, hosts, scenario.seed)
        nodes = [dataclasses.replace(node, place=places.get(node.name)) for node in nodes]
    return Deployment(
        settings=RunSettings(
            seed=scenario.seed,
            identifier=_identifier(loaded),
            default_link=(  # datagrams of all pairs share it, and have no order
                None if scenario.datagrams is None else dataclasses.replace(scenario.datagrams.spec(), ordered=False)
            ),
            detection=detection,
            journal_hops=scenario.journal == "hops",
            keep_inputs=scenario.keep_inputs,
            time_dilation=scenario.time_dilation,
        ),
        nodes=tuple(nodes),
        links=tuple(links),
        scripts=scripts,
        faults=faults,
        start_down=start_down,
        rules=rules,
        hosts=hosts,
        actors=actors,
        publish_us_min=scenario.lasts,
        drain_us=scenario.drain.quiet,
        drain_limit_us=scenario.drain.limit,
        waits_say_all=protocols.reliability.end_to_end,
        promise=protocols.promise,
    )


def _with_clients(
    rules: PlanRules, workload: Workload, are_nodes: bool, entrances: Sequence[str], roam: bool
) -> PlanRules:
    """The rules with what a plan may have clients do, or brokers where clients are no nodes of their own."""
    newcomers = () if rules.cells is None else rules.cells.newcomers
    of_brokers = {name: name for name in (*workload.overlay.client_brokers, *newcomers)}
    homes = {plan.name: plan.broker for plan in workload.clients} if are_nodes else of_brokers
    first = 1 + max((number for plan in workload.clients for number in plan.publishers), default=-1)
    subscribers = (
        number
        for plan in workload.clients
        for number in (*(each for each, _ in plan.subscriptions), *(each for _, _, each, _ in plan.changes))
    )
    return dataclasses.replace(
        rules,
        publishers={name: first + place for place, (name, broker) in enumerate(homes.items()) if broker in entrances},
        roaming=frozenset(plan.name for plan in workload.clients if roam and not plan.publishers),
        taking_clients=frozenset(workload.overlay.client_brokers),
        subscribing=frozenset(homes),
        subscribers_from=1 + max(subscribers, default=-1),
    )


def _newcomers(loaded: LoadedScenario, overlay: Overlay, protocols: ChosenProtocols) -> Sequence[str]:
    """The brokers that join later, checked; raises `InputError`."""
    newcomers = loaded.scenario.newcomers
    if newcomers and protocols.rules.new_links is NewLinks.NONE:
        found = f"brokers that join later, over {protocols.routing.name}"
        raise loaded.error_at(("newcomers",), found, "a routing that takes new links")
    known = {*overlay.brokers, *(cell for cell, _ in overlay.cells)}
    for number, name in enumerate(newcomers):
        if not is_broker_name(name) or name in known or name in newcomers[:number]:
            raise loaded.error_at(("newcomers", str(number)), repr(name), "the name of a broker that has none yet")
    return newcomers


def _identifier(loaded: LoadedScenario) -> int:
    """64 bits: chance for a live run, a function of the scenario for a virtual one, whose journal is one too."""
    if loaded.scenario.runtime == "ray":
        return secrets.randbits(64)
    return int.from_bytes(hashlib.blake2b(repr(dict(loaded.data)).encode(), digest_size=8).digest())


def _check_entrances(loaded: LoadedScenario, entrances: Sequence[str], workload: Workload) -> None:
    for plan in workload.clients:
        if plan.publishers and plan.broker not in entrances:
            found = f"publishers at {plan.broker}"
            allowed = f"publishers at {', '.join(entrances[:10])}, where events may enter"
            raise loaded.error_at(("workload",), found, allowed)
