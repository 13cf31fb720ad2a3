"""Small deployments for tests, made from a seed or by hand."""

import dataclasses
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from murmur_pubsub.deployment import Deployment, LinkPlan, NodeSpec, RunSettings
from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.script import Change
from murmur_virtual.run import VirtualRun
from murmuration.deployment.bootstrap import join_plan
from murmuration.hunt.trial import deployment_of
from murmuration.registry import BROKER_FACTORY, CLIENT_FACTORY, reliability_named
from reliability.broker import Broker
from reliability.layer import Reliability
from workloads.overlay import Overlay, Structured, structured

PARTS = {"matching": "bitset", "routing": "forwarding", "reliability": "best_effort"}
WAN = LinkSpec(delay=Delay("uniform", 500, 3_000))


@dataclass(frozen=True, slots=True)
class PlainScript:
    """A script written out."""

    subscriptions: tuple[tuple[int, str], ...] = ()
    publications: tuple[tuple[int, int, dict[str, Any]], ...] = ()
    changes: tuple[Change, ...] = ()


@dataclass(slots=True)
class Shape:
    """How large a random deployment is; the test's hypothesis strategy draws these."""

    brokers: int = 7
    clients: int = 7
    subscriptions: int = 6
    publications: int = 20
    changes: int = 3
    parts: Mapping[str, Any] = field(default_factory=lambda: dict(PARTS))
    links: LinkSpec = WAN


def random_filter(rng: random.Random) -> str:
    """A filter over x, y (0 to 99), s, flag and z, of one to three predicates."""
    low = rng.randrange(90)
    choices = [
        f"x BETWEEN {low} AND {low + rng.randrange(40)}",
        f"y >= {rng.randrange(100)}",
        f"y != {rng.randrange(100)}",
        f"s = '{rng.choice('abc')}'",
        f"s LIKE '{rng.choice('abc')}%'",
        f"x IN ({rng.randrange(100)}, {rng.randrange(100)}, {rng.randrange(100)})",
        "flag = TRUE",
        "z IS NOT NULL",
        "z IS NULL",
        f"s LIKE '%{rng.choice('ab')}'",
        f"x NOT IN ({rng.randrange(100)}, {rng.randrange(100)})",
    ]
    return " AND ".join(rng.sample(choices, rng.choice((1, 1, 2, 3))))


def random_subscription(rng: random.Random) -> str:
    """One such filter, or two or three of them joined by OR."""
    return " OR ".join(random_filter(rng) for _ in range(rng.choice((1, 1, 1, 2, 3))))


def random_attributes(rng: random.Random) -> dict[str, Any]:
    """An event's attributes for `random_filter`; some are absent now and then."""
    attributes: dict[str, Any] = {
        "x": rng.randrange(100),
        "y": rng.choice((rng.randrange(100), rng.random() * 100)),
        "s": rng.choice(("a", "ab", "b", "ca", "d")),
        "flag": rng.random() < 0.5,
        "z": "here",
    }
    for name in list(attributes):
        if rng.random() < 0.15 and len(attributes) > 1:  # an event without attributes is none
            del attributes[name]
    return attributes


def random_deployment(seed: int, shape: Shape) -> Deployment:
    """A random tree of brokers, clients on random brokers, everything else from the seed too."""
    rng = random.Random(f"{seed}/test deployment")
    edges = [(f"b{number}", f"b{rng.randrange(number)}") for number in range(1, shape.brokers)]
    scripts = {}
    homes = {}
    for number in range(shape.clients):
        name = f"c{number}"
        homes[name] = f"b{rng.randrange(shape.brokers)}"
        drawn = ((number * 100 + rng.randrange(4), random_subscription(rng)) for _ in range(shape.subscriptions))
        subscriptions = tuple(dict.fromkeys(drawn))
        publications = tuple((1_000 * each, number, random_attributes(rng)) for each in range(shape.publications))
        changes: list[Change] = []
        for at in range(min(shape.changes, len(subscriptions))):
            subscriber, text = subscriptions[at]
            changes.append((5_000 + 1_000 * at, "unsubscribe", subscriber, text))
            changes.append((5_500 + 1_000 * at, "subscribe", number * 100 + 50 + at, random_subscription(rng)))
        scripts[name] = PlainScript(subscriptions, publications, tuple(changes))
    return deployment(shape.brokers, edges, homes, scripts, seed, shape.parts, shape.links)


def structured_deployment(seed: int, shape: Shape) -> Deployment:
    """The same without the tree: brokers that join a structured overlay."""
    return without_tree(random_deployment(seed, shape), seed)


def without_tree(made: Deployment, seed: int) -> Deployment:
    """The deployment with brokers that join a structured overlay instead."""
    brokers = sum(node.role == "broker" for node in made.nodes)
    overlay = structured(Structured(brokers=brokers, digits=4), seed)
    places = join_plan(overlay, (), frozenset(), {}, seed)
    return dataclasses.replace(
        made,
        nodes=tuple(dataclasses.replace(node, place=places.get(node.name)) for node in made.nodes),
        links=tuple(plan for plan in made.links if plan.first not in places),
        settings=dataclasses.replace(made.settings, default_link=LinkSpec(delay=Delay("constant", 1_000))),
    )


def deployment(
    brokers: int,
    edges: list[tuple[str, str]],
    homes: dict[str, str],
    scripts: dict[str, PlainScript],
    seed: int = 1,
    parts: Mapping[str, Any] | None = None,
    links: LinkSpec = WAN,
) -> Deployment:
    """Brokers b0.., the edges between them, clients at their homes."""
    given: dict[str, Any] = dict(parts or PARTS)
    names = tuple(f"b{number}" for number in range(brokers))
    cells = Overlay(names, tuple(edges)).cell_plan(names)
    ends = {"entrances": names, "brokers": names}
    nodes = [NodeSpec(name, "broker", BROKER_FACTORY, given | ends, place=cells) for name in names]
    plans = [LinkPlan(first, second, links) for first, second in edges]
    for client, broker in homes.items():
        nodes.append(NodeSpec(client, "client", CLIENT_FACTORY, given | {"broker": broker}, broker))
        plans.append(LinkPlan(client, broker, LinkSpec(delay=Delay("constant", 200))))
    beside = LinkSpec(delay=Delay("constant", 1_000)) if reliability_named(given["reliability"]).end_to_end else None
    return Deployment(RunSettings(seed, default_link=beside), tuple(nodes), tuple(plans), scripts)


def played(scenario: Mapping[str, Any], folder: Path) -> VirtualRun:
    """The scenario of these keys, played in virtual time; its journal is in the folder."""
    run = VirtualRun(deployment_of(scenario), folder, lambda *_: None)
    run.play()
    return run


def reliability_at(run: VirtualRun, broker: str) -> Reliability:
    """The reliability part of a broker of the run."""
    machine = run.runtime.nodes[broker].machine
    assert isinstance(machine, Broker)
    return machine.reliability
