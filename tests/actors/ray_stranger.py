"""A process without a token or an address tries what it can at the ports of another's Ray, a line of JSON for each.

`python ray_stranger.py GCS_PORT PORT=NAME…`; its environment has no variable of Ray's and an empty HOME. It has found
out by itself that Ray has to be kept from turning a loopback address into another.
"""

import http.client
import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import grpc

CALLS = {
    "gcs_server": {
        "read": "InternalKVGcsService/InternalKVGet",
        "write": "InternalKVGcsService/InternalKVPut",
        "list": "InternalKVGcsService/InternalKVKeys",
        "delete": "InternalKVGcsService/InternalKVDel",
        "list nodes": "NodeInfoGcsService/GetAllNodeInfo",
        "list actors": "ActorInfoGcsService/GetAllActorInfo",
        "register an actor": "ActorInfoGcsService/RegisterActor",
        "kill an actor": "ActorInfoGcsService/KillActorViaGcs",
        "submit a job": "JobInfoGcsService/AddJob",
    },
    "raylet": {
        "look": "NodeManagerService/GetNodeStats",
        "lease a worker": "NodeManagerService/RequestWorkerLease",
        "shut down": "NodeManagerService/ShutdownRaylet",
        "push an object": "ObjectManagerService/Push",
        "pull an object": "ObjectManagerService/Pull",
    },
    "worker": {
        "look": "CoreWorkerService/GetCoreWorkerStats",
        "run a task": "CoreWorkerService/PushTask",
        "kill": "CoreWorkerService/KillActor",
        "exit": "CoreWorkerService/Exit",
    },
    "agent": {
        "report": "ReporterService/GetTraceback",
        "read logs": "LogService/StreamLog",
    },
}
PAGES = ("/", "/metrics", "/api/local_raylet_healthz", "/get_runtime_envs_info", "/get_or_create_runtime_env")


def call(port: str, method: str) -> str:
    """The answer to an empty request, or how it was refused."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        try:
            return f"answered {channel.unary_unary(f'/ray.rpc.{method}')(b'', timeout=3)!r:.60}"
        except grpc.RpcError as error:
            return f"{error.code().name}: {error.details()}"


def fetch(port: str, page: str) -> str:
    """The same of a page."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{page}", timeout=3) as answer:
            return f"answered {answer.status}: {answer.read(60)!r}"
    except urllib.error.HTTPError as error:
        return f"{error.code}: {error.read(80)!r}"
    except (OSError, http.client.HTTPException) as error:
        return f"{type(error).__name__}: {error}"


def attempt(what: Callable[[], Any]) -> str:
    """Something through Ray itself."""
    try:
        return f"answered {what()!r:.60}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"


def main() -> None:
    """Try everything."""
    gcs, *ports = sys.argv[1:]

    def said(name: str, what: str, answer: str) -> None:
        print(json.dumps({"name": name, "what": what, "answer": answer}), flush=True)

    for each in ports:
        port, _, name = each.partition("=")
        for what, method in CALLS.get(name, {}).items():
            said(name, what, call(port, method))
        if name not in CALLS or name == "agent":
            for page in PAGES:
                said(name, page, fetch(port, page))
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    import ray
    from ray._raylet import GcsClient, GcsClientOptions  # type: ignore[attr-defined]

    address = f"127.0.0.1:{gcs}"
    said(
        "store", "get", attempt(lambda: GcsClient(address=address).internal_kv_get(b"CLUSTER_METADATA", b"cluster", 5))
    )
    said("store", "put", attempt(lambda: GcsClient(address=address).internal_kv_put(b"mine", b"1", True, None, 5)))
    said("store", "list", attempt(lambda: GcsClient(address=address).internal_kv_keys(b"", None, 5)))

    def nodes() -> Any:
        state = ray._private.state.GlobalState()
        state._initialize_global_state(GcsClientOptions.create(address, None, True, False))
        return state.node_table()

    said("ray", "state", attempt(nodes))
    said("ray", "connect", attempt(lambda: ray.init(address=address, logging_level="ERROR")))


if __name__ == "__main__":
    main()
