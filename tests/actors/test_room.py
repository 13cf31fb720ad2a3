"""What a live run needs of a computer is compared with what is there, before anything starts."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from actors.room import check_files, check_memory, check_ports, fitting_nodes
from murmur_pubsub.deployment import Deployment
from murmur_pubsub.errors import InputError
from murmuration.deployment.build_deployment import build
from murmuration.scenario.load import check_scenario

GB = 10**9


def chain(brokers: int, density: int) -> Deployment:
    """Brokers in a chain, with a client at every one."""
    workload = {"kind": "zipf", "clients": brokers, "subscribers_per_actor": 1, "publications": 1, "publishers": 1}
    data = {"overlay": {"kind": "chain", "brokers": brokers}, "workload": workload, "density": density}
    return build(check_scenario(data, "test")).deployment


def test_too_little_memory_is_said_with_the_number_that_fits() -> None:
    check_memory(32, 8 * GB)
    with pytest.raises(InputError, match=r"32 actors, which need 3\.5 GB.*at most 13 actors here"):
        check_memory(32, 2 * GB + 1024)


def test_the_density_that_is_named_is_the_least_that_fits() -> None:
    with pytest.raises(InputError) as caught:
        check_memory(2_000, 8 * GB)
    named = re.search(r"density: (\d+) or more", str(caught.value))
    assert named is not None
    density = int(named[1])
    check_memory(2_000, 8 * GB, density)
    with pytest.raises(InputError, match=rf"at most {fitting_nodes(8 * GB, density - 1)} nodes here"):
        check_memory(2_000, 8 * GB, density - 1)


def test_where_no_density_would_do_fewer_nodes_are_asked_for() -> None:
    with pytest.raises(InputError, match="fewer nodes; or `--runtime virtual`"):
        check_memory(20_000, 2 * GB, 10)


def test_an_actor_with_more_files_and_sockets_than_the_limit_is_refused_with_the_density_that_fits() -> None:
    check_files(chain(40, 40), 4_096)
    with pytest.raises(InputError) as caught:
        check_files(chain(40, 40), 256)
    said = str(caught.value)
    assert "40 nodes in an actor, that of b0" in said
    assert "256 allowed" in said
    assert "ulimit -n" in said
    named = re.search(r"density: (\d+) or less", said)
    assert named is not None
    check_files(chain(40, int(named[1])), 256)
    limit = re.search(r"a limit of (\d+) or more", said)
    assert limit is not None
    check_files(chain(40, 40), int(limit[1]))
    with pytest.raises(InputError):
        check_files(chain(40, 40), int(limit[1]) - 1)


def test_a_limit_that_not_even_one_node_keeps_is_not_blamed_on_the_density() -> None:
    with pytest.raises(InputError, match=r"1 nodes in an actor.*allowed: a limit of 8\d or more"):
        check_files(chain(2, 1), 81)


def test_more_listeners_than_half_of_the_ports_are_refused() -> None:
    check_ports(14_000, 28_000)
    with pytest.raises(InputError, match="at most 14,000 here, or more ports"):
        check_ports(14_001, 28_000)


def test_a_run_that_does_not_fit_is_refused_before_it_has_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from murmuration.runs.driver import execute
    from murmuration.scenario.load import load_scenario

    short = SimpleNamespace(virtual_memory=lambda: SimpleNamespace(available=2 * GB))
    monkeypatch.setattr("actors.room.psutil", short)
    with pytest.raises(InputError, match=r"parity.*density.*at most 13 actors here; density: \d+ or more"):
        execute(
            load_scenario(Path("parity"), ["workload.clients=32", "runtime=ray"]), tmp_path / "run", lambda *_: None
        )
    assert not (tmp_path / "run").exists()
