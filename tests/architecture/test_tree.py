"""The tree as a whole: no addresses of registries, no file too long to read, valid cluster files."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

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


def addresses_in(text: str) -> list[str]:
    return [address for address in ADDRESSES if address in text]


def is_too_long(name: str, text: str) -> bool:
    return name.endswith(".py") and name not in LONG_WITH_CAUSE and len(text.splitlines()) > LINES_MAX


def test_no_file_names_a_registry() -> None:
    texts = {path: path.read_bytes().decode(errors="ignore") for path in tracked_files()}
    found = [f"{path.relative_to(ROOT)}: {address}" for path, text in texts.items() for address in addresses_in(text)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_planted_address_is_found(address: str) -> None:
    assert addresses_in(f"package @ https://{address}/simple") == [address]


def test_no_python_file_is_too_long_to_read() -> None:
    long = [
        name
        for path in tracked_files()
        if path.suffix == ".py" and is_too_long(name := path.relative_to(ROOT).as_posix(), path.read_text())
    ]
    assert not long, f"past {LINES_MAX} lines: {long}"


def test_a_file_one_line_past_the_limit_is_too_long() -> None:
    assert is_too_long("murmur_pubsub/planted.py", "x = 1\n" * (LINES_MAX + 1))
    assert not is_too_long("murmur_pubsub/planted.py", "x = 1\n" * LINES_MAX)


def check_cluster(text: str) -> dict[str, Any]:
    """The cluster file as Ray would use it; raises as `ray up` would if it is not valid."""
    from ray.autoscaler._private.util import prepare_config, validate_config

    config: dict[str, Any] = prepare_config(yaml.safe_load(text))
    validate_config(config)
    return config


CLUSTER_FILES = ("cluster.yaml", "cluster-onprem.yaml")


@pytest.mark.parametrize("name", CLUSTER_FILES)
def test_ray_accepts_the_cluster_file(name: str) -> None:
    config = check_cluster((ROOT / name).read_text())
    assert config["head_node_type"] in config["available_node_types"]


def test_every_host_of_the_cloud_cluster_has_an_image_of_its_own_choice() -> None:
    config = check_cluster((ROOT / "cluster.yaml").read_text())
    images = {each["node_config"].get("ImageId") for each in config["available_node_types"].values()}
    (image,) = images
    assert image, "without one Ray takes an image whose Python is too old"


def test_the_cloud_cluster_has_spot_workers_as_an_option_and_one_narrow_group() -> None:
    config = check_cluster((ROOT / "cluster.yaml").read_text())
    spot = config["available_node_types"]["spot_worker"]
    assert spot["node_config"]["InstanceMarketOptions"]["MarketType"] == "spot"
    assert spot["min_workers"] == 0
    assert list(config["provider"]["security_group"]) == ["GroupName"], "no ports are opened to the world"


@pytest.mark.parametrize("name", CLUSTER_FILES)
def test_every_host_is_set_up_from_the_constraints_and_asks_for_the_token(name: str) -> None:
    config = check_cluster((ROOT / name).read_text())
    assert any("make setup" in command for command in config["setup_commands"])
    assert "~/.ray/auth_token" in config["file_mounts"]
    starts = [*config["head_start_ray_commands"], *config["worker_start_ray_commands"]]
    starts = [command for command in starts if "ray start" in command]
    assert len(starts) == 2
    asked = "RAY_worker_niceness=0 RAY_AUTH_MODE=token ~/murmur/.venv/bin/ray start"
    assert all(asked in command for command in starts), starts


def left_behind(patterns: list[str], names: list[str]) -> list[str]:
    """The files that rsync would leave out: a pattern that begins with a slash counts from the top, others anywhere."""
    places = [pattern.removesuffix("**") for pattern in patterns]
    return [
        name for name in names if any(f"/{name}".startswith(place) or f"/{place}" in f"/{name}" for place in places)
    ]


@pytest.mark.parametrize("name", CLUSTER_FILES)
def test_every_file_of_the_project_gets_to_the_hosts(name: str) -> None:
    names = [path.relative_to(ROOT).as_posix() for path in tracked_files()]
    patterns = check_cluster((ROOT / name).read_text())["rsync_exclude"]
    assert left_behind(patterns, names) == []
    assert left_behind(["runs/**"], names), "this leaves out murmuration/runs"


@pytest.mark.parametrize("planted", ["max_worker: 4", "head_node_type: nobody", "max_workers: 'many'"])
def test_ray_refuses_a_broken_cluster_file(planted: str) -> None:
    key = planted.split(":")[0]
    lines = [line for line in (ROOT / "cluster.yaml").read_text().splitlines() if not line.startswith(f"{key}:")]
    with pytest.raises(Exception, match=r"(?i)max_worker|many|head_node_type"):
        check_cluster("\n".join([*lines, planted]))


@pytest.mark.parametrize("name", CLUSTER_FILES)
def test_ray_is_started_by_its_path_in_the_environment(name: str) -> None:
    """The commands run in a login shell that knows nothing of the virtual environment made by set-up."""
    config = check_cluster((ROOT / name).read_text())
    commands = [*config["head_start_ray_commands"], *config["worker_start_ray_commands"]]
    ray = [command for command in commands if "ray stop" in command or "ray start" in command]
    assert len(ray) == 4
    assert all("~/murmur/.venv/bin/ray " in command for command in ray), ray
