"""From a scenario to what a runtime is given: nodes, links and scripts."""

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from experiments.registry import BROKER_FACTORY, CLIENT_FACTORY
from experiments.scenario import LoadedScenario
from pubsub.deployment import Deployment, LinkPlan, NodeSpec, make_machine
from pubsub.script import Change, Script
from pubsub.values import Value
from workloads.overlay import Overlay
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


def deploy(loaded: LoadedScenario, overlay: Overlay, workload: Workload) -> Deployment:
    """The deployment of a checked scenario."""
    scenario = loaded.scenario
    parts = scenario.broker.model_dump()
    nodes = [NodeSpec(name, "broker", BROKER_FACTORY, parts) for name in overlay.brokers]
    between_brokers, to_clients = scenario.links.spec(), scenario.client_links.spec()
    links = [LinkPlan(first, second, between_brokers) for first, second in overlay.edges]
    scripts: dict[str, Script] = {}
    if scenario.last_mile == "clients":
        for plan in workload.clients:
            nodes.append(NodeSpec(plan.name, "client", CLIENT_FACTORY, {"broker": plan.broker}, plan.broker))
            links.append(LinkPlan(plan.name, plan.broker, to_clients))
            scripts[plan.name] = plan
    else:
        for broker in overlay.brokers:
            plans = tuple(plan for plan in workload.clients if plan.broker == broker)
            if plans:
                scripts[broker] = BrokerScript(plans)
    return Deployment(
        seed=scenario.seed,
        nodes=tuple(nodes),
        links=tuple(links),
        scripts=scripts,
        drain_us=scenario.drain.quiet,
        drain_limit_us=scenario.drain.limit,
        time_dilation=scenario.time_dilation,
        journal_hops=scenario.journal == "hops",
    )


def manifest(
    loaded: LoadedScenario, overlay: Overlay, workload: Workload, deployment: Deployment, version: str
) -> dict[str, Any]:
    """What the run folder says of a run; status and times are added as it goes."""
    scenario = loaded.scenario
    return {
        "format": "murmur-run",
        "schema_version": 1,
        "version": version,
        "name": scenario.name,
        "runtime": scenario.runtime,
        "seed": scenario.seed,
        "time_dilation": scenario.time_dilation,
        "status": "running",
        "scenario": dict(loaded.data),
        "overlay": {"brokers": list(overlay.brokers), "edges": [list(edge) for edge in overlay.edges]},
        "nodes": [{"name": node.name, "role": node.role, "broker": node.broker} for node in deployment.nodes]
        + [{"name": "driver", "role": "driver", "broker": None}],
        "workload": dict(workload.description),
        "message_kinds": _message_kinds(deployment),
        "withdrawal_grace_us": scenario.withdrawal_grace,
    }


def _message_kinds(deployment: Deployment) -> dict[str, str]:
    """Message kind, as text, to the name of its class: for people who read the tables of a run."""
    types = make_machine(deployment.nodes[0], deployment.seed).message_types
    return {str(each.KIND): each.__name__ for each in types}  # type: ignore[attr-defined]
