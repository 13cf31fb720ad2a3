"""A cluster that a program steers: start it, give commands to its clients, break it, ask the judge.

    with Cluster.start(overlay={"kind": "chain", "brokers": 3}, clients={"alice": "b0", "bob": "b2"}) as cluster:
        wanted = cluster.clients["bob"].subscribe("price > 10")
        cluster.settle()
        cluster.clients["alice"].publish({"price": 12})
        cluster.faults.kill("b1")
        ...
        cluster.verdict().assert_valid()

The same code runs in virtual time and on live Ray actors (`runtime="ray"`). A client gets each command at once;
emulated time passes in `advance`, `settle`, `wait_for` and `drain`. Everything is journaled as in a run of a scenario,
so `murmur analyze` and `murmur report` work on its folder.
"""

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from murmur_page.layout import layout_of, write_layout
from murmur_pubsub.deployment import Deployment
from murmur_pubsub.errors import InputError, RunError
from murmur_pubsub.event import Event, unpack_attributes
from murmur_pubsub.faults import Fault
from murmur_pubsub.filter import Filter
from murmur_pubsub.filter_parser import parse_subscription
from murmur_pubsub.journal import Phase, RowKind, SideKind, read_side
from murmur_pubsub.journal_rows import read_segment
from murmur_pubsub.links import LinkSpec
from murmur_pubsub.machine import Answer, Publish, Subscribe, Unsubscribe
from murmur_pubsub.script import ScriptedCommand
from murmur_pubsub.values import Value
from murmuration.deployment.build_deployment import build
from murmuration.harness.fault_handle import FaultHandle
from murmuration.harness.runtime import ClusterRuntime
from murmuration.harness.runtimes import cluster_runtime
from murmuration.results.verdict import JudgeName, Verdict, verdict_of
from murmuration.runs.manifest import fault_entry, manifest_of
from murmuration.runs.own_modules import find_own_modules
from murmuration.runs.run_folder import RunFolder
from murmuration.scenario.durations import duration_of
from murmuration.scenario.load import check_scenario
from murmuration.scenario.schema import Scenario

_STEP_US = 10_000
_ARGUMENTS = ("overlay", "clients", "routing", "reliability", "matching", "parameters", "runtime", "seed", "folder")
_GIVEN_OTHERWISE = {
    "broker": "the arguments routing, reliability, matching and parameters (in pytest: fixtures protocol, parameters)",
    "workload": "the argument clients (in pytest: the fixture attached); commands are given to them",
    "faults": "Cluster.faults (in pytest: the fixture faults), which breaks things now",
    "churn": "Cluster.faults (in pytest: the fixture faults), which breaks things now",
    "last_mile": "clients that are nodes of their own",
}
"""Keys of a scenario that would replace, without a word, what the arguments say, or that nothing would carry out."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event handed to a subscriber."""

    subscriber: int
    publisher: int
    sequence: int
    """The event's number: the events of one publisher count from 0."""
    attributes: Mapping[str, Value]
    delivered_us: int
    """Emulated time."""
    hops: int
    """How many links between brokers the event passed."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """What `Client.subscribe` gives and `Client.unsubscribe` takes."""

    subscriber: int
    filter: str


class Client:
    """A client node of the cluster; it is one publisher, and each of its subscriptions is a subscriber."""

    def __init__(self, cluster: "Cluster", name: str, broker: str, number: int) -> None:
        self.name = name
        self.broker = broker
        self.publisher = number
        self.subscriptions: list[Subscription] = []
        self._cluster = cluster
        self._sequence = 0
        self._issued: list[ScriptedCommand] = []

    def subscribe(self, wanted: str) -> Subscription:
        """Subscribe to what matches the filter, such as "price > 10 AND symbol = 'IBM' OR volume > 500"."""
        subscription = Subscription(self._cluster.next_subscriber(), wanted)
        self.subscriptions.append(subscription)
        self._change(Subscribe, subscription, parse_subscription(wanted, f"subscription of {self.name}"))
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Withdraw a subscription of this client."""
        self.subscriptions.remove(subscription)
        self._change(Unsubscribe, subscription, parse_subscription(subscription.filter))

    def publish(self, *events: Mapping[str, Value]) -> None:
        """Publish the events, in order. Raises `InputError` for one that cannot be, and publishes none."""
        commands = []
        for sequence, attributes in enumerate(events, self._sequence):
            event = Event(self.publisher, sequence, self._cluster.now_us, dict(attributes))
            event.check()
            commands.append(ScriptedCommand(Publish(event)))
        self._sequence += len(commands)
        self._cluster.issue(self.name, commands)

    def deliveries(self, subscription: Subscription | None = None) -> list[Delivery]:
        """What the subscribers of this client were handed so far, in order; or only those of that subscription."""
        return [
            delivery
            for delivery in self._cluster.deliveries(self.name)
            if subscription is None or delivery.subscriber == subscription.subscriber
        ]

    def renew(self) -> None:
        """Issue all subscriptions and withdrawals again, as a client does whose process was started again."""
        if self._issued:
            self._cluster.issue(self.name, self._issued)

    def _change(
        self, kind: type[Subscribe | Unsubscribe], subscription: Subscription, filters: Sequence[Filter]
    ) -> None:
        commands = [kind(subscription.subscriber, wanted) for wanted in filters]
        scripted = [ScriptedCommand(command, at) for at, command in enumerate(commands, len(self._issued))]
        self._cluster.issue(self.name, scripted)
        self._issued += scripted


class Cluster:
    """A running deployment; made by `Cluster.start`, ended by leaving its `with` block or by `verdict`."""

    def __init__(self, deployment: Deployment, new_link: LinkSpec, opened: ClusterRuntime, folder: RunFolder) -> None:
        self.folder = folder.folder
        numbers = deployment.numbers
        self.brokers = tuple(spec.name for spec in deployment.nodes if spec.role == "broker")
        self.clients = {
            spec.name: Client(self, spec.name, spec.broker or "", number)
            for number, spec in enumerate(spec for spec in deployment.nodes if spec.role == "client")
        }
        self.faults = FaultHandle(deployment, new_link, self._note_observed, self._break)
        self._numbers = numbers
        self._deployment = deployment
        self._runtime = opened
        self._folder = folder
        self._subscribers = 0
        self._over = False
        self._published_from_us: int | None = None

    @classmethod
    @contextlib.contextmanager
    def start(
        cls,
        overlay: Mapping[str, Any],
        clients: Mapping[str, str] | None = None,
        routing: str = "forwarding",
        reliability: str = "best_effort",
        matching: str = "bitset",
        parameters: Mapping[str, Mapping[str, Any]] | None = None,
        runtime: str = "virtual",
        seed: int = 1,
        folder: str | Path | None = None,
        **keys: Any,
    ) -> Iterator[Self]:
        """Start brokers and clients, and end them with the block.

        `clients` are names with their brokers; without them, each broker has one: `c0` at the first, and so on.
        `parameters` are those of the protocols, by the protocol's name, such as `{"epidemic": {"algorithm": "push"}}`.
        `keys` are further keys of a scenario, such as `links={"delay": "2 ms"}`, `failure_detection`, `hosts`,
        `datagrams`. The run folder is made in `folder`, or in a temporary place that is kept. Live, it begins a Ray of
        its own, so the program may not be in one already. Raises `InputError`.
        """
        for key in keys:
            if key in _GIVEN_OTHERWISE:
                raise InputError(f"Cluster.start, key {key}", f"{keys[key]!r:.60}", _GIVEN_OTHERWISE[key])
            if key not in Scenario.model_fields:
                allowed = dict.fromkeys([*_ARGUMENTS, *Scenario.model_fields])
                raise InputError(f"Cluster.start, key {key}", "an unknown key", ", ".join(allowed))
        data = {
            "name": "cluster",
            "runtime": runtime,
            "seed": seed,
            "overlay": dict(overlay),
            "workload": {"kind": "by_hand", "clients": dict(clients or {})},
            "broker": {
                "matching": matching,
                "routing": routing,
                "reliability": reliability,
                "parameters": {name: dict(each) for name, each in (parameters or {}).items()},
            },
            **keys,
        }
        find_own_modules()
        loaded = check_scenario(data, "Cluster.start")
        built = build(loaded)
        place = Path(tempfile.mkdtemp(prefix="murmur-cluster-")) / "run" if folder is None else Path(folder)
        run_folder = RunFolder.make(place, manifest_of(loaded, built))
        try:
            write_layout(place, layout_of(built.deployment))
            if built.deployment.settings.keep_inputs:  # a replay asks the scenario what a node is made of
                run_folder.write_scenario(loaded.data)
            with cluster_runtime(runtime, built.deployment, run_folder.folder) as opened:
                cluster = cls(built.deployment, loaded.scenario.links.spec(), opened, run_folder)
                try:
                    opened.start()
                    opened.enter(Phase.SUBSCRIBING)
                    yield cluster
                    cluster.end()
                finally:
                    cluster._close()
        finally:
            if run_folder.manifest.status != "complete":
                run_folder.write(replace(run_folder.manifest, status="interrupted"))

    def __repr__(self) -> str:
        counts = f"{len(self.brokers)} brokers and {len(self.clients)} clients"
        over = ", over" if self._over else f" at {self.now_us / 1e6:.3f} s"
        return f"<Cluster of {counts}{over}: {self.folder}>"

    # ---------------------------------------------------------------------------------------------- time
    @property
    def now_us(self) -> int:
        """Emulated time."""
        return self._runtime.now_us

    def advance(self, stretch: str) -> None:
        """Let that much emulated time pass, such as "500 ms"."""
        self._runtime.advance(duration_of(stretch, "time"))

    def settle(self) -> None:
        """Wait until every subscription issued so far is known wherever it must be, and all links are up."""
        self._runtime.settle()

    def wait_for(self, condition: Callable[[], bool], within: str = "10 s") -> None:
        """Let time pass until the condition holds; raises AssertionError if it does not within that time."""
        limit_us = self.now_us + duration_of(within, "time")
        while not condition():
            assert self.now_us < limit_us, f"it did not happen within {within} (run folder: {self.folder})"
            self._runtime.advance(_STEP_US)

    def drain(self) -> None:
        """Wait until nothing moves any more; under `end_to_end`, until no machine waits for anything."""
        self._runtime.drain()

    # ------------------------------------------------------------------------------------------- the end
    def end(self) -> None:
        """Drain and stop; the journal is complete then. Nothing can be done afterwards."""
        if self._over:
            return
        self._runtime.enter(Phase.DRAINING)
        self._runtime.drain()
        self._runtime.enter(Phase.STOPPED)
        self._runtime.finish()
        self._note_observed()
        self._close()
        self._folder.write(replace(self._folder.manifest, status="complete", writers=self._runtime.writers))

    def verdict(self, judge: JudgeName = "spark") -> Verdict:
        """End the cluster and have Spark, or the judge in plain Python, say what happened; `auto`: as `Run.verdict`."""
        self.end()
        return verdict_of(self.folder, judge)

    def _close(self) -> None:
        if not self._over:
            self._over = True
            self._runtime.close()

    # ------------------------------------------------------------------------------------------- clients
    def next_subscriber(self) -> int:
        """A subscriber number that is not in use."""
        self._subscribers += 1
        return self._subscribers - 1

    def issue(self, name: str, commands: Sequence[ScriptedCommand]) -> None:
        """Have the client carry out commands now; raises `RunError` if its process is not running."""
        if self._over:
            raise RunError("the cluster is over")
        if not self.faults.runs(name):
            raise RunError(f"{name} is not running")
        if self._published_from_us is None and any(type(scripted.command) is Publish for scripted in commands):
            self._published_from_us = self.now_us
            self._runtime.enter(Phase.PUBLISHING)
        self._runtime.issue(name, commands)

    def deliveries(self, name: str) -> list[Delivery]:
        """What the node's journal says it delivered so far."""
        attributes: dict[tuple[int, int], Mapping[str, Value]] = {}
        journal = self.folder / "journal"
        for path in sorted(journal.glob("*.blob")):
            for kind, fields in read_side(path):
                if kind is SideKind.EVENT:
                    attributes[fields[0], fields[1]] = unpack_attributes(fields[3])
        found = []
        for path in sorted(journal.glob("*.seg")):
            _, rows = read_segment(path)
            for row in rows[(rows["kind"] == RowKind.DELIVER) & (rows["node"] == self._numbers[name])]:
                event = (int(row["source"]), int(row["sequence"]))
                found.append(
                    Delivery(int(row["value"]), *event, attributes[event], int(row["time_us"]), int(row["hops"]))
                )
        return sorted(found, key=lambda delivery: delivery.delivered_us)

    # -------------------------------------------------------------------------------------------- faults
    def order(self, verb: str, name: str, *arguments: str, within: str = "30 s") -> Answer:
        """Tell a broker to do something (`faults.order`), and let time pass until it has answered. A refusal is an
        answer too; raises AssertionError if there is none within that time."""
        return self._answered(self.faults.order(verb, name, *arguments), within)

    def join_cell(self, name: str, cell: str, to: Sequence[str] | None = None, within: str = "30 s") -> Answer:
        """Start a broker that is not there yet and have it join a cell, as `faults.join_cell`; its answer."""
        return self._answered(self.faults.join_cell(name, cell, to), within)

    def _answered(self, number: int, within: str) -> Answer:
        self.wait_for(lambda: self.answer(number) is not None, within)
        answer = self.answer(number)
        assert answer is not None
        return answer

    def answer(self, number: int) -> Answer | None:
        """What has become of the order of that number; None: it is not answered yet, or its broker's process died."""
        for path in sorted((self.folder / "journal").glob("*.blob")):
            for kind, fields in read_side(path):
                if kind is SideKind.ANSWER and fields[2] == number:
                    return Answer(number, fields[3])
        return None

    def _break(self, fault: Fault) -> int:
        if self._over:
            raise RunError("the cluster is over")
        with self._runtime.undisturbed():  # a death that another thread sees has a number and an entry of its own
            self._note_observed()
            step = self._enter_fault(fault)
            came = self._runtime.carry_out(step, fault)
        for name in came:
            if name in self.clients:
                self.clients[name].renew()
        return step

    def _note_observed(self) -> None:
        """What has happened without an order since this was asked last: a process that died by itself."""
        with self._runtime.undisturbed():
            for step, fault in self._runtime.observed.items():
                if step == len(self._folder.manifest.faults):
                    self._enter_fault(fault, by_itself=True)
                    self.faults.note(fault)

    def _enter_fault(self, fault: Fault, by_itself: bool = False) -> int:
        """Put the fault into the manifest; its step."""
        since_us = None if self._published_from_us is None else self.now_us - self._published_from_us
        before = self._folder.manifest.faults
        entry = replace(fault_entry(fault, self._deployment, by_itself, before), time_us=since_us)
        faults = (*before, entry)
        self._folder.write(replace(self._folder.manifest, faults=faults))
        return len(faults) - 1
