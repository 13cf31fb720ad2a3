"""A golden exchange: commands played on the virtual runtime, and every message that moved, in order, written down.

The head of a file is comments, then what of a scenario is not the default (`broker: {…}`, one key a line; links take
1 ms), then commands:

    overlay b0-b1 b1-b2          a tree of brokers, in place of a scenario's `overlay:`
    at 5 ms                      time passes; as the last line it ends the exchange, else all that is to come comes
    watch                        what has happened so far is not written down
    hide Ping Pong               these messages are not written down
    subscribe b0 1 x > 3         by the broker's own subscriber 1; unsubscribe the same
    publish b0 1 x=5             by the broker's own publisher 1
    (clients, if a `workload:` has some, take the places of brokers in these two)
    lose b0 b1 Data              the next message of that class from b0 to b1 is lost; lose b0 b1 Data 3: three of them
    cut b0 b1                    both ends know at once that the link is down; join b0 b1: it is up again, or new
    crash b1                     the broker's process is gone; restart b1
    order b0 move b1 b2          from whoever runs the overlay; the answer is written down
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from murmur_pubsub.deployment import LinkPlan, NodeSpec, make_machine
from murmur_pubsub.event import Event
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.journal import JournalWriter
from murmur_pubsub.machine import (
    Answer,
    Deliver,
    Effect,
    Input,
    LinkDown,
    Machine,
    Order,
    Publish,
    Send,
    Subscribe,
    Unsubscribe,
)
from murmur_pubsub.machine_around import MachineAround
from murmur_virtual.virtual_runtime import VirtualRuntime
from murmuration.deployment.build import build_overlay, build_workload
from murmuration.deployment.build_deployment import deploy
from murmuration.deployment.protocols import choose_protocols
from murmuration.scenario.load import check_scenario
from reliability.epidemic.messages import signature
from routing.smallworld.profile import attribute_key
from routing.smallworld.ring import RING_SIZE
from workloads.overlay import Overlay
from workloads.plan import Workload

DEFAULTS = {"runtime": "virtual", "last_mile": "broker", "workload": {}, "overlay": {}, "links": {"delay": "1 ms"}}
SEED = 1
LONGEST = 60
"""Of a longer list only the number of its elements is written down."""


class Watched(MachineAround):
    """A machine whose messages and deliveries are written down as they leave it."""

    def __init__(self, name: str, machine: Machine, exchange: "Exchange") -> None:
        super().__init__(machine)
        self.name, self.exchange = name, exchange

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        effects = self.inner.handle(input, now_us)
        return [each for each in effects if self.exchange.passes(self.name, each, now_us)]


class Exchange:
    """Plays the commands of one file; `lines` is what was written down."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[str] = []
        self.runtime: VirtualRuntime
        self._scenario: dict[str, Any] = dict(DEFAULTS)
        self._specs: Mapping[str, NodeSpec] = {}
        self._links: Mapping[frozenset[str], LinkPlan] = {}
        self._sequences: dict[int, int] = {}
        self._hidden: frozenset[str] = frozenset()
        self._to_lose: list[tuple[str, str, str]] = []
        self._hashed: dict[int, str] = {}
        """What stands on the wire for a filter or an attribute, with what it stands for."""

    def play(self, head: Sequence[str]) -> list[str]:
        """All that the commands bring about."""
        commands = [line for line in head if line.strip() and not line.startswith("#")]
        for line in commands:
            what, _, rest = line.partition(" ")
            if what.endswith(":"):
                self._scenario |= yaml.safe_load(line)
                continue
            if not self._specs and what != "overlay":
                self._start(None)
            getattr(self, f"_{what}")(*rest.split(" ", 2))
        if not commands[-1].startswith("at "):
            self.runtime.run()
        self.runtime.check_invariants()
        return self.lines

    def passes(self, name: str, effect: Effect, now_us: int) -> bool:
        """Write the effect down; False for a message that is lost."""
        at = f"{now_us / 1000:5.1f} ms  {name}"
        if isinstance(effect, Deliver):
            event, hops, subscribers = effect
            self.lines.append(f"{at} delivers {name_of(event)} to {', '.join(map(str, subscribers))}, {hops} hops")
        if isinstance(effect, Answer):
            self.lines.append(f"{at} answers: {effect.refusal or 'done'}")
        if not isinstance(effect, Send):
            return True
        kind = type(effect.message).__name__
        passing = (name, effect.to, kind)
        lost = passing in self._to_lose
        if lost:
            self._to_lose.remove(passing)
        if kind not in self._hidden:
            self.lines.append(f"{at} {'-x' if lost else '->'} {effect.to}  {self._words(effect.message)}")
        return not lost

    def _words(self, message: Any) -> str:
        fields = [
            f"{name} {self._word(value)}"
            for name, value in zip(message._fields, message, strict=True)
            if name != "header"
        ]
        return f"{type(message).__name__}: {', '.join(fields)}"

    def _word(self, value: Any) -> str:
        if isinstance(value, Event):
            return name_of(value)
        if isinstance(value, list | tuple):
            written = f"[{', '.join(map(self._word, value))}]"
            return written if len(written) <= LONGEST else f"[{len(value)} of them]"
        if type(value) is int and value >= RING_SIZE // 100:
            return self._hashed.get(value) or (f"{100 * value / RING_SIZE:.0f}%" if value < RING_SIZE else str(value))
        return str(value) if value != "" else "-"

    # ---------------------------------------------------------------------------------------- commands
    def _start(self, overlay: Overlay | None) -> None:
        loaded = check_scenario(self._scenario, "exchange")
        built = overlay or build_overlay(loaded)
        workload = build_workload(loaded, built) if self._scenario["workload"] else Workload(built, (), {}, 0)
        deployment = deploy(loaded, built, choose_protocols(loaded, built), workload)
        writer = JournalWriter(self.folder, "run", len(deployment.nodes))
        self.runtime = VirtualRuntime(SEED, writer, dict(deployment.numbers), deployment.settings.default_link)
        self._specs = {spec.name: spec for spec in deployment.nodes}
        self._links = {frozenset((plan.first, plan.second)): plan for plan in deployment.links}
        for spec in deployment.nodes:
            self.runtime.add_node(spec, self._machine(spec, 0))
        for plan in deployment.links:
            self.runtime.connect(plan)

    def _machine(self, spec: NodeSpec, incarnation: int) -> Machine:
        return Watched(spec.name, make_machine(spec, SEED, incarnation), self)

    def _overlay(self, *edges: str) -> None:
        pairs = [edge.split("-") for edge in " ".join(edges).split()]
        brokers = tuple(dict.fromkeys(name for pair in pairs for name in pair))
        self._start(Overlay(brokers, tuple((first, second) for first, second in pairs)))

    def _at(self, time_ms: str, _: str) -> None:
        self.runtime.run(until_us=int(float(time_ms) * 1_000))

    def _watch(self, _: str) -> None:
        self.lines.clear()

    def _hide(self, *kinds: str) -> None:
        self._hidden = frozenset(" ".join(kinds).split())

    def _subscribe(self, broker: str, subscriber: str, text: str) -> None:
        wanted = parse_filter(text)
        self._hashed[signature(wanted)] = f"<{text}>"
        self._hashed |= {attribute_key(name): name for name in wanted.attributes}
        self._give(broker, Subscribe(int(subscriber), wanted))

    def _unsubscribe(self, broker: str, subscriber: str, text: str) -> None:
        self._give(broker, Unsubscribe(int(subscriber), parse_filter(text)))

    def _publish(self, broker: str, publisher: str, pairs: str) -> None:
        source = int(publisher)
        self._sequences[source] = self._sequences.get(source, -1) + 1
        attributes: dict[str, Any] = {
            name: int(value) for name, _, value in (pair.partition("=") for pair in pairs.split())
        }
        self._give(broker, Publish(Event(source, self._sequences[source], self.runtime.now_us, attributes)))

    def _lose(self, source: str, to: str, what: str) -> None:
        kind, _, times = what.partition(" ")
        self._to_lose += [(source, to, kind)] * int(times or 1)

    def _cut(self, first: str, second: str) -> None:
        for name, peer in ((first, second), (second, first)):
            del self.runtime.nodes[name].links[peer]
            self._give(name, LinkDown(peer, "cut"))

    def _join(self, first: str, second: str) -> None:
        plan = self._links.get(frozenset((first, second)))
        self.runtime.connect(plan or replace(next(iter(self._links.values())), first=first, second=second))

    def _crash(self, broker: str) -> None:
        self.runtime.crash(broker)

    def _restart(self, broker: str) -> None:
        incarnation = self.runtime.nodes[broker].incarnation + 1
        self.runtime.restart(broker, self._machine(self._specs[broker], incarnation))

    def _order(self, broker: str, verb: str, *arguments: str) -> None:
        self._give(broker, Order(0, verb, " ".join(arguments).split()))

    def _give(self, broker: str, input: Input) -> None:
        self.runtime.nodes[broker].take_input(input, self.runtime.now_us)


def name_of(event: Event) -> str:
    """Publisher and number."""
    return f"{event.source}:{event.sequence}"
