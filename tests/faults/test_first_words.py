"""What a broker sends as it starts, and what is sent to it before: the same on live actors as in virtual time."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

from murmur_pubsub.journal import RowKind
from murmur_pubsub.journal_rows import read_segment
from murmur_pubsub.machine import Effect, Input, NodeContext, NodeName, Received, Record, Send, Start
from murmur_pubsub.message import message
from murmur_pubsub.run_manifest import read_manifest
from murmuration import Cluster
from reliability.best_effort import BestEffort
from reliability.layer import BrokerServices
from routing.protocol import NoParameters

BROKERS = ("b0", "b1", "b2", "new")


@message(200)
class Greeting(NamedTuple):
    """From a broker that has just started, by its number of incarnations; or an answer to that."""

    incarnation: int
    answers: bool


class Greeter(BestEffort):
    """Best effort that greets all brokers as it starts, and journals whose greetings and answers it gets."""

    message_types = (*BestEffort.message_types, Greeting)

    def __init__(self, context: NodeContext, parameters: NoParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        self.context = context
        self.started = False

    def handle(self, input: Input, now_us: int) -> Sequence[Effect]:
        assert self.started or type(input) is Start, "nothing comes before the start"
        if type(input) is Start:
            self.started = True
            greeting = Greeting(self.context.incarnation, False)
            return [Send(other, greeting) for other in BROKERS if other != self.context.name]
        if type(input) is Received and type(input.message) is Greeting:
            incarnation, answers = input.message
            heard = Record(int(answers), incarnation, input.source)
            return [heard] if answers else [heard, Send(input.source, Greeting(incarnation, True))]
        return super().handle(input, now_us)


def heard(folder: Path) -> set[tuple[NodeName, NodeName, str, int]]:
    """Who heard whom, with what, and which incarnation it was about."""
    names = [node.name for node in read_manifest(folder).nodes]
    found = set()
    for path in (folder / "journal").glob("*.seg"):
        rows = read_segment(path)[1]
        for row in rows[rows["kind"] == RowKind.PROTOCOL]:
            what = "answer" if row["bytes"] else "greeting"
            found.add((names[row["node"]], names[row["peer"]], what, int(row["value"])))
    return found


def first_words_are_heard(runtime: Literal["virtual", "ray"], folder: Path) -> None:
    with Cluster.start(
        {"kind": "chain", "brokers": 3},
        {"alice": "b0"},
        reliability="tests.faults.test_first_words:Greeter",
        newcomers=["new"],
        datagrams={"delay": "1 ms"},
        runtime=runtime,
        folder=folder,
    ) as cluster:
        cluster.settle()
        cluster.faults.kill("b1")
        cluster.faults.restart("b1")
        cluster.settle()
        cluster.faults.join("new", "b2")
        cluster.settle()
        cluster.advance("200 ms")
    there = BROKERS[:3]
    pairs = [(first, second, 0) for first in there for second in there if first != second]
    pairs += [("b1", second, 1) for second in ("b0", "b2")] + [("new", second, 0) for second in there]
    greetings = {(second, first, "greeting", incarnation) for first, second, incarnation in pairs}
    answers = {(first, second, "answer", incarnation) for first, second, incarnation in pairs}
    assert heard(folder) == greetings | answers


def test_what_a_broker_sends_as_it_starts_arrives_and_is_answered(tmp_path: Path) -> None:
    first_words_are_heard("virtual", tmp_path / "run")


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("live_ray")
def test_live_what_a_broker_sends_as_it_starts_arrives_and_is_answered(tmp_path: Path) -> None:
    first_words_are_heard("ray", tmp_path / "run")
