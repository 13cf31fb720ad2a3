"""What could one run win on two cores? A run on one core whose entries are timed, cut into windows.

`python -m benchmarks.windows [SCENARIO [KEY=VALUE …]]` plays the scenario (the default one) in virtual time. Two parts
go from window to window, each as long as the least delay of a link between brokers. In each the busier part is waited
for; what the parts tell each other after it is assumed to cost 20, 50, 100 or 200 microseconds (docs/decisions/0044).
"""

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import networkx as nx

from benchmarks.table import print_table
from murmur_pubsub.deployment import Deployment
from murmur_virtual.event_queue import QueueEntry
from murmur_virtual.run import VirtualRun
from murmuration.deployment.build_deployment import build
from murmuration.scenario.load import load_scenario

_SYNC_US = (20, 50, 100, 200)
Timed = tuple[int, str | None, int]
"""Time in the run, the node (None: links, faults and clients' scripts), and nanoseconds taken."""


def timed(deployment: Deployment) -> list[Timed]:
    """Play the deployment; what each entry of the queue took, in order."""
    log: list[Timed] = []
    with tempfile.TemporaryDirectory() as folder:
        run = VirtualRun(deployment, Path(folder), lambda *_: None)
        queue, clock = run.runtime.queue, time.perf_counter_ns
        began = clock()
        entry: QueueEntry | None = None

        class TimedQueue(type(queue)):  # type: ignore[misc]
            """Notes what passes between one entry and the next."""

            __slots__ = ()

            def pop(self) -> QueueEntry | None:
                nonlocal began, entry
                if entry is not None:
                    node = entry[2]
                    log.append((entry[0], None if node is None else node.spec.name, clock() - began))
                began, entry = clock(), super().pop()
                return entry

            def unpop(self) -> None:
                nonlocal entry
                entry = None
                super().unpop()

        queue.__class__ = TimedQueue
        run.play()
    return log


def halves(deployment: Deployment, log: Sequence[Timed]) -> dict[str, int]:
    """Two parts with about as much work, neighbours in the overlay together; a client is in its broker's."""
    home = {spec.name: spec.broker or spec.name for spec in deployment.nodes}
    work: Counter[str] = Counter()
    for _, name, ns in log:
        if name is not None:
            work[home[name]] += ns
    overlay: nx.Graph[str] = nx.Graph()
    overlay.add_nodes_from(home.values())
    overlay.add_edges_from((home[plan.first], home[plan.second]) for plan in deployment.links)
    part, done, whole = {}, 0, sum(work.values())
    for broker in nx.dfs_preorder_nodes(overlay) if nx.is_connected(overlay) else list(overlay):
        part[broker] = int(done >= whole / 2)
        done += work[broker]
    return {name: part[broker] for name, broker in home.items()}


def row(log: Sequence[Timed], part: Mapping[str, int], window_us: int) -> tuple[object, ...]:
    """Entries, windows, and one core's time divided by two's."""
    waited_ns = windows = at = 0
    while at < len(log):
        end_us, busy_ns = log[at][0] + window_us, [0, 0]
        while at < len(log) and log[at][0] < end_us:
            _, name, ns = log[at]
            busy_ns[0 if name is None else part[name]] += ns
            at += 1
        waited_ns += max(busy_ns)
        windows += 1
    total_ns = sum(ns for _, _, ns in log)
    factors = [f"{total_ns / (waited_ns + windows * sync_us * 1_000):.2f}" for sync_us in (0, *_SYNC_US)]
    return f"{len(log):,}", f"{total_ns / len(log) / 1_000:.1f}", f"{len(log) / windows:.1f}", *factors


def main() -> None:
    """Print the table."""
    scenario, *changes = sys.argv[1:] or ["default"]
    deployment = build(load_scenario(Path(scenario), ["runtime=virtual", *changes]), None).deployment
    home = {spec.name: spec.broker or spec.name for spec in deployment.nodes}
    specs = [plan.spec for plan in deployment.links if home[plan.first] != home[plan.second]]
    if deployment.settings.default_link is not None:
        specs.append(deployment.settings.default_link)
    window_us = min((0 if spec.delay.kind == "normal" else spec.delay.low_us for spec in specs), default=0)
    if not window_us:
        sys.exit(f"{scenario}: a link between brokers has no delay, so there is no window")
    log = timed(deployment)
    print_table(
        f"{scenario} in windows of {window_us:,} us: one core's time divided by that of two",
        ("entries", "us each", "a window", "no cost", *(f"{sync_us} us" for sync_us in _SYNC_US)),
        [row(log, halves(deployment, log), window_us)],
    )


if __name__ == "__main__":
    main()
