"""A Ray that the program has begun itself is left alone; of one whose start is broken off nothing stays."""

from pathlib import Path
from typing import Any, NoReturn

import psutil
import pytest

from actors.processes import state_of
from actors.ray_session import ray_session
from murmur_pubsub.errors import InputError
from murmuration.harness.cluster import Cluster

pytestmark = pytest.mark.ray
REFUSED = r"^Ray: found one that this program is in already; allowed: none, for murmur begins or joins one itself"


def test_a_program_that_has_begun_ray_itself_is_refused_and_its_ray_goes_on(tmp_path: Path) -> None:
    import ray

    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        kept = ray.put("mine")
        with pytest.raises(InputError, match=REFUSED), ray_session(1, "127.0.0.1:6379"):
            pass
        with (
            pytest.raises(InputError, match=REFUSED),
            Cluster.start({"kind": "chain", "brokers": 2}, runtime="ray", folder=tmp_path / "run"),
        ):
            pass
        assert ray.get(kept) == "mine"
    finally:
        ray.shutdown()


@pytest.mark.parametrize("hosts", [1, 2])
def test_ctrl_c_while_ray_starts_leaves_no_process_and_no_folder(hosts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[psutil.Process] = []
    names: list[str] = []
    folders: list[Path] = []

    def interrupted(node: Any) -> NoReturn:
        started.extend(psutil.Process().children(recursive=True))
        names.extend(process.name() for process in started)
        folders.append(Path(node.get_session_dir_path()).parent)
        raise KeyboardInterrupt

    monkeypatch.setattr("ray._private.node.Node.start_ray_processes", interrupted)
    with pytest.raises(KeyboardInterrupt), ray_session(1, hosts=hosts):
        pass
    assert "gcs_server" in names, "the head's first processes were there"
    assert [process for process in started if state_of(process.pid) != "gone"] == []
    assert [folder for folder in folders if folder.exists()] == []
