"""What happens to a cluster without an order counts for the next order, whatever that is."""

from collections.abc import Callable
from pathlib import Path

import pytest

from murmur_pubsub.errors import InputError
from murmur_pubsub.faults import Fault, FaultKind
from murmur_pubsub.run_manifest import read_manifest
from murmuration.harness import runtimes
from murmuration.harness.cluster import Cluster


@pytest.fixture
def die(monkeypatch: pytest.MonkeyPatch) -> Callable[[Cluster, str], None]:
    """Has a node die, as step 0, and the runtime say that nobody had ordered it."""
    observed: dict[int, Fault] = {}
    monkeypatch.setattr(runtimes._VirtualClusterRuntime, "observed", observed)

    def end(cluster: Cluster, name: str) -> None:
        observed[0] = Fault(0, FaultKind.KILL, (name,))
        cluster._runtime.carry_out(0, observed[0])

    return end


def test_who_has_died_by_itself_can_be_started_again_at_once(
    tmp_path: Path, die: Callable[[Cluster, str], None]
) -> None:
    with Cluster.start({"kind": "chain", "brokers": 3}, folder=tmp_path / "run") as cluster:
        die(cluster, "b1")
        cluster.faults.restart("b1")
        cluster.settle()
        assert cluster.faults.runs("b1")
    faults = read_manifest(tmp_path / "run").faults
    assert [(each.text, each.by_itself) for each in faults] == [("death of b1", True), ("restart b1", False)]


def test_who_has_died_by_itself_does_not_run_and_cannot_be_stalled(
    tmp_path: Path, die: Callable[[Cluster, str], None]
) -> None:
    with Cluster.start({"kind": "chain", "brokers": 3}, folder=tmp_path / "run") as cluster:
        die(cluster, "b1")
        assert not cluster.faults.runs("b1")
    with Cluster.start({"kind": "chain", "brokers": 3}, folder=tmp_path / "other") as cluster:
        die(cluster, "b1")
        with pytest.raises(InputError, match="stall b1, which is down then"):
            cluster.faults.stall("b1")
