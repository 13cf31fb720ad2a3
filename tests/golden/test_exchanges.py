"""Golden exchanges: small interleavings written down whole, message by message, to be read by people.

A file holds commands and, below a line of dashes, every message that moved, in order. Regenerate with
`MURMUR_REWRITE=1 pytest tests/golden` and commit only differences that you can explain.

Commands, one a line: `overlay b0-b1 b1-b2` (first; links take 1 ms), `at 5 ms`, `subscribe b0 1 x > 3`,
`unsubscribe b0 1 x > 3`, `publish b0 1 x=5`, `cut b0 b1`, `join b0 b1`.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from murmur_pubsub.deployment import LinkPlan, NodeSpec, make_machine
from murmur_pubsub.event import Event
from murmur_pubsub.filter_parser import parse_filter
from murmur_pubsub.journal import JournalWriter
from murmur_pubsub.links import Delay, LinkSpec
from murmur_pubsub.machine import Deliver, Effect, Input, LinkDown, Machine, Publish, Send, Subscribe, Unsubscribe
from murmur_virtual.virtual_runtime import VirtualRuntime
from tests.deployments import PARTS

EXCHANGES = sorted((Path(__file__).parent / "exchanges").glob("*.txt"))
RULE = "-" * 20
LINK = LinkSpec(delay=Delay("constant", 1_000))


class Watched:
    """A machine whose messages and deliveries are written down as they leave it."""

    def __init__(self, name: str, machine: Machine, lines: list[str]) -> None:
        self.name, self.machine, self.lines = name, machine, lines
        self.message_types = machine.message_types
        self.check_invariants = machine.check_invariants

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        effects = self.machine.handle(input, now_us)
        for effect in effects:
            if isinstance(effect, Send):
                self.lines.append(f"{now_us / 1000:5.1f} ms  {self.name} -> {effect.to}  {words(effect.message)}")
            elif isinstance(effect, Deliver):
                event, hops, subscribers = effect
                who = f"{name_of(event)} to {', '.join(map(str, subscribers))}, {hops} hops"
                self.lines.append(f"{now_us / 1000:5.1f} ms  {self.name} delivers {who}")
        return effects


def words(message: Any) -> str:
    fields = [
        f"{name} {name_of(value) if isinstance(value, Event) else value}"
        for name, value in zip(message._fields, message, strict=True)
        if name != "header"
    ]
    return f"{type(message).__name__}: {', '.join(fields)}"


def name_of(event: Event) -> str:
    return f"{event.source}:{event.sequence}"


class Exchange:
    """Plays the commands of one file on the virtual runtime."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[str] = []
        self.sequences: dict[int, int] = {}
        self.runtime: VirtualRuntime

    def play(self, commands: list[str]) -> list[str]:
        for command in commands:
            what, _, rest = command.partition(" ")
            getattr(self, f"_{what}")(*rest.split(" ", 2))
        self.runtime.run()
        self.runtime.check_invariants()
        return self.lines

    def _overlay(self, *edges: str) -> None:
        pairs = [edge.split("-") for edge in " ".join(edges).split()]
        names = list(dict.fromkeys(name for pair in pairs for name in pair))
        writer = JournalWriter(self.folder, "run", len(names))
        self.runtime = VirtualRuntime(1, writer, {name: number for number, name in enumerate(names)})
        for name in names:
            spec = NodeSpec(name, "broker", "murmuration.registry:make_broker", PARTS)
            self.runtime.add_node(spec, Watched(name, make_machine(spec, 1), self.lines))
        for first, second in pairs:
            self._join(first, second)

    def _at(self, time_ms: str, _: str) -> None:
        self.runtime.run(until_us=int(float(time_ms) * 1_000))

    def _subscribe(self, broker: str, subscriber: str, text: str) -> None:
        self._tell(broker, Subscribe(int(subscriber), parse_filter(text)))

    def _unsubscribe(self, broker: str, subscriber: str, text: str) -> None:
        self._tell(broker, Unsubscribe(int(subscriber), parse_filter(text)))

    def _publish(self, broker: str, publisher: str, pairs: str) -> None:
        source = int(publisher)
        self.sequences[source] = self.sequences.get(source, -1) + 1
        attributes: dict[str, Any] = {
            name: int(value) for name, _, value in (pair.partition("=") for pair in pairs.split())
        }
        self._tell(broker, Publish(Event(source, self.sequences[source], self.runtime.now_us, attributes)))

    def _cut(self, first: str, second: str) -> None:
        for name, peer in ((first, second), (second, first)):
            del self.runtime.nodes[name].links[peer]
            self._tell(name, LinkDown(peer, "cut"))

    def _join(self, first: str, second: str) -> None:
        self.runtime.connect(LinkPlan(first, second, LINK))

    def _tell(self, name: str, input: Input) -> None:
        self.runtime.nodes[name].take_input(input, self.runtime.now_us)


@pytest.mark.parametrize("path", EXCHANGES, ids=lambda path: path.stem)
def test_the_exchange_is_as_written(path: Path, tmp_path: Path) -> None:
    head, _, expected = path.read_text().partition(RULE + "\n")
    commands = [line for line in head.splitlines() if line.strip() and not line.startswith("#")]
    happened = "\n".join(Exchange(tmp_path).play(commands)) + "\n"
    if os.environ.get("MURMUR_REWRITE"):
        path.write_text(f"{head}{RULE}\n{happened}")
    assert happened == expected or os.environ.get("MURMUR_REWRITE")


def test_there_are_exchanges() -> None:
    assert len(EXCHANGES) >= 5
