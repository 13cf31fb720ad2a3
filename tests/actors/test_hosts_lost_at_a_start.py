"""A host goes away while a node of it is being started, which has said nothing yet. It is started once more with the
host, and the journal that it may never have begun is none that was lost."""

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from murmur_pubsub.machine import NodeContext
from murmur_pubsub.run_manifest import read_manifest
from reliability.best_effort import BestEffort
from reliability.layer import BrokerServices
from routing.protocol import NoParameters
from tests.actors.joined import JoinedCluster, await_excused, await_publishing
from tests.actors.test_hosts_away import RESTARTED, incarnations


class SlowToBeMade(BestEffort):
    """Best effort, but the second incarnation of b1 takes too long to be made."""

    def __init__(self, context: NodeContext, parameters: NoParameters, services: BrokerServices) -> None:
        super().__init__(context, parameters, services)
        if (context.name, context.incarnation) == ("b1", 1):
            time.sleep(600)


SCENARIO: dict[str, Any] = RESTARTED | {
    "name": "lost_at_a_start",
    "broker": {"reliability": f"{__name__}:{SlowToBeMade.__name__}"},
    "faults": [{"at": "2 s", "kill": "b1"}, {"at": "4 s", "restart": "b1"}],
}


def await_start(cluster: JoinedCluster, number: int) -> None:
    """Return when a node is being started on that host."""
    deadline = time.monotonic() + 120
    while not cluster.at_work(number, "NodeActor.listen"):
        assert time.monotonic() < deadline, "nobody is started there"
        time.sleep(0.2)


@pytest.mark.ray
@pytest.mark.slow
def test_who_was_being_started_when_its_host_went_away_comes_with_it(tmp_path: Path) -> None:
    file, out = tmp_path / "scenario.yaml", tmp_path / "run"
    file.write_text(yaml.safe_dump(SCENARIO))
    with JoinedCluster(tmp_path, scratch=True) as cluster:
        process = cluster.murmur("run", str(file), "--address", cluster.address, "--out", str(out), "--json")
        try:
            await_publishing(process, out)
            await_start(cluster, 2)
            cluster.lose(2)
            cluster.start_host(2)
            await_excused(process)
        finally:
            process.kill()
    assert [each.kind.name for each in read_manifest(out).faults[2:]] == ["LOSE_HOST", "RETURN_HOST"]
    assert incarnations(out / "journal", "b1") == [0, 1, 2]
