"""Does `ray up cluster-onprem.yaml` make a cluster that judges a run, loses a host on the way, and goes down again?

`python -m benchmarks.ray_up` makes three hosts (`benchmarks.namespace_hosts`) with the addresses and the account of
cluster-onprem.yaml, and plays docs/cluster.md on them. It prints what the commands say, how long each step took, and a
last line of JSON. Root on Linux is needed, with rsync and openssh-server.

Without options each host is a copy of this computer with its virtual environment, where `make setup` has little to do.
`--disk FOLDER` takes another root folder for their disks, where set-up begins with nothing; `sh scripts/fresh_root.sh
FOLDER make openjdk-17-jre-headless` makes one. `--wheels FOLDER` has what set-up installs then, for the hosts reach no
network: `pip wheel -w FOLDER -c constraints.txt '.[dev]'`. `--plain` leaves Spark out.
"""

import argparse
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from benchmarks.clean_disk import enter_namespaces, run
from benchmarks.namespace_hosts import NamespaceHosts, what_is_missing
from tests.actors.joined import has_published

ROOT = Path(__file__).parents[1]
FILE = "cluster-onprem.yaml"
GATEWAY = "192.0.2.1"
IN_MURMUR = "cd ~/murmur && RAY_AUTH_MODE=token .venv/bin/"
JOIN_S = 120
"""How long the hosts may take to join once `ray up` has ended, if they are set up already."""

GONE_S = 150
"""How long raylets may go on after `ray down`: Ray stops the head's, and the others notice within a minute."""


def scenario(head: str, kept: str, lost: str) -> dict[str, Any]:
    """Guaranteed delivery over a cell of two brokers, one of which is on the host to be lost."""
    return {
        "name": "first",
        "runtime": "ray",
        "overlay": {
            "kind": "cells",
            "cells": {"p": ["p1"], "middle": ["b1", "b2"], "s": ["s1"]},
            "links": [["p", "middle"], ["middle", "s"]],
            "redundancy": {"middle": 2},
        },
        "workload": {
            "kind": "paced", "publishers": {"p1": 2}, "subscribers": {"s1": 2}, "rate_per_s": 10, "seconds": 20,
        },
        "broker": {"routing": "cells", "reliability": "gryphon", "parameters": {"gryphon": {"pubends": {"p1": 2}}}},
        "failure_detection": {"heartbeat": "500 ms", "timeout": "2 s", "reconnect": "100 ms"},
        "placement": {"p1": head, "s1": head, "b1": kept, "b2": lost},
        "hosts": 3,
    }  # fmt: skip


class Desk:
    """Where a person types the commands: a folder of its own with the key and the token. `took_s`: how long each step
    took."""

    def __init__(self, folder: Path, key: Path) -> None:
        self.took_s: dict[str, float] = {}
        self._environment = {**os.environ, "HOME": str(folder), "TMPDIR": str(folder), "RAY_TMPDIR": str(folder)}
        (folder / ".ssh").mkdir(parents=True)
        shutil.copy(key, folder / ".ssh" / "id_ed25519")
        keys = Path(pwd.getpwuid(os.getuid()).pw_dir) / ".ssh"  # ssh does not ask HOME
        keys.mkdir(mode=0o700, exist_ok=True)
        run("mount", "--bind", str(folder / ".ssh"), str(keys))

    def step(self, name: str, *arguments: str) -> str:
        """What `ray` prints with these arguments, shown as it comes too; ends this program if it fails."""
        began = time.monotonic()
        process = self.begin(*arguments)
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            print(line, end="", flush=True)
        if process.wait():
            raise SystemExit(f"{name}: exit code {process.returncode}")
        self.took_s[name] = round(time.monotonic() - began, 1)
        return "".join(said)

    def begin(self, *arguments: str) -> "subprocess.Popen[str]":
        """The `ray` command under way."""
        command = [str(Path(sys.executable).with_name("ray")), *arguments]
        print(f"$ {' '.join(command)}", flush=True)
        return subprocess.Popen(
            command, cwd=ROOT, env=self._environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip


def await_hosts(hosts: NamespaceHosts, head: str, limit_s: float) -> None:
    """Return when three hosts have joined."""
    listing = f"{IN_MURMUR}ray list nodes --filter state=ALIVE --format json 2>&1 || true"
    deadline = time.monotonic() + limit_s
    while hosts.on(head, listing).count('"node_ip"') < 3:
        if time.monotonic() > deadline:
            print(hosts.on(head, "cat /tmp/ray/session_latest/logs/monitor.*"), flush=True)
            raise SystemExit(f"fewer than three hosts have joined in {limit_s:.0f} s")
        time.sleep(1)


def is_publishing(process: "subprocess.Popen[str]", run_folder: Path) -> bool:
    """Wait until something is published; False if the process ends before."""
    while process.poll() is None:
        if has_published(run_folder):
            return True
        time.sleep(0.2)
    return False


def play(hosts: NamespaceHosts, desk: Desk, addresses: list[str], judge: str, limit_s: float) -> dict[str, Any]:
    """From `ray up` to `ray down`; what came of it."""
    head, kept, lost = addresses
    desk.step("token", "get-auth-token", "--generate")
    desk.step("up", "up", "--yes", FILE)
    began = time.monotonic()
    await_hosts(hosts, head, limit_s)
    desk.took_s["workers join"] = round(time.monotonic() - began, 1)
    (hosts.shared / "first.yaml").write_text(yaml.safe_dump(scenario(*addresses)))
    began = time.monotonic()
    address = '$(hostname -I | cut -d" " -f1):6379'
    options = f"--json {judge} --address {address} --out ~/shared/first"
    process = desk.begin("exec", FILE, f"{IN_MURMUR}murmur run ~/shared/first.yaml {options}")
    if not is_publishing(process, hosts.shared / "first"):
        raise SystemExit(process.communicate()[0])
    hosts.lose(lost)
    print(f"{lost} is lost", flush=True)
    said = process.communicate()[0]
    print(said, flush=True)
    desk.took_s["a run that loses a host, and its verdict"] = round(time.monotonic() - began, 1)
    desk.step("down", "down", "--yes", FILE)
    began = time.monotonic()
    left = {head, kept}
    while left and time.monotonic() - began < GONE_S:
        time.sleep(1)
        left = {address for address in left if hosts.on(address, "pgrep raylet || true")}
    desk.took_s["the last raylet ends"] = round(time.monotonic() - began, 1)
    verdict = json.loads(next(line for line in reversed(said.splitlines()) if line.startswith("{")))
    return {"verdict": verdict, "took_s": desk.took_s, "left": sorted(left)}


def main() -> None:
    """Parse the command line, make the hosts, play, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--disk", type=Path, default=Path("/"))
    parser.add_argument("--wheels", type=Path)
    parser.add_argument("--plain", action="store_true")
    options = parser.parse_args()
    if missing := what_is_missing():
        raise SystemExit(missing)
    bare = options.disk != Path("/")
    folder = enter_namespaces(options.disk.parent if bare else Path(tempfile.gettempdir()), "--net")
    provider = yaml.safe_load((ROOT / FILE).read_text())["provider"]
    addresses = [provider["head_ip"], *provider["worker_ips"]]
    began = time.monotonic()
    venv, judge = Path(sys.prefix), "--plain" if options.plain else ""
    with NamespaceHosts(folder / "hosts", options.disk, GATEWAY, addresses, venv, options.wheels) as hosts:
        desk = Desk(folder / "desk", hosts.key)
        outcome = play(hosts, desk, addresses, judge, 10 * JOIN_S if bare else JOIN_S)
    print(json.dumps({**outcome, "minutes": round((time.monotonic() - began) / 60, 1)}))


if __name__ == "__main__":
    main()
