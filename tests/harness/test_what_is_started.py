"""A cluster runs the protocols that it was told to run, or says why it does not."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.protocol_error import ProtocolError
from murmur_pubsub.run_manifest import read_manifest
from murmur_virtual.run import VirtualRun
from murmuration.harness.cluster import Cluster
from murmuration.live.run_list import runs_in

CHAIN = {"kind": "chain", "brokers": 2}
DATAGRAMS = {"delay": "1 ms"}


def test_a_cluster_has_the_protocols_and_the_parameters_that_it_was_given(tmp_path: Path) -> None:
    parameters = {"epidemic": {"algorithm": "push", "buffer": 7}}
    with Cluster.start(
        CHAIN, reliability="epidemic", parameters=parameters, folder=tmp_path / "run", datagrams=DATAGRAMS
    ):
        pass
    manifest = read_manifest(tmp_path / "run")
    assert manifest.scenario["broker"]["reliability"] == "epidemic"
    assert manifest.scenario["broker"]["parameters"] == parameters
    assert "PushDigest" in manifest.message_kinds.values()


def test_a_cluster_says_what_it_is(tmp_path: Path) -> None:
    with Cluster.start(CHAIN, folder=tmp_path / "run") as cluster:
        cluster.advance("1 s")
        assert repr(cluster) == f"<Cluster of 2 brokers and 2 clients at {cluster.now_us / 1e6:.3f} s: {tmp_path}/run>"
    assert repr(cluster) == f"<Cluster of 2 brokers and 2 clients, over: {tmp_path}/run>"


def test_a_cluster_whose_block_raises_is_over_in_its_manifest(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="what a test expects"), Cluster.start(CHAIN, folder=tmp_path / "run"):
        raise AssertionError("what a test expects")
    with Cluster.start(CHAIN, folder=tmp_path / "whole") as cluster:
        cluster.end()
        assert read_manifest(tmp_path / "whole").status == "complete"
    assert {each.name: each.state for each in runs_in(tmp_path)} == {"whole": "complete", "run": "interrupted"}


def test_a_cluster_that_does_not_start_is_closed_and_over_in_its_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[VirtualRun] = []
    close = VirtualRun.close

    def note_and_close(run: VirtualRun) -> None:
        closed.append(run)
        close(run)

    monkeypatch.setattr(VirtualRun, "close", note_and_close)
    fails = "tests.conformance.broken_protocols:ForgetsEffects"
    with pytest.raises(ProtocolError), Cluster.start(CHAIN, routing=fails, folder=tmp_path / "run"):
        raise AssertionError("it has started")
    assert len(closed) == 1
    assert read_manifest(tmp_path / "run").status == "interrupted"


def test_an_argument_that_is_nearly_right_is_answered_with_the_right_one() -> None:
    with pytest.raises(InputError, match=r"key paramters: found an unknown key \(did you mean 'parameters'\?\)"):
        Cluster.start(CHAIN, paramters={}).__enter__()


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("broker", {"parameters": {}}, "routing, reliability, matching and parameters"),
        ("workload", {"kind": "zipf"}, "the argument clients"),
        ("faults", [{"at": "1 s", "kill": "b0"}], "Cluster.faults"),
        ("churn", {"days": 2}, "Cluster.faults"),
        ("last_mile", "broker", "clients that are nodes"),
    ],
)
def test_a_key_that_would_replace_an_argument_is_refused(tmp_path: Path, key: str, value: Any, allowed: str) -> None:
    with (
        pytest.raises(InputError, match=allowed) as caught,
        Cluster.start(CHAIN, reliability="epidemic", folder=tmp_path / "run", **{key: value}),
    ):
        pass
    assert caught.value.place == f"Cluster.start, key {key}"
    assert not (tmp_path / "run").exists()


def test_a_time_or_a_link_that_a_fault_cannot_have_is_refused(tmp_path: Path) -> None:
    with Cluster.start(CHAIN, folder=str(tmp_path / "run")) as cluster:
        with pytest.raises(InputError, match=r"faults\.slow: found '2'; allowed: a time with its unit"):
            cluster.faults.slow("b0", "2")
        with pytest.raises(InputError, match=r"faults\.link: found \{'loss': 2}"):
            cluster.faults.link("b0", "b1", loss=2)
        with pytest.raises(InputError, match="time: found 'soon'"):
            cluster.advance("soon")


def suite(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Play a suite in a folder of its own."""
    (folder / "test_it.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


PROTOCOL = """
import pytest

@pytest.fixture
def protocol():
    return {"reliability": "epidemic"}
"""


def test_a_suite_gives_parameters_by_a_fixture(tmp_path: Path) -> None:
    text = (
        PROTOCOL
        + """
@pytest.fixture
def parameters():
    return {"epidemic": {"algorithm": "push", "buffer": 7}}

@pytest.fixture
def scenario():
    return {"datagrams": {"delay": "1 ms"}}

def test_it(cluster):
    text = (cluster.folder / "manifest.json").read_text()
    assert '"buffer": 7' in text and "PushDigest" in text
"""
    )
    result = suite(tmp_path, text)
    assert result.returncode == 0, result.stdout


def test_a_suite_whose_scenario_names_a_broker_beside_the_protocol_does_not_run(tmp_path: Path) -> None:
    text = (
        PROTOCOL
        + """
@pytest.fixture
def scenario():
    return {"broker": {"parameters": {"epidemic": {"algorithm": "push"}}}}

def test_it(cluster):
    pass
"""
    )
    result = suite(tmp_path, text)
    assert result.returncode == 1
    assert "Cluster.start, key broker" in result.stdout
