"""A root folder with a disk of its own: a writable layer over a folder that stays as it is.

All mounts are inside namespaces of the command (`enter_namespaces`), so none is left when it ends, however it ends.
This needs root on Linux.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ACCOUNT = "murmur"
HOME = Path("/home") / ACCOUNT
PIP = "[global]\nno-index = true\n"
_INSIDE = "MURMUR_INSIDE_NAMESPACES"
_DESCRIPTORS = {
    "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
}  # fmt: skip
_DEVICES = ("null", "zero", "random", "urandom", "tty", "full")


def unshare(*options: str) -> list[str]:
    """The command that starts another one with processes, mounts and a host's name of its own."""
    return ["unshare", "--mount", "--pid", "--uts", "--fork", *options]


def enter_namespaces(place: Path, *options: str) -> Path:
    """Play the calling command again as process 1 of namespaces of its own, and end with it; returns only inside them:
    a new folder below `place`. `options` are more of those that `unshare` takes.

    The folder is removed from outside, where nothing is mounted in it: inside, all that is shown would go too."""
    if folder := os.environ.get(_INSIDE):
        return Path(folder)
    folder = tempfile.mkdtemp(prefix="clean-", dir=place)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # or the folder would stay
    dies_with_this = ["setpriv", "--pdeathsig", "KILL"]
    again = [*dies_with_this, *unshare("--kill-child", "--mount-proc", *options), *sys.orig_argv]
    try:
        done = subprocess.run(again, env={**os.environ, _INSIDE: folder}, check=False)
    finally:
        shutil.rmtree(folder)
    sys.exit(done.returncode)


def run(*command: str) -> None:
    """Run a command; raises `RuntimeError` with what it said if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


class CleanDisk:
    """A root folder at `folder`/root over the folder `below`, with ACCOUNT, which may use sudo if that is there."""

    def __init__(self, folder: Path, below: Path) -> None:
        self.root = folder / "root"
        self.home = self.root / HOME.relative_to("/")
        self._layers = folder / "layers"
        self.cover(below, self.root)
        for place, mode in (("dev", 755), ("tmp", 1777), ("run", 755)):
            run("mount", "-t", "tmpfs", "-o", f"mode={mode}", "tmpfs", str(self.root / place))
        for place in ("dev/pts", "dev/shm", "run/sshd"):
            (self.root / place).mkdir()
        run("mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", f"{self.root}/dev/shm")
        for name, descriptor in _DESCRIPTORS.items():
            (self.root / "dev" / name).symlink_to(descriptor)
        for device in _DEVICES:
            (self.root / "dev" / device).touch()
            self.show(Path("/dev") / device, Path("dev") / device)
        shell = ["--no-create-home", "--home-dir", str(HOME), "--shell", "/bin/bash", "--password", "*"]
        run("chroot", str(self.root), "useradd", *shell, ACCOUNT)
        shutil.copytree(self.root / "etc" / "skel", self.home)
        self.give(self.home, *self.home.iterdir())
        if (self.root / "etc" / "sudoers.d").is_dir():
            (self.root / "etc" / "sudoers.d" / ACCOUNT).write_text(f"{ACCOUNT} ALL=(ALL) NOPASSWD: ALL\n")

    def show(self, what: Path, place: Path) -> None:
        """Show a file or folder of this computer, or of this disk, at that place below the root."""
        run("mount", "--bind", str(what), str(self.root / place))

    def cover(self, below: Path, place: Path) -> None:
        """Show the folder at a place below the root, such that what is written there is kept apart."""
        apart = self._layers / str(len(list(self._layers.glob("*"))))
        for path in (place, apart / "changes", apart / "work"):
            path.mkdir(parents=True, exist_ok=True)
        layers = f"lowerdir={below},upperdir={apart / 'changes'},workdir={apart / 'work'}"
        run("mount", "-t", "overlay", "overlay", "-o", layers, str(place))

    def give(self, *paths: Path) -> None:
        """Make ACCOUNT the owner."""
        names = [f"/{path.relative_to(self.root)}" for path in paths]
        run("chroot", str(self.root), "chown", "--no-dereference", ACCOUNT, *names)

    def lend_venv(self, venv: Path) -> None:
        """Make a virtual environment of this computer ACCOUNT's, as it is and as ~/murmur/.venv, to install into. Only
        what pip replaces changes its owner."""
        lent = self.root / venv.relative_to("/")
        self.cover(venv, lent)
        (self.home / "murmur" / ".venv").mkdir(parents=True)
        for place in (lent, self.root / Path(sys.base_prefix).relative_to("/")):
            for folder in place.relative_to(self.root).parents:
                path = self.root / folder
                path.chmod(path.stat().st_mode | 0o055)
        packages = next(lent.glob("lib/python3*/site-packages"))
        installed = [each for found in packages.glob("*murmuration*") for each in (found, *found.rglob("*"))]
        (lent / ".set-up").unlink(missing_ok=True)  # `make setup` is to install what is in ~/murmur
        scripts = [lent / "bin", *(lent / "bin").iterdir()]
        self.give(self.home / "murmur", lent, *scripts, packages, packages / "__pycache__", *installed)
        self.show(lent, HOME.relative_to("/") / "murmur" / ".venv")
        (self.root / "etc" / "pip.conf").write_text(
            f"{PIP}no-build-isolation = false\n"
        )  # that is how it is switched off

    def lend_wheels(self, folder: Path) -> None:
        """Let pip install from the wheels in this folder, and from nowhere else."""
        (self.root / "wheels").mkdir()
        self.show(folder, Path("wheels"))
        (self.root / "etc" / "pip.conf").write_text(f"{PIP}find-links = /wheels\n")
