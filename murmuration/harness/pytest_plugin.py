"""Fixtures for fault-injection test suites; pytest finds this plugin by itself where murmur is installed.

A test asks for `cluster` (or `clients`, `faults`, `verdict`), and says what it wants by overriding fixtures in its own
module: `overlay` (a scenario's key of that name), `protocol` (the parts of a broker, by name or dotted path),
`parameters` (of the protocols, by name), `attached` (client names and their brokers; empty: one at each) and
`scenario` (further keys). The suite runs in virtual time, or on live Ray actors with `--murmur-runtime=ray`.

pytest loads this module in every repository where murmur is installed: what it needs is imported by the fixtures.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import murmuration
from murmuration.hidden_packages import hidden_package

if TYPE_CHECKING:
    from murmuration.harness.cluster import Client
    from murmuration.harness.fault_handle import FaultHandle


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the plugin."""
    group = parser.getgroup("murmur")
    group.addoption(
        "--murmur-runtime", choices=("virtual", "ray"), default="virtual", help="the runtime of every cluster"
    )
    group.addoption(
        "--murmur-judge",
        choices=("spark", "plain", "auto"),
        default="spark",
        help="who judges: Spark; plain Python, quick for small runs and without Java; auto: by the size of a run",
    )
    group.addoption("--murmur-seed", type=int, default=1, help="the seed of every cluster")


@pytest.fixture
def overlay() -> Mapping[str, Any]:
    """The overlay: seven brokers in a balanced tree, unless the test module says otherwise."""
    return {"kind": "balanced", "brokers": 7, "degree": 3}


@pytest.fixture
def protocol() -> Mapping[str, str]:
    """The parts of a broker: `routing`, `reliability`, `matching`."""
    return {}


@pytest.fixture
def parameters() -> Mapping[str, Mapping[str, Any]]:
    """The parameters of the protocols, by the protocol's name, such as `{"epidemic": {"algorithm": "push"}}`."""
    return {}


@pytest.fixture
def attached() -> Mapping[str, str]:
    """The clients' names and their brokers; empty: `c0` at the first broker, `c1` at the second, and so on."""
    return {}


@pytest.fixture
def scenario() -> Mapping[str, Any]:
    """Further keys of a scenario, such as `links` or `failure_detection`."""
    return {}


@pytest.fixture(scope="session")
def murmur_packages() -> None:
    """End the session with one message if a module of the project hides a package of murmur's.

    A fixture of the session, so that it comes before `tmp_path`, which cannot be torn down after an exit.
    """
    hidden = hidden_package()
    if hidden is not None:
        pytest.exit(f"murmur: {hidden}", returncode=2)


@pytest.fixture
def cluster(
    request: pytest.FixtureRequest,
    murmur_packages: None,
    tmp_path: Path,
    overlay: Mapping[str, Any],
    protocol: Mapping[str, str],
    parameters: Mapping[str, Mapping[str, Any]],
    attached: Mapping[str, str],
    scenario: Mapping[str, Any],
) -> Iterator["murmuration.Cluster"]:
    """A running cluster; its run folder is in the test's temporary folder."""
    runtime, seed = request.config.getoption("--murmur-runtime"), request.config.getoption("--murmur-seed")
    folder = tmp_path / "run"
    request.node.user_properties.append(("murmur", f"run folder: {folder}\nagain: {_command(request, runtime, seed)}"))
    with murmuration.Cluster.start(
        overlay, attached, parameters=parameters, runtime=runtime, seed=seed, folder=folder, **protocol, **scenario
    ) as running:
        yield running


@pytest.fixture
def clients(cluster: "murmuration.Cluster") -> "Mapping[str, Client]":
    """The clients of the cluster by name."""
    return cluster.clients


@pytest.fixture
def faults(cluster: "murmuration.Cluster") -> "FaultHandle":
    """What breaks and mends the cluster."""
    return cluster.faults


@pytest.fixture
def verdict(cluster: "murmuration.Cluster", request: pytest.FixtureRequest) -> "Callable[[], murmuration.Verdict]":
    """Call it at the end of the test: the cluster ends, and the run is judged."""
    from murmuration.results.verdict import judge_for

    judge = request.config.getoption("--murmur-judge")

    def ask() -> "murmuration.Verdict":
        cluster.end()
        if judge == "spark" or (judge == "auto" and judge_for(cluster.folder) == "spark"):
            request.getfixturevalue("murmur_spark")
        return cluster.verdict(judge)

    return ask


@pytest.fixture(scope="session")
def murmur_spark() -> Iterator[object]:
    """One Spark session for all verdicts: starting one takes longer than most tests."""
    from spark_analysis.session import spark_session

    with spark_session(None, 0) as session:
        yield session


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say below a failure where its run folder is, and the command that plays the test again."""
    report = yield
    if report.failed:
        report.sections += [("murmur", str(text)) for name, text in item.user_properties if name == "murmur"]
    return report


def _command(request: pytest.FixtureRequest, runtime: str, seed: int) -> str:
    judge = request.config.getoption("--murmur-judge")
    return f"pytest '{request.node.nodeid}' --murmur-runtime={runtime} --murmur-seed={seed} --murmur-judge={judge}"
