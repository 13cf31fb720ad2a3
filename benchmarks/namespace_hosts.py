"""Hosts on one computer, each with processes, network, disk and an account of its own, reached over SSH.

A host is a set of Linux namespaces in which sshd is process 1, on a `CleanDisk`. All of it is inside namespaces of the
calling process (`enter_namespaces("--net")`), so when that ends, however it ends, no address, mount or process is left.
This needs root on Linux, iproute2, and openssh-server.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from benchmarks.clean_disk import ACCOUNT, HOME, CleanDisk, run, unshare

_BRIDGE = "hosts"
_NEEDED = {"sshd": "openssh-server", "ssh-keygen": "openssh-client", "rsync": "rsync", "ip": "iproute2"}
_SSHD = """
HostKey /etc/ssh/of_this_host
AuthorizedKeysFile /etc/ssh/allowed
StrictModes no
PasswordAuthentication no
UsePAM no
PidFile none
"""


def what_is_missing() -> str | None:
    """Why hosts cannot be made here; None: they can."""
    for command, package in _NEEDED.items():
        if shutil.which(command) is None:
            return f"no command {command} (Debian's package {package})"
    tried = subprocess.run([*unshare("--net"), "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, text=True)
    return f"no namespaces here: {tried.stderr.strip()}" if tried.returncode else None


class NamespaceHosts:
    """Hosts by address, in one network with the calling process, which has the address `gateway`.

    What lies at `shared` is ~/shared on each of them. Who has `key` may log in as ACCOUNT. Hosts whose disks lie over
    this computer's own ("/") are lent a virtual environment of it, the others wheels, if there are any.
    """

    def __init__(
        self, folder: Path, below: Path, gateway: str, addresses: Sequence[str], venv: Path, wheels: Path | None
    ) -> None:
        self.key = folder / "key"
        self.shared = folder / "shared"
        self._folder = folder
        self._below = below
        self._gateway = gateway
        self._addresses = addresses
        self._venv = venv
        self._wheels = wheels
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True)
        if self._below == Path("/"):  # a layer cannot lie inside the folder that it covers, so it goes into memory
            run("mount", "-t", "tmpfs", "tmpfs", str(self._folder))
        self.shared.mkdir()
        self.shared.chmod(0o777)
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.key))
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", _BRIDGE, "type", "bridge")
        run("ip", "address", "add", f"{self._gateway}/24", "dev", _BRIDGE)
        run("ip", "link", "set", _BRIDGE, "up")
        try:
            for address in self._addresses:
                self._start(address, self._disk(address).root)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for address in list(self._processes):
            self.lose(address)

    def lose(self, address: str) -> None:
        """Take the host away as a power cut would: no process of it does anything more, and its address is gone."""
        process = self._processes.pop(address)
        process.kill()
        process.wait()

    def on(self, address: str, command: str) -> str:
        """What a command prints that is typed on the host as ACCOUNT."""
        trust = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"]
        shell = ["ssh", "-i", str(self.key), *trust, f"{ACCOUNT}@{address}", command]
        return subprocess.run(shell, check=True, capture_output=True, text=True).stdout

    def _disk(self, address: str) -> CleanDisk:
        disk = CleanDisk(self._folder / address, self._below)
        (disk.root / "etc" / "ssh").mkdir(exist_ok=True)
        shutil.copy(self.key.with_suffix(".pub"), disk.root / "etc" / "ssh" / "allowed")
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{disk.root}/etc/ssh/of_this_host")
        (disk.root / "etc" / "ssh" / "sshd_of_this_host").write_text(_SSHD)
        names = "".join(f"{each} {_name(each)}\n" for each in self._addresses)
        (disk.root / "etc" / "hosts").write_text(f"127.0.0.1 localhost\n{names}")
        (disk.home / "shared").mkdir()
        disk.show(self.shared, HOME.relative_to("/") / "shared")
        if self._below == Path("/"):
            disk.lend_venv(self._venv)
        elif self._wheels is not None:
            disk.lend_wheels(self._wheels)
        return disk

    def _start(self, address: str, root: Path) -> None:
        name, log = _name(address), self._folder / address / "log"
        boot = (
            f"hostname {name}; mount -t proc proc /proc; ip link set lo up; "
            "mount -t devpts -o newinstance,ptmxmode=0666 devpts /dev/pts; ln -s pts/ptmx /dev/ptmx; "
            f"until ip address add {address}/24 dev eth0 2>/dev/null; do sleep 0.1; done; ip link set eth0 up; "
            "exec $(command -v sshd) -D -e -f /etc/ssh/sshd_of_this_host"
        )
        inside = [*unshare("--net", "--kill-child"), "chroot", str(root), "/bin/sh", "-c", boot]
        with log.open("w") as said:
            environment = {"PATH": f"{os.defpath}:/usr/sbin:/sbin"}
            process = subprocess.Popen(inside, stdout=said, stderr=said, env=environment)
        self._processes[address] = process
        link = ["type", "veth", "peer", "name", "eth0", "netns", str(_first_child(process.pid))]
        run("ip", "link", "add", name, *link)
        run("ip", "link", "set", name, "master", _BRIDGE, "up")
        deadline = time.monotonic() + 30
        while "Server listening" not in log.read_text():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{address} does not start: {log.read_text()}")
            time.sleep(0.05)


def _name(address: str) -> str:
    return f"host{address.rpartition('.')[2]}"


def _first_child(pid: int) -> int:
    """The process that `unshare` started in its namespaces."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    deadline = time.monotonic() + 10
    while not (found := children.read_text().split()):
        if time.monotonic() > deadline:
            raise RuntimeError(f"process {pid} started nothing")
        time.sleep(0.01)
    return int(found[0])
