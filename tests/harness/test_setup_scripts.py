"""The scripts of set-up where something is missing: each says what, and how to mend it."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
TOOLS = ("sh", "sed", "head", "rm", "mktemp", "mkdir")


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A folder of commands in which there is no Python, no Java, no browser, no npm, no sudo; the user is not root."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        (folder / tool).symlink_to(
            next(path for path in map(Path, (f"/usr/bin/{tool}", f"/bin/{tool}")) if path.exists())
        )
    command(folder / "id", "echo 1000")
    return folder


def command(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def play(bare: Path, script: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", str(SCRIPTS / script), *arguments], capture_output=True, text=True, check=False,
        cwd=bare.parent, env={"PATH": str(bare), "HOME": os.environ.get("HOME", "/"), **variables},
    )  # fmt: skip


def test_a_python_that_is_too_old_is_named_with_the_way_to_name_another(bare: Path) -> None:
    command(bare / "python3.8", '[ "$1" = --version ] && echo Python 3.8.10 && exit 0; exit 1')
    done = play(bare, "ensure_venv.sh", PYTHON="python3.8", VENV="venv")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "Python 3.11 or newer is needed; python3.8 is Python 3.8.10.",
        "If there is a newer one beside it, name it: make PYTHON=python3.12 setup",
    ]
    assert not (bare.parent / "venv").exists()


def test_no_python_at_all_is_said_in_the_same_words(bare: Path) -> None:
    done = play(bare, "ensure_venv.sh", PYTHON="python3", VENV="venv")
    assert done.returncode == 2
    assert "Python 3.11 or newer is needed" in done.stderr


def test_a_python_without_venv_names_the_package(bare: Path) -> None:
    command(bare / "python3", 'case "$*" in *print*) echo python3.11-venv;; *sys.exit*) exit 0;; *) exit 1;; esac')
    done = play(bare, "ensure_venv.sh", PYTHON="python3", VENV="venv")
    assert done.returncode == 2
    assert "Install it as root: apt-get install python3.11-venv" in done.stderr


def test_no_java_ends_nothing_and_names_the_package(bare: Path) -> None:
    done = play(bare, "ensure_java.sh")
    assert done.returncode == 0
    assert "(found: none)" in done.stdout
    assert "apt-get install openjdk-17-jre-headless" in done.stdout


def test_a_java_that_is_too_old_is_named(bare: Path) -> None:
    command(bare / "java", "echo 'openjdk version \"11.0.2\" 2019-01-15' >&2")
    assert "(found: 11)" in play(bare, "ensure_java.sh").stdout


def test_no_browser_ends_nothing_and_names_the_packages(bare: Path) -> None:
    done = play(bare, "ensure_browser.sh")
    assert done.returncode == 0
    assert "apt-get install chromium chromium-driver" in done.stdout


def test_no_sshd_ends_nothing_and_names_the_packages(bare: Path) -> None:
    done = play(bare, "ensure_sshd.sh")
    assert done.returncode == 0
    assert "apt-get install openssh-server rsync iproute2" in done.stdout


def test_without_npm_the_site_is_made_all_the_same(bare: Path) -> None:
    done = play(bare, "fetch_mermaid.sh", "mermaid")
    assert done.returncode == 0
    assert "pictures of states will be shown as text" in done.stderr


def test_without_npm_the_lessons_cannot_be_built_and_it_is_said(bare: Path) -> None:
    done = play(bare, "fetch_pyodide.sh", "pyodide", "python")
    assert done.returncode == 1
    assert done.stderr == "make play: npm is missing, which fetches Pyodide (apt-get install npm).\n"


def test_a_pyodide_that_is_not_what_it_was_is_refused(bare: Path) -> None:
    (bare / "sha512sum").symlink_to(Path("/usr/bin/sha512sum"))
    command(bare / "npm", "echo something else >pyodide-314.0.7.tgz")
    done = play(bare, "fetch_pyodide.sh", "pyodide", "python")
    assert done.returncode == 1
    assert "is not what it was: its sum differs" in done.stderr
