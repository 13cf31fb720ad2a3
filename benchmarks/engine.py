"""Virtual-time events a second: Cyclon as machines on the runtime against the bare loop, in one run."""

import heapq
import random
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.bare_loop import run_bare_loop
from benchmarks.cyclon import CYCLE_US, Cyclon
from benchmarks.table import print_table
from murmur_pubsub.deployment import NodeSpec
from murmur_pubsub.journal import JournalWriter
from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.machine import NodeContext
from murmur_virtual.event_queue import EventQueue, QueueEntry
from murmur_virtual.virtual_runtime import VirtualRuntime

SIZES = ((1_000, 100), (10_000, 100))
_ROUNDS = 3


def run_machines(nodes: int, cycles: int) -> int:
    """Run Cyclon machines with the bare loop's delays; how many events were handled."""
    names = [str(number) for number in range(nodes)]
    link = LinkSpec(delay=Delay("uniform", 20_000, 70_000), ordered=False)
    with tempfile.TemporaryDirectory() as folder:
        writer = JournalWriter(Path(folder), "run", nodes)
        numbers = {name: number for number, name in enumerate(names)}
        runtime = VirtualRuntime(1, writer, numbers, link, journal_hops=False)
        for name in names:
            parameters = {"nodes": nodes, "names": names}
            runtime.add_node(NodeSpec(name, "broker", "", {}), Cyclon(NodeContext(name, 1, parameters)))
        runtime.run(until_us=cycles * CYCLE_US)
        writer.close()
    return runtime.processed


def measure() -> list[tuple[object, ...]]:
    """One row a size: best of interleaved rounds, so that a noisy neighbour hits both."""
    rows: list[tuple[object, ...]] = []
    for nodes, cycles in SIZES:
        best = {"bare": float("inf"), "machines": float("inf")}
        events = {"bare": 0, "machines": 0}
        for _ in range(_ROUNDS):
            for name, runner in (("bare", run_bare_loop), ("machines", run_machines)):
                began = time.perf_counter()
                events[name] = runner(nodes, cycles)
                best[name] = min(best[name], time.perf_counter() - began)
        rows.append(
            (
                f"{nodes:,}",
                f"{events['machines']:,}",
                f"{best['bare']:.2f}",
                f"{best['machines']:.2f}",
                f"{events['machines'] / best['machines']:,.0f}",
                f"{best['machines'] / best['bare']:.2f}",
            )
        )
    return rows


def _queue_us(queue: Any, entries: int) -> float:
    """Microseconds for a pop and a push, with so many entries in the queue all the time."""
    rng = random.Random("benchmark/queue")
    for _ in range(entries):
        queue.push(int(rng.random() * CYCLE_US), None, 0, None, None)
    later = [int(rng.random() * CYCLE_US) for _ in range(entries)]
    began = time.perf_counter()
    for _ in range(10):
        for stretch in later:
            queue.push(queue.pop()[0] + stretch, None, 0, None, None)
    return (time.perf_counter() - began) * 1e6 / (10 * entries)


class _Heap:
    """The same face over one heap."""

    def __init__(self) -> None:
        self._entries: list[QueueEntry] = []
        self._pushed = 0

    def push(self, time_us: int, node: None, kind: int, payload: None, source: None) -> None:
        self._pushed += 1
        heapq.heappush(self._entries, (time_us, self._pushed, node, kind, payload, source))

    def pop(self) -> QueueEntry:
        return heapq.heappop(self._entries)


def measure_queues() -> list[tuple[object, ...]]:
    """The queue alone against a heap of the same entries."""
    rows: list[tuple[object, ...]] = []
    for entries in (1_000, 10_000, 100_000):
        heap_us, buckets_us = (_queue_us(queue, entries) for queue in (_Heap(), EventQueue()))
        rows.append((f"{entries:,}", f"{heap_us:.2f}", f"{buckets_us:.2f}", f"{buckets_us / heap_us:.2f}"))
    return rows


def main() -> None:
    """Print both tables."""
    print_table("The event queue: a push and a pop", ("entries", "heap us", "buckets us", "ratio"), measure_queues())
    print_table(
        "Virtual time: Cyclon, 100 cycles (aim: at most 1.5 times the bare loop at 10,000 nodes)",
        ("nodes", "events", "bare loop s", "machines s", "events/s", "ratio"),
        measure(),
    )


if __name__ == "__main__":
    main()
