"""Live benchmarks: publications a second, hops a second against a bare ring, start-up an actor against a bare one.

Times come from the journals, on the run's own clock: from the first publication to the last delivery or hop.
"""

import random
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import ray

from actors.ray_session import RaySession, ray_session
from actors.run import LiveRun
from benchmarks.bare_actor import BareActor
from benchmarks.bare_ring import run_bare_ring
from benchmarks.quotes import quote, quote_filters
from benchmarks.ring import HOPS
from benchmarks.table import print_table
from murmur_pubsub.deployment import Deployment, LinkPlan, NodeSpec, RunSettings
from murmur_pubsub.journal import RowKind
from murmur_pubsub.journal_rows import read_segment
from murmur_pubsub.links import LinkSpec
from murmur_pubsub.script import Change
from murmur_pubsub.values import Value
from murmuration.registry import BROKER_FACTORY, CLIENT_FACTORY

PUBLISHERS = 8
FILTERS = 200
PUBLICATIONS = 20_000
_PARTS = {"matching": "bitset", "routing": "forwarding", "reliability": "best_effort"}
RING_PARTS = {"matching": "bitset", "routing": "benchmarks.ring:RingRouting", "reliability": "best_effort"}
PADRES = {1: 2_915, 3: 1_732}
"""Publications a second of a Java broker of the field under this load, for one broker and a chain of three."""


@dataclass(frozen=True, slots=True)
class Script:
    """A script written out."""

    subscriptions: tuple[tuple[int, str], ...] = ()
    publications: tuple[tuple[int, int, dict[str, Value]], ...] = ()
    changes: tuple[Change, ...] = ()


def play(session: RaySession, deployment: Deployment) -> tuple[LiveRun, np.ndarray]:
    """Run it; the finished run and all rows of its journal."""
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder) / "journal"
        journal.mkdir()
        run = LiveRun(deployment, Path(folder), lambda *_: None, "127.0.0.1", session)
        run.play()
        return run, np.concatenate([read_segment(path)[1] for path in sorted(journal.glob("*.seg"))])


def seconds_between(rows: np.ndarray, first: RowKind, last: RowKind) -> float:
    """From the first row of one kind to the last of another."""
    times = rows["time_us"]
    return float(times[rows["kind"] == last].max() - times[rows["kind"] == first].min()) / 1e6


def throughput(session: RaySession, brokers: int) -> tuple[object, ...]:
    """Publishers at the first broker of a chain, as fast as it takes them; subscribers of 200 filters at the last."""
    rng = random.Random("benchmark/throughput")
    nodes = [NodeSpec(f"b{number}", "broker", BROKER_FACTORY, _PARTS) for number in range(brokers)]
    links = [LinkPlan(f"b{number}", f"b{number + 1}", LinkSpec()) for number in range(brokers - 1)]
    scripts = {}
    for number in range(PUBLISHERS):
        events = tuple((0, number, quote(rng)) for _ in range(PUBLICATIONS))
        scripts[f"p{number}"] = Script(publications=events)
    filters = tuple(enumerate(quote_filters(FILTERS, rng)))
    scripts["s0"] = Script(subscriptions=filters)
    homes = {f"p{number}": "b0" for number in range(PUBLISHERS)} | {"s0": f"b{brokers - 1}"}
    for client, broker in homes.items():
        nodes.append(NodeSpec(client, "client", CLIENT_FACTORY, {"broker": broker}, broker))
        links.append(LinkPlan(client, broker, LinkSpec()))
    deployment = Deployment(RunSettings(1, journal_hops=False), tuple(nodes), tuple(links), scripts)
    _, rows = play(session, deployment)
    published = int((rows["kind"] == RowKind.PUBLISH).sum())
    delivered = int((rows["kind"] == RowKind.DELIVER).sum())
    assert published == PUBLISHERS * PUBLICATIONS
    assert not (rows["kind"] == RowKind.DROP).any()
    per_s = published / seconds_between(rows, RowKind.PUBLISH, RowKind.DELIVER)
    return (
        brokers,
        f"{published:,}",
        f"{delivered:,}",
        f"{per_s:,.0f}",
        f"{PADRES[brokers]:,}",
        f"{per_s / PADRES[brokers]:.1f}",
    )


def ring(session: RaySession, actors: int, messages: int) -> tuple[object, ...]:
    """The same number of messages round the bare ring and round a ring of brokers that match."""
    bare_hops, bare_ms = run_bare_ring(actors, messages)
    rng = random.Random("benchmark/ring")
    parts = RING_PARTS | {"brokers": actors}
    nodes = tuple(NodeSpec(f"b{number}", "broker", BROKER_FACTORY, parts) for number in range(actors))
    links = tuple(LinkPlan(f"b{number}", f"b{(number + 1) % actors}", LinkSpec()) for number in range(actors))
    scripts = {
        spec.name: Script(publications=tuple((0, number, quote(rng)) for _ in range(messages // actors)))
        for number, spec in enumerate(nodes)
    }
    _, rows = play(session, Deployment(RunSettings(1), nodes, links, scripts))
    sent, received = (
        rows[(rows["kind"] == kind) & (rows["sequence"] >= 0)] for kind in (RowKind.SEND, RowKind.RECEIVE)
    )
    assert len(sent) == len(received) == messages // actors * actors * HOPS
    order = ["source", "sequence", "hops"]
    took_us = np.sort(received, order=order)["time_us"] - np.sort(sent, order=order)["time_us"]
    hops = len(received) / seconds_between(rows, RowKind.PUBLISH, RowKind.RECEIVE)
    mean_ms = took_us.mean() / 1e3
    return (
        actors, f"{bare_hops:,.0f}", f"{hops:,.0f}", f"{hops / bare_hops:.2f}",
        f"{bare_ms:.1f}", f"{mean_ms:.1f}", f"{mean_ms / bare_ms:.1f}", f"{np.quantile(took_us, 0.99) / 1e3:.1f}",
    )  # fmt: skip


def start_up(session: RaySession, actors: int) -> tuple[object, ...]:
    """Seconds an actor, bare and as a broker, started in the same waves; and of a core, what a bare one takes before it
    answers at all, and what a broker's imports add."""
    began = time.perf_counter()
    bare, cpu_s = [], []
    for first in range(0, actors, 8):
        wave = [ray.remote(num_cpus=0)(BareActor).remote() for _ in range(min(8, actors - first))]
        cpu_s += ray.get([actor.cpu_s.remote() for actor in wave])
        bare += wave
    bare_s = (time.perf_counter() - began) / actors
    modules = ("actors.node_actor", BROKER_FACTORY.partition(":")[0])
    imports_s = ray.get([actor.import_modules.remote(modules) for actor in bare[:8]])
    for actor in bare:
        ray.kill(actor)
    nodes = tuple(NodeSpec(f"b{number}", "broker", BROKER_FACTORY, _PARTS) for number in range(actors))
    links = tuple(LinkPlan(f"b{number}", f"b{number + 1}", LinkSpec()) for number in range(actors - 1))
    run, _ = play(session, Deployment(RunSettings(1), nodes, links, {}))
    broker_s = run.wall_seconds["starting"] / actors
    return (
        actors, f"{bare_s:.3f}", f"{broker_s:.3f}", f"{broker_s / bare_s:.2f}",
        f"{statistics.median(cpu_s):.3f}", f"{statistics.median(imports_s):.3f}",
    )  # fmt: skip


def main() -> None:
    """Print the three tables."""
    with ray_session(128) as session:
        print_table(
            f"Live: {PUBLISHERS} publisher actors, {FILTERS} filters, all deliveries made (aim: 5 times PADRES)",
            ("brokers", "publications", "deliveries", "publications/s", "PADRES", "ratio"),
            [throughput(session, brokers) for brokers in (1, 3)],
        )
        print_table(
            f"Live: a ring, {HOPS} hops a message, {FILTERS} filters matched at each (aim: 0.4 of the bare ring)",
            ("actors", "bare hops/s", "hops/s", "ratio", "bare ms", "mean ms", "ratio", "p99 ms"),
            [ring(session, actors, messages) for actors, messages in ((8, 2_000), (32, 2_016), (100, 2_000))],
        )
        print_table(
            "Live: start-up seconds an actor; seconds of a core that a bare one takes, and that a broker's imports add",
            ("actors", "bare actor", "broker", "ratio", "bare CPU", "imports CPU"),
            [start_up(session, 16)],
        )


if __name__ == "__main__":
    main()
