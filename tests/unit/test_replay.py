"""`murmur replay`: a node of a run, run again from the inputs that the runtime recorded."""

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgpack
import pytest
from typer.testing import CliRunner

from murmur_pubsub.client import CLIENT_MESSAGES
from murmur_pubsub.codec import Codec
from murmur_pubsub.errors import InputError
from murmur_pubsub.machine import Effect, Input, LinkDown, LinkUp, Received, TimerFired
from murmur_pubsub.recorded_inputs import RecordedInput, packed_input, read_inputs
from murmur_virtual import input_watch
from murmuration.commands.main import application
from murmuration.commands.replay import replay_node
from murmuration.runs.driver import execute
from murmuration.scenario.load import check_scenario
from reliability.broker import Broker
from routing.flooding import Flooding

CELLS = {
    "kind": "cells", "cells": {"p": ["p1"], "m": ["b1", "b2"], "s": ["s1"]}, "links": [["p", "m"], ["m", "s"]],
    "redundancy": {"m": 2},
}  # fmt: skip
PACED = {"kind": "paced", "publishers": {"p1": 2}, "subscribers": {"s1": 2}, "rate_per_s": 25, "seconds": 2}
ZIPF = {
    "kind": "zipf", "clients": 6, "subscribers_per_actor": 2, "publishers": 2, "publications": 60, "rate_per_s": 100,
    "matching_rate": 0.3,
}  # fmt: skip
TREE = {"kind": "random", "brokers": 6, "degree": 3}
RUNS: dict[str, dict[str, Any]] = {
    "forwarding": {"overlay": TREE, "workload": ZIPF, "links": {"loss": 0.1}},
    "epidemic": {
        "overlay": TREE, "workload": ZIPF, "links": {"loss": 0.2}, "datagrams": {"delay": "2 ms"},
        "broker": {"reliability": "epidemic", "parameters": {"epidemic": {"algorithm": "push", "interval": "50 ms"}}},
    },
    "gryphon": {
        "overlay": CELLS, "workload": PACED,
        "broker": {
            "routing": "cells", "reliability": "gryphon", "parameters": {"gryphon": {"pubends": {"p1": 2}}}
        },
    },
    "multipath": {
        "overlay": TREE, "workload": ZIPF, "datagrams": {"delay": "1 ms"},
        "broker": {"routing": "multipath", "parameters": {"multipath": {"round": "100 ms"}}},
    },
    "irbr": {
        "overlay": {"kind": "structured", "brokers": 8, "base": 4, "digits": 4}, "workload": {**ZIPF, "clients": 8},
        "datagrams": {"delay": "2 ms"}, "broker": {"routing": "irbr"},
    },
}  # fmt: skip


def played(folder: Path, name: str = "forwarding", **changes: Any) -> Path:
    scenario = {"name": name, "seed": 5, "runtime": "virtual", "keep_inputs": True, **RUNS[name], **changes}
    execute(check_scenario(scenario, "test"), folder / "run", lambda *_: None)
    return folder / "run"


@pytest.mark.parametrize("name", RUNS)
def test_every_node_does_again_what_it_did(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    brokers = ["p1", "b2", "s1"] if name == "gryphon" else ["b0", "b3"]
    faults = [{"at": "200 ms", "kill": brokers[-1], "for": "100 ms"}]
    run = played(tmp_path, name, faults=faults, failure_detection={"heartbeat": "100 ms", "timeout": "300 ms"})
    for node, incarnation in [*((each, 0) for each in brokers), (brokers[-1], 1), ("c0", 0)]:
        replay_node(run, node, incarnation, show=False)
        said = re.fullmatch(r"(.*), incarnation (.): ([\d,]+) inputs .*, as in the run\n", capsys.readouterr().out)
        assert said is not None
        assert said[1] == node
        assert int(said[3].replace(",", "")) > 5


def test_a_machine_that_does_something_else_is_found_at_the_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = played(tmp_path, broker={"routing": "flooding"})
    plain = Flooding.next_hops

    def other(self: Flooding, event: Any, came_from: str | None, header: Sequence[int]) -> Any:
        hops = plain(self, event, came_from, header)
        return hops[1:] if event.sequence == 7 else hops

    monkeypatch.setattr(Flooding, "next_hops", other)
    done = CliRunner().invoke(application, ["replay", str(run), "--node", "b0"])
    assert done.exit_code == 1
    assert "the effects are not those of the run" in done.output
    assert ":7 at" in done.output


def test_what_a_machine_raises_is_shown_with_its_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = played(tmp_path)
    plain = Broker.handle

    def raising(self: Broker, input: Input, now_us: int) -> Sequence[Effect]:
        if type(input) is Received and now_us > 100_000:
            raise ZeroDivisionError("planted")
        return plain(self, input, now_us)

    monkeypatch.setattr(Broker, "handle", raising)
    done = CliRunner().invoke(application, ["replay", str(run), "--node", "b0"])
    assert done.exit_code == 1
    assert "the machine raised" in done.output
    assert "ZeroDivisionError: planted" in done.output
    assert "Received(source=" in done.output


def test_a_machine_that_never_comes_back_is_shown_with_its_input_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = played(tmp_path)
    plain = Broker.handle

    def looping(self: Broker, input: Input, now_us: int) -> Sequence[Effect]:
        while type(input) is Received and now_us > 100_000:
            pass
        return plain(self, input, now_us)

    monkeypatch.setattr(Broker, "handle", looping)
    monkeypatch.setattr(input_watch, "LOOK_EVERY_S", 0.05)
    done = CliRunner().invoke(application, ["replay", str(run), "--node", "b0"])
    assert done.exit_code == 1
    assert "the machine has not come back after 1 s" in done.output
    assert ", in looping" in done.output
    assert "Received(source=" in done.output


def test_inputs_that_a_kill_cut_off_are_left_out(tmp_path: Path) -> None:
    run = played(tmp_path)
    path = run / "journal" / "c0-0.inputs"
    whole = path.read_bytes()
    recorded = list(read_inputs("here", whole, CLIENT_MESSAGES))
    for cut in range(1, 200, 7):
        some = list(read_inputs("here", whole[:-cut], CLIENT_MESSAGES))
        assert [each.input for each in some] == [each.input for each in recorded[: len(some)]]
        assert all(each.digest is not None for each in some[:-1])


def test_an_input_whose_effects_were_not_recorded_is_replayed_all_the_same() -> None:
    """A machine that raised, or was killed while at it, has left no digest: in the middle and at the end."""
    codec = Codec(CLIENT_MESSAGES)
    first, second, third = LinkUp("b0", True), LinkDown("b0", "gone"), TimerFired(("client",))
    inputs: list[Input] = [first, second, third]
    packed = [packed_input(each, time_us, codec) for time_us, each in enumerate(inputs, 1)]
    data = packed[0] + packed[1] + msgpack.packb([7]) + packed[2]
    assert list(read_inputs("here", data, CLIENT_MESSAGES)) == [
        RecordedInput(1, first, None), RecordedInput(2, second, 7), RecordedInput(3, third, None),
    ]  # fmt: skip


def test_bad_input_is_named(tmp_path: Path) -> None:
    run = played(tmp_path)
    with pytest.raises(InputError, match=r"--node: found 'b9'; allowed: a node of the run: b0 to"):
        replay_node(run, "b9", 0, show=False)
    with pytest.raises(InputError, match=r"b0-1.inputs: found no recorded inputs; allowed: a run with keep_inputs"):
        replay_node(run, "b0", 1, show=False)
    with pytest.raises(InputError, match=r"no scenario\.yaml"):
        replay_node(tmp_path, "b0", 0, show=False)
    path = run / "journal" / "b0-0.inputs"
    path.write_bytes(b"\xc1" + path.read_bytes())  # no msgpack begins like that
    with pytest.raises(InputError, match=r"b0-0.inputs, record 0: found no recorded input"):
        replay_node(run, "b0", 0, show=False)
    path.write_bytes(path.read_bytes()[1:] + b"\xc1")
    count = len(list(msgpack.Unpacker(io.BytesIO(path.read_bytes()[:-1]))))
    with pytest.raises(InputError, match=rf"b0-0.inputs, record {count}: found no recorded input"):
        replay_node(run, "b0", 0, show=False)
