"""A protocol that breaks its contract ends the run with one message: node, time, input, place, what is allowed, and the
command that shows it again. The same on both runtimes."""

import pickle
import re
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from murmur_pubsub.errors import RunError
from murmur_pubsub.event import Event
from murmur_pubsub.links import LinkSpec
from murmur_pubsub.machine import Publish
from murmur_pubsub.protocol_error import ProtocolError, overdue_error
from murmur_virtual import input_watch, virtual_node
from murmur_virtual import run as virtual_run
from murmur_virtual.run import play_virtual
from murmuration.commands import main as command_line
from tests.actors.net import Net
from tests.actors.net import run as run_net
from tests.conformance.broken_protocols import EFFECTS
from tests.deployments import PARTS, PlainScript, deployment

HERE = "tests.conformance.broken_protocols:"
IN_FILE = r"broken_protocols\.py:\d+, in "


def play(folder: Path, **parts: str) -> ProtocolError:
    """What ends a run of two brokers, at whose first n = 0, 1, 2, … is published."""
    publications = tuple((number * 1_000, 0, {"n": number}) for number in range(5))
    script = PlainScript(((0, "n >= 0"),), publications)
    given = {**PARTS, "routing": "flooding", **{part: HERE + name for part, name in parts.items()}}
    (folder / "journal").mkdir()
    with pytest.raises(ProtocolError) as caught:
        play_virtual(
            deployment(2, [("b0", "b1")], {"c0": "b0"}, {"c0": script}, parts=given, links=LinkSpec()),
            folder / "journal",
            lambda *_: None,
        )
    assert str(folder) in str(caught.value)
    return caught.value


def test_a_protocol_that_raises_is_named_with_its_input_and_its_line(tmp_path: Path) -> None:
    error = play(tmp_path, reliability="AtTheSecond")
    assert (error.node, error.incarnation) == ("b0", 0)
    assert (error.time_us or 0) > 1_000
    assert error.what == "raised ValueError: a planted mistake"
    assert re.search(IN_FILE + r"AtTheSecond\.wrong$", error.place or "")
    assert error.input.startswith("Received(source='c0', message=Publication(event=Event(0:2")
    assert f"run folder: {tmp_path}" in str(error)


@pytest.mark.parametrize(
    ("parts", "what", "place"),
    [
        ({"reliability": "Exits"}, "raised SystemExit: 3", r"Exits\.wrong"),
        ({"reliability": "NotMade"}, "raised KeyError: 'no such thing'", r"NotMade\.__init__"),
        ({"reliability": "Inconsistent"}, "raised AssertionError: one and one", r"Inconsistent\.check_invariants"),
    ],
)  # fmt: skip
def test_whatever_a_protocol_raises_is_told_alike(tmp_path: Path, parts: dict[str, str], what: str, place: str) -> None:
    error = play(tmp_path, **parts)
    assert error.what.startswith(what)
    assert re.search(IN_FILE + place, error.place or "")


@pytest.mark.parametrize(
    ("parts", "found", "allowed"),
    [
        ({"reliability": "SendsToNobody"}, "a Send to 'b99'", "a node of the run: b0, b1, c0"),
        ({"reliability": "SendsWhatNobodyReads"}, r"a message that b1 cannot read \(a Forwarded has", "fields as"),
        ({"reliability": "TimerOfNobody"}, r"a timer \('own', 1\)", "begins with 'routing' or 'reliability'"),
        ({"reliability": "PersistsText"}, "'text', which is of type str, under 1", "bytes under a number"),
        ({"reliability": "PersistsAgain"}, "the token 3 after 3", "tokens that grow"),
        ({"reliability": "WaitsForNothing"}, "None as `waiting`", "True or False"),
        ({"reliability": "SettlingMethod"}, r"as `settling` \(is it a method without @property\?\)", "True or False"),
        ({"routing": "Hands"}, r"\['b1'\] from next_hops of Hands", r"a list of Hop\(peer, header\)"),
        ({"routing": "HandsTuples"}, r"\[\('b1', \(\)\)\] from next_hops", r"a list of Hop\(peer, header\)"),
        ({"routing": "HandsNothing"}, "None from next_hops", r"a list of Hop\(peer, header\)"),
        ({"routing": "HandsOnlyOne"}, r"Hop\(peer='b1', header=\(\)\) from next_hops", r"a list of Hop"),
        ({"routing": "ForgetsEffects"}, "None from ForgetsEffects", "a list or tuple of effects"),
    ],
)  # fmt: skip
def test_what_a_part_hands_back_wrongly_is_refused_with_what_is_allowed(
    tmp_path: Path, parts: dict[str, str], found: str, allowed: str
) -> None:
    error = play(tmp_path, **parts)
    assert re.search(f"handed back .*{found}.*; allowed: .*{allowed}", error.what), error
    assert error.node in ("b0", "b1")


@pytest.mark.parametrize("name", EFFECTS)
def test_wrong_effects_are_refused_alike_on_both_runtimes(tmp_path: Path, name: str) -> None:
    effects, found, allowed = EFFECTS[name]
    virtual = play_effects(tmp_path / "virtual", effects)
    live = run_live(tmp_path / "live", effects)
    for error in (virtual, live):
        assert re.search(f"{found}.*{allowed}", error.what), error
        assert error.input.startswith("Publish(event=Event(0:0")
    assert (virtual.node, virtual.what) == (live.node, live.what)


def play_effects(folder: Path, effects: Any) -> ProtocolError:
    """What the virtual runtime says of a machine that hands these back for a publication."""
    from murmur_pubsub.deployment import NodeSpec
    from murmur_pubsub.journal import JournalWriter
    from murmur_virtual.virtual_runtime import VirtualRuntime

    folder.mkdir()
    runtime = VirtualRuntime(1, JournalWriter(folder, "run", 2), {"b0": 0, "b1": 1})
    node = runtime.add_node(NodeSpec("b0", "broker", "murmuration.registry:make_broker", dict(PARTS)))
    node.machine.handle = lambda *_: effects  # type: ignore[method-assign]
    with pytest.raises(ProtocolError) as caught:
        node.take_input(Publish(Event(0, 0, 1, {"n": 1})), 1)
    return caught.value


def run_live(folder: Path, effects: Any) -> ProtocolError:
    """The same of the live one."""
    folder.mkdir()
    failures: list[Any] = []

    async def scenario() -> None:
        net = Net(folder)
        node = await net.add("b0", {})
        node.machine.handle = lambda *_: effects  # type: ignore[method-assign]
        node.take_input(Publish(Event(0, 0, 1, {"n": 1})))
        node.take_input(Publish(Event(0, 1, 1, {"n": 1})))
        failures.append(node.failure)

    run_net(scenario())
    assert isinstance(failures[0], ProtocolError)
    return failures[0]


# ------------------------------------------------------------------------------------------ what never ends
@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("ForgetsToStop", "answers to answers without an end"),
        ("Echoes", "answers to answers without an end"),
        ("Floods", r"more than anybody takes \(\d+,\d+ messages are on their way\)"),
    ],
)
def test_what_would_never_end_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, what: str) -> None:
    monkeypatch.setattr("murmur_virtual.virtual_runtime._IN_FLIGHT_MAX", 50_000)
    error = play(tmp_path, reliability=name)
    assert re.search(f"handed back {what}.*; allowed: effects that come to an end", error.what)
    assert re.match(
        r"Received\(source='b[01]', message=Forwarded|TimerFired\(key=\('reliability', 'again'\)", error.input
    )


@pytest.mark.parametrize("name", ["Loops", "Sleeps"])
def test_a_machine_that_does_not_come_back_is_interrupted_in_virtual_time_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(input_watch, "LOOK_EVERY_S", 0.05)
    error = play(tmp_path, reliability=name)
    assert error.what == "has not come back after 1 s"
    assert re.search(IN_FILE + rf"{name}\.wrong", error.place or "")
    assert "Event(0:2" in error.input


def test_a_machine_that_was_interrupted_is_not_again_while_that_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slowly(*given: Any) -> ProtocolError:
        time.sleep(1)  # as on a computer that is busy with others
        return overdue_error(*given)

    monkeypatch.setattr(input_watch, "LOOK_EVERY_S", 0.02)
    monkeypatch.setattr(virtual_node, "overdue_error", slowly)
    assert play(tmp_path, reliability="Sleeps").what == "has not come back after 0.4 s"


def test_a_loop_is_interrupted_in_any_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_watch, "LOOK_EVERY_S", 0.05)
    told: list[str] = []
    thread = threading.Thread(target=lambda: told.append(play(tmp_path, reliability="Loops").what))
    thread.start()
    thread.join(30)
    assert told == ["has not come back after 1 s"]


def test_a_person_may_still_interrupt(tmp_path: Path) -> None:
    alarm = threading.Timer(0.3, lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT))
    former = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a background command
    alarm.start()
    with pytest.raises(KeyboardInterrupt):
        play(tmp_path, reliability="Sleeps")
    signal.signal(signal.SIGINT, former)


@pytest.mark.parametrize(
    ("name", "error", "told"),
    [
        ("NeverSettles", ProtocolError, "the protocol of b0 .* has said for 2 s that a subscription is not in effect"),
        ("GossipsForEver", RunError, "subscriptions did not settle in 2 s: 2 control messages are still on their way"),
    ],
)
def test_a_run_waits_a_bounded_time_for_subscriptions_to_settle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, error: type[Exception], told: str
) -> None:
    monkeypatch.setattr(virtual_run, "_SETTLE_LIMIT_US", 2_000_000)
    parts = {**PARTS, "routing": "flooding", "reliability": HERE + name}
    with pytest.raises(error, match=told):
        play_virtual(deployment(2, [("b0", "b1")], {"c0": "b0"}, {}, parts=parts), tmp_path, lambda *_: None)


# ---------------------------------------------------------------------------------------- what a user sees
def murmur(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """The exit code and what the command prints about it."""
    monkeypatch.setattr(sys, "argv", ["murmur", *arguments])
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    code = ended.value.code
    printed = capsys.readouterr()
    return (code if isinstance(code, int) else 0), printed.out + printed.err


def test_the_message_has_all_that_is_needed_and_its_command_shows_the_failure_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = ["workload.publications=30", f"broker.reliability={HERE}RaisesAtTheFourth", "runtime=virtual"]
    options = [each for change in changes for each in ("--set", change)]
    folder = tmp_path / "run"
    code, text = murmur(monkeypatch, capsys, "run", "parity", *options, "--out", str(folder), "--no-analysis")
    assert code == 1
    assert "Traceback" not in text
    message = re.search(r"the protocol of (b\d) \(incarnation 0\) raised ValueError: a planted mistake", text)
    assert message is not None, text
    node = message[1]
    assert re.search(IN_FILE + r"RaisesAtTheFourth\.publish", text)
    assert re.search(r"on Received\(source='c\d', message=Publication.* at 0\.\d{6} s", text)
    assert f"run folder: {folder}" in text
    again = re.search(r"again, step by step: murmur (.*), then murmur (.*)", text)
    assert again is not None
    first, then = again[1].split(), again[2].split()
    assert then == ["replay", f"{folder}-again", "--node", node, "--incarnation", "0"]
    code, text = murmur(monkeypatch, capsys, *first, "--no-analysis")
    assert (code, f"again, step by step: murmur {' '.join(then)}" in text) == (1, True)
    code, text = murmur(monkeypatch, capsys, *then)
    assert code == 1
    assert "the machine raised" in text
    assert "a planted mistake" in text


def test_the_error_is_whole_when_it_comes_from_another_process() -> None:
    sent = ProtocolError("b1", 2, 3_000, input="Start()", what="it raised", place="x.py:1", replay="murmur replay r")
    come = pickle.loads(pickle.dumps(sent))
    assert (str(come), come.node, come.incarnation, come.time_us) == (str(sent), "b1", 2, 3_000)
