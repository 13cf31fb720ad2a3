"""What holds for all tests: Ray only where it is asked for, one Ray and one Spark for as many as can share them, which
tests are slow, one hypothesis profile, where the real data is.

Ray is not imported here, for its import takes longer than most tests. Its `init` is wrapped as the module is loaded,
by whatever and whenever, so that a test which imports it itself, or by way of the driver, meets the same refusal.
"""

import contextlib
import functools
import importlib.machinery
import itertools
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import Phase, settings

from murmuration.papers.lab.real_data import data_folder

settings.register_profile("ci", derandomize=True, print_blob=True, deadline=None)
settings.register_profile("dev", print_blob=True, deadline=None)
settings.register_profile("long", max_examples=2_000, print_blob=True, deadline=None)
settings.register_profile("mutants", settings.get_profile("ci"), phases=[Phase.explicit, Phase.generate])
settings.load_profile("ci" if os.environ.get("CI") else "dev")


SLOW_S = 3
SLOW_LIVE_S = 20
"""A test that takes longer is to be marked `slow`; those with Ray or Spark have processes to start."""
OVER_SOCKETS = Path(__file__).parent / "actors"
"""What is tested there takes a peer that is silent for long for dead."""
ACTORS_AT_ONCE = 16
COLLECTED = pytest.StashKey[list[pytest.Item]]()


class RayGuard:
    """A finder of modules that wraps `ray.init`: it raises unless `open`, which it is during tests marked `ray`."""

    def __init__(self) -> None:
        self.open = False
        self.may_be_shared = False
        """Does the test come when there is no other Ray any more?"""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != "ray":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            load = loader.exec_module

            def load_and_wrap(module: Any) -> None:
                load(module)
                module.init = self.wrap(module.init)

            loader.exec_module = load_and_wrap
        return spec

    def wrap(self, init: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(init)
        def guarded(*positional: Any, **named: Any) -> Any:
            if not self.open:
                raise AssertionError("only tests marked `ray` may start Ray")
            return init(*positional, **named)

        return guarded


GUARD = RayGuard()
if "ray" in sys.modules:
    sys.modules["ray"].init = GUARD.wrap(sys.modules["ray"].init)  # type: ignore[attr-defined]
else:
    sys.meta_path.insert(0, GUARD)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """The whole of a test, its fixtures of any scope included: these run before any fixture of ours could act."""
    GUARD.open = item.get_closest_marker("ray") is not None
    GUARD.may_be_shared = shares_ray(item)
    try:
        return (yield)
    finally:
        GUARD.open = GUARD.may_be_shared = False


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The quick tests first, then those with a Ray of their own, those with Spark, and last those that share one Ray:
    there is one Ray in a process at a time, and the shared one stays to the end. Spark's Java stays too, and those that
    look at all processes of their Ray come before it."""
    config.stash[COLLECTED] = list(items)
    for item in items:
        if item.path.parent == OVER_SOCKETS:
            item.add_marker("sockets")

    def turn(item: pytest.Item) -> int:
        if shares_ray(item):
            return 3
        return 2 if is_marked(item, "spark") else int(is_marked(item, "ray"))

    items.sort(key=turn)


def shares_ray(item: pytest.Item) -> bool:
    return "live_ray" in getattr(item, "fixturenames", ())


def is_marked(item: pytest.Item, name: str) -> bool:
    return item.get_closest_marker(name) is not None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the tests that ought to be marked `slow`; a report only, for how long a test takes is no verdict on it."""
    took: defaultdict[str, float] = defaultdict(float)
    limits: dict[str, int] = {}
    for report in itertools.chain(*terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport) and "slow" not in report.keywords:
            took[report.nodeid] += report.duration
            limits[report.nodeid] = SLOW_LIVE_S if {"ray", "spark"} & report.keywords.keys() else SLOW_S
    for name, seconds in sorted(took.items(), key=lambda each: each[1], reverse=True):
        if seconds > limits[name]:
            terminalreporter.line(f"took {seconds:.1f} s and is not marked slow: {name}")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """The one small local Spark session of all tests: `analyze` finds it as the active one."""
    from spark_analysis.session import start_session

    session = start_session("local[2]", "1g", small=True)
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _spark_where_it_is_marked(request: pytest.FixtureRequest) -> None:
    if is_marked(request.node, "spark"):
        request.getfixturevalue("spark")


@pytest.fixture(scope="session")
def live_ray() -> Iterator[Any]:
    """The one Ray of all tests that only play runs on it: whatever would begin a session of its own gets this one. Such
    tests are the last, so it need not end before another begins."""
    from actors import ray_session

    assert GUARD.may_be_shared, "only a test that names `live_ray` comes last, and this Ray stays to the end"
    with ray_session.ray_session(actors=ACTORS_AT_ONCE) as session, pytest.MonkeyPatch.context() as patch:
        patch.setattr(ray_session, "ray_session", lambda *_, **__: contextlib.nullcontext(session))
        yield session


@pytest.fixture(scope="session")
def data_directory() -> Path:
    """The folder of real data: MURMUR_DATA, or ../shared/data beside the checkout."""
    folder = data_folder()
    if not folder.is_dir():
        pytest.skip(f"the real data is not in {folder} (set MURMUR_DATA to where it is)")
    return folder
