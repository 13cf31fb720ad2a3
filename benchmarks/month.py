"""Some thousand nodes through a month of churn in virtual time, and what of a core that takes.

    python -m benchmarks.month [NODES] [DAYS]

Cyclon is the load of `benchmarks.engine`, here once in five minutes: what the runtime and churn take, beside a protocol
that does little. Nodes come and go as the generator of docs/churn.md has it, and about half of them are up at a time:
so it is played with twice the nodes, too. One that comes knows `VIEW` of those that are up. Beside it one day of
Vinifera and of its baseline, whose cycle is 45 minutes, as in Figure 5; what they have "answered" is their hit ratio.
"""

import multiprocessing
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.cyclon import VIEW, Cyclon, ShuffleReply
from benchmarks.table import print_table
from murmur_pubsub.deployment import NodeSpec
from murmur_pubsub.journal import JournalWriter
from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.machine import Effect, Input, NodeContext, Received, TimerFired
from murmur_virtual.virtual_runtime import VirtualRuntime
from murmuration.papers.lab.process_meter import ProcessMeter
from murmuration.papers.vinifera.run import ChurnSpec, measure_churn
from workloads.churn.generator import GeneratedChurn, generate

NODES, DAYS = 10_000, 28.0
CYCLE_S = 300
_DAY_S = 86_400
_SYSTEM_CYCLE_S = 2_700


class ChurnedCyclon(Cyclon):
    """Cyclon that forgets a peer that has not answered within a cycle."""

    __slots__ = ("_asked", "answered", "asked")

    def __init__(self, context: NodeContext) -> None:
        super().__init__(context)
        self._view = list(context.parameters["view"])
        self._asked: int | None = None
        self.asked = self.answered = 0

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        if isinstance(input, TimerFired):
            self._forget_silent()
            effects = super().handle(input, now_us)
            self._asked = int(effects[0].to)  # type: ignore[union-attr]
            self.asked += 1
            return effects
        if isinstance(input, Received) and isinstance(input.message, ShuffleReply):
            self._asked = None
            self.answered += 1
        return super().handle(input, now_us)

    def _forget_silent(self) -> None:
        if self._asked is not None and self._asked in self._view:
            self._view[self._view.index(self._asked)] = self._view[int(self._rng.random() * VIEW)]


def cyclon_month(nodes: int, days: float) -> Sequence[object]:
    """A row: what came out of that many days of that many nodes."""
    spent = ProcessMeter()
    trace = generate(GeneratedChurn(nodes, days), 1)
    rng = random.Random("benchmarks/month")
    names = [str(number) for number in range(nodes)]
    numbers = {name: number for number, name in enumerate(names)}
    up = [int(name[1:]) for name in trace.up_at(trace.begin_s)]
    places = {number: place for place, number in enumerate(up)}
    machines: list[ChurnedCyclon] = []
    changes = 0
    with tempfile.TemporaryDirectory() as folder:
        writer = JournalWriter(Path(folder), "run", nodes)
        link = LinkSpec(delay=Delay("uniform", 20_000, 70_000), ordered=False)
        runtime = VirtualRuntime(1, writer, numbers, link, journal_hops=False)

        def start(number: int) -> None:
            name = names[number]
            known = runtime.nodes.get(name)
            incarnation = 0 if known is None else known.incarnation + 1
            parameters = {"nodes": nodes, "names": names, "view": rng.choices(up, k=VIEW), "cycle_us": CYCLE_S * 10**6}
            machine = ChurnedCyclon(NodeContext(name, 1, parameters, incarnation))
            machines.append(machine)
            if known is None:
                runtime.add_node(NodeSpec(name, "broker", "", {}), machine)
            else:
                runtime.restart(name, machine)

        for number in list(up):
            start(number)
        population = [len(up)]
        for time_s, named, comes in trace.changes():
            runtime.run(until_us=(time_s - trace.begin_s) * 10**6)
            number, changes = int(named[1:]), changes + 1
            if comes:
                start(number)
                places[number] = len(up)
                up.append(number)
            else:
                runtime.crash(names[number], silently=True)
                place, last = places.pop(number), up.pop()
                if last != number:
                    up[place], places[last] = last, place
            population.append(len(up))
        runtime.run(until_us=int(days * _DAY_S) * 10**6)
        writer.close()
    asked, answered = sum(each.asked for each in machines), sum(each.answered for each in machines)
    mean_up = sum(population) / len(population)
    return (
        f"Cyclon, {nodes:,} nodes, every {CYCLE_S} s", f"{days:g}", f"{mean_up:,.0f}", f"{changes:,}",
        f"{runtime.processed:,}", f"{answered / asked:.3f}", f"{spent.cpu_s / 60:.1f}", f"{spent.memory_mb / 1000:.1f}",
        f"{days * _DAY_S / spent.cpu_s:,.0f}",
    )  # fmt: skip


def day_of(system: str, nodes: int) -> Sequence[object]:
    """A row of one day of a system of Figure 5."""
    spent = ProcessMeter()
    result = measure_churn(ChurnSpec(system, "generated", "skewed", nodes, 1.0, _SYSTEM_CYCLE_S, False))  # type: ignore[arg-type]
    delivered, interested = sum(result.delivered), sum(result.interested)
    population = sum(result.population) / len(result.population)
    return (
        f"{system}, {nodes:,} nodes, every {_SYSTEM_CYCLE_S} s", "1", f"{population:,.0f}", f"{sum(result.joined):,}",
        "", f"{delivered / interested:.3f}", f"{spent.cpu_s / 60:.1f}", f"{spent.memory_mb / 1000:.1f}",
        f"{_DAY_S / spent.cpu_s:,.0f}",
    )  # fmt: skip


def row(wanted: tuple[str, int, float]) -> Sequence[object]:
    """The row of that system with that many nodes, for that many days."""
    system, nodes, days = wanted
    return cyclon_month(nodes, days) if system == "cyclon" else day_of(system, nodes)


def main() -> None:
    """Print the table; each row is played in a process of its own."""
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else NODES
    days = float(sys.argv[2]) if len(sys.argv) > 2 else DAYS
    wanted = [("cyclon", 2 * nodes, days), ("vinifera", nodes, 1.0), ("ferry", nodes, 1.0), ("cyclon", nodes, days)]
    rows = []
    with multiprocessing.get_context("spawn").Pool(maxtasksperchild=1) as pool:
        for each in pool.imap(row, wanted, chunksize=1):
            rows.append(each)
            print(f"{len(rows)} of {len(wanted)}: {each[0]}", file=sys.stderr, flush=True)
    heading = ("what", "days", "up", "come and go", "events", "answered", "CPU min", "GB", "emulated s per CPU s")
    print_table("Nodes under generated churn (aim: a month of 10,000 nodes in 60 minutes of a core)", heading, rows)


if __name__ == "__main__":
    main()
