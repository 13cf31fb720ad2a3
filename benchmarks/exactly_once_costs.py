"""What exactly once over any overlay costs: messages by kind, hops, delays and CPU, beside best effort.

`python -m benchmarks.exactly_once_costs multipath` plays DT1 of the multipath paper under S0 and S2; with `--faults`
brokers are killed and links lose messages. `python -m benchmarks.exactly_once_costs churn` plays Vinifera through days
of the Skype trace (`MURMUR_DATA` names its folder). Both reliabilities are played with the same seeds, clients, faults
and journal, each run in a process of its own, and judged.

Counted are the messages between brokers that are sent after the warm-up and before the end of publishing, and the
deliveries of events that are published then. CPU is that of the process in the same part of the run: brokers, clients,
runtime and journal together.
"""

import argparse
import dataclasses
import functools
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.exactly_once_counts import FATES, GONE, Course, count_by_fate, count_messages, measure_deliveries
from benchmarks.table import print_table
from murmur_pubsub.deployment import Deployment
from murmur_pubsub.errors import InputError
from murmur_pubsub.journal import Phase
from murmur_pubsub.journal_rows import read_rows
from murmur_pubsub.machine import Effect, Input, Send, SetTimer, Subscribe, TimerFired
from murmur_virtual.run import VirtualRun
from murmuration.hunt.trial import deployment_of, judge_faults
from murmuration.papers.lab.real_data import real_file
from reliability.durable.client import DurableClient
from reliability.durable.messages import Resume
from reliability.end_to_end.end_to_end import END_TO_END

Scenario = dict[str, Any]
RELIABILITIES = ("best_effort", "end_to_end")
_GATHERED = ("benchmark", "gathered")
_GATHER_US = 500
_LOSS = 0.01
_OUTAGE = "2 s"
_LOOK_US = 10_000
_DRAIN_S = 20
"""What is missing then stays so: a run with questions at rest does not fall quiet."""


class GatheringClient(DurableClient):
    """Says once what it subscribes to, after the last of its subscriptions that come at one time. The client that it
    stands for says all of it again with each one, and a client of DT1 has 55: minutes before anything is measured."""

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        """See `murmur_pubsub.machine.Machine`."""
        if type(input) is TimerFired and input.key == _GATHERED:
            return [self._resume()] if self._connected else []
        effects = super().handle(input, now_us)
        if type(input) is not Subscribe:
            return effects
        kept = [each for each in effects if type(each) is not Send or type(each.message) is not Resume]
        return [*kept, SetTimer(_GATHERED, _GATHER_US)] if len(kept) < len(effects) else effects


GATHERING = dataclasses.replace(END_TO_END, name="end_to_end_gathering", client=GatheringClient)
"""As `end_to_end`, with such clients."""
_GATHERING_AT = "benchmarks.exactly_once_costs:GATHERING"


@dataclass(frozen=True, slots=True)
class Costs:
    """Of one run. `excused`: missing deliveries that a fault excuses; `missing`: those that none does. `messages`,
    `bytes`: between brokers, by kind, a second. `wrong`: duplicate, spurious or out of order."""

    system: str
    reliability: str
    seed: int
    verdict: str
    reason: str
    published: int
    required: int
    excused: int
    missing: int
    wrong: int
    hops: float
    delay_ms: float
    p99_ms: float
    messages: Mapping[str, float]
    bytes: Mapping[str, float]
    cpu_s: float
    seconds: float
    fates: Mapping[str, tuple[int, int]]
    """Required and made, by what became of the two brokers."""

    @property
    def hit_ratio(self) -> float:
        """Deliveries made of those required whose two brokers are there in the end."""
        there = [counts for fate, counts in self.fates.items() if fate != GONE]
        return sum(made for _, made in there) / max(1, sum(required for required, _ in there))


@dataclass(frozen=True, slots=True)
class Job:
    """One run to be made: what the tables call its system, and its scenario under best effort."""

    system: str
    scenario: Scenario
    warm_s: float
    reliability: str


class TimedRun(VirtualRun):
    """Notes when publishing has gone on for `warm_us`, when it ends, and the CPU between the two.

    While brokers come and go the runtime asks all of them after every message whether they have settled, which takes
    many times what they do themselves. This run asks every `_LOOK_US`.
    """

    warm_us = 0
    look_us = 0
    begins_us = 0
    ends_us = 0
    cpu_s = 0.0

    def enter(self, phase: Phase) -> None:
        """See `VirtualRun`."""
        super().enter(phase)
        if phase is Phase.PUBLISHING:
            self.runtime.call_at(self.runtime.now_us + self.warm_us, self._begin)
        elif phase is Phase.DRAINING:
            if not self.begins_us:
                raise InputError("the warm-up", f"{self.warm_us / 1e6} s", "less than publishing takes")
            self.cpu_s = time.process_time() - self.cpu_s
            self.ends_us = self.runtime.now_us

    def after_entry(self) -> None:
        """See `VirtualRun`."""
        if self.runtime.now_us >= self.look_us:
            self.look_us = self.runtime.now_us + _LOOK_US
            super().after_entry()

    def _begin(self, now_us: int) -> None:
        self.begins_us, self.cpu_s = now_us, time.process_time()


# ------------------------------------------------------------------------------------------------------ scenarios
def multipath_scenario(strategy: str, seed: int, brokers: int, seconds: float, warm_s: float, faults: bool) -> Scenario:
    """DT1 as `murmur paper multipath` has it, with a client at each broker in place of its own subscribers."""
    link: Scenario = {"delay": "1 ms"} | ({"loss": _LOSS} if faults else {})
    multipath = {"strategy": strategy, "fanout": 35, "maxlinks": 45, "round": "5 s", "load_exchange": "2500 ms"}
    workload = {
        "kind": "multipath", "dataset": "DT1", "publications": int(60 * (seconds + warm_s)), "rate_per_s": 60
    }  # fmt: skip
    return {
        "name": "exactly-once-costs", "seed": seed, "runtime": "virtual",
        "overlay": {"kind": "balanced", "brokers": brokers, "degree": 3},
        "workload": workload,
        "broker": {"routing": "multipath", "reliability": "best_effort", "parameters": {"multipath": multipath}},
        "links": link, "datagrams": link, "drain": {"quiet": "1 s", "limit": f"{_DRAIN_S} s"},
        "faults": kills(brokers, seed, warm_s, seconds) if faults else [],
    }  # fmt: skip


def kills(brokers: int, seed: int, warm_s: float, seconds: float) -> list[Scenario]:
    """An eighth of the brokers is killed, one after the other in the measured time, and each is back after a while."""
    chosen = random.Random(f"{seed}/kills").sample(range(brokers), max(1, brokers // 8))
    gap_ms = int(1_000 * seconds / (len(chosen) + 1))
    return [
        {"at": f"{int(1_000 * warm_s) + (place + 1) * gap_ms} ms", "kill": f"b{number}", "for": _OUTAGE}
        for place, number in enumerate(chosen)
    ]


def churn_scenario(seed: int, nodes: int, days: float, trace: str, warm_s: float) -> Scenario:
    """Vinifera with a client at each node; a sixth of them publish. Every sixth node stays, the others come and go
    as those of the trace. A day passes in a minute, as in the scenario `vinifera-live`; a cycle takes a second."""
    seconds = days * 86_400 / 1_440
    return {
        "name": "exactly-once-churn", "seed": seed, "runtime": "virtual",
        "overlay": {"kind": "structured", "brokers": nodes, "probe": "1 s", "probe_timeout": "500 ms"},
        "workload": {
            "kind": "zipf", "clients": nodes, "subscribers_per_actor": 1, "publishers": nodes // 6,
            "publications": int(10 * (seconds + warm_s)), "rate_per_s": 10, "attributes": 1, "predicates": 1,
            "exponent": 1.0, "matching_rate": 0.2,
        },
        "broker": {
            "routing": "vinifera", "reliability": "best_effort",
            "parameters": {"vinifera": {"degree": 10, "friend_links": 4, "attributes": {"a0": {"min": 0, "max": 1}}}},
        },
        "datagrams": {"delay": "1 ms"}, "drain": {"quiet": "1 s", "limit": f"{_DRAIN_S} s"},
        "churn": {
            "trace": trace, "window": [4, 4 + days], "speed": 1_440, "select": "random", "shortest": "2 s",
            "who": [f"b{number}" for number in range(nodes) if number % 6], "begin": f"{warm_s} s",
        },
    }  # fmt: skip


def as_reliable(scenario: Scenario, reliability: str) -> Deployment:
    """The deployment of the scenario under that reliability; pubends are at the brokers with publishers."""
    plain = deployment_of(scenario)
    if reliability == "best_effort":
        return plain
    homes = {spec.broker: None for spec in plain.nodes if _publishes(plain, spec.name)}
    broker = scenario["broker"]
    parameters = broker["parameters"] | {GATHERING.name: {"pubends": list(homes)}}
    return deployment_of(scenario | {"broker": broker | {"reliability": _GATHERING_AT, "parameters": parameters}})


def _publishes(deployment: Deployment, name: str) -> bool:
    script = deployment.scripts.get(name)
    return script is not None and next(iter(script.publications), None) is not None


# ----------------------------------------------------------------------------------------------------------- runs
def measure(job: Job) -> Costs:
    """Play, judge and count; the CPU is this process's (give it one of its own)."""
    deployment = as_reliable(job.scenario, job.reliability)
    is_broker = np.array([spec.role == "broker" for spec in deployment.nodes] + [False])
    with tempfile.TemporaryDirectory() as folder:
        run = TimedRun(deployment, Path(folder), lambda *_: None)
        run.warm_us = int(1e6 * job.warm_s)
        run.play()
        outcome = judge_faults(deployment, Path(folder))
        rows = read_rows(Path(folder))
    course = Course(rows, is_broker, run.begins_us, run.ends_us)
    seconds = (run.ends_us - run.begins_us) / 1e6
    messages, sizes = count_messages(course)
    delivered = measure_deliveries(course)
    numbers = outcome.judgement.numbers
    missing = len(outcome.unexplained)
    return Costs(
        job.system, job.reliability, job.scenario["seed"], numbers["verdict"], numbers["reason"], numbers["published"],
        numbers["required"], numbers["missing"] - missing, missing,
        sum(len(outcome.judgement.left(name)) for name in ("duplicate", "spurious", "out_of_order")),
        delivered.hops, delivered.mean_ms, delivered.p99_ms,
        {kind: count / seconds for kind, count in messages.items()},
        {kind: count / seconds for kind, count in sizes.items()}, run.cpu_s, seconds,
        count_by_fate(deployment, rows, outcome.verdict.required_pairs, outcome.verdict.missing),
    )  # fmt: skip


def measure_all(jobs: Sequence[Job]) -> list[Costs]:
    """One after the other, each told when it is there."""
    found = []
    with ProcessPoolExecutor(1, max_tasks_per_child=1) as pool:
        for costs in pool.map(measure, jobs):
            found.append(costs)
            print(costs, file=sys.stderr, flush=True)
    return found


# --------------------------------------------------------------------------------------------------------- tables
Column = tuple[str, Callable[[int], float]]


def spread(values: Sequence[float]) -> str:
    """Their mean, and the least and the largest of them."""
    found = (statistics.mean(values), min(values), max(values))
    mean, least, largest = (f"{value:,.{2 if abs(value) < 100 else 0}f}" for value in found)
    return mean if least == largest else f"{mean} ({least}-{largest})"


def measures_of(costs: Sequence[Costs]) -> dict[str, Callable[[Costs], float]]:
    """What the rows of a table are, and how to find each in a run."""
    kinds = dict.fromkeys(kind for each in costs for kind in each.messages)
    rows: dict[str, Callable[[Costs], float]] = {
        "hit ratio": lambda each: each.hit_ratio,
        "hops": lambda each: each.hops,
        "delay, ms": lambda each: each.delay_ms,
        "delay p99, ms": lambda each: each.p99_ms,
    }
    for kind in kinds:
        rows[f"{kind}, a second"] = functools.partial(lambda kind, each: each.messages.get(kind, 0.0), kind)
    rows["all messages, a second"] = lambda each: sum(each.messages.values())
    rows["kB between brokers, a second"] = lambda each: sum(each.bytes.values()) / 1_000
    rows["CPU ms for each second"] = lambda each: 1_000 * each.cpu_s / each.seconds
    return rows


def print_costs(title: str, costs: Sequence[Costs]) -> None:
    """Both reliabilities of each system, what the second takes of the first, and what came of required deliveries."""
    systems = list(dict.fromkeys(each.system for each in costs))
    of = {(system, name): [each for each in costs if (each.system, each.reliability) == (system, name)]
          for system in systems for name in RELIABILITIES}  # fmt: skip
    headings = [""]
    for system in systems:
        headings += [f"{system}, best effort", "exactly once", "ratio"]
    if len(systems) == 2:
        headings.append(f"{systems[1]} to {systems[0]}, exactly once")
    rows = []
    for name, value in measures_of(costs).items():
        row = [name]
        for system in systems:
            plain, reliable = ([value(each) for each in of[system, which]] for which in RELIABILITIES)
            row += [spread(plain), spread(reliable), ratio(reliable, plain)]
        if len(systems) == 2:
            first, second = ([value(each) for each in of[system, "end_to_end"]] for system in systems)
            row.append(ratio(second, first))
        rows.append(row)
    print_table(title, headings, rows)
    print_table(
        "Deliveries, all seeds together: how many were not made, and those made by what became of the two brokers",
        ("", "published", "required", "excused", "missing", "wrong", *FATES, "verdicts"),
        [(f"{system}, {name}", *deliveries(held)) for (system, name), held in of.items()],
    )


def deliveries(costs: Sequence[Costs]) -> list[str]:
    """A row of the second table."""
    sums = (
        sum(getattr(each, what) for each in costs) for what in ("published", "required", "excused", "missing", "wrong")
    )
    fates = []
    for fate in FATES:
        required, made = (sum(each.fates[fate][at] for each in costs) for at in (0, 1))
        fates.append(f"{made:,} of {required:,}")
    return [*(f"{count:,}" for count in sums), *fates, ", ".join(each.verdict for each in costs)]


def ratio(above: Sequence[float], below: Sequence[float]) -> str:
    """Seed by seed."""
    return spread([one / other for one, other in zip(above, below, strict=True)]) if all(below) else "-"


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("multipath", "churn"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--faults", action="store_true", help="multipath: kills and losses")
    parser.add_argument("--nodes", type=int, default=120, help="brokers of the overlay")
    parser.add_argument("--seconds", type=float, default=20, help="multipath: how long is measured")
    parser.add_argument("--warm", type=float, default=20, help="seconds of publishing before that")
    parser.add_argument("--days", type=float, default=2, help="churn: days of the trace")
    given = parser.parse_args()
    if given.what == "churn":
        trace = str(real_file("skype.avt"))
        scenarios = [
            ("Vinifera", churn_scenario(seed, given.nodes, given.days, trace, given.warm)) for seed in given.seeds
        ]
    else:
        scenarios = [
            (strategy, multipath_scenario(strategy, seed, given.nodes, given.seconds, given.warm, given.faults))
            for strategy in ("S0", "S2")
            for seed in given.seeds
        ]
    jobs = [Job(system, data, given.warm, name) for system, data in scenarios for name in RELIABILITIES]
    print_costs(f"{given.what}: {given.nodes} brokers, seeds {', '.join(map(str, given.seeds))}", measure_all(jobs))


if __name__ == "__main__":
    main()
