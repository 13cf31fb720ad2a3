"""Looks at a cluster before anything is started there: `python -m actors.cluster_probe ADDRESS FOLDER [STORE]`.

Ray's client waits a minute for a cluster that is not there, and then ends its process: so a process of its own looks.
It prints one line of JSON: the versions of the cluster and its hosts, or what went wrong. Each host is asked for
its versions, whether it sees the run folder and can write to the store, and how much room there is for journals.
"""

import contextlib
import json
import os
import secrets
import shutil
import socket
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

_CONNECT_TIMEOUT_S = 5.0
_ANSWER_TIMEOUT_S = 30.0
_CLOCK_ASKED = 5
_ZONE = "ray.io/availability-zone"
"""The label that Ray's autoscaler gives hosts of a cloud; `ray start --labels` gives it to others."""


def look(address: str, folder: Path, store: str | None) -> dict[str, Any]:
    """`error` (kind, words), or `ray`, `python` and `hosts`: the fields of `actors.joining.HostProbe` for each."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_TIMEOUT_S).close()
    except OSError as error:
        return {"error": ["absent", str(error)]}
    import ray
    from ray._raylet import GcsClient  # type: ignore[attr-defined]

    try:
        metadata = GcsClient(address=address).internal_kv_get(b"CLUSTER_METADATA", b"cluster", timeout=10)
    except ray.exceptions.AuthenticationError as error:
        return {"error": ["token", str(error)]}
    except (ray.exceptions.RayError, RuntimeError) as error:
        return {"error": ["absent", str(error)]}
    if metadata is None:
        return {"error": ["absent", "something that is no Ray cluster"]}
    versions = json.loads(metadata)
    found = {"ray": versions["ray_version"], "python": versions["python_version"], "hosts": []}
    own = {"ray": ray.__version__, "python": ".".join(map(str, sys.version_info[:3]))}
    if any(found[each] != own[each] for each in own):
        return found
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError, ValueError, AssertionError) as error:
        return {"error": ["join", str(error).strip().splitlines()[0]]}
    found["hosts"] = _ask_hosts(folder, store)
    return found


def _ask_hosts(folder: Path, store: str | None) -> list[dict[str, Any]]:
    """What each host that lives says of itself, the driver's own first."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    own = ray.get_runtime_context().get_node_id()
    nodes = [node for node in ray.nodes() if node["Alive"]]
    nodes.sort(key=lambda node: (node["NodeID"] != own, node["NodeManagerAddress"], node["NodeID"]))
    mark = folder / f".murmur-{secrets.token_hex(8)}"
    mark.touch()
    try:
        asked = [
            ray.remote(num_cpus=0, max_retries=0)(_say)
            .options(scheduling_strategy=NodeAffinitySchedulingStrategy(node_id=node["NodeID"], soft=False))
            .remote(str(mark), store)
            for node in nodes
        ]
        said = [_answer(each) for each in asked]
        clocks = [
            _clock(node["NodeID"]) if "failure" not in answer else {} for node, answer in zip(nodes, said, strict=True)
        ]
    finally:
        mark.unlink()
    return [
        {
            "identifier": node["NodeID"],
            "name": node["NodeName"],
            "address": node["NodeManagerAddress"],
            "zone": node.get("Labels", {}).get(_ZONE),
            "memory": int(node["Resources"].get("memory", 0)),
            **answer,
            **clock,
        }
        for node, answer, clock in zip(nodes, said, clocks, strict=True)
    ]


def _answer(asked: Any) -> Any:
    import ray

    try:
        return ray.get(asked, timeout=_ANSWER_TIMEOUT_S)
    except ray.exceptions.RayError as error:
        return {"failure": f"{type(error).__name__}: {str(error).strip().splitlines()[-1]}"}


def _clock(identifier: str) -> dict[str, Any]:
    """How far the host's clock is ahead of this one's, and by how much that may be wrong: half the way there and
    back. Its worker process is there already: it was asked before."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    strategy = NodeAffinitySchedulingStrategy(node_id=identifier, soft=False)
    tell = ray.remote(num_cpus=0, max_retries=0)(_now_ns).options(scheduling_strategy=strategy)
    best: dict[str, Any] = {}
    for _ in range(_CLOCK_ASKED):
        began = time.time_ns()
        answer = _answer(tell.remote())
        ended = time.time_ns()
        if isinstance(answer, dict):
            return answer
        unsure_us = (ended - began) / 2e3
        if not best or unsure_us < best["clock_unsure_us"]:
            best = {"clock_us": (answer - (began + ended) / 2) / 1e3, "clock_unsure_us": unsure_us}
    return best


def _now_ns() -> int:
    return time.time_ns()


def _say(mark: str, store: str | None) -> dict[str, Any]:
    """Runs on a host; needs nothing of ours, which may not be there."""
    import ray

    own = None
    with contextlib.suppress(Exception):
        own = version("murmuration")
    path = Path(mark)
    seen = path.exists()
    scratch = os.environ.get("MURMUR_SCRATCH")
    if scratch is None and not (seen and store is None):
        scratch = tempfile.gettempdir()
    place = path.parent if scratch is None else Path(scratch)
    return {
        "murmur": own,
        "ray": ray.__version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        "seen": seen,
        "scratch": scratch,
        "trouble": _trouble(place),
        "free": shutil.disk_usage(place).free if place.is_dir() else 0,
        "store_trouble": None if store is None else _store_trouble(store, path.name),
    }


def _trouble(place: Path) -> str | None:
    """Why no file can be made there."""
    try:
        with tempfile.TemporaryFile(dir=place):
            return None
    except OSError as error:
        return str(error)


def _store_trouble(store: str, mark: str) -> str | None:
    """Why this host cannot write to the store."""
    from pyarrow.fs import FileSystem

    own = f"{mark}-{secrets.token_hex(8)}"
    try:
        filesystem, path = FileSystem.from_uri(store)
        filesystem.create_dir(path, recursive=True)
        with filesystem.open_output_stream(f"{path}/{own}") as stream:
            stream.write(b"murmur")
        filesystem.delete_file(f"{path}/{own}")
    except (OSError, ValueError) as error:
        return str(error).splitlines()[0]
    return None


if __name__ == "__main__":
    print(json.dumps(look(sys.argv[1], Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None)))
