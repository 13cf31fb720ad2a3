"""A node's state at a moment: what its machine holds after the inputs that it had taken until then."""

from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from murmur_pubsub.errors import InputError
from murmuration.commands.main import application
from murmuration.runs.described_state import StateLine, StateTable, described
from murmuration.runs.driver import execute
from murmuration.runs.kept_inputs import NodeAt, node_at
from murmuration.scenario.load import check_scenario

SCENARIO: dict[str, Any] = {
    "name": "kept", "runtime": "virtual", "keep_inputs": True,
    "overlay": {"kind": "chain", "brokers": 3},
    "workload": {"kind": "by_hand", "clients": {"c0": "b0", "c2": "b2"}},
    "links": {"delay": "10 ms"},
    "faults": [
        {"at": "1 s", "subscribe": "c2", "filter": "price > 10"},
        {"at": "2 s", "publish": "c0", "event": {"price": 11}},
        {"at": "3 s", "kill": "b1", "for": "1 s"},
    ],
    "lasts": "6 s",
}  # fmt: skip
PUBLISHING_US = 12_000
"""When publishing began, or a little later."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return execute(check_scenario(SCENARIO, "test"), tmp_path_factory.mktemp("kept") / "run", lambda *_: None).folder


def line(found: NodeAt, title: str, name: str) -> StateLine:
    (table,) = (table for table in found.tables if table.title == title)
    (wanted,) = (each for each in table.lines if each.name == name)
    return wanted


def test_a_broker_knows_a_filter_once_its_message_has_come(run: Path) -> None:
    received = "router: SubscriptionForwarding", "received"
    before, after = (node_at(run, "b1", PUBLISHING_US + time_us) for time_us in (980_000, 1_050_000))
    assert line(before, *received).entries == ["b0: ()", "b2: ()"]
    assert line(after, *received).entries == ["b0: ()", "b2: (price > 10: 0)"]
    assert after.inputs == before.inputs + 1
    assert before.last_us is not None
    assert after.last_us is not None
    assert before.last_us < 1_000_000 < after.last_us


def test_what_it_took_and_what_came_of_it_is_told(run: Path) -> None:
    found = node_at(run, "b1", PUBLISHING_US + 2_050_000)
    last = found.recent[-1]
    assert last.input.startswith("Received(source='b0', message=Forwarded(event=Event(0:0 ")
    assert [effect.split(",")[0] for effect in last.effects] == ["Send(to='b2'"]
    client = node_at(run, "c2", PUBLISHING_US + 2_050_000)
    assert client.recent[-1].effects[0].startswith("Deliver(")


def test_a_node_that_was_started_again_is_its_next_incarnation(run: Path) -> None:
    down, back = (node_at(run, "b1", PUBLISHING_US + time_us) for time_us in (3_500_000, 4_500_000))
    assert [down.incarnation, back.incarnation] == [0, 1]
    assert down.last_us is not None
    assert down.last_us < PUBLISHING_US + 3_000_000
    assert back.last_us is not None
    assert back.last_us > PUBLISHING_US + 3_900_000


def test_the_command_prints_it(run: Path) -> None:
    done = CliRunner().invoke(application, ["replay", str(run), "--node", "b1", "--at", "1.1 s"])
    assert done.exit_code == 0
    assert "b1, incarnation 0, after " in done.output
    assert "    b2: (price > 10: 0)\n" in done.output
    assert "1.0" in done.output.split("what came of them")[1]
    wrong = CliRunner().invoke(application, ["replay", str(run), "--node", "b1", "--at", "soon"])
    assert isinstance(wrong.exception, InputError)


def test_a_run_that_kept_none_says_how_to_keep_them(tmp_path: Path) -> None:
    without = check_scenario(SCENARIO | {"keep_inputs": False}, "test")
    run = execute(without, tmp_path / "run", lambda *_: None).folder
    with pytest.raises(InputError, match="murmur run --keep-inputs"):
        node_at(run, "b1", 0)
    with pytest.raises(InputError, match="a node of the run"):
        node_at(run, "../b1", 0)


class Part:
    """A part that knows the whole, and has no words."""

    def __init__(self, whole: object) -> None:
        self.whole = whole
        self.act = lambda: None
        self.wanted = {("b", 2), ("a", 1)}


@dataclass
class Whole:
    """What a protocol of a user's own may look like."""

    name: str = "whole"
    gone: None = None
    kept: dict[str, None] = field(default_factory=lambda: {"x": None, "y": None})
    nested: dict[int, list[int]] = field(default_factory=lambda: {1: list(range(10))})
    many: deque[int] = field(default_factory=lambda: deque(range(60)))
    parts: dict[str, Part] = field(default_factory=dict)


def test_a_state_is_told_part_by_part_and_no_more_of_it_than_can_be_read() -> None:
    whole = Whole()
    whole.parts["left"] = Part(whole)
    first, second = described(whole)
    lines = {each.name: each for each in first.lines}
    assert first.title == "Whole"
    assert lines["name"] == StateLine("name", "whole", [])
    assert lines["gone"].value == "none"
    assert lines["kept"] == StateLine("kept", "2", ["x", "y"])
    assert lines["nested"].entries == ["1: (0, 1, 2, 3, 4, 5, 6, 7 and 2 more)"]
    assert (lines["many"].value, len(lines["many"].entries)) == ("60", 50)
    assert second == StateTable("parts[left]: Part", [StateLine("wanted", "2", ["(a, 1)", "(b, 2)"])])
