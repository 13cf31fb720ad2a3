"""The tree as a whole: no addresses of registries, no file too long to read, a valid cluster file."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINES_MAX = 500
LONG_WITH_CAUSE: dict[str, str] = {}
ADDRESSES = tuple(
    "".join(parts)
    for parts in (
        ("py", "pi.org"),
        ("python", "hosted"),
        ("file:///", "opt"),
        ("deb.", "debian"),
        ("registry.", "npmjs"),
    )
)


def tracked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def test_no_file_names_a_registry() -> None:
    found = []
    for path in tracked_files():
        text = path.read_bytes().decode(errors="ignore")
        found += [f"{path.relative_to(ROOT)}: {address}" for address in ADDRESSES if address in text]
    assert not found, "\n".join(found)


def test_no_python_file_is_too_long_to_read() -> None:
    long = [
        f"{path.relative_to(ROOT)}: {count} lines"
        for path in tracked_files()
        if path.suffix == ".py"
        and (count := len(path.read_text().splitlines())) > LINES_MAX
        and str(path.relative_to(ROOT)) not in LONG_WITH_CAUSE
    ]
    assert not long, "\n".join(long)


def test_ray_accepts_the_cluster_file(monkeypatch: pytest.MonkeyPatch) -> None:
    import yaml
    from ray.autoscaler._private.util import prepare_config, validate_config

    config = yaml.safe_load((ROOT / "cluster.yaml").read_text())
    validate_config(prepare_config(config))
