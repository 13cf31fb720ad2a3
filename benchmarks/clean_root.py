"""Do the recipes work where nothing of murmur, nor of this computer, is there?

`python -m benchmarks.clean_root FOLDER RECIPE…` plays recipes, one after the other, in a root folder that `sh
scripts/fresh_root.sh FOLDER` has made, and leaves that as it is. The recipes are

- `cluster`: the set-up commands of cluster.yaml, of head and workers;
- `image`: the commands of the Dockerfile, and a run that is judged;
- `workflow`: the steps of the workflow in docs/in-your-places.md;
- `chapters`: README's set-up, and each command that the chapters on a protocol of one's own print.

Each command is printed with the seconds that it took; the first that fails ends them with exit code 1. `--wheels
FOLDER`: pip installs from there alone (`pip wheel -w FOLDER -c constraints.txt '.[dev]'`).
"""

import argparse
import itertools
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import yaml

from benchmarks.clean_disk import ACCOUNT, CleanDisk, enter_namespaces
from tests.docs.printed_pages import PrintedCommand, PrintedFile, steps_of

ROOT = Path(__file__).parents[1]
CHAPTERS = ("own-protocol", "making-it-reliable")


def cluster() -> Iterator[str]:
    """The commands that `ray up cluster.yaml` has every host carry out before Ray is started on it."""
    config = yaml.safe_load((ROOT / "cluster.yaml").read_text())
    for part in ("setup_commands", "head_setup_commands", "worker_setup_commands"):
        yield from config[part]


def image() -> Iterator[str]:
    """The Dockerfile as commands of a shell, in a virtual environment for the base image's Python."""
    yield "python3 -m venv ~/python && sudo ln -s ~/murmur /murmur"
    for line in (ROOT / "Dockerfile").read_text().splitlines():
        if line.startswith("RUN "):
            command = line.removeprefix("RUN ").replace("apt-get", "sudo apt-get").replace("&& rm", "&& sudo rm")
            yield f"PATH=~/python/bin:$PATH; {command}"
    yield "PATH=~/python/bin:$PATH; cd && murmur run parity --json"


def workflow() -> Iterator[str]:
    """The steps of the workflow, after its actions have laid out the repository and Python."""
    steps = list(steps_of((ROOT / "docs" / "in-your-places.md").read_text()))
    (file,) = (step for step in steps if isinstance(step, PrintedFile) and step.name == "suite.yaml")
    (job,) = yaml.safe_load(file.text)["jobs"].values()
    python = "mkdir -p ~/bin && ln -sf /usr/bin/python3 ~/bin/python && PATH=~/bin:$PATH"
    runs = [step["run"] for step in job["steps"] if "run" in step]
    yield f"{python}; {runs[0]}"
    yield ".venv/bin/murmur init suite"
    yield from runs[1:]


def chapters() -> Iterator[str]:
    """Set-up as the README has it; then the chapters, whose commands a test types as they are printed."""
    steps = steps_of((ROOT / "README.md").read_text())
    printed = [step.command for step in steps if isinstance(step, PrintedCommand)]
    yield "sudo apt-get update -qq && sudo apt-get install -y -qq make"
    yield f"cd ~/murmur && {printed[0]}"
    chosen = " or ".join(CHAPTERS)
    yield f"cd ~/murmur && .venv/bin/python -m pytest -q -s tests/docs/test_printed_commands.py -k '{chosen}'"


RECIPES = {each.__name__: each for each in (cluster, image, workflow, chapters)}


def play(disk: CleanDisk, commands: Iterator[str]) -> bool:
    """Type the commands as ACCOUNT; did all succeed?"""
    terminals = "mount -t devpts -o newinstance,ptmxmode=0666 devpts /dev/pts; ln -s pts/ptmx /dev/ptmx"
    subprocess.run(["chroot", str(disk.root), "/bin/sh", "-c", f"mount -t proc proc /proc; {terminals}"], check=True)
    for command in commands:
        began = time.monotonic()
        shell = ["su", "--login", ACCOUNT, "--command", command]
        done = subprocess.run(["chroot", str(disk.root), *shell], stdin=subprocess.DEVNULL, check=False)
        print(f"{time.monotonic() - began:6.1f} s  exit code {done.returncode}  $ {command}", flush=True)
        if done.returncode:
            return False
    return True


def main() -> None:
    """Parse the command line, lay out the root folder, and play the recipe."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("recipes", choices=RECIPES, nargs="+")
    parser.add_argument("--wheels", type=Path)
    options = parser.parse_args()
    disk = CleanDisk(enter_namespaces(options.folder.parent), options.folder)
    if options.wheels is not None:
        disk.lend_wheels(options.wheels)
    for file in ("etc/hosts", "etc/resolv.conf", "etc/ssl/certs/ca-certificates.crt"):
        shutil.copy(Path("/") / file, disk.root / file)
    files = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(files, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for file in listed.split("\0"):
        if (ROOT / file).is_file():
            place = disk.home / "murmur" / file
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, place)
    token = disk.home / ".ray" / "auth_token"
    token.parent.mkdir()
    token.write_text("5f" * 32)
    disk.give(*(path for path in disk.home.rglob("*")))
    sys.exit(0 if play(disk, itertools.chain.from_iterable(RECIPES[each]() for each in options.recipes)) else 1)


if __name__ == "__main__":
    main()
